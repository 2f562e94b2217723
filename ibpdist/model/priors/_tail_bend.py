"""Slope and curvature in log tau of the tail -mass h_N(p), p = E pi_K, and of the cost of the mass."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ibpdist.model.priors._beta import Sticks, Vector


@dataclass(frozen=True)
class Tail:
    """`slope` (feature, side) is that of log p.

    The slope of h_N(p) is `pull` times it, minus the curvature of -mass h_N(p) is
    `curve` slope slope^T plus `lost` times the curvature of log p. `profile` is mass^2 / (K + 1)
    when the mass is learned, else 0.
    """

    slope: Vector
    pull: float
    curve: float
    lost: float
    profile: float

    def columns(self, log_slopes: Vector) -> tuple[Vector, Vector]:
        """(feature, side, 2) left and right of the two products: of the tail, of the cost's slopes."""
        cost = self.pull * self.slope - log_slopes[:, 0]
        left = np.stack([self.curve * self.slope, -self.profile * cost], axis=2)
        return left, np.stack([self.slope, cost], axis=2)


def tail(at: Sticks, rows: float, last: float, mass: float, learned: bool) -> Tail:
    """At p = `last`: h_N' p = 1 - (1 - p)^N, and its slope in log p is N p (1 - p)^(N - 1)."""
    stay = math.log1p(-min(last, 1 - 1e-16))
    slope = np.empty_like(at.tau)
    slope[:, 0] = at.tau[:, 1] / at.both
    slope[:, 1] = -slope[:, 0]
    pull = -math.expm1(rows * stay)
    curve = mass * rows * last * math.exp((rows - 1) * stay)
    profile = mass * mass / (len(at.tau) + 1) if learned else 0.0
    return Tail(slope, pull, curve, mass * pull, profile)
