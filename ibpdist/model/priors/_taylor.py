"""The rigorous interval of b_k = E log(1 - pi_k) from its Taylor series (priors.md 8).

-b_k = sum_r M_k(r) / r with M_k(r) = E pi_k^r. The first T terms are an upper bound of b_k.
Since Gamma(tau_1 + r) / Gamma(tau_1 + tau_2 + r) <= (r - 1)^-tau_2 for any tau, the others
sum to at most

    prod_{m<=k} Gamma(tau_m1 + tau_m2) / Gamma(tau_m1) * zeta(1 + B, T),   B = sum_{m<=k} tau_m2,

and the Hurwitz zeta function is at most (T - 1/2)^-B / B by convexity. Unlike the form with
floors of tau_2 this is smooth in tau, so it can be climbed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from ibpdist.base.errors import UsageError
from ibpdist.model.priors._beta import Sticks, Vector
from ibpdist.model.priors._bound import Bend, Bound, from_here
from ibpdist.model.priors._powers import whole

_LIMIT = 4_000_000
"""Largest features^2 x rows; moments are a few times as many."""

_HUGE = 500.0
"""Log of a bound that is useless and still finite."""


@dataclass(frozen=True)
class _Rest:
    """What the terms beyond T sum to at most: value (feature,), slope, minus curvature of -rest."""

    value: Vector
    slope: Vector
    bend: Bend


def check(features: int, rows: int) -> None:
    """Refuse sizes at which the series needs too many terms: it has to pass r = tau_+."""
    if features * features * rows > _LIMIT:
        raise UsageError(
            f'bound "taylor" with {features} features and {rows} rows needs too many terms of its series;'
            f' expected features^2 x rows up to {_LIMIT}; use the bound "convex"'
        )


def lower(at: Sticks, off: Vector) -> Bound:
    """The lower ends, and the gradient and curvature of their sum weighted by `off`."""
    r = np.arange(1.0, terms_for(at.tau) + 1)
    each = whole(at.tau, r - 1)
    power = np.cumprod(each.mean, axis=0) / r
    rest = _rest(at.tau, off, len(r))
    later = from_here(off[:, None] * power)
    slope = np.einsum("kj,kij->ki", later, each.slope)

    def bend() -> Bend:
        left = np.concatenate([later[:, None, :] * each.slope, rest.bend.left], axis=2)
        right = np.concatenate([each.slope, rest.bend.right], axis=2)
        return Bend(left, right, each.bend(at.tau, later, slope) + rest.bend.blocks)

    return Bound(-power.sum(axis=1) - rest.value, np.zeros_like(at.tau), -slope - rest.slope, bend)


def interval(tau: Vector, terms: int) -> tuple[Vector, Vector]:
    """(feature,) lower and upper ends with `terms` terms of the series."""
    r = np.arange(terms)
    ratio = -np.cumsum(np.log1p(tau[:, 1:] / (tau[:, :1] + r)), axis=1)
    upper = -np.sum(np.exp(np.cumsum(ratio, axis=0)) / (r + 1), axis=1)
    return upper - _rest(tau, np.zeros(len(tau)), terms).value, upper


def terms_for(tau: Vector) -> int:
    """A power of two (so that it rarely changes) beyond twice tau_+, at least 64."""
    wanted = int(np.ceil(np.log2(2 * np.max(tau.sum(axis=1)))))
    most = max(64, 8 * _LIMIT // len(tau))
    return int(np.clip(2.0**wanted, 64, most))


def _rest(tau: Vector, off: Vector, terms: int) -> _Rest:
    """Bound of the terms beyond T; exp of a sum over sticks, divided by B."""
    log_end, both, total = np.log(terms - 0.5), tau.sum(axis=1), np.cumsum(tau[:, 1])
    growth = np.cumsum(gammaln(both) - gammaln(tau[:, 0]) - tau[:, 1] * log_end)
    rest = np.exp(np.minimum(growth, _HUGE)) / total
    shares = [from_here(off * rest / total**i) for i in range(3)]
    grown = tau * np.stack([digamma(both) - digamma(tau[:, 0]), digamma(both) - log_end], axis=1)
    size = tau * np.array([0.0, 1.0])
    slope = shares[0][:, None] * grown - shares[1][:, None] * size
    return _Rest(rest, slope, _rest_bend(tau, shares, grown, size, slope))


def _rest_bend(tau: Vector, shares: list[Vector], grown: Vector, size: Vector, slope: Vector) -> Bend:
    """Slopes g of the exponent and e of B enter as g g' - (g e' + e g') / B + 2 e e' / B^2."""
    plain, once, twice = (share[:, None] for share in shares)
    left = np.stack([plain * grown, -once * grown, -once * size, 2 * twice * size], axis=2)
    right = np.stack([grown, size, grown, size], axis=2)
    blocks = np.empty((len(tau), 2, 2))
    blocks[:] = polygamma(1, tau.sum(axis=1))[:, None, None]
    blocks[:, 0, 0] -= polygamma(1, tau[:, 0])
    blocks *= plain[:, :, None] * tau[:, :, None] * tau[:, None, :]
    blocks[:, [0, 1], [0, 1]] += slope
    return Bend(left, right, blocks)
