"""Random numbers one at a time, as a function of a key, a row, and how many the row has used."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.philox import _philox

_LOW = np.uint64(0xFFFFFFFF)
SMALL = 1e-300
"""The least number of a gamma law."""


@njit(**OPTIONS)
def uniform(row, place, key):
    """A number inside (0, 1); place (one) counts those that the row has used."""
    a, b, _, _ = _philox(row & _LOW, row >> np.uint64(32), np.uint64(place[0]), np.uint64(0), key[0], key[1])
    place[0] += 1
    return (np.float64(((a << np.uint64(32)) | b) >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(**OPTIONS)
def gamma(shape, row, place, key):
    """Gamma(shape, 1): Marsaglia and Tsang 2000, with a power of a uniform below shape 1; never zero."""
    least = shape if shape >= 1.0 else shape + 1.0
    d = least - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        size = math.sqrt(-2.0 * math.log(uniform(row, place, key)))
        x = size * math.cos(2.0 * math.pi * uniform(row, place, key))
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(uniform(row, place, key)) < 0.5 * x * x + d - d * v + d * math.log(v):
            break
    if shape >= 1.0:
        return d * v
    return max(d * v * math.exp(math.log(uniform(row, place, key)) / shape), SMALL)
