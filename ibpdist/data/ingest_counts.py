"""From files of counts to a store of counts, in one pass and with memory for a chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.count_sources._base import CountTable
from ibpdist.data.count_writer import CountWriter
from ibpdist.data.finalise import Outline
from ibpdist.data.labels import as_labels
from ibpdist.data.writer import reserved
from ibpdist.storage import files

Count = Callable[[int, int | None], None]
WAYS = {
    "center": "counts stay counts, and zeros zeros: leave out --center",
    "scale": "counts stay counts: leave out --scale",
    "log1p": "counts stay counts: leave out --log1p",
    "chunk_rows": "chunks of counts have equal numbers of entries: leave out --chunk-rows",
}


def ingest_counts(
    table: CountTable,
    staging: Path,
    target: Path,
    asked: Mapping[str, Any],
    attributes: Mapping[str, Any],
    progress: Count | None,
) -> CountWriter:
    """Write the rows of a table to the staging directory of a store."""
    for name, way in WAYS.items():
        if asked[name]:
            raise UsageError(f"{table.name}: {name}: {way}")
    coords = {name: as_labels(values) for name, values in table.column_coords().items()}
    if table.columns < 1:
        raise InputError("has no columns", file=table.name, kind="empty")
    outline = Outline(table.columns, np.dtype(np.float32), 1, table.name, coords, dict(attributes))
    writer = CountWriter(staging, target, outline)
    for block in table.count_blocks():
        writer.append(block.entries, block.row_coords)
        if progress:
            progress(writer.rows, table.rows)
    writer.finish()
    return writer


def store_counts(source: Any, path: Path) -> None:
    """Write a source of counts to a store with the same chunks."""
    outline = Outline(source.columns, source.dtype, 1, "", {}, {})
    with reserved(path, False) as staging:
        writer = CountWriter(staging, path, outline)
        for index in range(source.chunks):
            writer.append(source.entries(index))
        writer.finish()
        with files.storage_errors(path):
            files.publish(staging, path, False)
