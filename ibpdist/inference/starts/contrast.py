"""What makes a projection look like a binary source with noise: contrasts, and a two-valued mixture.

A contrast gives g(u) and the mean of g'(u) for projections u (component, row) of unit signal
variance. skew, tanh and cube find sources of many kinds; the two-valued contrast is the
posterior mean of a fitted mixture of two normals of equal variance, the best possible g for a
binary source in normal noise, whatever its prevalence, but needs a start (starts-and-moves.md 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Contrast = Callable[[Matrix], tuple[Matrix, Vector]]
"""u (component, row) -> g(u) (component, row), mean of g'(u) (component)."""

_LEAST_SHARE, _LEAST_VARIANCE = 1e-6, 1e-12
_MOST_ODDS = 80.0
"""Log odds beyond which a posterior is 0 or 1; exp stays finite in single precision."""


@dataclass(frozen=True)
class Mixture:
    """Two normals of equal variance, by component: u = low or high (with probability share) + noise."""

    share: Vector
    low: Vector
    high: Vector
    variance: Vector

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Mixture:
        return Mixture(self.share[which], self.low[which], self.high[which], self.variance[which])


def skew(u: Matrix) -> tuple[Matrix, Vector]:
    """g = u^2: for prevalences away from a half."""
    return u * u, 2 * u.mean(1)


def tanh(u: Matrix) -> tuple[Matrix, Vector]:
    """g = tanh u: for prevalences near a half, and very small or large ones."""
    g = np.tanh(u)
    return g, 1 - np.einsum("cr,cr->c", g, g) / u.shape[1]


def cube(u: Matrix) -> tuple[Matrix, Vector]:
    """g = u^3: the kurtosis, for the rest."""
    square = u * u
    return square * u, 3 * square.mean(1)


def fourth_power(u: Matrix) -> tuple[Matrix, Vector]:
    """g = u^3 without the term of Newton's method: no step lowers the sum of u^4, which is convex in the
    rotation."""
    return u**3, np.zeros(len(u))


CONTRASTS: dict[str, Contrast] = {"skew": skew, "tanh": tanh, "cube": cube}


def two_valued(u: Matrix, mixture: Mixture) -> tuple[Matrix, Vector]:
    """g = E[class value | u] = m0 + (m1 - m0) R,  g' = (m1 - m0)^2 / v R (1 - R)."""
    gap = mixture.high - mixture.low
    on = posterior(u, mixture)
    total, square = on.sum(1), np.einsum("cr,cr->c", on, on)
    slope = gap**2 / mixture.variance * (total - square) / u.shape[1]
    on *= gap[:, None]
    on += mixture.low[:, None]
    return on, slope


def posterior(u: Matrix, mixture: Mixture) -> Matrix:
    """(component, row) probability R of the high class."""
    gap = (mixture.high - mixture.low) / mixture.variance
    share = np.clip(mixture.share, _LEAST_SHARE, 1 - _LEAST_SHARE)
    offset = logit(share) - gap * (mixture.high + mixture.low) / 2
    odds = u * -gap[:, None]
    odds -= offset[:, None]
    np.clip(odds, -_MOST_ODDS, _MOST_ODDS, out=odds)
    np.exp(odds, out=odds)
    odds += 1
    made: Matrix = np.reciprocal(odds, out=odds)
    return made


def split(u: Matrix) -> tuple[NDArray[np.bool_], Mixture]:
    """The two classes of consecutive values with the largest between-class variance, and their mixture.

    Returns (component, row) membership of the high class.
    """
    rows = u.shape[1]
    if rows < 2:
        flat = u.mean(1)
        return np.zeros(u.shape, bool), Mixture(np.full(len(u), 0.5), flat, flat, np.ones(len(u)))
    ordered = np.sort(u, axis=1)
    total = ordered.sum(1)
    below = np.cumsum(ordered, axis=1)[:, :-1]
    count = np.arange(1.0, rows)
    between = (below - total[:, None] * (count / rows)) ** 2 / (count * (rows - count))
    at = np.argmax(between, axis=1)
    each = np.arange(len(u))
    z = u > ((ordered[each, at] + ordered[each, at + 1]) / 2)[:, None]
    return z, _classes(u, np.full(len(u), rows - 1.0) - at, total - below[each, at])


def fit(u: Matrix, mixture: Mixture, steps: int, least: float = _LEAST_VARIANCE) -> Mixture:
    """`steps` rounds of expectation maximisation; `least` bounds the variance from below."""
    for _ in range(steps):
        on = posterior(u, mixture)
        mixture = _classes(u, on.sum(1), np.einsum("cr,cr->c", on, u), least)
    return mixture


def start(u: Matrix, steps: int = 5) -> Mixture:
    """Mixture from the best split and a few rounds."""
    return fit(u, split(u)[1], steps)


def log_likelihood(u: Matrix, mixture: Mixture) -> Vector:
    """(component) mean over rows of the log density of the mixture."""
    share = np.clip(mixture.share, _LEAST_SHARE, 1 - _LEAST_SHARE)[:, None]
    v = mixture.variance[:, None]
    low = np.log1p(-share) - (u - mixture.low[:, None]) ** 2 / (2 * v)
    high = np.log(share) - (u - mixture.high[:, None]) ** 2 / (2 * v)
    made: Vector = np.logaddexp(low, high).mean(1) - 0.5 * np.log(2 * np.pi * mixture.variance)
    return made


def _classes(u: Matrix, on: Vector, sums: Vector, least: float = _LEAST_VARIANCE) -> Mixture:
    """Mixture from the (soft) number of members of the high class and their sum."""
    rows = u.shape[1]
    on = np.clip(on, _LEAST_SHARE * rows, (1 - _LEAST_SHARE) * rows)
    high, low = sums / on, (u.sum(1) - sums) / (rows - on)
    spread = np.einsum("cr,cr->c", u, u) - on * high**2 - (rows - on) * low**2
    return Mixture(on / rows, low, high, np.maximum(spread / rows, least))
