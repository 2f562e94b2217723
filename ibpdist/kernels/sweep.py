"""The Gauss-Seidel sweep over the features of every row of a tile: the one Gaussian loop.

Rows are independent given the globals, so a strip of 64 of them advances together: for each
feature in turn its linear evidence is F_k - sum_l Gamma_kl y_l + Gamma_kk y_k (vibp 9.1),
and the tags of weights and rule say what becomes of it. Rows of a tile are sorted into runs
that share a Gamma (rows observed in the same columns); a complete tile is one run.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.respond import decide, keep_weight, noise_at, weigh, weight_at

STRIP = 64
LANES = 8
OPTIONS = {"nogil": True, "error_model": "numpy"}


@njit(**OPTIONS)
def _load(tag, z, w, at, size, y):
    for k in range(z.shape[0]):
        for r in range(size):
            y[k, r] = z[k, at + r] * weight_at(tag, w, k, at + r)
        for r in range(size, STRIP):
            y[k, r] = 0


@njit(**OPTIONS)
def _linear(f, at, size, gamma, y, k, out):
    """F_k - sum over l other than k of Gamma_kl y_l, for a strip; terms four at a time."""
    features = y.shape[0]
    for r in range(size):
        out[r] = f[k, at + r]
    for r in range(size, STRIP):
        out[r] = 0
    whole = features - features % 4
    for b in range(0, whole, 4):
        g0, g1, g2, g3 = gamma[k, b], gamma[k, b + 1], gamma[k, b + 2], gamma[k, b + 3]
        for r in range(64):
            near = g0 * y[b, r] + g1 * y[b + 1, r]
            out[r] -= near + (g2 * y[b + 2, r] + g3 * y[b + 3, r])
    for b in range(whole, features):
        g0 = gamma[k, b]
        for r in range(64):
            out[r] -= g0 * y[b, r]
    own = gamma[k, k]
    for r in range(64):
        out[r] += own * y[k, r]


@njit(**OPTIONS)
def _respond(weights, rule, linear, quad, prior, noise, row, at, size, strip):
    """Fill the strip's z, w, entropy, cost, second moment; padded rows get zeros."""
    z, w, entropy, cost, second = strip
    u, g = noise
    for r in range(64):
        i = min(at + r, at + size - 1)
        evidence, mean, square, price = weigh(weights, rule, linear[r], quad, noise_at(rule, g, row, i))
        z[r], entropy[r] = decide(rule, prior + evidence, noise_at(rule, u, row, i))
        w[r] = mean
        cost[r] = z[r] * price
        second[r] = z[r] * square
    for r in range(size, STRIP):
        z[r], entropy[r], cost[r], second[r] = 0, 0, 0, 0


@njit(**OPTIONS)
def _tally(strip, sums, k):
    """Add a strip to the float64 lanes of feature k."""
    z, _, entropy, cost, second = strip
    for b in range(0, 64, 8):
        for j in range(8):
            sums[0, k, j] += z[b + j]
            sums[1, k, j] += entropy[b + j]
            sums[2, k, j] += cost[b + j]
            sums[3, k, j] += second[b + j]


@njit(cache=True, **OPTIONS)
def sweep(f, gamma, runs, prior, state, weights, rule, noise, inner, fresh):
    """`inner` sweeps over a tile; returns sums (4, run, feature): on, entropy, cost, E y^2.

    f (feature, row): dictionary times rows, over noise. gamma (run, feature, feature):
    sum_d E[A_d' A_d] / noise_d over the columns that the rows runs[i] .. runs[i+1] observe.
    prior (feature): log odds. state, fresh: (z, w) of the tile, read and written. noise: (u, g),
    tables (inner * feature, row) of uniforms and normals for the draw rule, else empty.
    """
    features = f.shape[0]
    z0, w0 = state
    z1, w1 = fresh
    y = np.empty((features, STRIP), f.dtype)
    linear = np.empty(STRIP, f.dtype)
    strip = (
        np.empty(STRIP, f.dtype),
        np.empty(STRIP, f.dtype),
        np.empty(STRIP, f.dtype),
        np.empty(STRIP, f.dtype),
        np.empty(STRIP, f.dtype),
    )
    sums = np.empty((4, runs.size - 1, features))
    lanes = np.empty((4, features, LANES))
    for p in range(runs.size - 1):
        lanes[:] = 0
        for at in range(runs[p], runs[p + 1], STRIP):
            size = min(STRIP, runs[p + 1] - at)
            _load(weights, z0, w0, at, size, y)
            for turn in range(inner):
                for k in range(features):
                    row = turn * features + k
                    _linear(f, at, size, gamma[p], y, k, linear)
                    _respond(weights, rule, linear, gamma[p, k, k], prior[k], noise, row, at, size, strip)
                    for r in range(64):
                        y[k, r] = strip[0][r] * strip[1][r]
                    if turn == inner - 1:
                        _tally(strip, lanes, k)
                        for r in range(size):
                            z1[k, at + r] = strip[0][r]
                            keep_weight(weights, w1, k, at + r, strip[1][r])
        for q in range(4):
            for k in range(features):
                sums[q, p, k] = lanes[q, k].sum()
    return sums
