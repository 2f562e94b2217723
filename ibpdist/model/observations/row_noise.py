"""Rows that are noisier than others: the noise of row n is divided by tau_n ~ Gamma(nu / 2, nu / 2).

    e_nd ~ N(0, psi_d / tau_n),     q(tau_n) = Gamma(a_n, b_n),
    a_n = (nu + D_n) / 2,           b_n = (nu + E_n) / 2,

with D_n the number of cells of the row that are seen, and E_n the sum over them of the expected squared
residual in units of psi_d (factors.md 10). Rows count with T_n = E tau_n in the sums that the dictionary and
the noise are updated from; the degrees of freedom nu are set to where the objective is highest.

The pseudo cells of the noise's prior (noise_and_scale.py) belong to the rows, to each in proportion to its
visible cells, and are as precise as the row: they add to D_n and E_n. So the prior holds the noise of an
average row. If they had the precision one, the prior of many columns would hold the noise of all rows too
small, and precisions that make up for it would look uneven (factors.md 10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, gammaincinv, gammaln

from ibpdist.base.structs import NOTHING, Array, Nothing, dims, record, struct
from ibpdist.model.slice_draw import slice_draw

Float = NDArray[np.float64]
LEAST, MOST = 1.0, 400.0
"""Degrees of freedom: with the least a row has no variance, with the most hardly more than its noise says."""
START = 10.0


@struct("row-noise", since=1)
class RowNoise:
    """`freedom` is nu. The noise of each column has `share` pseudo cells of variance `weak` (column)."""

    freedom: Array = dims()
    share: Array = dims(default=0.0)
    weak: Array = dims("column", default=0.0)

    def law(self, noise: Float, cells: Float) -> PrecisionLaw:
        """The law of tau with this noise (column), and the numbers of seen cells (column)."""
        share = float(self.share) / max(float(cells.sum()), 1.0)
        return PrecisionLaw(float(self.freedom), share * noise.size, share * float((self.weak / noise).sum()))


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
    """Sums over rows of E tau, E log tau, the entropy of tau, and of E log tau and E tau times the number of
    seen cells; `weighted` is there where columns are grouped."""

    precision: Array = dims()
    log: Array = dims()
    entropy: Array = dims()
    cells: Array = dims()
    seen: Array = dims()
    weighted: WeightedTotals | Nothing = record(default=NOTHING, kw_only=True)


@dataclass(frozen=True)
class PrecisionLaw:
    """What is known of tau besides the cells: the degrees of `freedom`, and for each seen cell the number of
    `pseudo` cells of the noise's prior and their `squares` in units of the noise."""

    freedom: float
    pseudo: float = 0.0
    squares: float = 0.0

    def shape_and_rate(self, cells: Float, squares: Float) -> tuple[Float, Float]:
        """Of q(tau), from the numbers of seen cells and the sums of their squared residuals."""
        shape = 0.5 * (self.freedom + (1 + self.pseudo) * cells)
        return shape, 0.5 * (self.freedom + np.maximum(squares, 0.0) + self.squares * cells)

    def of_draws(self) -> PrecisionLaw:
        """Without pseudo cells: draws of the noise take them to have the precision one."""
        return PrecisionLaw(self.freedom)

    def mean(self, cells: Float, squares: Float) -> Float:
        """(row) E tau, as `Posterior` has it."""
        a, b = self.shape_and_rate(cells, squares)
        return a / b


@dataclass(frozen=True)
class Posterior:
    """q(tau) of some rows: E tau, E log tau and the entropy (row), which is zero of draws."""

    mean: Float
    log: Float
    entropy: Float

    @classmethod
    def of(cls, law: PrecisionLaw, cells: Float, squares: Float, uniforms: Float | None = None) -> Posterior:
        """From the numbers of seen cells, and the sums of their squared residuals; with `uniforms` (row) a
        draw."""
        if uniforms is not None:
            a, b = law.of_draws().shape_and_rate(cells, squares)
            return cls.known(gammaincinv(a, uniforms) / b)
        a, b = law.shape_and_rate(cells, squares)
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
            seen=np.asarray(self.mean @ cells),
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
    """nu given the precisions of the rows, its logarithm uniform between the limits."""

    def density(log_nu: float) -> float:
        h = 0.5 * float(np.exp(log_nu))
        return rows * float(h * np.log(h) - gammaln(h)) + h * float(sums.log - sums.precision)

    at = float(np.log(np.clip(freedom, LEAST, MOST)))
    return float(np.exp(slice_draw(density, at, float(np.log(LEAST)), float(np.log(MOST)), rng)))


def score(rows: float, law: PrecisionLaw, sums: RowNoiseSums, total: float) -> float:
    """What precisions of rows add to the objective: sum_n D_n E log tau_n / 2 - KL(q(tau_n) || p(tau_n)), and
    the same of the pseudo cells of `total` seen ones, where the prior of the noise takes tau for one."""
    h = 0.5 * law.freedom
    prior: float = rows * (h * np.log(h) - gammaln(h)) + (h - 1) * float(sums.log) - h * float(sums.precision)
    weak = law.pseudo * float(sums.cells) - law.squares * (float(sums.seen) - total)
    return 0.5 * (float(sums.cells) + weak) + prior + float(sums.entropy)
