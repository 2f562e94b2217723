"""The multinomial lower bound of b_k = E log(1 - pi_k), in O(K) (vibp 3.2).

With w_i = psi(tau_i2) + sum_{m<i} psi(tau_m1) - sum_{m<=i} psi(tau_m+), the bound at its
optimum is l_k = log sum_{i<=k} exp(w_i), and q_ki = exp(w_i - l_k).
"""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma

from ibpdist.priors._beta import Vector, log_moments


def lower(tau: Vector, off: Vector) -> tuple[Vector, Vector]:
    """(feature,) bounds l and the gradient (feature, side) of sum_k off_k l_k."""
    log_fail = first_fail(tau)
    bound = np.logaddexp.accumulate(log_fail)
    with np.errstate(divide="ignore"):
        rest = np.logaddexp.accumulate((np.log(off) - bound)[::-1])[::-1]
    here = np.exp(log_fail + rest)
    from_here = np.cumsum(here[::-1])[::-1]
    one, two, both = (polygamma(1, x) for x in (tau[:, 0], tau[:, 1], tau.sum(axis=1)))
    gradient = np.stack([(from_here - here) * one, here * two], axis=1) - (from_here * both)[:, None]
    return bound, gradient


def first_fail(tau: Vector) -> Vector:
    """w_i: E log of the chance that stick i is the first to fail."""
    log_on, log_off = log_moments(tau)
    found: Vector = log_off + np.concatenate([[0.0], np.cumsum(log_on)[:-1]])
    return found
