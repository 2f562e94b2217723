"""Draws of which feature each token belongs to, given dictionary and prevalences: one chunk of rows.

The model is that of tokens.py with phi explicit and c_n ~ Gamma(a, rate b) (counts.md 9). A row has its
tokens y (feature) and its rate c; w lives within a step, in this order:

    z_k | y, c      w integrated out: 1 if y_k > 0, otherwise odds_k (c / (1 + c))^r_k
    w_k | z, y, c   Gamma(r_k + y_k, 1 + c) where z_k = 1
    c | z, w        Gamma(a + sum z r, b + sum z w)
    y | z, w        each token of word v has feature k with probability ~ z_k w_k phi_vk

Shapes are drawn afterwards given y, z and c with w integrated out, from sum l, l_nk ~ CRT(y_nk, r_k), and
sum z log((1 + c) / c). A w that was drawn before them must not be used after them: it belongs to the shapes
before. So the next step draws z, and then w, before anything that needs w.

Every number depends on (key, row, place in the row) alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.row_numbers import SMALL, gamma, uniform


class Globals(NamedTuple):
    """`words` (word, feature): phi of the chunk's words; `shape`, `odds` (feature): r, and prior log odds;
    `a`, `b`: of the prior of rates."""

    words: Any
    shape: Any
    odds: Any
    a: float
    b: float


class RowDraws(NamedTuple):
    """Of the rows: tokens `y`, `z` and `w` (row, feature), w zero where z is; `rate` (row)."""

    y: Any
    z: Any
    w: Any
    rate: Any


class DrawnSums(NamedTuple):
    """`y` (word, feature); `on`, `tables` and `exposed` (feature): sum z, sum l, sum z log((1 + c) / c);
    `scalars`: log probability of which tokens rows have of the features (w integrated out), sum log c,
    sum c."""

    y: Any
    on: Any
    tables: Any
    exposed: Any
    scalars: Any


def no_sums(words: int, features: int) -> DrawnSums:
    """Sums of no rows."""
    on, tables, exposed = np.zeros((3, features))
    return DrawnSums(np.zeros((words, features)), on, tables, exposed, np.zeros(3))


@njit(**OPTIONS)
def _draw_weights(n, row, place, key, known, rows):
    """z, w and c of a row given its tokens."""
    y, z, w, rate = rows.y[n], rows.z[n], rows.w[n], rows.rate[n]
    level = math.log(rate / (1.0 + rate))
    a, b = known.a, known.b
    for k in range(y.size):
        r = known.shape[k]
        z[k], w[k] = 1, 0.0
        if y[k] == 0:
            on = 1.0 / (1.0 + math.exp(-(known.odds[k] + r * level)))
            z[k] = uniform(row, place, key) < on
        if z[k]:
            w[k] = gamma(r + y[k], row, place, key) / (1.0 + rate)
            a += r
            b += w[k]
    rows.rate[n] = max(gamma(a, row, place, key) / b, SMALL)


@njit(**OPTIONS)
def _draw_tokens(n, row, place, key, entries, known, rows, cumulated, sums):
    """The features of the tokens of a row, to its y and to the sums."""
    y, w = rows.y[n], rows.w[n]
    y[:] = 0
    for e in range(entries.starts[n], entries.starts[n + 1]):
        word, total, last = known.words[entries.words[e]], 0.0, 0
        for k in range(w.size):
            total += w[k] * word[k]
            cumulated[k] = total
        for _ in range(int(entries.counts[e])):
            level = uniform(row, place, key) * total
            last = min(np.searchsorted(cumulated, level, side="right"), w.size - 1)
            y[last] += 1
            sums.y[entries.words[e], last] += 1.0


@njit(**OPTIONS)
def _tables(tokens, shape, row, place, key):
    """l ~ CRT(tokens, shape): each token is the first of a table with probability r / (r + those before)."""
    number = 1.0 if tokens else 0.0
    for before in range(1, tokens):
        number += uniform(row, place, key) * (shape + before) < shape
    return number


@njit(cache=True, **OPTIONS)
def draw_rows(entries, known, rows, first, key, sums):
    """One step of the rows from `first` on, with entries as in tokens.py; rows and sums are changed."""
    place, cumulated = np.zeros(1, np.int64), np.empty(known.shape.size)
    for n in range(entries.starts.size - 1):
        row = np.uint64(first + n)
        place[0] = 0
        _draw_weights(n, row, place, key, known, rows)
        _draw_tokens(n, row, place, key, entries, known, rows, cumulated, sums)
        exposure, paid = math.log1p(1.0 / rows.rate[n]), math.log1p(rows.rate[n])
        sums.scalars[1] += math.log(rows.rate[n])
        sums.scalars[2] += rows.rate[n]
        for k in range(known.shape.size):
            if rows.z[n, k]:
                r, tokens = known.shape[k], rows.y[n, k]
                sums.scalars[0] -= r * exposure + tokens * paid
                if tokens:
                    sums.scalars[0] += math.lgamma(r + tokens) - math.lgamma(r)
                sums.on[k] += 1.0
                sums.exposed[k] += exposure
                sums.tables[k] += _tables(rows.y[n, k], known.shape[k], row, place, key)
