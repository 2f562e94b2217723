"""Values of the log precision at which rows are scored: few a row, points of one grid (row_precision.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ibpdist.predict.precision_grid import GRID, SPACING
from ibpdist.predict.predict import Mask, Matrix, Vector

VALUES = 7
"""The most values of tau at which a row is scored."""
NARROW = 2
"""The least distance of values, in steps of the grid: with larger ones more rows share a value."""


@dataclass(frozen=True)
class Nodes:
    """Values of log tau at which rows are scored: the place on the grid of the `first` (row), their distance
    `step` (row) in steps of the grid, and how many there are, `count` (row)."""

    first: NDArray[np.intp]
    step: NDArray[np.intp]
    count: NDArray[np.intp]

    @classmethod
    def covering(cls, low: Vector, high: Vector) -> Nodes:
        """At most VALUES a row, at the least distance with which they cover a range of log tau."""
        first, step, count = (np.zeros(len(low), np.intp) for _ in range(3))
        low, high = ((end - GRID[0]) / SPACING for end in (low, high))
        size = NARROW
        while (left := count == 0).any():
            a, b = np.floor(low / size), np.maximum(np.ceil(high / size), np.floor(low / size) + 1)
            b = np.minimum(b, (len(GRID) - 1) // size)
            a = np.minimum(a, b - 1)
            some = left & (b - a < VALUES)
            first[some], step[some], count[some] = size * a[some], size, (b - a)[some] + 1
            size *= 2
        return cls(first, step, count)

    def places(self) -> Mask:
        """(row, grid) whether a row is scored there."""
        at = np.arange(len(GRID)) - self.first[:, None]
        made: Mask = (
            (at >= 0) & (at % self.step[:, None] == 0) & (at // self.step[:, None] < self.count[:, None])
        )
        return made

    def groups(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Rows with the same number of values, and the places (row, value) of these."""
        for count in np.unique(self.count):
            rows = np.flatnonzero(self.count == count)
            yield rows, self.first[rows, None] + self.step[rows, None] * np.arange(count)

    def shares(self, rows: NDArray[np.intp], at: Matrix) -> NDArray[np.float64]:
        """(row, point, value) what values at the nodes of rows with the same number of them contribute to a
        spline at log tau; beyond the nodes it is constant."""
        count = int(self.count[rows[0]])
        place = ((at - GRID[0]) / SPACING - self.first[rows, None]) / self.step[rows, None]
        made: NDArray[np.float64] = CubicSpline(np.arange(count), np.eye(count))(np.clip(place, 0, count - 1))
        return made
