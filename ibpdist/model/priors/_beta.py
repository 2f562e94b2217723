"""Moments of beta distributions, one a row of `tau` (feature, side)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ibpdist.model.priors._gamma import digamma_rest, reciprocals, tetragamma_far, trigamma_far

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Sticks:
    """Beta(tau_k1, tau_k2) and what the objective and its slopes need of each.

    Rows of `trigamma` and `tetragamma` (3, feature): at tau_1, tau_2 and their sum;
    `log` (feature, side): E log v and E log(1 - v).
    """

    tau: Vector
    both: Vector
    log: Vector
    trigamma: Vector
    tetragamma: Vector


def sticks(tau: Vector) -> Sticks:
    """All moments at once, from one table of reciprocals."""
    both, near, far = _reciprocals(tau)
    squares = near * near
    tri = squares.sum(axis=2) + trigamma_far(far)
    tetra = tetragamma_far(far) - 2 * np.einsum("ski,ski->sk", squares, near)
    return Sticks(tau, both, _log_moments(tau, near, far), tri, tetra)


def log_moments(tau: Vector) -> tuple[Vector, Vector]:
    """E log v and E log(1 - v), to full relative accuracy."""
    _, near, far = _reciprocals(tau)
    log = _log_moments(tau, near, far)
    return log[:, 0], log[:, 1]


def beta_entropy(tau: Vector) -> Vector:
    """Entropy, as log B - sum_i (tau_i - 1) E log v_i."""
    log_on, log_off = log_moments(tau)
    found: Vector = betaln(tau[:, 0], tau[:, 1]) - (tau[:, 0] - 1) * log_on - (tau[:, 1] - 1) * log_off
    return found


def log_slopes(at: Sticks) -> Vector:
    """(feature, side, side) slopes of E log v and of E log(1 - v) in log tau."""
    one, two, both = at.trigamma
    found = np.empty((len(at.tau), 2, 2))
    found[:, 0, 0], found[:, 1, 1] = one - both, two - both
    found[:, 0, 1] = found[:, 1, 0] = -both
    found *= at.tau[:, None, :]
    return found


def weighted(at: Sticks, weight: Vector) -> tuple[Vector, Vector]:
    """Slope (feature, side) and curvature (feature, side, side) in log tau of weighted log moments.

    That is of sum_k weight_k1 E log v_k + weight_k2 E log(1 - v_k), at constant weights.
    """
    total = weight.sum(axis=1)
    slope = weight * at.trigamma[:2].T - (total * at.trigamma[2])[:, None]
    slope *= at.tau
    curvature = np.empty((len(at.tau), 2, 2))
    curvature[:] = -(total * at.tetragamma[2])[:, None, None]
    curvature[:, [0, 1], [0, 1]] += weight * at.tetragamma[:2].T
    curvature *= at.tau[:, :, None] * at.tau[:, None, :]
    curvature[:, [0, 1], [0, 1]] += slope
    return slope, curvature


def _reciprocals(tau: Vector) -> tuple[Vector, Vector, Vector]:
    """tau_+ and, for (tau_1, tau_2, tau_+), the reciprocals of the recurrence."""
    x = np.empty((3, len(tau)))
    x[:2] = tau.T
    np.add(tau[:, 0], tau[:, 1], out=x[2])
    return x[2], *reciprocals(x)


def _log_moments(tau: Vector, near: Vector, far: Vector) -> Vector:
    """digamma(tau_i) - digamma(tau_+): the recurrence and a difference of series, nothing cancels."""
    other = tau[:, ::-1].T
    rest = digamma_rest(far)
    drop = rest[:2] - rest[2] - np.log1p(other * far[:2])
    drop -= other * np.einsum("ski,ki->sk", near[:2], near[2])
    return np.ascontiguousarray(drop.T)
