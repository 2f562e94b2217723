"""Gamma functions at large arguments by their Stirling series, and differences without cancellation.

The series take r = 1 / x, so that several of them share one division.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

SHIFT = 12
"""Steps of the recurrence that brings any positive argument to where the series hold."""

_STEPS = np.arange(float(SHIFT))


def log_gamma_rest(r: Vector) -> Vector:
    """log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x > 30."""
    q = r * r
    found: Vector = r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q / 1680)))
    return found


def digamma_rest(r: Vector) -> Vector:
    """digamma(x) - log x, for x >= 12."""
    q = r * r
    inner = 1 / 252 - q * (1 / 240 - q * (1 / 132 - q * (691 / 32760)))
    found: Vector = -0.5 * r - q * (1 / 12 - q * (1 / 120 - q * inner))
    return found


def trigamma_far(r: Vector) -> Vector:
    """trigamma(x), for x >= 12."""
    q = r * r
    inner = 1 / 42 - q * (1 / 30 - q * (5 / 66 - q * (691 / 2730)))
    found: Vector = r * (1 + r * (0.5 + r * (1 / 6 - q * (1 / 30 - q * inner))))
    return found


def tetragamma_far(r: Vector) -> Vector:
    """The derivative of trigamma, for x >= 12."""
    q = r * r
    inner = 0.5 - q * (1 / 6 - q * (1 / 6 - q * (3 / 10 - q * (5 / 6))))
    found: Vector = -q * (1 + r + q * inner)
    return found


def reciprocals(x: Vector) -> tuple[Vector, Vector]:
    """1 / (x + i) for the steps i of the recurrence (last axis), and 1 / (x + 12)."""
    return 1 / (x[..., None] + _STEPS), 1 / (x + SHIFT)
