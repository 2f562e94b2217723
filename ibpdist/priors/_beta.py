"""Moments of beta distributions, one a row of `tau` (feature, side)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, polygamma

from ibpdist.priors._gamma import digamma_drop

Vector = NDArray[np.float64]


def log_moments(tau: Vector) -> tuple[Vector, Vector]:
    """E log v and E log(1 - v)."""
    one, two = tau[:, 0], tau[:, 1]
    return digamma_drop(one, two), digamma_drop(two, one)


def beta_entropy(tau: Vector) -> Vector:
    """Entropy, as log B - sum_i (tau_i - 1) E log v_i."""
    log_on, log_off = log_moments(tau)
    found: Vector = betaln(tau[:, 0], tau[:, 1]) - (tau[:, 0] - 1) * log_on - (tau[:, 1] - 1) * log_off
    return found


def fisher(tau: Vector) -> Vector:
    """(feature, side, side) Fisher information: the derivative of the log moments in tau."""
    both = polygamma(1, tau.sum(axis=1))
    information = np.broadcast_to(-both[:, None, None], (len(tau), 2, 2)).copy()
    information[:, 0, 0] += polygamma(1, tau[:, 0])
    information[:, 1, 1] += polygamma(1, tau[:, 1])
    return information
