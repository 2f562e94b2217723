"""The rigorous interval of b_k = E log(1 - pi_k) from its Taylor series (vibp 3.3).

-b_k = sum_r M_k(r) / r with M_k(r) = E pi_k^r. The first T terms are an upper bound of b_k.
Since Gamma(tau_1 + r) / Gamma(tau_1 + tau_2 + r) <= (r - 1)^-tau_2 for any tau, the others
sum to at most

    prod_{m<=k} Gamma(tau_m1 + tau_m2) / Gamma(tau_m1) * zeta(1 + B, T),   B = sum_{m<=k} tau_m2,

and the Hurwitz zeta function is at most (T - 1/2)^-B / B by convexity. Unlike the form with
floors of tau_2 this is smooth in tau, so it can be climbed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from ibpdist.errors import UsageError
from ibpdist.priors._beta import Vector

_LIMIT = 4_000_000
"""Largest features^2 x rows; moments are a few times as many."""

_HUGE = 500.0
"""Log of a bound that is useless and still finite."""


def check(features: int, rows: int) -> None:
    """Refuse sizes at which the series needs too many terms: it has to pass r = tau_+."""
    if features * features * rows > _LIMIT:
        raise UsageError(
            f'bound "taylor" with {features} features and {rows} rows needs too many terms of its series;'
            f' expected features^2 x rows up to {_LIMIT}; use the bound "convex"'
        )


def lower(tau: Vector, off: Vector) -> tuple[Vector, Vector]:
    """(feature,) lower ends and the gradient (feature, side) of sum_k off_k b_k."""
    terms = terms_for(tau)
    r = np.arange(1.0, terms + 1)
    a, b = tau[:, :1], tau[:, 1:]
    fail = b / (a + b + r - 1)
    power = np.exp(np.cumsum(np.cumsum(-np.log1p(b / (a + r - 1)), axis=1), axis=0)) / r
    rest, rest_slope = _rest(tau, off, terms)
    later = np.cumsum((off[:, None] * power)[::-1], axis=0)[::-1]
    one = np.sum(later * np.cumsum(fail / (a + r - 1), axis=1), axis=1)
    two = np.sum(later * np.cumsum(1 / (a + b + r - 1), axis=1), axis=1)
    return -np.sum(power, axis=1) - rest, np.stack([-one, two], axis=1) - rest_slope


def interval(tau: Vector, terms: int) -> tuple[Vector, Vector]:
    """(feature,) lower and upper ends with `terms` terms of the series."""
    r = np.arange(terms)
    ratio = -np.cumsum(np.log1p(tau[:, 1:] / (tau[:, :1] + r)), axis=1)
    upper = -np.sum(np.exp(np.cumsum(ratio, axis=0)) / (r + 1), axis=1)
    return upper - _rest(tau, np.zeros(len(tau)), terms)[0], upper


def terms_for(tau: Vector) -> int:
    """A power of two (so that it rarely changes) beyond twice tau_+, at least 64."""
    wanted = int(np.ceil(np.log2(2 * np.max(tau.sum(axis=1)))))
    most = max(64, 8 * _LIMIT // len(tau))
    return int(np.clip(2.0**wanted, 64, most))


def _rest(tau: Vector, off: Vector, terms: int) -> tuple[Vector, Vector]:
    """Bound of the terms beyond T, and the gradient of its sum weighted by `off`."""
    log_end = np.log(terms - 0.5)
    both = tau.sum(axis=1)
    total = np.cumsum(tau[:, 1])
    growth = np.cumsum(gammaln(both) - gammaln(tau[:, 0]) - tau[:, 1] * log_end)
    rest = np.exp(np.minimum(growth, _HUGE)) / total
    later = np.cumsum((off * rest)[::-1])[::-1]
    shrink = np.cumsum((off * rest / total)[::-1])[::-1]
    one = later * (digamma(both) - digamma(tau[:, 0]))
    return rest, np.stack([one, later * (digamma(both) - log_end) - shrink], axis=1)
