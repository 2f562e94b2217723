"""Newton's method for a few hundred variables, damped where a full step would not climb.

The step solves (B + damping M) step = slope, with B minus the curvature and M a metric. There
is no damping as a rule; it grows until B + damping M has a Cholesky factor and the step leads
up, and fades again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Vector = NDArray[np.float64]

_LEAST, _MOST = 1e-3, 1e12
"""Damping, where there is any."""

_ROUNDING = 1e-13
"""Relative gain below which the solution counts as converged."""


class Valued(Protocol):
    """The least that is known of an objective at a point; minus infinity is a wall."""

    @property
    def value(self) -> float: ...


class Look(Valued, Protocol):
    """An objective at a point where it can be climbed from."""

    @property
    def slope(self) -> Vector: ...

    def bend(self, damping: float) -> Vector:
        """B + damping M, of which the lower triangle counts; the caller may overwrite it."""
        ...

    def moved(self, step: Vector) -> Vector:
        """The point after a step, to first order the sum."""
        ...


Seen = TypeVar("Seen", bound=Look)


def climb(look: Callable[[Vector], Seen | Valued], seen: Seen, tolerance: float, steps: int = 200) -> Seen:
    """The highest point found from `seen`; no step that is taken lowers the value.

    Ends where a step promises less than `tolerance`, or than rounding shows.
    """
    damping = 0.0
    for _ in range(steps):
        step, damping = _step(seen, damping)
        promise = 0.5 * float(step @ seen.slope)
        enough = max(tolerance, _ROUNDING * abs(seen.value))
        if not promise * (1 + damping) > enough or damping > _MOST:
            break
        there = _higher(look, seen, step)
        if there is None:
            damping = max(10 * damping, 0.1)
        else:
            seen, damping = there, _fade(damping, (there.value - seen.value) / promise)
    return seen


def _higher(look: Callable[[Vector], Seen | Valued], seen: Seen, step: Vector) -> Seen | None:
    """A higher point after the whole step or a quarter of it, if either is one."""
    for share in (1.0, 0.25):
        there = look(seen.moved(share * step))
        if there.value > seen.value and isinstance(there, type(seen)):
            return there
    return None


def _fade(damping: float, kept: float) -> float:
    """Damping after a step that kept this share of its promise."""
    if kept < 0.25:
        return max(4 * damping, _LEAST)
    return 0.1 * damping if 0.1 * damping >= _LEAST else 0.0


def _step(seen: Look, damping: float) -> tuple[Vector, float]:
    """The step under the least damping, from `damping` on, that gives a Cholesky factor."""
    while damping <= _MOST:
        factor, failed = lapack.dpotrf(seen.bend(damping).T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            step: Vector = lapack.dpotrs(factor, seen.slope, lower=0)[0]
            return step, damping
        damping = max(4 * damping, _LEAST)
    return np.zeros_like(seen.slope), damping
