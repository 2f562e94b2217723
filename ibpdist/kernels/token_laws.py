"""Laws of words of rows: the product of weights and features, for a row the same bits in any block of rows.

A product of matrices by BLAS may add in another order where a block has another number of rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS

LANES = 16
"""Rows that one pass over the words serves."""


@njit(cache=True, **OPTIONS)
def add_laws(shares, y, floor, laws):
    """laws (row, column) += sum_k shares (row, feature) y (column, feature) + floor (row), one feature after
    another."""
    rows, features = shares.shape
    lanes, sums = np.zeros((features, LANES)), np.empty(LANES)
    for first in range(0, rows, LANES):
        size = min(LANES, rows - first)
        for lane in range(size):
            for k in range(features):
                lanes[k, lane] = shares[first + lane, k]
        for v in range(y.shape[0]):
            sums[:] = 0.0
            for k in range(features):
                tokens = y[v, k]
                for lane in range(LANES):
                    sums[lane] += tokens * lanes[k, lane]
            for lane in range(size):
                laws[first + lane, v] += sums[lane] + floor[first + lane]
