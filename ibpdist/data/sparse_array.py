"""Sparse matrices of counts in memory, in chunks of equal work; they are never made dense."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data import layout
from ibpdist.data._base import Chunk, CountChunk, Labels
from ibpdist.data.count_writer import CountSummary
from ibpdist.data.entries import Entries


def is_sparse(thing: Any) -> bool:
    """Whether something is a sparse matrix or array of scipy, without importing it."""
    return hasattr(thing, "tocsr") and hasattr(thing, "nnz") and len(getattr(thing, "shape", ())) == 2


class SparseArray:
    """A sparse matrix (row, column) of counts; a `Source`. Values are checked once, when this is made."""

    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, matrix: Any, name: str = "array") -> None:
        held = matrix.tocsr(copy=True)
        held.sum_duplicates()
        held.sort_indices()
        held.eliminate_zeros()
        self._refuse(held, name)
        self.rows, self.columns = (int(size) for size in held.shape)
        starts, columns = held.indptr.astype(np.int64), held.indices.astype(np.int32)
        self._entries = Entries(starts, columns, held.data.astype(np.int64))
        self._stops = layout.chunk_stops(np.diff(starts), layout.most_entries(self.columns))
        self.notes: list[str] = []

    @property
    def chunks(self) -> int:
        return len(self._stops)

    @property
    def all_entries(self) -> int:
        """Cells that are not zero."""
        return int(self._entries.starts[-1])

    @property
    def largest_chunk(self) -> int:
        """The most entries of a chunk."""
        return max(self.entries(index).counts.size for index in range(self.chunks))

    @cached_property
    def fingerprint(self) -> str:
        hashes = []
        for index in range(self.chunks):
            part = self.entries(index)
            hashes.append(layout.counts_hash(np.diff(part.starts), part.columns, part.counts))
        return layout.counts_fingerprint(self.rows, self.columns, self._stops, hashes, [""] * self.chunks)

    def bounds(self, index: int) -> tuple[int, int]:
        if not 0 <= index < self.chunks:
            raise IndexError(f"chunk {index} of {self.chunks}")
        return (self._stops[index - 1] if index else 0), self._stops[index]

    def entries(self, index: int) -> Entries:
        """The cells of a chunk that are not zero."""
        return self._entries.between(*self.bounds(index))

    def read(self, index: int) -> Chunk:
        return CountChunk(index, self.bounds(index)[0], self.entries(index), self.columns, self.dtype)

    def row_coords(self, index: int) -> dict[str, Labels]:
        return {}

    def column_coords(self) -> dict[str, Labels]:
        return {}

    def column_summary(self) -> dict[str, NDArray[np.float64]]:
        """count, mean, sd, min and max of the cells of each column."""
        found = CountSummary(self.columns)
        found.add(self._entries)
        return found.of_columns().table()

    def _refuse(self, held: Any, name: str) -> None:
        """Refuse what is no count, with its place."""
        with np.errstate(invalid="ignore"):
            wrong = ~(held.data >= 0) | (held.data != np.floor(held.data)) | ~np.isfinite(held.data)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            row = int(np.searchsorted(held.indptr, at, side="right")) - 1
            raise InputError(
                "is no count: expected a whole number of at least 0",
                file=name,
                row=row,
                column=int(held.indices[at]),
                value=f"{held.data[at]:g}",
            )
