"""Features of rows of counts by mean field, each on or off: one chunk of rows given the dictionary.

The model of row n, feature k, column v: y_nvk ~ Poisson(L_n z_nk w_nk Phi_vk), w_nk ~ Gamma(e, e), with
q(w_nk | z_nk = 1) = Gamma(e + y_nk, t_nk) and the prior of w where z is 0 (counts-modes.md 1, 2). A row keeps
`on`, z, and `y`, the tokens of its features:

    t_k = e + L_n sum_v E Phi_vk,   strength_k = L_n exp(digamma(e + y_k)) / t_k                        (1)
    S_v = sum_k z_k strength_k exp(E log Phi_vk),   y_k = sum_v x_v strength_k exp(E log Phi_vk) / S_v  (2)

and its part of the objective, with t_k as in (1), is

    sum_v x_v log S_v + sum_k z_k (odds_k + gain_k),
    gain_k = log Gamma(e + y_k) - log Gamma(e) - y_k digamma(e + y_k) - e log(t_k / e).                 (3)

z is chosen by joint flips: another z_k with weights of the whole row that fit it, kept where (3) rises. With
no flips and z = 1 this is VB-NMF; with `point` weights have no prior (e = 0), strength_k = L_n y_k / t_k and
gain_k = -y_k: the multiplicative updates of Lee and Seung (counts-modes.md 9).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ibpdist.kernels.gamma import digamma
from ibpdist.kernels.options import INLINED, OPTIONS

TINY = 1e-290
"""In place of a rate of zero: of a word that no feature of the row has, or of a feature without words."""


class Dictionary(NamedTuple):
    """`words` (word, feature): exp(E log Phi) of the chunk's words; `size` (feature): sum_v E Phi_vk of all
    words; `odds` (feature): prior log odds; `shape`: e; `point`: weights are point estimates."""

    words: Any
    size: Any
    odds: Any
    shape: float
    point: bool


class Effort(NamedTuple):
    """`rounds` of (1) and (2) for each choice of z; at most so many `flips` of a row in each direction."""

    rounds: int
    flips: int


class RowModes(NamedTuple):
    """Of the rows: `on` and `y` (row, feature), z and its tokens; `exposure` (row), L_n."""

    on: Any
    y: Any
    exposure: Any


class FlipSums(NamedTuple):
    """Sums of rows, in float64. `y` (word, feature): Y_vk; `on`, `amount`, `exposed` (feature): sum z,
    sum z E w, sum L z E w; `scalars`: `fit` and `divergence`."""

    y: Any
    on: Any
    amount: Any
    exposed: Any
    scalars: Any

    @property
    def fit(self) -> float:
        """sum x log S."""
        return float(self.scalars[0])

    @property
    def divergence(self) -> float:
        """sum z KL(q(w) || p(w)); 0 of point estimates."""
        return float(self.scalars[1])


def empty_flip_sums(words: int, features: int) -> FlipSums:
    """Sums of no rows."""
    on, amount, exposed = np.zeros((3, features))
    return FlipSums(np.zeros((words, features)), on, amount, exposed, np.zeros(2))


class _Row(NamedTuple):
    """Work space of a row. Features that are on have the places 0, 1, ...: `feature`, `rate` (t), `strength`,
    `y` and the `other` y of a trial (place), `table` (place, entry) of exp(E log Phi). `counts`, `total` (S)
    and `ratio` (x / S) belong to entries, `slope` and `promise` to all features."""

    feature: Any
    rate: Any
    strength: Any
    y: Any
    other: Any
    table: Any
    counts: Any
    total: Any
    ratio: Any
    slope: Any
    promise: Any


@njit(**OPTIONS)
def _space(features, longest):
    """Room for a row: numbers of features, the table, and numbers of entries."""
    return np.empty((6, features)), np.empty(features * longest), np.empty((3, longest))


@njit(**INLINED)
def _row_of(feature, space, size):
    """The work space of a row of `size` entries."""
    numbers, table, entries = space
    features = feature.size
    return _Row(
        feature, numbers[0], numbers[1], numbers[2], numbers[3],
        table[: features * size].reshape(features, size),
        entries[0, :size], entries[1, :size], entries[2, :size], numbers[4], numbers[5],
    )  # fmt: skip


@njit(**INLINED)
def _dot(a, b):
    """In eight lanes, in an order that depends on the size alone."""
    size = a.size
    s = t = u = v = w = x = y = z = 0.0
    for j in range(0, size - 7, 8):
        s += a[j] * b[j]
        t += a[j + 1] * b[j + 1]
        u += a[j + 2] * b[j + 2]
        v += a[j + 3] * b[j + 3]
        w += a[j + 4] * b[j + 4]
        x += a[j + 5] * b[j + 5]
        y += a[j + 6] * b[j + 6]
        z += a[j + 7] * b[j + 7]
    for j in range(size - size % 8, size):
        s += a[j] * b[j]
    return ((s + t) + (u + v)) + ((w + x) + (y + z))


@njit(**INLINED)
def _level(y, known):
    """E log w + log t."""
    return math.log(max(y, TINY)) if known.point else digamma(known.shape + y)


@njit(**INLINED)
def _gain(y, rate, known):
    """gain_k of (3)."""
    if known.point:
        return -y
    e = known.shape
    return math.lgamma(e + y) - math.lgamma(e) - y * digamma(e + y) - e * math.log(rate / e)


@njit(**OPTIONS)
def _place(place, k, exposure, words, known, row):
    """Feature k gets a place."""
    row.feature[place] = k
    row.rate[place] = max(known.shape + exposure * known.size[k], TINY)
    table = row.table[place]
    for e in range(words.size):
        table[e] = known.words[words[e], k]


@njit(**OPTIONS)
def _swap(a, b, row):
    """Two features exchange their places."""
    if a != b:
        row.feature[a], row.feature[b] = row.feature[b], row.feature[a]
        row.rate[a], row.rate[b] = row.rate[b], row.rate[a]
        row.y[a], row.y[b] = row.y[b], row.y[a]
        one, two = row.table[a], row.table[b]
        for e in range(row.counts.size):
            one[e], two[e] = two[e], one[e]


@njit(**OPTIONS)
def _rates(places, y, exposure, known, row):
    """Strengths and S of these tokens (1, 2)."""
    row.total[:] = 0.0
    for p in range(places):
        row.strength[p] = strength = exposure * math.exp(_level(y[p], known)) / row.rate[p]
        table = row.table[p]
        for e in range(table.size):
            row.total[e] += strength * table[e]
    for e in range(row.total.size):
        row.total[e] = max(row.total[e], TINY)
        row.ratio[e] = row.counts[e] / row.total[e]


@njit(**OPTIONS)
def _settle(places, rounds, y, exposure, known, row):
    """Rounds of (1) and (2) of the features in places; y is changed, and (3) is returned."""
    _rates(places, y, exposure, known, row)
    for _ in range(rounds):
        for p in range(places):
            y[p] = row.strength[p] * _dot(row.ratio, row.table[p])
        _rates(places, y, exposure, known, row)
    value = 0.0
    for e in range(row.total.size):
        value += row.counts[e] * math.log(row.total[e])
    for p in range(places):
        value += _gain(y[p], row.rate[p], known)
        if not known.point:
            value += known.odds[row.feature[p]]
    return value


@njit(**OPTIONS)
def _screen(places, tokens, exposure, words, known, row):
    """Promise of each feature that is off: odds_k - e log(t_k / e) + L log(R_k / t_k), R_k = sum_v x_v
    exp(E log Phi_vk) / S_v times L_n, where the last term is positive; -inf where a feature is on.

    Where weights fit best and have no prior, the likelihood of the row gains at most the last term
    (counts-modes.md 4).
    """
    row.slope[:] = 0.0
    for e in range(words.size):
        ratio, line = row.ratio[e], known.words[words[e]]
        for k in range(row.slope.size):
            row.slope[k] += ratio * line[k]
    for k in range(row.slope.size):
        rate = known.shape + exposure * known.size[k]
        over = exposure * row.slope[k] / rate
        row.promise[k] = known.odds[k] - known.shape * math.log(rate / known.shape)
        if over > 1.0:
            row.promise[k] += tokens * math.log(over)
    for p in range(places):
        row.promise[row.feature[p]] = -np.inf


@njit(**OPTIONS)
def _switch_on(places, value, tokens, flips, rounds, exposure, words, known, row):
    """Features that are off, most promising first: each comes with an equal part of the row's tokens."""
    _screen(places, tokens, exposure, words, known, row)
    for _ in range(flips):
        k = np.argmax(row.promise)
        if not row.promise[k] > 0.0:
            break
        row.promise[k] = -np.inf
        _place(places, k, exposure, words, known, row)
        for p in range(places):
            row.other[p] = row.y[p] * places / (places + 1)
        row.other[places] = tokens / (places + 1)
        found = _settle(places + 1, rounds, row.other, exposure, known, row)
        if found > value:
            places, value = places + 1, found
            row.y[:places] = row.other[:places]
    return places, value


@njit(**OPTIONS)
def _switch_off(places, value, tokens, flips, rounds, exposure, known, row):
    """Features that are on, those with the fewest tokens first: the others share their tokens. A row with
    tokens keeps a feature."""
    row.promise[:] = np.inf
    for p in range(places):
        row.promise[row.feature[p]] = row.y[p]
    for _ in range(min(flips, places)):
        if places == (1 if tokens > 0.0 else 0):
            break
        k, last = np.argmin(row.promise), places - 1
        row.promise[k] = np.inf
        for p in range(places):
            if row.feature[p] == k:
                _swap(p, last, row)
                break
        left = 0.0
        for p in range(last):
            left += row.y[p]
        for p in range(last):
            row.other[p] = row.y[p] * (tokens / left) if left > TINY else tokens / last
        found = _settle(last, rounds, row.other, exposure, known, row)
        if found > value:
            places, value = last, found
            row.y[:places] = row.other[:places]
    return places, value


@njit(**OPTIONS)
def _record(n, places, words, known, rows, row, sums):
    """A row's part of the sums, and its state: y of (2) once more, from the shares of the tokens in the sums.

    Given these shares it is the best y for any dictionary; the y before it is not
    (counts-modes.md 3).
    """
    exposure, e = rows.exposure[n], known.shape
    for p in range(places):
        k, y, rate = row.feature[p], row.y[p], row.rate[p]
        mean = (e + y) / rate
        sums.on[k] += 1.0
        sums.amount[k] += mean
        sums.exposed[k] += exposure * mean
        if not known.point:
            sums.scalars[1] -= _gain(y, rate, known) + mean * (rate - e)
    row.other[:places] = 0.0
    for i in range(words.size):
        line = sums.y[words[i]]
        for p in range(places):
            tokens = row.ratio[i] * row.strength[p] * row.table[p, i]
            line[row.feature[p]] += tokens
            row.other[p] += tokens
        sums.scalars[0] += row.counts[i] * math.log(row.total[i])
    rows.on[n], rows.y[n] = 0, 0.0
    for p in range(places):
        rows.on[n, row.feature[p]], rows.y[n, row.feature[p]] = 1, row.other[p]


@njit(**OPTIONS)
def _begin(n, counts, words, known, rows, row):
    """The entries of a row and the features that it has; how many tokens and features these are."""
    tokens, places = 0.0, 0
    for e in range(counts.size):
        row.counts[e] = counts[e]
        tokens += row.counts[e]
    for k in range(known.size.size):
        if rows.on[n, k]:
            _place(places, k, rows.exposure[n], words, known, row)
            row.y[places] = rows.y[n, k]
            places += 1
    return tokens, places


@njit(cache=True, **OPTIONS)
def flip_rows(entries, known, rows, effort, sums):
    """One step of a chunk, with entries as in tokens.py; rows and sums are changed."""
    features, longest, rounds, flips = known.size.size, 1, effort.rounds, effort.flips
    for n in range(entries.starts.size - 1):
        longest = max(longest, entries.starts[n + 1] - entries.starts[n])
    space, feature = _space(features, longest), np.empty(features, np.int64)
    for n in range(entries.starts.size - 1):
        own = slice(entries.starts[n], entries.starts[n + 1])
        words, exposure = entries.words[own], rows.exposure[n]
        row = _row_of(feature, space, words.size)
        tokens, places = _begin(n, entries.counts[own], words, known, rows, row)
        value = _settle(places, rounds, row.y, exposure, known, row)
        if flips:
            places, value = _switch_on(places, value, tokens, flips, rounds, exposure, words, known, row)
            places, value = _switch_off(places, value, tokens, flips, rounds, exposure, known, row)
        _rates(places, row.y, exposure, known, row)
        _record(n, places, words, known, rows, row, sums)
