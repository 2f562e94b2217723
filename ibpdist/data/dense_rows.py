"""Rows that come as entries, as systems for real-valued data see them."""

from __future__ import annotations

from ibpdist.data._base import Chunk, Source
from ibpdist.data.wrapped import Wrapped


class DenseRows(Wrapped):
    """Chunks hold the values of all cells, and not their entries beside them."""

    def read(self, index: int) -> Chunk:
        chunk = self.source.read(index)
        return Chunk(index, chunk.start, chunk.x, chunk.observed)


def by_entries(source: Source) -> bool:
    """Whether rows come as entries, and are made dense only when they are asked for."""
    while isinstance(source, Wrapped):
        if isinstance(source, DenseRows):
            return False
        source = source.source
    return hasattr(source, "largest_chunk")
