"""Differences of gamma functions at large arguments, without the cancellation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

Vector = NDArray[np.float64]

LARGE = 30.0
"""From here on the series below are exact to the last digits."""


def log_gamma_rest(x: Vector) -> Vector:
    """log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x > 30 (Stirling)."""
    q = 1 / (x * x)
    found: Vector = (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q / 1680))) / x
    return found


def digamma_rest(x: Vector) -> Vector:
    """digamma(x) - log x, for x > 30."""
    q = 1 / (x * x)
    found: Vector = -0.5 / x - q * (1 / 12 - q * (1 / 120 - q * (1 / 252 - q / 240)))
    return found


def digamma_drop(x: Vector, b: Vector) -> Vector:
    """digamma(x) - digamma(x + b), to full relative accuracy for x > 30."""
    far = np.maximum(x, LARGE)
    series = digamma_rest(far) - digamma_rest(far + b) - np.log1p(b / far)
    return np.where(x > LARGE, series, digamma(x) - digamma(x + b))
