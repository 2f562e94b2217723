"""What every move sees and what it answers.

A move is `propose(situation, rng) -> Proposal | None`. Exact moves know the sums after the move,
so they carry the objective and need no pass; trial moves must be fitted for `passes` steps and
kept only if the objective is higher than before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from ibpdist.inference.ascent.params import GaussianModel, GaussianModelParams, GaussianModelSums
from ibpdist.inference.moves.relabel import Edit, Outcome, evaluate

Float = NDArray[np.float64]

LEAST_GAIN = 1e-3
"""Nats below which a gain is not told from how well sticks and variances are solved."""


@dataclass(frozen=True)
class Residuals:
    """Rows x - E[y] E[A] (row, column), zero in missing cells: first a uniform sample of `sampled` rows,
    then those of the worst-explained rows that are not in it.

    `weights` (row) says for how many rows of the data each stands: a worst-explained one for itself, any
    other for those that were not drawn too. Without an eigenvalue of the covariance of the sample, in
    units of the noise, above `edge` nothing is left that is frequent enough to be found in it.
    """

    rows: Float
    weights: Float
    sampled: int
    edge: float = 0.0

    @property
    def worst(self) -> NDArray[np.bool_]:
        """(row) whether it is one of the worst-explained rows; none is where every row is in the sample."""
        found: NDArray[np.bool_] = self.weights < self.weights.max(initial=1.0)
        return found


@dataclass(frozen=True)
class Situation:
    """A fit after a step: parameters, the sums they were made from, and the objective of both.

    `total` (column) sums the observed cells of x. Ids from `next_id` on were never used. `limit`
    is the most features wanted; None: as many as the model allows. `tries` counts how often a move
    that has several things to try was refused since something was accepted.
    """

    model: GaussianModel
    params: GaussianModelParams
    sums: GaussianModelSums
    total: Float
    objective: float
    next_id: int
    residuals: Residuals | None = None
    limit: int | None = None
    tries: int = 0

    def evaluate(self, edit: Edit) -> Outcome:
        return evaluate(self.model, edit, self.params, self.sums, self.total)

    @cached_property
    def reached(self) -> float:
        """The objective to beat: what the present features have when solved afresh, as edits are."""
        kept = Edit.keep(self.params.ids, np.arange(len(self.params.ids)))
        return max(self.objective, self.evaluate(kept).objective)

    @property
    def room(self) -> float:
        """How many features can be added."""
        limits = (self.limit, self.model.prior.capacity(self.params.prior))
        return min((most for most in limits if most is not None), default=np.inf) - len(self.params.ids)

    @property
    def turnable(self) -> bool:
        """Whether 1 - z is a feature whose sums are known: weights are units."""
        return not self.model.weights.has_weights and not self.model.draws


@dataclass(frozen=True)
class Proposal:
    """Parameters to go on with. Without passes to make, `sums` and `objective` are exact."""

    name: str
    params: GaussianModelParams
    sums: GaussianModelSums | None = None
    objective: float | None = None
    passes: int = 0

    @property
    def next_id(self) -> int:
        """The least id that neither these features nor any of their parents have."""
        return int(self.params.ids.max()) + 1


def exact(name: str, situation: Situation, found: Outcome | None) -> Proposal | None:
    """The proposal of an exact move, if it gains anything."""
    if found is None or not found.objective > situation.reached + LEAST_GAIN:
        return None
    return Proposal(name, found.params, found.sums, found.objective)


def pattern_cost(prevalence: Float) -> Float:
    """Nats a row that a two-valued column of this prevalence costs: its entropy."""
    on: Float = np.clip(prevalence, 0.0, 1.0).astype(np.float64)
    return np.asarray(-xlogy(on, on) - xlogy(1 - on, 1 - on), dtype=np.float64)
