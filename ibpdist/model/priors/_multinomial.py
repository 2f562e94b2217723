"""The multinomial lower bound of b_k = E log(1 - pi_k), in O(K) (priors.md 7).

With w_i = psi(tau_i2) + sum_{m<i} psi(tau_m1) - sum_{m<=i} psi(tau_m+), the bound at its
optimum is l_k = log sum_{i<=k} exp(w_i), and q_ki = exp(w_i - l_k).
"""

from __future__ import annotations

import numpy as np

from ibpdist.model.priors._beta import Sticks, Vector, log_slopes
from ibpdist.model.priors._bound import Bend, Bound, from_here


def lower(at: Sticks, off: Vector) -> Bound:
    """The bounds l; their sum weighted by `off` is one of log moments, for the best q."""
    log_fail = first_fail(at)
    value = np.logaddexp.accumulate(log_fail)
    with np.errstate(divide="ignore"):
        rest = np.logaddexp.accumulate((np.log(off) - value)[::-1])[::-1]
    here = np.exp(log_fail + rest)
    weight = np.stack([from_here(here) - here, here], axis=1)

    def bend() -> Bend:
        return _bend(at, off, here, np.exp(np.minimum(log_fail - value[:, None], 0.0)))

    return Bound(value, weight, np.zeros_like(weight), bend)


def first_fail(at: Sticks) -> Vector:
    """w_i: E log of the chance that stick i is the first to fail."""
    found: Vector = at.log[:, 1] + np.concatenate([[0.0], np.cumsum(at.log[:, 0])[:-1]])
    return found


def _bend(at: Sticks, off: Vector, here: Vector, q: Vector) -> Bend:
    """Minus sum_k off_k W' (diag q_k - q_k q_k') W with W the slopes of w; all entries are filled."""
    features = len(off)
    single = log_slopes(at)
    slopes = np.broadcast_to(single[None, :, 0], (features, features, 2)).copy()
    slopes *= np.tri(features, k=-1)[:, :, None]
    own = np.arange(features)
    slopes[own, own] = single[:, 1]
    flat = slopes.reshape(features, -1)
    mixed = np.sqrt(off)[:, None] * (np.tril(q) @ flat)
    spread = np.sqrt(here)[:, None] * flat
    shape = (features, 2, 2 * features)
    left, right = np.concatenate([-spread, mixed]).T, np.concatenate([spread, mixed]).T
    return Bend(left.reshape(shape), right.reshape(shape), np.zeros((features, 2, 2)))
