"""How much memory data take: dense data by their shape, counts by their entries."""

from __future__ import annotations

from ibpdist.data._base import Source
from ibpdist.data.wrapped import innermost

ENTRY = 12
"""Bytes of an entry: its column and its count."""


def chunk_bytes(source: Source) -> int:
    """Bytes of the first chunk, which is as large as any."""
    entries = getattr(innermost(source), "largest_chunk", None)
    if entries is not None:
        return int(entries) * ENTRY
    first, last = source.bounds(0)
    return (last - first) * source.columns * source.dtype.itemsize


def data_bytes(source: Source) -> int:
    """Bytes of all rows."""
    entries = getattr(innermost(source), "all_entries", None)
    if entries is not None:
        return int(entries) * ENTRY
    return source.rows * source.columns * source.dtype.itemsize
