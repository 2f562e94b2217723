"""The optimum of the sticks given the counts (priors.md 10): where to start, the climb, what is left."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ibpdist.model.priors._beta import Vector
from ibpdist.model.priors._bound import from_here
from ibpdist.model.priors._climb import climb
from ibpdist.model.priors._objective import Problem, Seen

_GAIN = 1e-6
"""Nats that are not worth another step."""

_FAR, _FEW = 30.0, 1e-100
"""Of one stick's -log v at the start, and the least count that is told from none there."""


def from_counts(on: Vector, rows: float, mass: float) -> Vector:
    """Sticks near the optimum, stick by stick; counts must not increase.

    With s = -log v, t_k the log of count over rows and I_k what the counts of this stick and the
    later ones tell about log pi_k, the log posterior of s is about -I (s - s0)^2 / 2 - mass s
    where s0 = log pi_{k-1} - t_k; its mode in log s is the mean, and 1 / I adds to the shape.
    This shares ties out among the sticks, which m_k / m_{k-1} (priors.md 15) does not.
    """
    soft = _soft(on, rows, mass)
    told = from_here(rows * soft / (1 - soft))
    falls, reached = [], 0.0
    for info, target in zip(told.tolist(), np.log(soft).tolist(), strict=True):
        pull = info * (reached - target) - mass
        root = math.sqrt(pull * pull + 4 * info)
        fall = (pull + root) / (2 * info) if pull > 0 else 2 / (root - pull)
        falls.append(min(fall, _FAR))
        reached -= falls[-1]
    odds = np.expm1(falls)
    two = 1 + told * odds * odds / (1 + odds)
    return np.stack([np.maximum(two / odds, mass), two], axis=1)


def _soft(on: Vector, rows: float, mass: float) -> Vector:
    """Prevalences, never 0 or 1; features without rows fall off like the mean of the prior."""
    empty = on < 0.5
    before: Vector = np.cumsum(empty) - 1.0 * empty
    found: Vector = np.maximum(on + 0.5 * (mass / (1 + mass)) ** before, _FEW) / (rows + 1)
    return found


def solve(problem: Problem, fresh: Vector, last: Vector | None = None, reached: float = -math.inf) -> Seen:
    """Climb over log tau from `fresh`, or from `last` if it is better.

    `last` is only looked at when `fresh` is below `reached`, what `last` is known to reach.
    """
    start = problem.look(np.log(fresh))
    other = problem.look(np.log(last)) if last is not None and start.value < reached else start
    inside = [seen for seen in (other, start) if isinstance(seen, Seen)]
    if not inside:
        raise ArithmeticError("the sticks have no start inside; expected tau within what the rows can give")
    return climb(problem.look, max(inside, key=lambda seen: seen.value), _GAIN)


def drop(tau: Vector, keep: NDArray[np.bool_]) -> Vector:
    """Tau of the kept sticks; each takes over the mean of the dropped ones before it."""
    log_mean = np.diff(np.cumsum(-np.log1p(tau[:, 1] / tau[:, 0]))[keep], prepend=0.0)
    size = tau.sum(axis=1)[keep]
    return np.stack([size * np.exp(log_mean), size * -np.expm1(log_mean)], axis=1)
