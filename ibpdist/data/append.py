"""Appending rows to a store: a new store that shares the full chunks with the old one takes its name.

The old store is complete until the new one is; a crash leaves one or the other. Full chunks are
hard links, so the cost is that of the new rows, the last chunk and the labels.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ibpdist.data import files
from ibpdist.data.finish import Outline
from ibpdist.data.store import Dataset, open_dataset
from ibpdist.data.summary import summary_of
from ibpdist.data.transform import transform_of
from ibpdist.data.writer import StoreWriter

_OWN = {
    "schema",
    "layout",
    "source",
    "fingerprint",
    "missing",
    "chunk_rows",
    "column_coords",
    "extras",
    "row_coords",
}


@contextmanager
def appending(path: str | Path) -> Iterator[StoreWriter]:
    """A writer that continues a store; the rows are there when the block ends, or none of them."""
    target = Path(path)
    open_dataset(target)
    with files.staged(target) as staging:
        files.restore_retired(target)
        data = open_dataset(target)
        writer = _continued(data, staging)
        yield writer
        writer.finish()
        with files.storage_errors(target):
            files.publish(staging, target, overwrite=True)


def append(path: str | Path, rows: Any, row_coords: Mapping[str, Any] | None = None) -> Dataset:
    """Add rows (row, column) in the units of the source, with the row coordinates that the store has.

    What was done to the rows of the store (centring, scaling, log1p) is done to these as well.
    """
    with appending(path) as writer:
        done = transform_of(open_dataset(path))
        values = np.asarray(rows)
        writer.append(values if done.is_identity else done.apply(values), row_coords=row_coords)
    return open_dataset(path)


def _continued(data: Dataset, staging: Path) -> StoreWriter:
    """A writer that holds the rows of the store: full chunks linked, the last part in memory."""
    kept = {name: value for name, value in data.attributes.items() if name not in _OWN}
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
            _link(data.path / name, staging / name)
            writer.sums[name] = known
    for index in range(full):
        writer.adopt(data.manifest.chunks[index], data.row_coords(index))
    if full:
        writer.resume_summary(summary_of(data.column_summary()), data.rows)


def _link(origin: Path, made: Path) -> None:
    made.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(origin, made)
    except OSError:  # file systems without hard links
        shutil.copyfile(origin, made)
