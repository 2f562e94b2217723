"""L-BFGS for a few hundred variables, in plain numpy.

The one of scipy calls LAPACK on matrices of 40 x 40 at every step; its threads cost more than
the climb as soon as the cores are busy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Objective = Callable[[Vector], tuple[float, Vector]]
"""A point -> the value and the slope there."""

_MEMORY, _TRIALS = 20, 30
_RISE, _TURN = 1e-4, 0.9


def climb(objective: Objective, start: Vector, tolerance: float, steps: int = 300) -> Vector:
    """The highest point found from `start`, until half of slope' H slope falls below `tolerance`.

    The scale of the variables should be such that the curvature is about -1.
    """
    at = start
    value, slope = objective(at)
    pairs: deque[tuple[Vector, Vector]] = deque(maxlen=_MEMORY)
    for _ in range(steps):
        direction = _direction(slope, pairs)
        rate = float(slope @ direction)
        if not 0.5 * rate > tolerance:
            break
        length, reached, slope_there = _line(objective, at, value, direction, rate)
        if not reached > value:
            break
        moved, bent = length * direction, slope - slope_there
        at, value, slope = at + moved, reached, slope_there
        if moved @ bent > 0:
            pairs.append((moved, bent))
    return at


def _direction(slope: Vector, pairs: deque[tuple[Vector, Vector]]) -> Vector:
    """Two-loop recursion: the inverse of the curvature seen in `pairs`, times the slope."""
    direction, shares = slope.copy(), []
    for moved, bent in reversed(pairs):
        share = (moved @ direction) / (moved @ bent)
        direction -= share * bent
        shares.append(share)
    if pairs:
        moved, bent = pairs[-1]
        direction *= (moved @ bent) / (bent @ bent)
    for (moved, bent), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - (bent @ direction) / (moved @ bent)) * moved
    return direction


def _line(
    objective: Objective, at: Vector, value: float, direction: Vector, rate: float
) -> tuple[float, float, Vector]:
    """Length, value and slope of a step with a sure rise and less slope left (weak Wolfe, bisection)."""
    low, high, length = 0.0, np.inf, 1.0
    best = (0.0, value, np.zeros_like(at))
    for _ in range(_TRIALS):
        reached, slope = objective(at + length * direction)
        if reached > best[1]:
            best = (length, reached, slope)
        if not reached >= value + _RISE * length * rate:
            high = length
        elif slope @ direction > _TURN * rate:
            low = length
        else:
            return length, reached, slope
        if high * rate <= 1e-15 * abs(value):
            break
        length = 2 * low if high == np.inf else 0.5 * (low + high)
    return best
