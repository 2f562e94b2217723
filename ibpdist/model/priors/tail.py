"""h_N(p), the price of the features beyond a truncation (priors.md 9).

    h_N(p) = int_0^p (1 - (1 - x)^N) / x dx = sum_{j <= N} (1 - (1 - p)^j) / j

Given the smallest prevalence p of the represented features, the later ones are a Poisson
process of rate mass / x on (0, p), and none of them is on in N rows with probability
exp(-mass h_N(p)). h_N is concave and increasing, h_N(1) is the harmonic number of N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_TERMS = 22
_CERTAIN = 42.0
"""Where N |log(1 - x)| exceeds this, (1 - x)^N is below the last digit of 1."""


def h(p: ArrayLike, rows: float) -> Vector:
    """h_N(p) for every p in [0, 1]; `rows` is N, 0 up to 1e12; relative error below 1e-12.

    Three pieces, none of which cancels: the power series up to x = 1/N, quadrature over
    log x up to where (1 - x)^N vanishes, and the logarithm from there on.
    """
    p = np.asarray(p, dtype=np.float64)
    if rows < 1:
        return np.zeros_like(p)
    small = np.minimum(p, 1.0 / rows)
    large = np.minimum(p, -np.expm1(-_CERTAIN / rows))
    large = np.maximum(large, small)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, top = np.log(large / small), np.log(p / large)
    found: Vector = _series(small, rows) + _quadrature(small, middle, rows) + top
    return np.where(p > 0, found, 0.0)


def _series(x: Vector, rows: float) -> Vector:
    """sum_r (-1)^(r + 1) binomial(N, r) x^r / r, for N x <= 1."""
    term = rows * x
    total = term.copy()
    for r in range(2, _TERMS):
        term = -term * x * (rows - r + 1) / r
        total = total + term / r
    return total


def _quadrature(start: Vector, length: Vector, rows: float) -> Vector:
    """int (1 - (1 - x)^N) dlog x from `start` over `length` units of log x."""
    x = start[..., None] * np.exp(length[..., None] * (0.5 + 0.5 * _NODES))
    with np.errstate(divide="ignore"):
        inside = -np.expm1(rows * np.log1p(-np.minimum(x, 1.0)))
    found: Vector = 0.5 * length * (inside @ _WEIGHTS)
    return found
