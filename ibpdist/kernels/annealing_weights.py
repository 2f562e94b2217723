"""Annealed chains over the features z of single rows and their weights w, for weights of any kind.

Where w cannot be integrated out of the evidence of a row, a chain walks over both. With y = z w, and F and
Gamma of the cells of a leg as in annealing.py, the log evidence is f(y) = y'F - y' Gamma y / 2. The legs go
from the prior p(z) p(w) to p(z) p(w) exp f_1(y) and on to p(z) p(w) exp f_2(y), by the same levels. A sweep
draws every entry (z_k, w_k) given the others: at a level its likelihood is again a pair linear and quad, so
that the compiled response of the weights (respond.py) draws it, z with w integrated out and then w.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ibpdist.kernels.annealing import _PILOT_CHAIN, PILOT, _accepts, _level, _uniforms
from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.respond import weigh


@njit(**OPTIONS)
def _entry(weights, rule, odds, linear, quad, numbers):
    """y of an entry drawn given its likelihood."""
    u, v, w = numbers
    normal = math.sqrt(-2.0 * math.log(v)) * math.cos(2.0 * math.pi * w)
    evidence, weight, _, _ = weigh(weights, rule, linear, quad, normal)
    return weight if _accepts(u, odds + evidence) else 0.0


@njit(**OPTIONS)
def _from_prior(weights, rule, y, odds, row, chain, at, key):
    for k in range(y.size):
        y[k] = _entry(weights, rule, odds[k], 0.0, 0.0, _uniforms(row, chain, at + k, key))


@njit(**OPTIONS)
def _begin(gram, pull, y, left):
    """f(y), and in `left` F - Gamma y."""
    total = 0.0
    left[:] = pull
    for k in range(y.size):
        if y[k] != 0.0:
            total += _change(gram, left, k, y[k])
    return total


@njit(**OPTIONS)
def _change(gram, left, k, by):
    """What f gains when y_k changes by so much; `left` follows."""
    gained = by * left[k] - 0.5 * by * by * gram[k, k]
    for i in range(left.size):
        left[i] -= by * gram[k, i]
    return gained


@njit(**OPTIONS)
def _sweep(weights, rule, grams, left, first, second, y, odds, row, chain, at, key, f):
    """Draw every entry given the others under p(z) p(w) exp(first f_1 + second f_2); f follows y."""
    for k in range(y.size):
        linear, quad = first * (left[0, k] + grams[0, k, k] * y[k]), first * grams[0, k, k]
        if second > 0.0:
            linear += second * (left[1, k] + grams[1, k, k] * y[k])
            quad += second * grams[1, k, k]
        new = _entry(weights, rule, odds[k], linear, quad, _uniforms(row, chain, at + k, key))
        if new != y[k]:
            by = new - y[k]
            f[0] += _change(grams[0], left[0], k, by)
            if second > 0.0:
                f[1] += _change(grams[1], left[1], k, by)
            y[k] = new


@njit(**OPTIONS)
def _spreads(weights, rule, grams, pulls, n, odds, row, key, y, left):
    """Standard deviations under the prior of f_1 and of f_2 - f_1."""
    found = np.empty((2, PILOT))
    for t in range(PILOT):
        _from_prior(weights, rule, y, odds, row, _PILOT_CHAIN, t * y.size, key)
        found[0, t] = _begin(grams[0], pulls[0, n], y, left[0])
        found[1, t] = _begin(grams[1], pulls[1, n], y, left[1]) - found[0, t]
    return found[0].std(), found[1].std()


@njit(**OPTIONS)
def _leg(weights, rule, grams, left, leg, levels, spread, y, odds, numbers, f, kept):
    """Log weight of a leg, and in `kept` (draw, feature) y of draws at its end."""
    row, chain, at, key = numbers
    total, before = 0.0, 0.0
    for t in range(levels + kept.shape[0] - 1):
        now = _level(spread, min(t + 1, levels) / levels)
        total += (now - before) * (f[1] - f[0] if leg else f[0])
        before = now
        first, second = (1.0 - now, now) if leg else (now, 0.0)
        place = at + t * y.size
        _sweep(weights, rule, grams, left, first, second, y, odds, row, chain, place, key, f)
        if t >= levels - 1:
            kept[t - levels + 1] = y
    return total


@njit(cache=True, **OPTIONS)
def annealed(weights, rule, grams, pulls, odds, rows, chains, levels, keep, key):
    """As in annealing.py, for the response of `weights` under `rule`, which is to draw; without moves of
    several features. Draws are of y instead of z."""
    features = odds.size
    made = np.empty((rows.size, chains, 2))
    kept = np.empty((rows.size, chains, 2, keep, features))
    y, f, left = np.empty(features), np.empty(2), np.empty((2, features))
    for n in range(rows.size):
        row = np.uint64(rows[n])
        spreads = _spreads(weights, rule, grams, pulls, n, odds, row, key, y, left)
        for c in range(chains):
            chain, total = np.uint64(c), 0.0
            _from_prior(weights, rule, y, odds, row, chain, 0, key)
            for leg in range(2):
                f[0] = _begin(grams[0], pulls[0, n], y, left[0])
                if leg:
                    f[1] = _begin(grams[1], pulls[1, n], y, left[1])
                numbers = (row, chain, features * (1 + leg * (levels + keep)), key)
                end, spread = kept[n, c, leg], spreads[leg]
                total += _leg(weights, rule, grams, left, leg, levels, spread, y, odds, numbers, f, end)
                made[n, c, leg] = total
    return made, kept
