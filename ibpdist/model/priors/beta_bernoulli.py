"""The finite prior: pi_k ~ Beta(mass / K, 1) for K features, z_nk ~ Bernoulli(pi_k) (priors.md 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, replace, struct
from ibpdist.model.priors import _mass
from ibpdist.model.priors._base import Number, PriorSums, Vector
from ibpdist.model.priors._beta import beta_entropy, log_moments


@struct("beta-bernoulli-params", since=1)
class BetaBernoulliParams:
    """q(pi_k) = Beta(tau_k0, tau_k1), or a draw of pi, whose entropy is 0.

    `truncation` is K of the model. It stays when features are dropped: a dropped feature is
    off in every row and its prevalence is integrated out.
    """

    tau: Array = dims("feature side")
    log_on: Array = dims("feature")
    log_off: Array = dims("feature")
    entropy: Array = dims("feature")
    mass: Array = dims()
    truncation: Array = dims()


@dataclass(frozen=True)
class BetaBernoulli:
    """`mass` is a number, or "learn" for a point estimate."""

    mass: _mass.Mass = "learn"

    name: ClassVar[str] = "beta_bernoulli"
    dense: ClassVar[bool] = False
    number: ClassVar[Number] = Number.GIVEN
    uses_truncation: ClassVar[bool] = True
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})
    fit_settings: ClassVar[Mapping[str, object]] = {}

    def __post_init__(self) -> None:
        _mass.check(self.mass)

    def init(self, features: int, rows: int) -> BetaBernoulliParams:
        mass = _mass.start(self.mass, features, rows)
        tau = np.tile([mass / features, 1.0], (features, 1))
        return _mean(tau, mass, features)

    def log_odds(self, params: BetaBernoulliParams) -> Vector:
        odds: Vector = params.log_on - params.log_off
        return odds

    def expected(self, params: BetaBernoulliParams) -> Vector:
        """Means of Beta(tau); draws have the tau they were drawn from."""
        found: Vector = params.tau[:, 0] / params.tau.sum(axis=1)
        return found

    def update(
        self, params: BetaBernoulliParams, sums: PriorSums, rule: Rule, rng: np.random.Generator
    ) -> BetaBernoulliParams:
        """Mean: tau and the mass at their joint optimum. Draw: pi given the counts, then the mass."""
        truncation, mass = int(params.truncation), float(params.mass)
        if rule is Rule.DRAW:
            return self._draw(sums, mass, truncation, rng)
        if self.mass == "learn" and sums.rows > 0:
            mass = best_mass(sums, truncation)
        return _mean(posterior(sums, mass / truncation), mass, truncation)

    def score(self, params: BetaBernoulliParams, sums: PriorSums) -> dict[str, float]:
        """Terms of priors.md 2; `unused` is log Pr(dropped features are off in every row)."""
        rows, mass, share = float(sums.rows), float(params.mass), float(params.mass / params.truncation)
        dropped = int(params.truncation) - len(params.tau)
        density = np.log(share) + (share - 1) * params.log_on
        return {
            "z prior": float(sums.on @ params.log_on + (rows - sums.on) @ params.log_off),
            "prevalence": float(np.sum(density + params.entropy)),
            "unused": dropped * float(np.log(share) + betaln(share, 1 + rows)) if dropped else 0.0,
            "mass": _mass.log_prior(mass) if self.mass == "learn" else 0.0,
        }

    def predictive(self, params: BetaBernoulliParams, rows: float) -> tuple[float, float]:
        """(share, rate): given the other rows a row has a feature of m of them with odds
        (m + share) / (rows - m), pi integrated out, and Poisson(rate) features of its own (priors.md 11)."""
        return float(params.mass / params.truncation), 0.0

    def select(self, params: BetaBernoulliParams, keep: NDArray[np.intp]) -> BetaBernoulliParams:
        return replace(
            params,
            tau=params.tau[keep],
            log_on=params.log_on[keep],
            log_off=params.log_off[keep],
            entropy=params.entropy[keep],
        )

    def capacity(self, params: BetaBernoulliParams) -> int:
        return int(params.truncation)

    def resized(
        self, params: BetaBernoulliParams, features: int, continued: NDArray[np.intp] | None = None
    ) -> BetaBernoulliParams:
        truncation = self.capacity(params)
        if features > truncation:
            raise UsageError(f"{features} features: expected at most {truncation}, the number of the model")
        mass = float(params.mass)
        return _mean(np.tile([mass / truncation, 1.0], (features, 1)), mass, truncation)

    def describe(self, params: BetaBernoulliParams, order: NDArray[np.intp]) -> Named:
        return {"mass": ((), np.asarray(params.mass))}

    def sample(self, features: int, rng: np.random.Generator) -> Vector:
        mass = _mass.sample(self.mass, rng)
        log_on, _ = draw_beta(np.tile([mass / features, 1.0], (features, 1)), rng)
        return np.exp(log_on)

    def _draw(
        self, sums: PriorSums, mass: float, truncation: int, rng: np.random.Generator
    ) -> BetaBernoulliParams:
        used = len(sums.on)
        every = PriorSums(on=np.pad(sums.on, (0, truncation - used)), rows=sums.rows)
        tau = posterior(every, mass / truncation)
        log_on, log_off = draw_beta(tau, rng)
        if self.mass == "learn":
            mass = rng.gamma(1 + truncation) / (_mass.RATE - log_on.sum() / truncation)
        return BetaBernoulliParams(
            tau=tau[:used],
            log_on=log_on[:used],
            log_off=log_off[:used],
            entropy=np.zeros(used),
            mass=np.asarray(mass),
            truncation=np.asarray(truncation),
        )


def posterior(sums: PriorSums, share: float) -> Vector:
    """(feature, side) tau of q(pi) given the counts (priors.md 2); `share` is mass / K."""
    return np.stack([share + sums.on, 1 + (sums.rows - sums.on)], axis=1)


def best_mass(sums: PriorSums, truncation: int) -> float:
    """The mass at the joint optimum of tau and mass.

    With tau profiled out the terms are sum_k log share B(share + m_k, 1 + N - m_k) (priors.md 3),
    share = mass / K; their slope in log mass falls, so it has one root.
    """
    rows = float(sums.rows)
    on = np.pad(np.asarray(sums.on, dtype=np.float64), (0, truncation - len(sums.on)))

    def slope(mass: float) -> float:
        share = mass / truncation
        pull = share * np.sum(digamma(share + on) - digamma(share + 1 + rows))
        return float(1 + truncation + pull - _mass.RATE * mass)

    low = 0.5 / (digamma(rows + 1) - digamma(1) + _mass.RATE)
    from scipy.optimize import brentq  # 20 MB that a worker can do without

    return float(brentq(slope, low, 1.001 * (1 + truncation) / _mass.RATE, xtol=1e-14, rtol=1e-14))


def draw_beta(tau: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """log pi and log(1 - pi) of draws from Beta(tau); exact also where pi underflows."""
    log_gamma = np.log(rng.standard_gamma(tau + 1)) + np.log1p(-rng.random(tau.shape)) / tau
    total = np.logaddexp(log_gamma[:, 0], log_gamma[:, 1])
    return log_gamma[:, 0] - total, log_gamma[:, 1] - total


def _mean(tau: Vector, mass: float, truncation: int) -> BetaBernoulliParams:
    log_on, log_off = log_moments(tau)
    return BetaBernoulliParams(
        tau=tau,
        log_on=log_on,
        log_off=log_off,
        entropy=beta_entropy(tau),
        mass=np.asarray(mass),
        truncation=np.asarray(truncation),
    )
