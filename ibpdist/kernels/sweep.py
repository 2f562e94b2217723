"""The Gauss-Seidel sweep over the features of every row of a tile: the one Gaussian loop.

Rows are independent given the globals, so a strip of 64 of them advances together: for each
feature in turn its linear evidence is F_k - sum_l Gamma_kl y_l + Gamma_kk y_k (linear-gaussian.md 4),
and the tags of weights and rule say what becomes of it. Rows of a tile are sorted into runs
that share a Gamma (rows observed in the same columns); a complete tile is one run.

What makes it fast: loops over whole strips have the literal bound 64; tables of strips begin at
cache lines; an unsigned index needs no test for counting from the end; and arrays are passed by
themselves, since taking one out of a tuple or a table counts references. Sums over rows are kept
for each place in a strip, in the precision of the data like the products of a tile (linear-gaussian.md 11).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.respond import (
    decide,
    if_uneven,
    noise_at,
    normal_at,
    odds_at,
    precision_at,
    size_of,
    two_sided,
    uneven,
    varies,
    weigh,
    weight_at,
)

STRIP = 64
LINE = 64
"""Bytes of a cache line."""
Z, W, ENTROPY, COST, SECOND, SIZE = np.arange(1, 7) * STRIP
"""Where the parts of `work` begin: integers of numpy, since numba compiles anew for each int of Python."""
index = np.uint64


@njit(**OPTIONS)
def _aligned(size, like):
    """So many zeros of the type of `like`, from the beginning of a cache line on."""
    made = np.zeros(size + LINE, like.dtype)
    skip = (-np.int64(made.ctypes.data) % LINE) // made.itemsize
    return made[skip : skip + size]


@njit(**OPTIONS)
def _load(tag, z, w, at, size, y):
    """y of a strip, zero in padded rows."""
    for k in range(z.shape[0]):
        if size == STRIP:
            for r in range(64):
                y[k, r] = z[k, index(at + r)] * weight_at(tag, w, k, index(at + r))
        else:
            for r in range(size):
                y[k, r] = z[k, index(at + r)] * weight_at(tag, w, k, index(at + r))
            for r in range(size, STRIP):
                y[k, r] = 0


@njit(**OPTIONS)
def _load_precision(precision, at, size, times):
    """The precisions of the rows of a strip, one in padded rows."""
    if precision is not None:
        for r in range(size):
            times[r] = precision[at + r]
        for r in range(size, STRIP):
            times[r] = 1


@njit(**OPTIONS)
def _linear(f, at, size, gamma, p, y, k, out):
    """F_k - sum over l other than k of Gamma_kl y_l, for a strip; terms eight at a time."""
    features = y.shape[0]
    own = gamma[p, k, k]
    if size == STRIP:
        for r in range(64):
            out[r] = f[k, index(at + r)] + own * y[k, r]
    else:
        for r in range(size):
            out[r] = f[k, index(at + r)] + own * y[k, r]
        for r in range(size, STRIP):
            out[r] = 0
    whole = features - features % 8
    for b in range(0, whole, 8):
        g0, g1, g2, g3 = gamma[p, k, b], gamma[p, k, b + 1], gamma[p, k, b + 2], gamma[p, k, b + 3]
        g4, g5, g6, g7 = gamma[p, k, b + 4], gamma[p, k, b + 5], gamma[p, k, b + 6], gamma[p, k, b + 7]
        for r in range(64):
            near = g0 * y[b, r] + g1 * y[b + 1, r]
            far = g2 * y[b + 2, r] + g3 * y[b + 3, r]
            near += g4 * y[b + 4, r] + g5 * y[b + 5, r]
            far += g6 * y[b + 6, r] + g7 * y[b + 7, r]
            out[r] -= near + far
    for b in range(whole, features):
        g0 = gamma[p, k, b]
        for r in range(64):
            out[r] -= g0 * y[b, r]


@njit(**OPTIONS)
def _respond(weights, rule, quad, prior, tilt, times_of, u, g, row, at, size, work, y, k):
    """Fill the parts of `work` and row k of y from the linear evidence; those of padded rows go unused."""
    for r in range(64):
        i = min(at + r, at + size - 1)
        normal, times = normal_at(weights, rule, g, row, i), precision_at(times_of, quad, r)
        linear, own = times * work[r] + tilt, times * quad
        evidence, mean, square, price = weigh(weights, rule, linear, own, normal)
        z, work[ENTROPY + r] = decide(rule, odds_at(prior, i) + evidence, noise_at(rule, u, row, i))
        work[Z + r] = z
        y[k, r] = z * mean
        if varies(weights) or uneven(times_of):
            work[W + r] = mean
            work[COST + r] = z * price
            work[SECOND + r] = z * square
        if two_sided(weights):
            work[SIZE + r] = z * size_of(weights, rule, linear, own, mean)


@njit(**OPTIONS)
def _tally(work, part, size, lanes, k):
    """Add a part of `work` to the lanes of a sum."""
    if size == STRIP:
        for r in range(64):
            lanes[k, r] += work[part + r]
    else:
        for r in range(size):
            lanes[k, r] += work[part + r]


@njit(**OPTIONS)
def _keep(work, part, at, size, table, k):
    """Write a part of `work` to row k of a table of the tile."""
    if size == STRIP:
        for r in range(64):
            table[k, index(at + r)] = work[part + r]
    else:
        for r in range(size):
            table[k, index(at + r)] = work[part + r]


@njit(**OPTIONS)
def _total(lanes, k):
    """Float64 sum of the lanes of a sum, four at a time."""
    a = b = c = d = 0.0
    for r in range(0, 64, 4):
        a += lanes[k, r]
        b += lanes[k, r + 1]
        c += lanes[k, r + 2]
        d += lanes[k, r + 3]
    return (a + b) + (c + d)


@njit(cache=True, **OPTIONS)
def sweep(f, gamma, runs, prior, tilt, precision, state, weights, rule, noise, inner, fresh):
    """`inner` sweeps over a tile; returns sums (5, run, feature): on, entropy, cost, E y^2,
    and E |y| where weights have two sides, else zero.

    f (feature, row): dictionary times rows, over noise. gamma (run, feature, feature):
    sum_d E[A_d' A_d] / noise_d over the columns that the rows runs[i] .. runs[i+1] observe.
    prior (feature) or (feature, row): log odds; tilt (feature): linear evidence of the prior of the weights.
    precision (row): factors of the rows' precisions, or None. state: (z, w) of the tile, read; fresh: (z, w,
    E y^2), written, the last only where rows have precisions.
    noise: (u, g), tables (inner * feature, row) of uniforms and normals for the draw rule, else empty.
    """
    features, kinds = f.shape[0], 5 if two_sided(weights) else 4 if varies(weights) else 2
    z0, w0 = state
    z1, w1, square1 = fresh
    u, g = noise
    y = _aligned(features * STRIP, f).reshape(features, STRIP)
    lanes = _aligned(kinds * features * STRIP, f).reshape(kinds * features, STRIP)
    work, times = _aligned(7 * STRIP, f), if_uneven(precision, _aligned(STRIP, f))
    sums = np.empty((5, runs.size - 1, features))
    for p in range(runs.size - 1):
        lanes[:] = 0
        for at in range(runs[p], runs[p + 1], STRIP):
            size = min(STRIP, runs[p + 1] - at)
            _load(weights, z0, w0, at, size, y)
            _load_precision(precision, at, size, times)
            for turn in range(inner):
                for k in range(features):
                    row = turn * features + k
                    _linear(f, at, size, gamma, p, y, k, work)
                    quad = gamma[p, k, k]
                    _respond(weights, rule, quad, prior[k], tilt[k], times, u, g, row, at, size, work, y, k)
                    if turn == inner - 1:
                        _tally(work, Z, size, lanes, k)
                        _tally(work, ENTROPY, size, lanes, features + k)
                        _keep(work, Z, at, size, z1, k)
                        if varies(weights):
                            _tally(work, COST, size, lanes, 2 * features + k)
                            _tally(work, SECOND, size, lanes, 3 * features + k)
                            _keep(work, W, at, size, w1, k)
                        if two_sided(weights):
                            _tally(work, SIZE, size, lanes, 4 * features + k)
                        if uneven(precision):
                            _keep(work, SECOND, at, size, square1, k)
        for k in range(features):
            sums[0, p, k] = _total(lanes, k)
            sums[1, p, k] = _total(lanes, features + k)
            sums[2, p, k] = _total(lanes, 2 * features + k) if varies(weights) else 0.0
            sums[3, p, k] = _total(lanes, 3 * features + k) if varies(weights) else sums[0, p, k]
            sums[4, p, k] = _total(lanes, 4 * features + k) if two_sided(weights) else 0.0
    return sums
