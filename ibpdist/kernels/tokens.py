"""Which feature each token belongs to, given the sums of the step before: collapsed, one chunk of rows.

The model of row n, feature k, column v: y_nvk ~ Poisson(z_nk w_nk phi_vk), w_nk ~ Gamma(r_k, rate c_n),
phi_k ~ Dirichlet(eta), with w and phi integrated out (counts.md 1, 2, 3). An entry (n, v) of x tokens has one
rho (feature) for all of them. Each token leaves itself out, one token wherever it was counted:

    rho_k ~ (y_nk - rho_k + f_nk r_k) (Y_vk - rho_k + eta) / (Y_k - rho_k + eta P)                      (1)
    f_nk = 1 - exp(-y_nk) (1 - p_nk),   logit p_nk = log odds_k + r_k log(c_n / (1 + c_n))              (2)
    c_n = sum_k f_nk r_k / max(L_n, 1),   y_nk = sum_v x rho_k,   Y_vk = sum_n x rho_k                  (3)

with f_nk = Pr(z_nk = 1) if y_nk tokens are expected, p_nk if there are none. All on the right of (1)
is of the step before, so that no row depends on another one and the order of entries does not matter.

`keep_rho` has rho of the step before. `find_rho` has y alone and solves (1) for rho. Its right side falls
with the rho that is left out, so evaluations of it alternate about the solution: those after an even number
of them are too sharp. The mean of two successive ones does not alternate (counts.md 5).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ibpdist.kernels.gamma import digamma
from ibpdist.kernels.options import INLINED, OPTIONS

LEAST_RATE = 1e-8
"""c of a row that has no feature, nearly."""


class Entries(NamedTuple):
    """Rows of counts. `starts` (row + 1): the first entry of each row and the end; `words` and `counts`
    (entry): which of the chunk's words, and how many tokens."""

    starts: NDArray[np.int64]
    words: NDArray[np.integer[Any]]
    counts: Any


class Known(NamedTuple):
    """What the step before has left. `y` (word, feature) and `total` (feature): Y_vk of the chunk's words,
    and Y_k; `shape` (feature): r; `odds` (feature): prior log odds, infinite where every row has the feature;
    `eta`, and `spread` = eta P; `own`: 1 where the rows are in y and total, 0 where they are new."""

    y: Any
    total: Any
    shape: Any
    odds: Any
    eta: Any
    spread: Any
    own: Any


class RowTokens(NamedTuple):
    """What rows keep: `y` (row, feature) and `rate` (row), c."""

    y: Any
    rate: Any


class TokenSums(NamedTuple):
    """Sums of rows, in float64 (counts.md 4). `y` (word, feature): Y_vk; `on` (feature): sum f; `seen` and
    `exposed` (feature): of the fixed point of the shapes, r = r seen / exposed; `scalars`: `change` and
    `tokens`."""

    y: Any
    on: Any
    seen: Any
    exposed: Any
    scalars: Any

    @property
    def change(self) -> float:
        """sum |y - y of the step before|."""
        return float(self.scalars[0])

    @property
    def tokens(self) -> float:
        """sum L."""
        return float(self.scalars[1])


def empty_sums(words: int, features: int) -> TokenSums:
    """Sums of no rows."""
    on, seen, exposed = np.zeros((3, features))
    return TokenSums(np.zeros((words, features)), on, seen, exposed, np.zeros(2))


@njit(**INLINED)
def _gates(y, rate, known, f):
    """(2) of a row."""
    level = math.log(rate / (1.0 + rate))
    for k in range(y.size):
        off = 1.0 / (1.0 + math.exp(known.odds[k] + known.shape[k] * level))
        f[k] = 1.0 - math.exp(-np.float64(y[k])) * off


@njit(**INLINED)
def _rate(f, shape, length):
    """(3): c of a row of `length` tokens."""
    total = 0.0
    for k in range(f.size):
        total += f[k] * shape[k]
    return max(total / max(length, 1.0), LEAST_RATE)


@njit(**INLINED)
def _normalise(weights):
    """Divide by the sum, which is taken in eight lanes; all alike where every weight is zero."""
    size, zero, one = weights.size, weights.dtype.type(0), weights.dtype.type(1)
    a = b = c = d = e = f = g = h = zero
    for j in range(0, size - 7, 8):
        a += weights[j]
        b += weights[j + 1]
        c += weights[j + 2]
        d += weights[j + 3]
        e += weights[j + 4]
        f += weights[j + 5]
        g += weights[j + 6]
        h += weights[j + 7]
    for j in range(size - size % 8, size):
        a += weights[j]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    if not total > zero:
        weights[:] = one
        total = weights.dtype.type(size)
    scale = one / total
    for j in range(size):
        weights[j] *= scale


@njit(**INLINED)
def _evaluate(rho, y, near, word, known, out):
    """(1): the right side at `rho` (feature) of an entry; near (feature) is f r, word (feature) is Y_v."""
    zero = rho.dtype.type(0)
    for k in range(out.size):
        mine = known.own * rho[k]
        row = max(y[k] - rho[k], zero) + near[k]
        out[k] = row * (max(word[k] - mine, zero) + known.eta) / (known.total[k] - mine + known.spread)
    _normalise(out)


@njit(**INLINED)
def _add(rho, count, y, word):
    """The tokens of an entry to the sums of its row and of its word."""
    for k in range(rho.size):
        tokens = count * rho[k]
        y[k] += tokens
        word[k] += tokens


@njit(**INLINED)
def _begin(n, entries, known, rows, f, near):
    """f and f r of a row before its tokens are placed; how many tokens it has."""
    length = 0.0
    for e in range(entries.starts[n], entries.starts[n + 1]):
        length += entries.counts[e]
    _gates(rows.y[n], rows.rate[n], known, f)
    for k in range(f.size):
        near[k] = f[k] * known.shape[k]
    return length


@njit(**INLINED)
def _end(n, length, known, rows, new, f, low, sums):
    """c and y of a row, and its part of the sums, given its tokens `new` (feature). low: digamma of r.

    A count of mean y is none, or has the mean y / Pr(some): E digamma(r + count) - digamma(r) is nearly
    Pr(some) (digamma(r + y / Pr(some)) - digamma(r)), where digamma(r + y) - digamma(r) is far too much for
    small r and y (counts.md 6).
    """
    y = rows.y[n]
    for k in range(y.size):
        sums.scalars[0] += abs(new[k] - y[k])
        y[k] = new[k]
    _gates(y, rows.rate[n], known, f)
    rows.rate[n] = rate = _rate(f, known.shape, length)
    _gates(y, rate, known, f)
    exposure = math.log1p(1.0 / rate)
    for k in range(f.size):
        sums.on[k] += f[k]
        sums.exposed[k] += f[k] * exposure
        some = -math.expm1(-np.float64(y[k]))
        if some > 0.0:
            sums.seen[k] += some * (digamma(known.shape[k] + y[k] / some) - low[k])
    sums.scalars[1] += length


@njit(cache=True, **OPTIONS)
def keep_rho(entries, known, rows, rho, low, sums):
    """One step of a chunk whose rho (entry, feature) is kept; rows, rho and sums are changed.

    low (feature): digamma of r.
    """
    features = known.shape.size
    f, near, out = np.empty(features), np.empty(features, rho.dtype), np.empty(features, rho.dtype)
    new = np.empty(features)
    for n in range(entries.starts.size - 1):
        length = _begin(n, entries, known, rows, f, near)
        new[:] = 0.0
        for e in range(entries.starts[n], entries.starts[n + 1]):
            word = entries.words[e]
            _evaluate(rho[e], rows.y[n], near, known.y[word], known, out)
            rho[e] = out
            _add(out, entries.counts[e], new, sums.y[word])
        _end(n, length, known, rows, new, f, low, sums)


@njit(cache=True, **OPTIONS)
def log_densities(entries, known, rows, nats):
    """Log density of the tokens of each row, into nats (row), given those that rows have of features: one of
    word v has sum_k (y + f r) (Y_v + eta) / (Y_k + eta P) over its sum over all words.
    """
    features = known.shape.size
    f, weights = np.empty(features), np.empty(features)
    for n in range(nats.size):
        if entries.starts[n] == entries.starts[n + 1]:
            continue
        _gates(rows.y[n], rows.rate[n], known, f)
        whole = 0.0
        for k in range(features):
            weights[k] = rows.y[n, k] + f[k] * known.shape[k]
            whole += weights[k]
            weights[k] /= known.total[k] + known.spread
        for e in range(entries.starts[n], entries.starts[n + 1]):
            word, part = known.y[entries.words[e]], 0.0
            for k in range(features):
                part += weights[k] * (word[k] + known.eta)
            nats[n] += entries.counts[e] * math.log(part / whole)


@njit(cache=True, **OPTIONS)
def find_rho(entries, known, rows, evaluations, low, sums):
    """The same where rho is found from y: at first nothing is left out, then means of successive ones."""
    features, kind = known.shape.size, known.y.dtype
    near, out, rho = np.empty(features, kind), np.empty(features, kind), np.empty(features, kind)
    f, new, half = np.empty(features), np.empty(features), kind.type(0.5)
    for n in range(entries.starts.size - 1):
        length = _begin(n, entries, known, rows, f, near)
        new[:] = 0.0
        for e in range(entries.starts[n], entries.starts[n + 1]):
            word = entries.words[e]
            out[:] = 0.0
            _evaluate(out, rows.y[n], near, known.y[word], known, rho)
            for _ in range(evaluations):
                _evaluate(rho, rows.y[n], near, known.y[word], known, out)
                for k in range(features):
                    rho[k] = half * (rho[k] + out[k])
            _add(rho, entries.counts[e], new, sums.y[word])
        _end(n, length, known, rows, new, f, low, sums)
