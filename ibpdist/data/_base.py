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

    @cached_property
    def entries(self) -> Entries:
        """Its cells that are not zero, as counts; refused where a value is no count."""
        from ibpdist.data.entries import entries_of

        return entries_of(self)

    def part(self, first: int, last: int) -> Chunk:
        """Some of its rows, counted from its first."""
        observed = None if self.observed is None else self.observed[first:last]
        return Chunk(self.index, self.start + first, self.x[first:last], observed)


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
