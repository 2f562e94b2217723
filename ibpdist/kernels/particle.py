"""One row met by all particles: weighed, then taken in (samplers.md 13).

A particle knows Lambda^-1 for each group of columns that are missing in the same rows, and Abar. Slots
are the dishes of its buffet, in the order in which they came; they are never taken away.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS

index = np.uint64
LOG_2PI = math.log(2 * math.pi)


class Tables(NamedTuple):
    """inverse (particle, group, slot, slot), mean (particle, slot, column), on (particle, slot): counts;
    sizes (particle): slots in use."""

    inverse: Any
    mean: Any
    on: Any
    sizes: Any


@njit(**OPTIONS)
def _open(inverse, mean, size, number, alone):
    """Slots for new dishes, before any data."""
    last = size + number
    for k in range(size, last):
        mean[k] = 0.0
        for g in range(inverse.shape[0]):
            inverse[g, k, :last] = 0.0
            inverse[g, :last, k] = 0.0
            inverse[g, k, k] = alone


@njit(**OPTIONS)
def _meet(x, z, inverse, mean, noise, reach):
    """Log predictive density of the columns x of a group, which are then taken in.

    inverse (slot, slot), mean (slot, column): the group's parts; reach (slot): room.
    """
    size, residual = z.size, x.copy()
    reach[:size] = 0.0
    for k in range(size):
        if z[k]:
            row, step = mean[k], inverse[k]
            for d in range(x.size):
                residual[index(d)] -= row[index(d)]
            for j in range(size):
                reach[index(j)] += step[index(j)]
    grown = 1.0
    for k in range(size):
        grown += z[k] * reach[k]
    for k in range(size):
        share, row, step = reach[k] / grown, mean[k], inverse[k]
        for d in range(x.size):
            row[index(d)] += share * residual[index(d)]
        for j in range(size):
            step[index(j)] -= share * reach[index(j)]
    variance = noise * grown
    return -0.5 * (x.size * (LOG_2PI + math.log(variance)) + np.dot(residual, residual) / variance)


@njit(cache=True, **OPTIONS)
def meet(x, seen, bounds, z, new, noise, scale, tables):
    """(particle) log predictive density of a row, which every particle takes in.

    x (column), columns of a group side by side: group g is bounds[g] .. bounds[g + 1], and counts where
    seen (group) is set. z (particle, slot): known dishes that the row takes; the `new` (particle)
    ones take the next slots, and z is set there.
    """
    found, reach = np.zeros(len(new)), np.empty(z.shape[1])
    for p in range(len(new)):
        _open(tables.inverse[p], tables.mean[p], tables.sizes[p], new[p], scale / noise)
        z[p, tables.sizes[p] : tables.sizes[p] + new[p]] = 1.0
        tables.sizes[p] += new[p]
        size = tables.sizes[p]
        for g in range(len(seen)):
            if seen[g]:
                a, b = bounds[g], bounds[g + 1]
                inverse, mean = tables.inverse[p, g], tables.mean[p, :size, a:b]
                found[p] += _meet(x[a:b], z[p, :size], inverse[:, :size], mean, noise, reach)
        tables.on[p, :size] += z[p, :size]
    return found
