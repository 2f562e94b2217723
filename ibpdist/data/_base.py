"""What every part of the pipeline sees of a dataset: row chunks by index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ibpdist.data.entries import Entries

Matrix = NDArray[Any]
Labels = NDArray[Any]


@dataclass(frozen=True)
class Chunk:
    """Rows `start .. start + len(x)` of a dataset.

    `x` (row, column) is float32 or float64, C order, finite, and zero where a cell is not
    observed. `observed` (row, column) is None when every cell is.
    """

    index: int
    start: int
    x: Matrix
    observed: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        return int(self.x.shape[0])

    @property
    def columns(self) -> int:
        return int(self.x.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.x.dtype

    @property
    def nbytes(self) -> int:
        """Memory of the values and of what is observed of them."""
        return int(self.x.nbytes) + (0 if self.observed is None else self.observed.nbytes)

    def taken(self, kept: NDArray[np.bool_], index: int, start: int) -> Chunk:
        """Some of its rows (row) as a chunk of other rows."""
        observed = None if self.observed is None else self.observed[kept]
        if observed is not None and observed.all():
            observed = None
        return Chunk(index, start, self.x[kept], observed)

    @cached_property
    def entries(self) -> Entries:
        """Its cells that are not zero, as counts; refused where a value is no count."""
        from ibpdist.data.entries import entries_of

        return entries_of(self)

    def part(self, first: int, last: int) -> Chunk:
        """Some of its rows, counted from its first."""
        observed = None if self.observed is None else self.observed[first:last]
        return Chunk(self.index, self.start + first, self.x[first:last], observed)


class CountChunk(Chunk):
    """Rows of counts by the cells that are not zero; `x` is made when it is asked for."""

    def __init__(self, index: int, start: int, entries: Entries, columns: int, dtype: np.dtype[Any]) -> None:
        own = {"index": index, "start": start, "observed": None, "entries": entries}
        self.__dict__.update(own | {"_columns": columns, "_dtype": dtype})

    @cached_property
    def x(self) -> Matrix:
        return self.entries.dense(self.columns, self.dtype)

    @property
    def rows(self) -> int:
        return self.entries.rows

    @property
    def columns(self) -> int:
        return int(self.__dict__["_columns"])

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.__dict__["_dtype"]
        return found

    @property
    def nbytes(self) -> int:
        return self.entries.nbytes

    def part(self, first: int, last: int) -> Chunk:
        rows = self.entries.between(first, last)
        return CountChunk(self.index, self.start + first, rows, self.columns, self.dtype)

    def taken(self, kept: NDArray[np.bool_], index: int, start: int) -> Chunk:
        return CountChunk(index, start, self.entries.some(np.flatnonzero(kept)), self.columns, self.dtype)


class Source(Protocol):
    """A matrix in fixed row chunks; reading a chunk twice gives the same bits."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> int:
        """Number of chunks."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of the data and of its chunking."""
        ...

    def bounds(self, index: int) -> tuple[int, int]:
        """First row of a chunk and the row after its last."""
        ...

    def read(self, index: int) -> Chunk: ...

    def row_coords(self, index: int) -> dict[str, Labels]:
        """Labels and covariates of the rows of a chunk by name; `row` itself when there are labels."""
        ...

    def column_coords(self) -> dict[str, Labels]:
        """Labels of the columns by name; `column` itself when there are labels."""
        ...
