"""The sweep over the features of rows whose cells have weights of their own: 0 where they are hidden.

A row keeps r_d = v_d (x_d - sum_k y_k a_kd), with x and a_k = E A_k over the root of the noise, so that its
own Gram matrix Gamma = sum_d v_d a_d a_d' is never formed (linear-gaussian.md 9): the linear evidence is
F_k - sum_l Gamma_kl y_l = sum_d a_kd r_d. The covariance of the dictionary adds sum_j B_kj C_j B_lj to
Gamma: more columns j, in which x is zero, a is B and the weight is C_j. A pass goes over whole rows, hidden
cells included: reading cells by lists would cost more than the cells that it saves, unless few are in them.

The change of one feature is taken off r on the way to the product with the next, in blocks of two
times 32 columns.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.respond import (
    decide,
    noise_at,
    normal_at,
    odds_at,
    precision_at,
    size_of,
    varies,
    weigh,
    weight_at,
)

LANES, BLOCK = 32, 64
PAIR = 2
"""Rows that are swept together, so that what is read of the dictionary serves both."""
index = np.uint64


@njit(cache=True, **OPTIONS)
def leave(x, observed, root, left, seen):
    """r in place of what is expected of x, over the root of the noise; `seen` 1 in visible cells, else 0."""
    rows, columns = x.shape
    for n in range(rows):
        for d in range(columns):
            seen[n, d] = observed[n, d]
        for d in range(columns):
            left[n, d] = (x[n, d] / root[d] - left[n, d]) * seen[n, d]


@njit(cache=True, **OPTIONS)
def moments(left, precision, total):
    """Add to `total` (2, column) sums over the rows of r, and of its squares over the weights of visible
    cells, which are the precisions of the rows, or 1 without."""
    rows, columns = left.shape
    part = np.zeros((2, columns), left.dtype)
    for n in range(rows):
        times = precision_at(precision, left[n, 0], n)
        for d in range(columns):
            part[0, d] += left[n, d]
            part[1, d] += left[n, d] * left[n, d] / times
    for d in range(total.shape[1]):
        total[0, d] += part[0, d]
        total[1, d] += part[1, d]


@njit(**OPTIONS)
def _take(left, seen, n, pair):
    """r and v of rows n and n + 1 side by side, block by block."""
    for b in range(pair.shape[0]):
        for i in range(64):
            d = index(b * 64 + i)
            pair[b, i] = left[n, d]
            pair[b, index(64 + i)] = left[n + 1, d]
            pair[b, index(128 + i)] = seen[n, d]
            pair[b, index(192 + i)] = seen[n + 1, d]


@njit(**OPTIONS)
def _put(pair, left, n):
    """r of rows n and n + 1 back to where it was taken from."""
    for b in range(pair.shape[0]):
        for i in range(64):
            d = index(b * 64 + i)
            left[n, d] = pair[b, i]
            left[n + 1, d] = pair[b, index(64 + i)]


@njit(**OPTIONS)
def _next(pair, changes, a, last, now, lanes):
    """Take the change of the last feature off r, then the products of r with the next one."""
    lanes[:] = 0
    first, second = changes[0], changes[1]
    for b in range(pair.shape[0]):
        for i in range(32):
            d, e = index(b * 64 + i), index(b * 64 + 32 + i)
            before0, before1, now0, now1 = a[last, d], a[last, e], a[now, d], a[now, e]
            r0 = pair[b, i] - first * before0 * pair[b, index(128 + i)]
            r1 = pair[b, index(32 + i)] - first * before1 * pair[b, index(160 + i)]
            s0 = pair[b, index(64 + i)] - second * before0 * pair[b, index(192 + i)]
            s1 = pair[b, index(96 + i)] - second * before1 * pair[b, index(224 + i)]
            pair[b, i] = r0
            pair[b, index(32 + i)] = r1
            pair[b, index(64 + i)] = s0
            pair[b, index(96 + i)] = s1
            lanes[i] += r0 * now0 + r1 * now1
            lanes[index(32 + i)] += s0 * now0 + s1 * now1
    return _total(lanes, 0), _total(lanes, LANES)


@njit(**OPTIONS)
def _total(lanes, at):
    """The sum of the lanes of a row."""
    for i in range(at, at + 16):
        lanes[i] += lanes[i + 16]
    for i in range(at, at + 8):
        lanes[i] += lanes[i + 8]
    return ((lanes[at] + lanes[at + 4]) + (lanes[at + 2] + lanes[at + 6])) + (
        (lanes[at + 1] + lanes[at + 5]) + (lanes[at + 3] + lanes[at + 7])
    )


@njit(cache=True, **OPTIONS)
def sweep_cells(left, seen, own, a, prior, tilt, state, weights, rule, noise, inner, fresh):
    """`inner` sweeps over the rows of a tile; returns sums (5, feature): on, entropy, cost, E y^2,
    and E |y|, or E y of weights with one side.

    left, seen (row, column): r, kept up to date, and v; rows come in pairs, so there is one more where their
    number is odd. own (row, feature): the diagonal of Gamma.
    a (feature, column). Columns are padded with zeros to whole blocks. prior: log odds, (feature) or
    (feature, row); tilt (feature): linear evidence of the prior of the weights. state: (z, w) (feature, row).
    fresh: (z, w, E y^2), written.
    noise: (u, g), tables (inner * feature, row) of uniforms and normals for the draw rule, else empty.
    """
    z0, w0 = state
    z1, w1, square1 = fresh
    u, g = noise
    rows, features = own.shape
    lanes, y = np.zeros(PAIR * LANES, a.dtype), np.empty((PAIR, features), a.dtype)
    changes, linear = np.zeros(PAIR, a.dtype), np.zeros(PAIR, a.dtype)
    pair = np.empty((a.shape[1] // BLOCK, 4 * BLOCK), a.dtype)
    sums = np.zeros((5, features))
    for first in range(0, rows, PAIR):
        size = min(PAIR, rows - first)
        for i in range(size):
            for k in range(features):
                y[i, k] = z0[k, first + i] * weight_at(weights, w0, k, first + i)
        _take(left, seen, first, pair)
        last = 0
        changes[:] = 0
        for turn in range(inner):
            for k in range(features):
                row = turn * features + k
                linear[0], linear[1] = _next(pair, changes, a, last, k, lanes)
                last = k
                for i in range(size):
                    n, quad = first + i, own[first + i, k]
                    normal = normal_at(weights, rule, g, row, n)
                    along = linear[i] + quad * y[i, k] + tilt[k]
                    evidence, mean, square, price = weigh(weights, rule, along, quad, normal)
                    z, entropy = decide(rule, odds_at(prior[k], n) + evidence, noise_at(rule, u, row, n))
                    changes[i] = z * mean - y[i, k]
                    y[i, k] = z * mean
                    if turn == inner - 1:
                        z1[k, n], square1[k, n] = z, z * square
                        if varies(weights):
                            w1[k, n] = mean
                        sums[0, k] += z
                        sums[1, k] += entropy
                        sums[2, k] += z * price
                        sums[3, k] += z * square
                        sums[4, k] += z * size_of(weights, rule, along, quad, mean)
        if features:
            _next(pair, changes, a, last, last, lanes)
            _put(pair, left, first)
    return sums
