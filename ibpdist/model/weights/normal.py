"""Normal weights: w ~ N(mu_k, 1), sparse factor analysis (factors.md 1).

q(z, w) is joint: given z = 1, w is normal; given z = 0 it stays at its prior and costs
nothing. w is integrated out of the update of z (kernels/respond.py). The mean mu_k of a feature
tilts the standard density: exp(mu w - mu^2 / 2) N(w; 0, 1), so the kernels know N(0, 1) alone
(factors.md 9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.kernels import respond
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import EntryPrior, RowDensity, Slab, WeightSums
from ibpdist.model.weights.exponential import Exponential

Matrix = NDArray[Any]
MOST = 4.0
"""Largest mean: a feature with such weights is nearly present or absent."""
ENERGY = 0.05
"""Least share of a cell's noise variance that a feature explains of an average row, for its mean to move."""


@dataclass(frozen=True)
class Normal:
    """`mu` is the mean of the weights of a feature: learned, or a number."""

    mu: Literal["learn"] | float = 0.0

    name: ClassVar[str] = "normal"
    counts: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True
    density: ClassVar[RowDensity] = RowDensity.CLOSED
    second: ClassVar[float] = 1.0
    signed: ClassVar[bool] = True
    two_sided: ClassVar[bool] = False
    default_start: ClassVar[str] = "best"
    most_features: ClassVar[int] = 80
    fit_settings: ClassVar[Mapping[str, object]] = {
        "noise": "auto",
        "scale": "feature",
        "intercept": True,
        "row_noise": "learn",
        "mu": "learn",
    }
    rows_have: ClassVar[str] = "have weights"
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    def __post_init__(self) -> None:
        if self.mu == "learn":
            return
        value: object = self.mu
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not abs(self.mu) <= MOST:
            raise UsageError(f"mu: {self.mu!r}: expected learn or a number between -{MOST:g} and {MOST:g}")

    @property
    def rehearsal(self) -> Exponential | None:
        return Exponential() if self.mu == "learn" else None

    def respond(self) -> respond.Normal:
        return respond.Normal()

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        return z * w

    def slab(self, features: int, known: Slab | Nothing = NOTHING) -> Slab | Nothing:
        if self.mu == "learn":
            return Slab(np.zeros(features)) if isinstance(known, Nothing) else known
        return Slab(np.full(features, float(self.mu))) if self.mu else NOTHING

    def entry_prior(self, log_odds: Matrix, slab: Slab | Nothing) -> EntryPrior:
        """w is worth exp(mu w - mu^2 / 2) as much as under N(0, 1) (factors.md 9)."""
        if isinstance(slab, Nothing):
            return EntryPrior.untilted(log_odds)
        half = 0.5 * slab.mean**2
        return EntryPrior(log_odds - (half if log_odds.ndim == 1 else half[:, None]), slab.mean)

    def best(
        self, slab: Slab | Nothing, sums: WeightSums, energy: Matrix, beside: Evidence | None
    ) -> tuple[Slab | Nothing, Matrix]:
        """Parameter expansion (factors.md 3, 9). The objective has, beside constants,

            -(second + squares) / (2 c^2) + mu first / c - on mu^2 / 2 - (on + cells) log c,

        the entropies and the weights' prior, and of the dictionary what `beside` says; its other terms
        do not change, as the scale goes with the square of the length. So this is its maximum, in
        both or, where mu stays as it is, in c alone.
        """
        mean = np.zeros(len(sums.on)) if isinstance(slab, Nothing) else np.asarray(slab.mean)
        fixed = self.mu != "learn" or isinstance(slab, Nothing)
        free = np.zeros(len(mean), bool) if fixed else (energy >= ENERGY) & (sums.on >= 1)
        if beside is None:
            lengths = np.ones(len(mean))
            mean = np.where(free, np.clip(sums.first / np.maximum(sums.on, 1.0), -MOST, MOST), mean)
        else:
            mean, lengths = _expanded(mean, free, sums, beside)
        return (slab if isinstance(slab, Nothing) else Slab(mean)), lengths

    def rescaled(self, sums: WeightSums, lengths: Matrix) -> WeightSums:
        """KL(N(m/c, v/c^2) || N(0, 1)) less that of N(m, v)."""
        second = sums.second / lengths**2
        cost = sums.cost + 0.5 * (second - sums.second) + sums.on * np.log(lengths)
        return WeightSums(sums.on, sums.first / lengths, second, cost)

    def variance(self, chance: Matrix) -> Matrix:
        return chance

    def neg_log_prior(self, w: Matrix) -> Matrix:
        return np.asarray(0.5 * (w * w + respond.LOG_2PI))

    def score(self, sums: WeightSums, slab: Slab | Nothing) -> dict[str, float]:
        cost = float(sums.cost.sum())
        if not isinstance(slab, Nothing):
            cost += float((slab.mean * (0.5 * slab.mean * sums.on - sums.first)).sum())
        return {"weights": -cost}

    def drawn(self, slab: Slab | Nothing, sums: WeightSums, rng: np.random.Generator) -> Slab | Nothing:
        """mu_k ~ N(mean of w, 1 / m_k) between its limits; uniform where no row has the feature."""
        if self.mu != "learn" or isinstance(slab, Nothing):
            return slab
        on, uniforms = np.asarray(sums.on), rng.random(len(sums.on))
        found = _inside(sums.first / np.maximum(on, 1.0), np.maximum(on, 1.0) ** -0.5, uniforms)
        return Slab(np.where(on > 0, found, MOST * (2 * uniforms - 1)))

    def newborn(self, uniforms: Matrix) -> Slab | Nothing:
        """mu uniform between its limits, or the number that it is."""
        return Slab(MOST * (2 * uniforms - 1)) if self.mu == "learn" else self.slab(len(uniforms))

    def slab_score(self, slab: Slab | Nothing) -> dict[str, float]:
        if self.mu != "learn" or isinstance(slab, Nothing):
            return {}
        return {"weight means": -len(slab.mean) * float(np.log(2 * MOST))}

    def sample(self, features: int, rows: int, normals: Matrix, slab: Slab | Nothing = NOTHING) -> Matrix:
        made = normals.reshape(features, rows)
        return made if isinstance(slab, Nothing) else made + slab.mean[:, None]


def _inside(mean: Matrix, sd: Matrix, uniforms: Matrix) -> Matrix:
    """Quantiles of normals that are cut at -MOST and MOST. Negative means are reflected: below its mean the
    logarithm of the distribution function keeps its digits."""
    flip, size = np.where(mean < 0, -1.0, 1.0), np.abs(mean)
    low, high = ((edge - size) / sd for edge in (-MOST, MOST))
    with np.errstate(divide="ignore"):
        log_share = np.logaddexp(np.log1p(-uniforms) + log_ndtr(low), np.log(uniforms) + log_ndtr(high))
    made: Matrix = flip * np.clip(size + sd * ndtri_exp(log_share), -MOST, MOST)
    return made


def _expanded(
    mean: Matrix, free: NDArray[np.bool_], sums: WeightSums, beside: Evidence
) -> tuple[Matrix, Matrix]:
    """Mean and length of each feature at their optimum; the mean stays as it is where it is not `free`."""
    cells, squares = sums.on + beside.cells, sums.second + beside.squares
    on = np.maximum(sums.on, 1.0)
    lengths = np.sqrt(np.maximum(squares - sums.first**2 / on, 0.0) / cells)
    found = np.divide(sums.first, on * lengths, out=np.full(len(mean), np.inf), where=lengths > 0)
    inside = free & (np.abs(found) <= MOST)
    held = np.where(free, np.copysign(MOST, sums.first), mean)
    along = held * sums.first
    given = (np.sqrt(along**2 + 4 * cells * squares) - along) / (2 * cells)
    given = np.where(along == 0, np.sqrt(squares / cells), given)
    return np.where(inside, found, held), np.where(inside, lengths, given)
