"""Appending rows to a store: a new store that shares the full chunks with the old one takes its name.

The old store is complete until the new one is; a crash leaves one or the other. Full chunks are
hard links, so the cost is that of the new rows, the last chunk and the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.append_counts import append_rows, continued
from ibpdist.data.check import checked
from ibpdist.data.count_store import CountDataset
from ibpdist.data.finalise import OWN_ATTRIBUTES, Outline
from ibpdist.data.labels import Labels, as_labels
from ibpdist.data.sources.array import ArrayTable, table_of
from ibpdist.data.sources.frame import frame_table, is_frame
from ibpdist.data.store import Dataset, changed, open_dataset
from ibpdist.data.summary import summary_of
from ibpdist.data.transform import transform_of
from ibpdist.data.writer import StoreWriter
from ibpdist.storage import files


@contextmanager
def appending(path: str | Path) -> Iterator[StoreWriter]:
    """A writer that continues a store; the rows are there when the block ends, or none of them."""
    target = Path(path)
    open_dataset(target)
    with files.staged(target) as staging:
        files.restore_retired(target)
        data = open_dataset(target)
        if isinstance(data, CountDataset):
            raise UsageError(f"{target}: rows of counts are appended with append()")
        writer = _continued(data, staging)
        yield writer
        writer.finish()
        with files.storage_errors(target):
            files.publish(staging, target, overwrite=True)


def append(path: str | Path, rows: Any, row_coords: Mapping[str, Any] | None = None) -> Dataset:
    """Add rows (row, column) to a dataset, in the units of its source; the dataset with them.

    `rows` is an array, DataFrame or DataArray; its columns are those of the dataset, in that order.
    Every row coordinate that the dataset has comes with them: labels and covariates of a DataFrame
    or DataArray, others from `row_coords` by name. What was done to the rows of the dataset (centring,
    scaling, log1p) is done to these as well.
    """
    if isinstance(open_dataset(path), CountDataset):
        return _append_counts(Path(path), rows, row_coords or {})
    with appending(path) as writer:
        data = open_dataset(path)
        known = data.attributes["row_coords"]
        table = _table(rows, [name for name in known if name not in {"row", *(row_coords or {})}])
        _refuse_columns(table, data)
        given, row = _row_coords(row_coords, table.rows), 0
        _refuse_lacking(known, {*table.row_coords(0, 0), *given}, data)
        for block in table.blocks(data.chunk_rows):
            part = {name: labels[row : row + len(block.x)] for name, labels in given.items()}
            own = {name: labels for name, labels in block.row_coords.items() if name in known}
            writer.append(_transformed(block.x, data, table.name, row), row_coords=own | part)
            row += len(block.x)
    return open_dataset(path)


def _append_counts(target: Path, rows: Any, row_coords: Mapping[str, Any]) -> Dataset:
    with files.staged(target) as staging:
        files.restore_retired(target)
        data = open_dataset(target)
        if not isinstance(data, CountDataset):
            raise changed(target, data.rows, data.rows)
        writer = continued(data, staging)
        append_rows(writer, data, rows, row_coords)
        writer.finish()
        with files.storage_errors(target):
            files.publish(staging, target, overwrite=True)
    return open_dataset(target)


def _table(rows: Any, covariates: list[str]) -> ArrayTable:
    """New rows; of a DataFrame the covariates of the dataset beside the numbers."""
    if not is_frame(rows):
        return table_of(rows, "rows")
    return frame_table(rows, "rows", covariates=[name for name in covariates if name in rows.columns])


def _refuse_lacking(known: Iterable[str], given: set[str], data: Dataset) -> None:
    lacking = [name for name in known if name not in given]
    if lacking:
        named = " and ".join("labels" if name == "row" else name for name in lacking)
        raise InputError(
            f"its rows have {named}, those to append have not: give a DataFrame with them, or "
            f"row_coords={{{lacking[0]!r}: ...}}",
            file=str(data.path),
            kind="labels",
        )


def _transformed(x: NDArray[Any], data: Dataset, name: str, start: int) -> NDArray[Any]:
    """New rows (row, column) in the units of the dataset; bad cells are counted from the first new row."""
    done, names = transform_of(data), data.column_coords().get("column")
    columns = None if names is None else list(names)
    kind = data.dtype if done.is_identity else np.dtype(np.float64)
    values = checked(x, kind, start=start, file=name, columns=columns)
    return done.apply(values, start=start, file=name, columns=columns)


def _row_coords(given: Mapping[str, Any] | None, rows: int) -> dict[str, Labels]:
    coords = {str(name): as_labels(values) for name, values in (given or {}).items()}
    for name, labels in coords.items():
        if len(labels) != rows:
            raise InputError(f"{len(labels)} labels {name!r} for {rows} rows", kind="labels")
    return coords


def _refuse_columns(table: ArrayTable, data: Dataset) -> None:
    """InputError unless rows have as many columns as the dataset and no other labels."""
    if table.columns != data.columns:
        raise InputError(
            f"has {table.columns} columns, the dataset has {data.columns}", file=table.name, kind="shape"
        )
    theirs, ours = table.column_coords().get("column"), data.column_coords().get("column")
    if theirs is None or ours is None:
        return
    for at, (given, expected) in enumerate(zip(theirs, ours, strict=True)):
        if str(given) != str(expected):
            raise InputError(
                f"is {given}, in the dataset {expected}: give the columns in the order of the dataset",
                file=table.name,
                column=at,
                kind="labels",
            )


def _continued(data: Dataset, staging: Path) -> StoreWriter:
    """A writer that holds the rows of the store: full chunks linked, the last part in memory."""
    kept = {name: value for name, value in data.attributes.items() if name not in OWN_ATTRIBUTES}
    source = str(data.attributes["source"])
    outline = Outline(data.columns, data.dtype, data.chunk_rows, source, data.column_coords(), kept)
    writer = StoreWriter(staging, data.path, outline)
    full = data.rows // data.chunk_rows
    with files.storage_errors(data.path):
        for name, dims in data.extras.items():
            writer.put(name, dims, data.extra(name))  # noqa: S610
        _adopt(data, staging, full, writer)
    if full < data.chunks:
        last = data.read(full)
        writer.append(last.x, last.observed, data.row_coords(full))
    return writer


def _adopt(data: Dataset, staging: Path, full: int, writer: StoreWriter) -> None:
    """Take over the full chunks with their labels, hashes and the sums of columns."""
    for name, known in data.manifest.files.items():
        array, _, key = name.partition("/c/")
        if array == "x" and key and int(key.split("/")[0]) < full:
            files.link(data.path / name, staging / name)
            writer.sums[name] = known
    for index in range(full):
        writer.adopt(data.manifest.chunks[index], data.row_coords(index))
    if full:
        writer.resume_summary(summary_of(data.column_summary()), data.rows)
