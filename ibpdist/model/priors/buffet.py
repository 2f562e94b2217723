"""The Indian buffet process without truncation, for samplers: features that some row has, and their odds.

With m_k rows of n that have feature k, the density of the features that occur, as a point process of
marked columns (priors.md 11), is

    mass^K exp(-mass H_n) prod_k B(m_k, n - m_k + 1),     H_n = 1 + 1/2 + ... + 1/n,

and pi_k | Z ~ Beta(m_k, n - m_k + 1), mass | Z ~ Gamma(1 + K, rate + H_n). A feature that no row has
does not exist: who samples drops it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, replace, struct
from ibpdist.model.priors import _mass
from ibpdist.model.priors._base import Number, PriorSums, Vector
from ibpdist.model.priors.beta_bernoulli import draw_beta


@struct("buffet-params", since=1)
class BuffetParams:
    """A draw of pi for each feature that occurs; `tau` is of the law that it was drawn from."""

    tau: Array = dims("feature side")
    log_on: Array = dims("feature")
    log_off: Array = dims("feature")
    mass: Array = dims()


@dataclass(frozen=True)
class Buffet:
    """`mass` is a number, or "learn" to draw it too."""

    mass: _mass.Mass = "learn"

    name: ClassVar[str] = "buffet"
    dense: ClassVar[bool] = False
    number: ClassVar[Number] = Number.UNLIMITED
    uses_truncation: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.DRAW})
    fit_settings: ClassVar[Mapping[str, object]] = {"scale": "one"}

    def __post_init__(self) -> None:
        _mass.check(self.mass)

    def init(self, features: int, rows: int) -> BuffetParams:
        """So many features that a first row has, if any."""
        return _even(features, _mass.start(self.mass, max(features, 1), rows))

    def log_odds(self, params: BuffetParams) -> Vector:
        odds: Vector = params.log_on - params.log_off
        return odds

    def expected(self, params: BuffetParams) -> Vector:
        found: Vector = params.tau[:, 0] / params.tau.sum(axis=1)
        return found

    def update(
        self, params: BuffetParams, sums: PriorSums, rule: Rule, rng: np.random.Generator
    ) -> BuffetParams:
        """pi given the counts, then the mass; every feature must occur."""
        mass = float(params.mass)
        if sums.rows == 0:
            return _even(len(sums.on), mass)
        tau = np.stack([sums.on, sums.rows - sums.on + 1.0], axis=1)
        log_on, log_off = draw_beta(tau, rng)
        if self.mass == "learn":
            mass = rng.gamma(1 + len(sums.on)) / (_mass.RATE + harmonic(float(sums.rows)))
        return BuffetParams(tau=tau, log_on=log_on, log_off=log_off, mass=np.asarray(mass))

    def score(self, params: BuffetParams, sums: PriorSums) -> dict[str, float]:
        """Log density of who has what, pi integrated out, and that of log mass."""
        rows, mass = float(sums.rows), float(params.mass)
        on = np.asarray(sums.on, np.float64)
        columns = betaln(on, rows - on + 1).sum() + len(on) * np.log(mass) - mass * harmonic(rows)
        return {
            "z prior": float(columns),
            "mass": _mass.log_prior(mass) if self.mass == "learn" else 0.0,
        }

    def predictive(self, params: BuffetParams, rows: float) -> tuple[float, float]:
        """(share, rate): given the other rows a row has a feature of m of them with odds
        (m + share) / (rows - m), and Poisson(rate) features of its own (priors.md 11)."""
        return 0.0, float(params.mass) / rows

    def select(self, params: BuffetParams, keep: NDArray[np.intp]) -> BuffetParams:
        return replace(params, tau=params.tau[keep], log_on=params.log_on[keep], log_off=params.log_off[keep])

    def capacity(self, params: BuffetParams) -> None:
        return None

    def resized(
        self, params: BuffetParams, features: int, continued: NDArray[np.intp] | None = None
    ) -> BuffetParams:
        return _even(features, float(params.mass))

    def describe(self, params: BuffetParams, order: NDArray[np.intp]) -> Named:
        return {"mass": ((), np.asarray(params.mass))}

    def sample(self, features: int, rng: np.random.Generator) -> Vector:
        """The largest prevalences: products of Beta(mass, 1) sticks."""
        mass = _mass.sample(self.mass, rng)
        found: Vector = np.exp(np.cumsum(np.log1p(-rng.random(features))) / mass)
        return found


def harmonic(rows: float) -> float:
    """1 + 1/2 + ... + 1/rows."""
    return float(digamma(rows + 1) - digamma(1))


def _even(features: int, mass: float) -> BuffetParams:
    """An even chance for each feature, and nothing known."""
    half = np.full(features, -np.log(2.0))
    return BuffetParams(tau=np.ones((features, 2)), log_on=half, log_off=half.copy(), mass=np.asarray(mass))
