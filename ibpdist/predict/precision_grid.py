"""Integrals over the log precision of rows, of densities that are known along a grid.

A row has noise psi_d / tau with tau ~ Gamma(nu / 2, nu / 2), so t = log tau has the density

    log p(t) = nu/2 log(nu/2) - log Gamma(nu/2) + nu/2 (t - e^t).

With many cells the posterior of t is much narrower than the prior, and than a step of the grid. The log
density of the cells is smooth in t: it is interpolated by cubics, and each integral is taken over points of
its own, which lie where its integrand is not negligible (scores.md 15).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from ibpdist.predict.predict import Matrix, Vector

SPACING = 0.125
"""Distance of the values of log tau at which log densities are held."""
GRID = np.arange(-20.0, 12.0 + SPACING / 2, SPACING)
"""A power of two of steps, so that nodes at any distance can reach both ends."""
POINTS = 65
"""Points of an integral."""
DEPTH = 10.0
"""Nats below its maximum at which an integrand is left out."""
_ZOOMS = 3


def log_prior(freedom: float, at: Matrix) -> Matrix:
    """log p(log tau) at values of log tau."""
    half = freedom / 2
    made: Matrix = half * np.log(half) - gammaln(half) + half * (at - np.exp(at))
    return made


def interpolated(curves: Matrix, at: Matrix) -> Matrix:
    """(row, point) curves (row, grid) at values of log tau (row, point): cubics of four neighbours."""
    place = np.clip((at - GRID[0]) / SPACING, 0, len(GRID) - 1)
    first = np.clip(place.astype(int) - 1, 0, len(GRID) - 4)
    u = place - first
    weights = (
        -(u - 1) * (u - 2) * (u - 3) / 6,
        u * (u - 2) * (u - 3) / 2,
        -u * (u - 1) * (u - 3) / 2,
        u * (u - 1) * (u - 2) / 6,
    )
    made: Matrix = sum(w * np.take_along_axis(curves, first + i, axis=1) for i, w in enumerate(weights))
    return made


@dataclass(frozen=True)
class Integral:
    """p(log tau) times a density of cells, integrated: values of log tau `at` (row, point), the `shares` of
    the integral there, and its `log` (row)."""

    at: Matrix
    shares: Matrix
    log: Vector

    @classmethod
    def of(cls, curves: Matrix, freedom: float) -> Integral:
        """Of log densities (row, grid)."""
        at = np.broadcast_to(GRID, curves.shape)
        for _ in range(_ZOOMS):
            at = _closer(at, interpolated(curves, at) + log_prior(freedom, at))
        logs = interpolated(curves, at) + log_prior(freedom, at)
        whole = logsumexp(logs, axis=1)
        return cls(at, np.exp(logs - whole[:, None]), whole + np.log(at[:, 1] - at[:, 0]))

    def mean(self, values: Matrix) -> Vector:
        """(row) posterior mean of values (row, point)."""
        made: Vector = (self.shares * values).sum(axis=1)
        return made

    def range(self, depth: float) -> tuple[Vector, Vector]:
        """(row) least and largest log tau where the integrand is at most `depth` nats below its maximum."""
        near = self.shares >= np.exp(-depth) * self.shares.max(axis=1, keepdims=True)
        return _ends(self.at, near, 0)


def _closer(at: Matrix, logs: Matrix) -> Matrix:
    """(row, point) points at even distances where a log density is not negligible."""
    low, high = _ends(at, logs >= logs.max(axis=1, keepdims=True) - DEPTH, 1)
    made: Matrix = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, POINTS)
    return made


def _ends(at: Matrix, chosen: np.ndarray, margin: int) -> tuple[Vector, Vector]:
    """(row) the first and the last of the chosen points, with so many others on either side."""
    points = at.shape[1]
    first = np.maximum(chosen.argmax(axis=1) - margin, 0)
    last = np.minimum(points - 1 - chosen[:, ::-1].argmax(axis=1) + margin, points - 1)
    rows = np.arange(len(at))
    return at[rows, first], at[rows, last]
