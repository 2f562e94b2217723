"""Appending rows to a store of counts: full chunks are linked, and the last one grows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ibpdist.base.errors import InputError
from ibpdist.data.arrays import as_source
from ibpdist.data.count_store import CountDataset
from ibpdist.data.count_writer import CountWriter
from ibpdist.data.finalise import OWN_ATTRIBUTES, Outline
from ibpdist.data.labels import Labels, as_labels
from ibpdist.data.summary import summary_of
from ibpdist.storage import files


def continued(data: CountDataset, staging: Path) -> CountWriter:
    """A writer that holds the rows of a store: all chunks but the last are linked, the last is in memory."""
    kept = {name: value for name, value in data.attributes.items() if name not in OWN_ATTRIBUTES}
    outline = Outline(data.columns, data.dtype, 1, str(data.attributes["source"]), data.column_coords(), kept)
    writer, last = CountWriter(staging, data.path, outline), data.chunks - 1
    with files.storage_errors(data.path):
        for name, dims in data.extras.items():
            writer.put(name, dims, data.extra(name))  # noqa: S610
        writer.adopt(data, last)
    writer.append(data.entries(last), data.row_coords(last))
    writer.resume_summary(summary_of(data.column_summary()), data.rows)
    return writer


def append_rows(writer: CountWriter, data: CountDataset, rows: Any, given: Mapping[str, Any]) -> None:
    """Add rows (row, column) of an array, a sparse matrix or a source of counts."""
    source = as_source(rows, judged=False, counts=True)
    if source.columns != data.columns:
        raise InputError(
            f"has {source.columns} columns, the dataset has {data.columns}", file="rows", kind="shape"
        )
    coords = {str(name): as_labels(values) for name, values in given.items()}
    known = data.attributes["row_coords"]
    for index in range(source.chunks):
        start, stop = source.bounds(index)
        part = {name: values[start:stop] for name, values in coords.items()}
        own: dict[str, Labels] = {
            name: values for name, values in source.row_coords(index).items() if name in known
        }
        lacking = [name for name in known if name not in {**own, **part}]
        if lacking:
            raise InputError(
                f"its rows have {lacking[0]}, those to append have not: give row_coords with {lacking[0]!r}",
                file=str(data.path),
                kind="labels",
            )
        writer.append(source.read(index).entries, own | part)
