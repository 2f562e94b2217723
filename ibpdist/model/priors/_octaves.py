"""Nodes of sums over all whole numbers whose terms are smooth on a log scale (beta_process.md 4)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ibpdist.kernels.decayed_sticks import HEAD, PER_OCTAVE

Vector = NDArray[np.float64]

LAST = 40
"""Octaves up to 2^40."""


@cache
def octaves() -> tuple[Vector, Vector]:
    """Nodes from HEAD on, and how many whole numbers each stands for.

    In each octave they are the Gauss rule of the uniform measure on its whole numbers, from the recurrence
    of the discrete Chebyshev polynomials.
    """
    order = np.arange(1.0, PER_OCTAVE)
    nodes, shares = [], []
    for exponent in range(int(np.log2(HEAD)), LAST):
        length = 2.0**exponent
        beside = order * np.sqrt((length**2 - order**2) / (4 * (4 * order**2 - 1)))
        jacobi = np.diag(np.full(PER_OCTAVE, (length - 1) / 2)) + np.diag(beside, 1) + np.diag(beside, -1)
        values, vectors = np.linalg.eigh(jacobi)
        nodes.append(length + values)
        shares.append(length * vectors[0] ** 2)
    return np.concatenate(nodes), np.concatenate(shares)
