"""Anchors of features: of the rows that have a feature, the one that comes first in an order of rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS


@njit(cache=True, **OPTIONS)
def holders(z, order):
    """(2, feature): how many rows have a feature, and the least of their places; infinity if none has it.

    z (feature, row) of zeros and ones, order (row).
    """
    features, rows = z.shape
    found = np.empty((2, features))
    for k in range(features):
        count, least = 0.0, np.inf
        for r in range(rows):
            if z[k, r] > 0:
                count += 1.0
                least = min(least, order[r])
        found[0, k], found[1, k] = count, least
    return found


@njit(cache=True, **OPTIONS)
def frozen(log_odds, first, order, made):
    """Fill `made` (feature, row) with the log odds of a feature; infinite for its anchor, and minus
    infinity for the rows ahead of that."""
    features, rows = made.shape
    never, always = made.dtype.type(-np.inf), made.dtype.type(np.inf)
    for k in range(features):
        odds, anchor = made.dtype.type(log_odds[k]), first[k]
        for r in range(rows):
            held = always if order[r] == anchor else odds
            made[k, r] = never if order[r] < anchor else held
