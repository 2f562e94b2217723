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

from ibpdist.kernels.respond import decide, noise_at, normal_at, odds_at, varies, weigh, weight_at

LANES, BLOCK = 32, 64
OPTIONS = {"nogil": True, "error_model": "numpy"}
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
def moments(left, total):
    """Add to `total` (2, column) sums over the rows of r and of its squares."""
    rows, columns = left.shape
    part = np.zeros((2, columns), left.dtype)
    for n in range(rows):
        for d in range(columns):
            part[0, d] += left[n, d]
            part[1, d] += left[n, d] * left[n, d]
    for d in range(total.shape[1]):
        total[0, d] += part[0, d]
        total[1, d] += part[1, d]


@njit(**OPTIONS)
def _next(left, seen, n, change, a, last, now, lanes):
    """Take the change of the last feature off r, then the product of r with the next one."""
    lanes[:] = 0
    for at in range(0, a.shape[1], 64):
        for i in range(32):
            d, e = index(at + i), index(at + 32 + i)
            one = left[n, d] - change * a[last, d] * seen[n, d]
            other = left[n, e] - change * a[last, e] * seen[n, e]
            left[n, d] = one
            left[n, e] = other
            lanes[i] += one * a[now, d] + other * a[now, e]
    for i in range(16):
        lanes[i] += lanes[i + 16]
    for i in range(8):
        lanes[i] += lanes[i + 8]
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))


@njit(cache=True, **OPTIONS)
def sweep_cells(left, seen, own, a, prior, state, weights, rule, noise, inner, fresh):
    """`inner` sweeps over the rows of a tile; returns sums (4, feature): on, entropy, cost, E y^2.

    left, seen (row, column): r, kept up to date, and v. own (row, feature): the diagonal of Gamma.
    a (feature, column). Columns are padded with zeros to whole blocks. prior: log odds, (feature) or
    (feature, row). state: (z, w) (feature, row). fresh: (z, w, E y^2), written.
    noise: (u, g), tables (inner * feature, row) of uniforms and normals for the draw rule, else empty.
    """
    z0, w0 = state
    z1, w1, square1 = fresh
    u, g = noise
    rows, features = own.shape
    lanes, y = np.zeros(LANES, a.dtype), np.empty(features, a.dtype)
    zero = lanes[0]  # a whole number times a float32 would be a float64
    sums = np.zeros((4, features))
    for n in range(rows):
        for k in range(features):
            y[k] = z0[k, n] * weight_at(weights, w0, k, n)
        last, change = 0, zero
        for turn in range(inner):
            for k in range(features):
                row, quad = turn * features + k, own[n, k]
                linear = _next(left, seen, n, change, a, last, k, lanes) + quad * y[k]
                normal = normal_at(weights, rule, g, row, n)
                evidence, mean, square, price = weigh(weights, rule, linear, quad, normal)
                z, entropy = decide(rule, odds_at(prior[k], n) + evidence, noise_at(rule, u, row, n))
                last, change = k, z * mean - y[k]
                y[k] = z * mean
                if turn == inner - 1:
                    z1[k, n], square1[k, n] = z, z * square
                    if varies(weights):
                        w1[k, n] = mean
                    sums[0, k] += z
                    sums[1, k] += entropy
                    sums[2, k] += z * price
                    sums[3, k] += z * square
        if features:
            _next(left, seen, n, change, a, last, last, lanes)
    return sums
