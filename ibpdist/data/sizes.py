"""How much memory data take: dense data by their shape, counts by their entries."""

from __future__ import annotations

from typing import Any

from ibpdist.data._base import Source
from ibpdist.data.dense_rows import by_entries
from ibpdist.data.wrapped import innermost

ENTRY = 12
"""Bytes of an entry: its column and its count."""


def chunk_bytes(source: Source) -> int:
    """Bytes of the largest chunk."""
    held: Any = innermost(source)
    if by_entries(source):
        return int(held.largest_chunk) * ENTRY
    return most_rows(source) * source.columns * source.dtype.itemsize


def most_rows(source: Source) -> int:
    """The most rows of a chunk: of dense data the first one has them."""
    equal = not hasattr(innermost(source), "largest_chunk")
    bounds = [source.bounds(index) for index in range(1 if equal else source.chunks)]
    return max(stop - start for start, stop in bounds)


def data_bytes(source: Source) -> int:
    """Bytes of all rows."""
    held: Any = innermost(source)
    if by_entries(source):
        return int(held.all_entries) * ENTRY
    return source.rows * source.columns * source.dtype.itemsize
