"""How many dimensions of the data stand out of isotropic noise, and by how much (starts-and-moves.md 2).

Eigenvalues are those of the centred covariance with divisor n = N - 1, largest first.
Noise alone has none above the Marchenko-Pastur edge, where the largest one follows the
Tracy-Widom law (Johnstone 2001); the rank is where the spectrum falls below its 99 % point.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

_TRACY_WIDOM = 2.02
"""99 % point of the Tracy-Widom law of order one."""

_ROUNDS = 50
_LEAST_SIGNAL = 0.05
"""Least signal of an eigenvalue above the edge, as a share of it."""


@dataclass(frozen=True)
class Spectrum:
    """What the eigenvalues say: `noise` variance, `rank`, and `signal` variances (component)."""

    noise: float
    rank: int
    signal: Vector
    capped: bool
    """Whether more dimensions stand out than were allowed for."""

    @property
    def ratio(self) -> Vector:
        """(component) noise variance of quasi-whitened data, noise / signal."""
        made: Vector = self.noise / self.signal
        return made


def spectrum(eigenvalues: ArrayLike, rows: int, columns: int, most: int) -> Spectrum:
    """Rank from all min(N - 1, D) eigenvalues; at most `most`."""
    values = _clean(eigenvalues)
    free = min(rows - 1, columns)
    if free < 2 or values.size == 0 or values[0] <= 0:
        return _nothing(values, columns)
    values = np.concatenate([values, np.zeros(max(free - values.size, 0))])[:free]
    aspect = columns / (rows - 1)
    first = float(np.median(values)) / _median(aspect)
    return _settle(values, float(values.sum()), first, rows, columns, most)


def leading_spectrum(eigenvalues: ArrayLike, trace: float, rows: int, columns: int, most: int) -> Spectrum:
    """Rank from some leading eigenvalues and the sum of all (a range finder has no others)."""
    values = _clean(eigenvalues)
    free = min(rows - 1, columns)
    if values.size >= free:
        return spectrum(values, rows, columns, most)
    if free < 2 or values.size == 0 or values[0] <= 0:
        return _nothing(np.array([max(trace, 0.0)]), columns)
    first = _variance(max(trace - float(values.sum()), 0.0), values.size, rows, columns)
    return _settle(values, trace, first, rows, columns, most)


def noise_edge(noise: float, rows: int, columns: int, rank: int) -> float:
    """Largest eigenvalue that noise of this variance has in 99 of 100 matrices of N x D, rank removed."""
    n = rows - 1
    if n < 1 or columns - rank < 1:
        return float("inf")
    a, b = sqrt(n - 0.5), sqrt(columns - rank - 0.5)
    mean = (a + b) ** 2 / n
    spread = (a + b) / n * (1 / a + 1 / b) ** (1 / 3)
    return float(noise * (mean + _TRACY_WIDOM * spread))


def _settle(values: Vector, trace: float, first: float, rows: int, columns: int, most: int) -> Spectrum:
    """Alternate noise variance and rank from a first noise variance; `values` may be the leading ones."""
    aspect = columns / (rows - 1)
    floor = float(np.finfo(float).eps) * max(rows, columns) * float(values[0])
    last = min(values.size, min(rows - 1, columns) - 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])

    def noise_at(r: int) -> float:
        return max(_variance(max(trace - float(sums[r]), 0.0), r, rows, columns), floor)

    r = min(int(np.sum(values > max(first, floor) * (1 + sqrt(aspect)) ** 2)), last)
    for _ in range(_ROUNDS):
        noise = noise_at(r)
        if r < last and values[r] > noise_edge(noise, rows, columns, r):
            r += 1
        elif r > 0 and values[r - 1] <= noise_edge(noise, rows, columns, r - 1):
            r -= 1
        else:
            break
    kept, noise = min(r, max(most, 0)), noise_at(r)
    return Spectrum(noise, kept, _debiased(values[:kept], noise, aspect), r > kept)


def _debiased(values: Vector, noise: float, aspect: float) -> Vector:
    """Signal variance under an eigenvalue, from x = (1 + l)(1 + g / l) (Baik & Silverstein 2006)."""
    x = values / noise
    t = x + 1 - aspect
    made: Vector = noise * np.maximum((t + np.sqrt(np.maximum(t**2 - 4 * x, 0.0))) / 2 - 1, _LEAST_SIGNAL * x)
    return made


def _variance(rest: float, rank: int, rows: int, columns: int) -> float:
    """Noise variance from what `rank` leading eigenvalues leave over."""
    return rest / ((columns - rank) * (1 - rank / (rows - 1)))


def _median(aspect: float) -> float:
    """Median of the nonzero part of the Marchenko-Pastur law with ratio g = D / n and unit variance.

    With x = 1 + g - 2 sqrt(g) cos(t) the density is proportional to sin(t)^2 / x on (0, pi).
    """
    t = np.linspace(0.0, np.pi, 4097)
    t = (t[1:] + t[:-1]) / 2
    x = 1 + aspect - 2 * sqrt(aspect) * np.cos(t)
    mass = np.cumsum(np.sin(t) ** 2 / x)
    return float(np.interp(0.5 * mass[-1], mass, x))


def _clean(eigenvalues: ArrayLike) -> Vector:
    values = np.sort(np.asarray(eigenvalues, dtype=float).ravel())[::-1]
    made: Vector = np.maximum(values, 0.0)
    return made


def _nothing(values: Vector, columns: int) -> Spectrum:
    return Spectrum(float(values.sum()) / max(columns, 1), 0, np.zeros(0), False)
