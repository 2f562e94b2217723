"""The rigorous interval of b_k = E log(1 - pi_k) from its Taylor series (vibp 3.3).

-b_k = sum_r M_k(r) / r with M_k(r) = E pi_k^r. The first T terms are an upper bound of b_k.
For tau_2 >= 1 (or 0) Gamma(tau_1 + r) / Gamma(tau_1 + tau_2 + r) <= r^-tau_2, so with
B = sum_{m<=k} tau_m2 the other terms are at most

    prod_m Gamma(tau_m1 + tau_m2) / Gamma(tau_m1) * sum_{r>T} r^-(1 + B),

and the last sum, a Hurwitz zeta function, is at most (T + 1/2)^-B / B by convexity. A
tau_2 below 1 is replaced by 0 there.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from ibpdist.errors import UsageError
from ibpdist.priors._beta import Vector

_LIMIT = 4_000_000
"""Largest number of moments: terms times sticks."""


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
    most = max(64, 2 * _LIMIT // len(tau))
    return int(np.clip(2.0**wanted, 64, most))


def _rest(tau: Vector, off: Vector, terms: int) -> tuple[Vector, Vector]:
    """Bound of the terms beyond T, and the gradient of its sum weighted by `off`."""
    kept = np.where(tau[:, 1] >= 1, tau[:, 1], 0.0)
    log_end = np.log(terms + 0.5)
    total = np.cumsum(kept)
    growth = np.cumsum(gammaln(tau[:, 0] + kept) - gammaln(tau[:, 0]) - kept * log_end)
    with np.errstate(divide="ignore", over="ignore"):
        rest = np.exp(growth) / total
        later = np.cumsum((off * rest)[::-1])[::-1]
        shrink = np.cumsum((off * rest / total)[::-1])[::-1]
    both = digamma(tau[:, 0] + kept)
    two = np.where(kept > 0, later * (both - log_end) - shrink, 0.0)
    return rest, np.stack([later * (both - digamma(tau[:, 0])), two], axis=1)
