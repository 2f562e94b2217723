"""Counts as entries: the cells of rows that are not zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data._base import Chunk, Matrix

GENOTYPES = 2
"""The largest of small whole numbers that are seldom meant as counts."""


@dataclass(frozen=True)
class Entries:
    """Row r has `counts` at `columns` in starts[r] .. starts[r + 1], columns in rising order; whole counts of
    at least one."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(row) number of tokens."""
        total = np.concatenate([[0], np.cumsum(self.counts)])
        found: NDArray[np.int64] = total[self.starts[1:]] - total[self.starts[:-1]]
        return found

    def dense(self, columns: int, dtype: np.dtype[np.generic]) -> Matrix:
        """(row, column) counts."""
        made = np.zeros((self.rows, columns), dtype)
        made[np.repeat(np.arange(self.rows), np.diff(self.starts)), self.columns] = self.counts
        return made

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return int(self.starts.nbytes + self.columns.nbytes + self.counts.nbytes)

    def between(self, first: int, last: int) -> Entries:
        """Adjoining rows; their arrays are views."""
        starts = self.starts[first : last + 1]
        part = slice(starts[0], starts[-1])
        return Entries(starts - starts[0], self.columns[part], self.counts[part])

    def some(self, rows: NDArray[np.intp]) -> Entries:
        """Some rows, in this order."""
        sizes = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], sizes)
        return Entries(starts, self.columns[places], self.counts[places])

    def with_counts(self, counts: NDArray[np.int64]) -> Entries:
        """The same cells with other counts, without those that are zero."""
        kept = counts > 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Entries(before[self.starts], self.columns[kept], counts[kept])


def look_like_counts(chunk: Chunk) -> bool:
    """Whether cells are whole numbers from 0 on, most of them 0 and some above 2, as genotypes are not."""
    x = chunk.x
    if not x.size or x.min() < 0 or x.max() <= GENOTYPES or np.count_nonzero(x) > x.size // 2:
        return False
    return bool((x == np.floor(x)).all())


def entries_of(chunk: Chunk) -> Entries:
    """The counts of a chunk; refused where a value is no count."""
    if chunk.observed is not None:
        row, column = (int(at) for at in np.argwhere(~chunk.observed)[0])
        raise InputError(
            "is missing: counts have no missing cells; write 0, or fit another system",
            row=chunk.start + row,
            column=column,
        )
    wrong = (chunk.x < 0) | (chunk.x != np.floor(chunk.x))
    if wrong.any():
        row, column = (int(at) for at in np.argwhere(wrong)[0])
        raise InputError(
            "is no count: expected a whole number of at least 0",
            row=chunk.start + row,
            column=column,
            value=f"{chunk.x[row, column]:g}",
        )
    rows, columns = np.nonzero(chunk.x)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=chunk.rows))])
    return Entries(starts, columns.astype(np.int32), chunk.x[rows, columns].astype(np.int64))
