"""The infinite prior: the IBP by stick-breaking, truncated, with the tail in the objective.

v_k ~ Beta(mass, 1), pi_k = v_1 ... v_k (priors.md 4). Features keep their order; which stick
belongs to which is an index vector, sorted by falling counts at every update (priors.md 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, struct
from ibpdist.model.priors import _convex, _mass, _multinomial, _sticks, _taylor
from ibpdist.model.priors._base import Number, PriorSums, Vector
from ibpdist.model.priors._beta import Sticks, beta_entropy, log_moments, sticks
from ibpdist.model.priors._bound import Lower
from ibpdist.model.priors._objective import Problem, last_mean
from ibpdist.model.priors.tail import h

Bound = Literal["convex", "multinomial", "taylor"]

_LOWER: dict[Bound, Lower] = {
    "convex": _convex.lower,
    "multinomial": _multinomial.lower,
    "taylor": _taylor.lower,
}


@struct("stick-breaking-params", since=1)
class StickBreakingParams:
    """q(v_j) = Beta(tau_j0, tau_j1) in stick order; stick j belongs to feature `order[j]`.

    `log_on` and `log_off` are in feature order: E log pi, and the bound in use of
    E log(1 - pi).
    """

    tau: Array = dims("feature side")
    order: Array = dims("feature")
    log_on: Array = dims("feature")
    log_off: Array = dims("feature")
    mass: Array = dims()


@dataclass(frozen=True)
class StickBreaking:
    """`mass` is a number, or "learn" for a point estimate; `bound` is that of E log(1 - pi)."""

    mass: _mass.Mass = "learn"
    bound: Bound = "convex"

    name: ClassVar[str] = "stick_breaking"
    dense: ClassVar[bool] = False
    number: ClassVar[Number] = Number.TRUNCATED
    uses_truncation: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
    fit_settings: ClassVar[Mapping[str, object]] = {}

    def __post_init__(self) -> None:
        _mass.check(self.mass)
        if self.bound not in _LOWER:
            raise UsageError(f"bound is {self.bound!r}; expected one of {', '.join(get_args(Bound))}")

    def init(self, features: int, rows: int) -> StickBreakingParams:
        if self.bound == "taylor":
            _taylor.check(features, rows)
        return self._prior(features, _mass.start(self.mass, features, rows))

    def log_odds(self, params: StickBreakingParams) -> Vector:
        odds: Vector = params.log_on - params.log_off
        return odds

    def expected(self, params: StickBreakingParams) -> Vector:
        """Products of the means of the sticks, which are independent under q."""
        found = np.empty(len(params.order))
        found[params.order] = np.cumprod(params.tau[:, 0] / params.tau.sum(axis=1))
        return found

    def update(
        self, params: StickBreakingParams, sums: PriorSums, rule: Rule, rng: np.random.Generator
    ) -> StickBreakingParams:
        """Sort, then sticks and mass to their joint optimum; kept only if the objective rises."""
        if sums.rows == 0:
            return self._prior(len(sums.on), float(params.mass))
        order, reached = np.argsort(-sums.on, kind="stable"), _total(self.score(params, sums))
        problem = Problem(
            on=np.clip(sums.on[order], 0.0, float(sums.rows)).astype(np.float64),
            rows=float(sums.rows),
            mass=None if self.mass == "learn" else float(self.mass),
            lower=_LOWER[self.bound],
        )
        fresh = _sticks.from_counts(problem.on, problem.rows, float(params.mass))
        found = _sticks.solve(problem, fresh, params.tau, reached)
        made = _params(found.at, found.bound.value, order, found.mass)
        return made if _total(self.score(made, sums)) >= reached else params

    def score(self, params: StickBreakingParams, sums: PriorSums) -> dict[str, float]:
        """Terms of priors.md 4, the tail of priors.md 9; without `tail` it is the report's bound."""
        rows, mass = float(sums.rows), float(params.mass)
        log_on, _ = log_moments(params.tau)
        sticks = np.log(mass) + (mass - 1) * log_on + beta_entropy(params.tau)
        return {
            "z prior": float(sums.on @ params.log_on + (rows - sums.on) @ params.log_off),
            "sticks": float(np.sum(sticks)),
            "tail": -mass * float(h(last_mean(params.tau), rows)),
            "mass": _mass.log_prior(mass) if self.mass == "learn" else 0.0,
        }

    def select(self, params: StickBreakingParams, keep: NDArray[np.intp]) -> StickBreakingParams:
        """Sticks of dropped features are merged into the next kept one; E pi of the kept stays."""
        where = np.full(len(params.order), -1)
        where[keep] = np.arange(len(keep))
        renamed = where[params.order]
        tau = _sticks.drop(params.tau, renamed >= 0)
        return self._params(tau, renamed[renamed >= 0], float(params.mass))

    def capacity(self, params: StickBreakingParams) -> None:
        return None

    def resized(
        self, params: StickBreakingParams, features: int, continued: NDArray[np.intp] | None = None
    ) -> StickBreakingParams:
        return self._prior(features, float(params.mass))

    def describe(self, params: StickBreakingParams, order: NDArray[np.intp]) -> Named:
        return {"mass": ((), np.asarray(params.mass))}

    def sample(self, features: int, rng: np.random.Generator) -> Vector:
        mass = _mass.sample(self.mass, rng)
        found: Vector = np.exp(np.cumsum(np.log1p(-rng.random(features))) / mass)
        return found

    def _prior(self, features: int, mass: float) -> StickBreakingParams:
        return self._params(np.tile([mass, 1.0], (features, 1)), np.arange(features), mass)

    def _params(self, tau: Vector, order: NDArray[np.intp], mass: float) -> StickBreakingParams:
        at = sticks(tau)
        return _params(at, _LOWER[self.bound](at, np.zeros(len(order))).value, order, mass)


def _params(at: Sticks, bound: Vector, order: NDArray[np.intp], mass: float) -> StickBreakingParams:
    log_on, log_off = np.empty(len(order)), np.empty(len(order))
    log_on[order] = np.cumsum(at.log[:, 0])
    log_off[order] = bound
    return StickBreakingParams(tau=at.tau, order=order, log_on=log_on, log_off=log_off, mass=np.asarray(mass))


def _total(score: dict[str, float]) -> float:
    return sum(score.values())
