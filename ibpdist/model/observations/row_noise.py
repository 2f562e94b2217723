"""Rows that are noisier than others: the noise of row n is divided by tau_n ~ Gamma(nu / 2, nu / 2).

    e_nd ~ N(0, psi_d / tau_n),     q(tau_n) = Gamma(a_n, b_n),
    a_n = (nu + D_n) / 2,           b_n = (nu + E_n) / 2,

with D_n the number of cells of the row that are seen, and E_n the sum over them of the expected squared
residual in units of psi_d (factors.md 10). Rows count with T_n = E tau_n in the sums that the dictionary and
the noise are updated from; the degrees of freedom nu are set to where the objective is highest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, gammaincinv, gammaln

from ibpdist.base.structs import NOTHING, Array, Nothing, dims, record, struct

Float = NDArray[np.float64]
LEAST, MOST = 1.0, 400.0
"""Degrees of freedom: with the least a row has no variance, with the most hardly more than its noise says."""
START = 10.0


@struct("row-noise", since=1)
class RowNoise:
    """`freedom` is nu."""

    freedom: Array = dims()


@struct("row-precision", since=1)
class RowPrecision:
    """E tau of the rows of a chunk."""

    mean: Array = dims("row", reduce="concat")


@struct
class WeightedTotals:
    """Sums of T_n over the rows in which a group of columns is seen, and of T_n x and T_n x^2 over cells."""

    weight: Array = dims("group")
    total: Array = dims("column")
    squares: Array = dims("column")


@struct
class RowNoiseSums:
    """Sums over rows of E tau, E log tau, the entropy of tau, and E log tau times the number of seen cells;
    `weighted` is there where columns are grouped."""

    precision: Array = dims()
    log: Array = dims()
    entropy: Array = dims()
    cells: Array = dims()
    weighted: WeightedTotals | Nothing = record(default=NOTHING, kw_only=True)


def expected(freedom: float, cells: Float, squares: Float) -> Float:
    """E tau of rows, from the numbers of seen cells and the sums of their squared residuals."""
    a, b = _shape_and_rate(freedom, cells, squares)
    return a / b


def _shape_and_rate(freedom: float, cells: Float, squares: Float) -> tuple[Float, Float]:
    return 0.5 * (freedom + cells), 0.5 * (freedom + np.maximum(squares, 0.0))


@dataclass(frozen=True)
class Posterior:
    """q(tau) of some rows: E tau, E log tau and the entropy (row), which is zero of draws."""

    mean: Float
    log: Float
    entropy: Float

    @classmethod
    def of(cls, freedom: float, cells: Float, squares: Float, uniforms: Float | None = None) -> Posterior:
        """From the numbers of seen cells, and the sums of their squared residuals; with `uniforms` (row) a
        draw."""
        a, b = _shape_and_rate(freedom, cells, squares)
        if uniforms is not None:
            return cls.known(gammaincinv(a, uniforms) / b)
        log_b, psi = np.log(b), digamma(a)
        return cls(a / b, psi - log_b, a - log_b + gammaln(a) + (1 - a) * psi)

    @classmethod
    def known(cls, precision: Float) -> Posterior:
        """Of precisions (row) that are known."""
        return cls(precision, np.log(precision), np.zeros(precision.size))

    def sums(self, cells: Float, weighted: WeightedTotals | Nothing) -> RowNoiseSums:
        return RowNoiseSums(
            precision=np.asarray(self.mean.sum()),
            log=np.asarray(self.log.sum()),
            entropy=np.asarray(self.entropy.sum()),
            cells=np.asarray(self.log @ cells),
            weighted=weighted,
        )


def best_freedom(rows: float, sums: RowNoiseSums) -> float:
    """nu where the objective is highest: with h = nu / 2 it is rows (h log h - log Gamma(h)) + h sum (E log
    tau - E tau), which is concave."""
    if rows <= 0:
        return START
    mean = float(sums.log - sums.precision) / rows

    def slope(h: float) -> float:
        return float(np.log(h) + 1 - digamma(h) + mean)

    low, high = 0.5 * LEAST, 0.5 * MOST
    if slope(low) <= 0:
        return LEAST
    if slope(high) >= 0:
        return MOST
    return 2 * float(brentq(slope, low, high, xtol=1e-12, rtol=1e-12))


def drawn_freedom(rows: float, freedom: float, sums: RowNoiseSums, rng: np.random.Generator) -> float:
    """nu given the precisions of the rows, its logarithm uniform between the limits: a slice of its density
    through the present value, which is drawn from the whole range and narrowed until it is hit."""

    def density(log_nu: float) -> float:
        h = 0.5 * float(np.exp(log_nu))
        return rows * float(h * np.log(h) - gammaln(h)) + h * float(sums.log - sums.precision)

    at = float(np.log(np.clip(freedom, LEAST, MOST)))
    low, high, level = float(np.log(LEAST)), float(np.log(MOST)), density(at) - rng.exponential()
    while (tried := rng.uniform(low, high)) != at and density(tried) < level:
        low, high = (tried, high) if tried < at else (low, tried)
    return float(np.exp(tried))


def score(rows: float, freedom: float, sums: RowNoiseSums) -> float:
    """What precisions of rows add to the objective: sum_n D_n E log tau_n / 2 - KL(q(tau_n) || p(tau_n))."""
    h = 0.5 * freedom
    prior: float = rows * (h * np.log(h) - gammaln(h)) + (h - 1) * float(sums.log) - h * float(sums.precision)
    return 0.5 * float(sums.cells) + prior + float(sums.entropy)
