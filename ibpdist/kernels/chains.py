"""Gibbs chains of single rows with weights, for left-to-right estimates of log p(hidden | visible).

A row is seen block by block: with the first b blocks, F = A (x / psi) and Gamma = A diag(1/psi) A'
over its seen cells are pulls[b] and grams[b]. With w integrated out, for the features that are on,

    log p(x | z) = const + F' M^-1 F / 2 - log |M| / 2,    M = I + Gamma_on    (scores.md 6),

so a block costs the difference of two such terms, and the factor of M also gives a draw of w | z.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ibpdist.kernels.philox import _philox

HOT = 8.0
"""Temperature at which a chain begins to cool."""

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_LOW = np.uint64(0xFFFFFFFF)


@njit(**_OPTIONS)
def _numbers(row, chain, at, key):
    """A uniform and a standard normal for a step of a chain of a row."""
    a, b, c, _ = _philox(row & _LOW, row >> np.uint64(32), np.uint64(at), np.uint64(chain), key[0], key[1])
    u, v, w = (
        (np.float64(a) + 0.5) * 2.0**-32,
        (np.float64(b) + 0.5) * 2.0**-32,
        (np.float64(c) + 0.5) * 2.0**-32,
    )
    return u, math.sqrt(-2.0 * math.log(v)) * math.cos(2.0 * math.pi * w)


@njit(**_OPTIONS)
def _factor(gram, on, count, lower):
    """Lower triangular factor of I + Gamma of the first `count` features of `on`."""
    for i in range(count):
        for j in range(i + 1):
            s = gram[on[i], on[j]]
            if i == j:
                s += 1.0
            for m in range(j):
                s -= lower[i, m] * lower[j, m]
            lower[i, j] = math.sqrt(s) if i == j else s / lower[j, j]


@njit(**_OPTIONS)
def _evidence(lower, pull, on, count, half):
    """F' M^-1 F / 2 - log |M| / 2; `half` becomes L^-1 F."""
    total = 0.0
    for i in range(count):
        s = pull[on[i]]
        for m in range(i):
            s -= lower[i, m] * half[m]
        half[i] = s / lower[i, i]
        total += 0.5 * half[i] * half[i] - math.log(lower[i, i])
    return total


@njit(**_OPTIONS)
def _redraw(lower, on, count, half, row, chain, at, key, y):
    """w of the features that are on, given z: M^-1 F plus a draw with covariance M^-1."""
    for i in range(count):
        half[i] += _numbers(row, chain, at + i, key)[1]
    for i in range(count - 1, -1, -1):
        s = half[i]
        for m in range(i + 1, count):
            s -= lower[m, i] * half[m]
        half[i] = s / lower[i, i]
        y[on[i]] = half[i]


@njit(**_OPTIONS)
def _flip(gram, pull, odds, power, row, chain, at, key, y, on):
    """One sweep over the features, w integrated out of each; the number that are on."""
    count = 0
    for k in range(y.size):
        linear = pull[k] + gram[k, k] * y[k]
        for m in range(y.size):
            linear -= gram[k, m] * y[m]
        linear *= power
        width = 1.0 / (1.0 + power * gram[k, k])
        u, g = _numbers(row, chain, at + k, key)
        y[k] = 0.0
        if math.log(u) - math.log1p(-u) < odds[k] + 0.5 * (math.log(width) + width * linear * linear):
            y[k] = width * linear + math.sqrt(width) * g
            on[count] = k
            count += 1
    return count


@njit(cache=True, **_OPTIONS)
def left_to_right(grams, pulls, odds, first, chains, burn, keep, key):
    """(row, block, chain) log of the mean over `keep` sweeps of p(block | before, z) up to its constant.

    grams (block + 1, feature, feature), pulls (block + 1, row, feature), odds (feature): prior log
    odds; rows are numbered from `first`. Chains cool over `burn` sweeps of what is seen first.
    """
    blocks, rows, features = pulls.shape[0] - 1, pulls.shape[1], odds.size
    out = np.empty((rows, blocks, chains))
    lower, half = np.empty((features, features)), np.empty(features)
    y, on, terms = np.empty(features), np.empty(features, np.int64), np.empty(keep)
    for n in range(rows):
        row = np.uint64(first[n])
        for c in range(chains):
            at = 0
            y[:] = 0.0
            for t in range(burn):
                power = HOT ** (t / max(burn - 1, 1) - 1.0)
                _flip(grams[0], pulls[0, n], odds, power, row, c, at, key, y, on)
                at += features
            for b in range(blocks):
                for t in range(keep):
                    count = _flip(grams[b], pulls[b, n], odds, 1.0, row, c, at, key, y, on)
                    at += features
                    _factor(grams[b + 1], on, count, lower)
                    after = _evidence(lower, pulls[b + 1, n], on, count, half)
                    _factor(grams[b], on, count, lower)
                    terms[t] = after - _evidence(lower, pulls[b, n], on, count, half)
                    _redraw(lower, on, count, half, row, c, at, key, y)
                    at += features
                top = terms.max()
                out[n, b, c] = top + math.log(np.exp(terms - top).mean())
    return out
