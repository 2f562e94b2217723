"""Counts, sticks and small helpers for the tests of the prior axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma

from ibpdist.base.rules import Rule
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors._beta import sticks, weighted

Floats = NDArray[np.float64]

STICKS = {
    "one": np.array([[2.0, 1.5]]),
    "prior": np.array([[3.0, 1.0]] * 4),
    "few rows": np.array([[2.0, 1.5], [1.2, 3.0], [0.7, 1.0]]),
    "used, then unused": np.array([[520.0, 120.0], [400.0, 1.3], [80.0, 40.0], [2.0, 70.0], [2.0, 1.2]]),
    "near one": np.array([[300.0, 1.0], [299.0, 1.0], [5.0, 2.5]]),
    "small sides": np.array([[0.3, 0.6], [0.2, 0.9], [4.0, 0.8]]),
}


def sums(on: object, rows: float) -> PriorSums:
    return PriorSums(on=np.asarray(on, dtype=np.float64), rows=np.float64(rows))


def total(prior: object, params: object, seen: PriorSums) -> float:
    return sum(prior.score(params, seen).values())  # type: ignore[attr-defined]


def mean_update(prior: object, params: object, seen: PriorSums) -> object:
    return prior.update(params, seen, Rule.MEAN, np.random.default_rng(0))  # type: ignore[attr-defined]


def random_counts(rng: np.random.Generator, features: int, rows: int) -> Floats:
    """Soft counts of all kinds: full, empty, nearly empty, rare, common."""
    share = rng.beta(0.4, 0.8, size=features)
    share = np.where(rng.random(features) < 0.15, rng.choice([0.0, 1.0, 1e-9, 1 - 1e-9]), share)
    return rows * share


def numeric_gradient(value: object, at: Floats, step: float = 1e-5) -> Floats:
    """Central differences with relative steps."""
    out = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        width = step * at[index]
        above, below = at.copy(), at.copy()
        above[index] += width
        below[index] -= width
        out[index] = (value(above) - value(below)) / (2 * width)  # type: ignore[operator]
    return out


def bound_and_gradient(lower: object, tau: Floats, off: Floats) -> tuple[Floats, Floats]:
    """The bounds, and the gradient of sum_k off_k b_k in tau."""
    at = sticks(tau)
    found = lower(at, off)  # type: ignore[operator]
    return found.value, (weighted(at, found.weight)[0] + found.slope) / tau


def fisher(tau: Floats) -> Floats:
    """(feature, side, side) Fisher information in tau."""
    information = np.zeros((len(tau), 2, 2)) - polygamma(1, tau.sum(axis=1))[:, None, None]
    information[:, 0, 0] += polygamma(1, tau[:, 0])
    information[:, 1, 1] += polygamma(1, tau[:, 1])
    return information
