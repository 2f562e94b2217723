"""Digamma and trigamma of one positive number, for loops that cannot call scipy."""

from __future__ import annotations

import math

from numba import njit

from ibpdist.kernels.options import INLINED, OPTIONS

FAR = 12.0
"""Where the series in 1 / x hold to the last digits."""


@njit(**INLINED)
def digamma_rest(x):
    """digamma(x) - log x, for x >= FAR."""
    r = 1.0 / x
    q = r * r
    inner = 1.0 / 252 - q * (1.0 / 240 - q * (1.0 / 132 - q * (691.0 / 32760)))
    return -0.5 * r - q * (1.0 / 12 - q * (1.0 / 120 - q * inner))


@njit(**INLINED)
def log_gamma_rest(x):
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, for x >= FAR."""
    r = 1.0 / x
    q = r * r
    return r * (1.0 / 12 - q * (1.0 / 360 - q * (1.0 / 1260 - q * (1.0 / 1680 - q / 1188))))


@njit(**OPTIONS)
def digamma(x):
    """By the recurrence up to FAR and the series from there."""
    found = 0.0
    while x < FAR:
        found -= 1.0 / x
        x += 1.0
    return found + math.log(x) + digamma_rest(x)


@njit(**OPTIONS)
def trigamma(x):
    """By the recurrence up to FAR and the series from there."""
    found = 0.0
    while x < FAR:
        found += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / x
    q = r * r
    inner = 1.0 / 42 - q * (1.0 / 30 - q * (5.0 / 66 - q * (691.0 / 2730)))
    return found + r * (1.0 + r * (0.5 + r * (1.0 / 6 - q * (1.0 / 30 - q * inner))))
