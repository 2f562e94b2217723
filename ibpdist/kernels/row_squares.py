"""Sums over the cells of rows, and over the rows of columns, of a tile that stays in cache."""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS

FUSED = {**OPTIONS, "fastmath": {"contract"}}
LANES = 32
index = np.uint64


@njit(**FUSED)
def _total(lanes):
    total = 0.0
    for i in range(LANES):
        total += lanes[i]
    return total


@njit(cache=True, **FUSED)
def row_squares(x, seen, origin, weight):
    """(row) sums of weight (x - origin)^2 over cells that are `seen` (row, column), or over all where it is
    empty."""
    rows, columns = x.shape
    made, lanes = np.empty(rows), np.zeros(LANES, x.dtype)
    whole = columns - columns % LANES
    for n in range(rows):
        lanes[:] = 0
        if seen.size:
            for d in range(columns):
                away = (x[n, d] - origin[d]) * seen[n, d]
                lanes[d % LANES] += away * away * weight[d]
        else:
            for b in range(0, whole, LANES):
                for i in range(32):
                    at = index(b + i)
                    away = x[n, at] - origin[at]
                    lanes[i] += away * away * weight[at]
            for d in range(whole, columns):
                away = x[n, d] - origin[d]
                lanes[0] += away * away * weight[d]
        made[n] = _total(lanes)
    return made


@njit(cache=True, **FUSED)
def explained(y, slope, pull, square, own):
    """(row) E y Gamma y' - 2 E y pull', of tables (feature, row): slope is Gamma E y'. `square` is E y^2 and
    `own` (feature) the diagonal of Gamma, which count where it is not empty."""
    features, rows = y.shape
    made = np.zeros(rows)
    for k in range(features):
        both = own[k]
        if square.size:
            for n in range(rows):
                value = y[k, n]
                left = value * (slope[k, n] - 2 * pull[k, n])
                made[n] += left + both * (square[k, n] - value * value)
        else:
            for n in range(rows):
                made[n] += y[k, n] * (slope[k, n] - 2 * pull[k, n])
    return made


@njit(cache=True, **FUSED)
def weighted_columns(x, seen, origin, times, total):
    """Add to `total` (2, column) the sums over rows of x - origin and of its square, each row counted `times`
    (row); over cells that are `seen` (row, column), or over all where it is empty."""
    rows, columns = x.shape
    part = np.zeros((2, columns), x.dtype)
    for n in range(rows):
        each = times[n]
        for d in range(columns):
            away = x[n, d] - origin[d]
            if seen.size:
                away *= seen[n, d]
            value = each * away
            part[0, d] += value
            part[1, d] += value * away
    for d in range(columns):
        total[0, d] += part[0, d]
        total[1, d] += part[1, d]
