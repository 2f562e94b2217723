"""The intercept: a value of each column that every row has, beside its features.

    x_n = b + y_n A + e_n,   b_d flat

Given A, the posterior of b_d is N(xbar_d - ybar A_d, psi_d / n_d), with the means xbar and ybar over the n_d
rows in which the column is seen. So q(A) sees sums about the means, psi_d has one cell less, and in the row
step x and y are taken from the means (linear-gaussian.md 13):

    x_n - b - y_n A = x_n - origin - (y_n - centre) A - e,   e_d ~ N(0, psi_d / n_d).

Draws know b: then it is `origin`, `centre` is 0 and e is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Array, Nothing, dims, replace, struct

Float = NDArray[np.float64]


@struct("intercept", since=1)
class Intercept:
    """`total` (column) sums the observed cells; `error` (column) is the variance of the intercept given A, in
    units of the noise."""

    total: Array = dims("column")
    origin: Array = dims("column")
    centre: Array = dims("group feature")
    error: Array = dims("column")

    @property
    def known(self) -> bool:
        """Whether it is a draw, and not a mean with an error."""
        return not (self.error.any() or self.centre.any())


@struct
class RowTotals:
    """Sums of E y over the rows in which a group of columns is observed."""

    on: Array = dims("group feature")


@struct
class VisibleTotals:
    """Sums of E y over the visible cells of each column, their number, and the `centre` that y was taken
    from."""

    on: Array = dims("feature column")
    centre: Array = dims("feature", reduce="same")
    cells: Array = dims("column")


def initial(total: Float, cells: Float, groups: int, features: int) -> Intercept:
    """Of features that are off everywhere: the means of the columns."""
    seen = np.maximum(cells, 1.0)
    return Intercept(total=total, origin=total / seen, centre=np.zeros((groups, features)), error=1 / seen)


def regrouped(intercept: Intercept | Nothing, old: NDArray[np.intp]) -> Intercept | Nothing:
    """For other groups of columns, each a part of an `old` one (group)."""
    return intercept if isinstance(intercept, Nothing) else replace(intercept, centre=intercept.centre[old])
