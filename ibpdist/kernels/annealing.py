"""Annealed chains over the features z of single rows, with their importance weights.

The evidence of some cells of a row is exp f(z). With F = A (x / psi) and Gamma = A diag(1/psi) A' over
those cells, up to a constant that does not depend on z,

    unit weights      f(z) = z'F - z' Gamma z / 2
    normal weights    f(z) = (F_z' M^-1 F_z - log |M| - mu_z' mu_z) / 2,   M = I + Gamma_z  (what is on),

w integrated out; weights of mean mu have F = A (x / psi) + mu. A chain is drawn from the prior p(z) and
goes through two legs, first to p(z) exp f_1(z), then to p(z) exp f_2(z):

    p(z) exp(b_t f_1(z)),                        b_0 = 0 .. b_T = 1,
    p(z) exp((1 - b_t) f_1(z) + b_t f_2(z)),     b_0 = 0 .. b_T = 1,

with one sweep at every level that leaves it invariant, and the log weight of a leg is the sum over t of
(b_t - b_t-1) times f_1, or f_2 - f_1, before the sweep (annealed importance sampling). Levels are
b_t = ((1 + S)^(t/T) - 1) / S with S the standard deviation of what is brought in under the prior, from
draws of their own: the first step is small where the cells say much.

A table of a row holds what makes the gain of a flip, f after minus f before, one line of arithmetic.
Unit weights: the residual F - Gamma z. Normal weights: the matrix [I + Gamma, F; F', 0] swept on the
features that are on (lower triangle). With d its diagonal entry and r the last entry of column k, f gains
(r^2 / d - log |d|) / 2 by a flip, whichever way it goes, and loses mu_k^2 / 2 by one that switches the
feature on; only a flip that is made sweeps the matrix.
A sweep draws every feature given the others. With unit weights, where features that are alike replace each
other, a feature and one of those most like it are then flipped together, or not; with w integrated out
that did not pay, nor did jumps: flips of all features in which two modes differ that other chains found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.philox import _philox

PILOT = 8
"""Draws of the prior that set the levels of a row."""

_LOW = np.uint64(0xFFFFFFFF)
_PILOT_CHAIN = np.uint64(0xFFFFFFFF)


class Unit(NamedTuple):
    """w = 1. The table is the Gram matrix (feature, feature); `work` the residual F - Gamma z (feature).
    A feature may be flipped with each of `near` others, and chains may jump between `modes` modes."""

    near: int = 2
    modes: int = 64


class Normal(NamedTuple):
    """w ~ N(mu, 1). The table is the swept matrix (feature + 1, feature + 1), with mu^2 / 2 in a last row;
    `work` is one column of the matrix."""

    near: int = 0
    modes: int = 0


def room(
    weights: Unit | Normal, tilt: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """An empty table and its work, for weights of mean `tilt` (feature)."""
    if isinstance(weights, Unit):
        return np.empty((tilt.size, tilt.size)), np.empty(tilt.size)
    table = np.zeros((tilt.size + 2, tilt.size + 1))
    table[-1, :-1] = 0.5 * tilt**2
    return table, np.empty(tilt.size + 1)


def alike(gram: NDArray[np.float64], places: int) -> NDArray[np.intp]:
    """(feature, place) the features whose loadings are most like those of a feature."""
    length = np.sqrt(np.diagonal(gram)) + 1e-300
    cosine = np.abs(gram / length) / length[:, None]
    np.fill_diagonal(cosine, -1.0)
    order = np.argsort(-cosine, axis=1, kind="stable")
    return np.ascontiguousarray(order[:, : min(places, max(len(gram) - 1, 0))])


def load(weights, table, work, gram, pull):
    """Fill a table with a row that has no feature."""
    raise NotImplementedError("compiled only")


def gain(weights, table, work, z, k):
    """f with feature k flipped, minus f."""
    raise NotImplementedError("compiled only")


def flip(weights, table, work, z, k):
    """Bring the table to z with feature k flipped; z is that before it."""
    raise NotImplementedError("compiled only")


def overlap(weights, table, z, k, j):
    """What flips of k and j gain together beyond what each gains alone; for weights with `near` places."""
    raise NotImplementedError("compiled only")


@overload(load, jit_options=OPTIONS)
def _load_unit(weights, table, work, gram, pull):
    if weights.instance_class is not Unit:
        return None

    def impl(weights, table, work, gram, pull):
        table[:] = gram
        work[:] = pull

    return impl


@overload(load, jit_options=OPTIONS)
def _load_normal(weights, table, work, gram, pull):
    if weights.instance_class is not Normal:
        return None

    def impl(weights, table, work, gram, pull):
        size = pull.size
        table[:size, :size] = gram
        for k in range(size):
            table[k, k] += 1.0
            table[size, k] = pull[k]
        table[size, size] = 0.0

    return impl


@overload(gain, jit_options=OPTIONS)
def _gain_unit(weights, table, work, z, k):
    if weights.instance_class is not Unit:
        return None
    return lambda weights, table, work, z, k: (1.0 - 2.0 * z[k]) * work[k] - 0.5 * table[k, k]


@overload(gain, jit_options=OPTIONS)
def _gain_normal(weights, table, work, z, k):
    if weights.instance_class is not Normal:
        return None

    def impl(weights, table, work, z, k):
        d, r = table[k, k], table[z.size, k]
        return 0.5 * (r * r / d - math.log(abs(d))) - (1.0 - 2.0 * z[k]) * table[z.size + 1, k]

    return impl


@overload(flip, jit_options=OPTIONS)
def _flip_unit(weights, table, work, z, k):
    if weights.instance_class is not Unit:
        return None

    def impl(weights, table, work, z, k):
        sign = 1.0 - 2.0 * z[k]
        for i in range(z.size):
            work[i] -= sign * table[k, i]

    return impl


@overload(flip, jit_options=OPTIONS)
def _flip_normal(weights, table, work, z, k):
    """Sweep the lower triangle on k. A full matrix would not stay symmetric, and its error would grow."""
    if weights.instance_class is not Normal:
        return None

    def impl(weights, table, work, z, k):
        for i in range(work.size):
            work[i] = table[i, k] if i >= k else table[k, i]
        d = work[k]
        for i in range(work.size):
            share = work[i] / d
            if i != k and share != 0.0:
                for j in range(i + 1):
                    table[i, j] -= share * work[j]
        scale = (1.0 - 2.0 * z[k]) / d
        for i in range(k):
            table[k, i] = scale * work[i]
        for i in range(k + 1, work.size):
            table[i, k] = scale * work[i]
        table[k, k] = -1.0 / d

    return impl


@overload(overlap, jit_options=OPTIONS)
def _overlap_unit(weights, table, z, k, j):
    if weights.instance_class is not Unit:
        return None
    return lambda weights, table, z, k, j: -(1.0 - 2.0 * z[k]) * (1.0 - 2.0 * z[j]) * table[k, j]


@overload(overlap, jit_options=OPTIONS)
def _overlap_normal(weights, table, z, k, j):
    if weights.instance_class is not Normal:
        return None
    return lambda weights, table, z, k, j: 0.0


@njit(**OPTIONS)
def _uniforms(row, chain, at, key):
    """Three uniforms for a step of a chain of a row."""
    a, b, c, _ = _philox(row & _LOW, row >> np.uint64(32), np.uint64(at), chain, key[0], key[1])
    scale = 2.0**-32
    return (np.float64(a) + 0.5) * scale, (np.float64(b) + 0.5) * scale, (np.float64(c) + 0.5) * scale


@njit(**OPTIONS)
def _accepts(u, x):
    """Whether a uniform is below 1 / (1 + exp(-x))."""
    return u * (1.0 + math.exp(-x)) < 1.0


@njit(**OPTIONS)
def _from_prior(z, odds, row, chain, at, key):
    for k in range(z.size):
        z[k] = 1.0 if _accepts(_uniforms(row, chain, at + k, key)[0], odds[k]) else 0.0


@njit(**OPTIONS)
def _begin(weights, table, work, gram, pull, z):
    """f(z), and the table at z."""
    load(weights, table, work, gram, pull)
    total = 0.0
    for k in range(z.size):
        if z[k] == 1.0:
            z[k] = 0.0
            total += gain(weights, table, work, z, k)
            flip(weights, table, work, z, k)
            z[k] = 1.0
    return total


@njit(**OPTIONS)
def _gain_of_two(weights, table, work, z, k, j):
    alone = gain(weights, table, work, z, k) + gain(weights, table, work, z, j)
    return alone + overlap(weights, table, z, k, j)


@njit(**OPTIONS)
def _flip_both(weights, one, work, two, work2, second, z, k):
    flip(weights, one, work, z, k)
    if second:
        flip(weights, two, work2, z, k)
    z[k] = 1.0 - z[k]


@njit(**OPTIONS)
def _jump(weights, one, work, two, work2, modes, first, second, z, odds, u, v, w, f):
    """Flip the features in which two modes differ, all together, or none: modes are the same for every z, so
    that the way back is as likely to be proposed."""
    both, a, b, prior = second > 0.0, 0.0, 0.0, 0.0
    i, j = int(u * modes.shape[0]), int(v * modes.shape[0])
    for k in range(z.size):
        if modes[i, k] != modes[j, k]:
            prior += (1.0 - 2.0 * z[k]) * odds[k]
            a += gain(weights, one, work, z, k)
            if both:
                b += gain(weights, two, work2, z, k)
            _flip_both(weights, one, work, two, work2, both, z, k)
    if _accepts(w, prior + first * a + second * b):
        f[0] += a
        f[1] += b
        return
    for k in range(z.size):
        if modes[i, k] != modes[j, k]:
            _flip_both(weights, one, work, two, work2, both, z, k)


@njit(**OPTIONS)
def _sweep(weights, one, work, two, work2, near, modes, first, second, z, odds, row, chain, at, key, f):
    """One sweep that leaves p(z) exp(first f_1 + second f_2) invariant; f follows z.

    Every feature is drawn given the others; then it is flipped together with one that is like it, or not.
    Last comes a jump from mode to mode.
    """
    both = second > 0.0
    for k in range(z.size):
        u, v, w = _uniforms(row, chain, at + k, key)
        a = gain(weights, one, work, z, k)
        b = gain(weights, two, work2, z, k) if both else 0.0
        if _accepts(u, (1.0 - 2.0 * z[k]) * odds[k] + first * a + second * b):
            _flip_both(weights, one, work, two, work2, both, z, k)
            f[0] += a
            f[1] += b
        if near.shape[1] == 0:
            continue
        j = near[k, int(w * near.shape[1])]
        a = _gain_of_two(weights, one, work, z, k, j)
        if both:
            b = _gain_of_two(weights, two, work2, z, k, j)
        prior = (1.0 - 2.0 * z[k]) * odds[k] + (1.0 - 2.0 * z[j]) * odds[j]
        if _accepts(v, prior + first * a + second * b):
            _flip_both(weights, one, work, two, work2, both, z, k)
            _flip_both(weights, one, work, two, work2, both, z, j)
            f[0] += a
            f[1] += b
    if modes.shape[0]:
        u, v, w = _uniforms(row, chain, at + z.size, key)
        _jump(weights, one, work, two, work2, modes, first, second, z, odds, u, v, w, f)


@njit(**OPTIONS)
def _spreads(weights, one, work, grams, pulls, n, odds, row, key, z):
    """Standard deviations under the prior of f_1 and of f_2 - f_1."""
    first, squares, more, squares2 = 0.0, 0.0, 0.0, 0.0
    for t in range(PILOT):
        _from_prior(z, odds, row, _PILOT_CHAIN, t * z.size, key)
        f = _begin(weights, one, work, grams[0], pulls[0, n], z)
        g = _begin(weights, one, work, grams[1], pulls[1, n], z) - f
        first, squares, more, squares2 = first + f, squares + f * f, more + g, squares2 + g * g
    one_sd = math.sqrt(max(squares / PILOT - (first / PILOT) ** 2, 0.0))
    return one_sd, math.sqrt(max(squares2 / PILOT - (more / PILOT) ** 2, 0.0))


@njit(**OPTIONS)
def _level(spread, share):
    if spread < 1e-6:
        return share
    return math.expm1(math.log1p(spread) * share) / spread


@njit(**OPTIONS)
def _leg(weights, one, work, two, work2, near, modes, leg, levels, spread, z, odds, numbers, f, kept):
    """Log weight of a leg, and in `kept` (draw, feature) draws at its end."""
    row, chain, at, key = numbers
    total, before = 0.0, 0.0
    for t in range(levels + kept.shape[0] - 1):
        now = _level(spread, min(t + 1, levels) / levels)
        total += (now - before) * (f[1] - f[0] if leg else f[0])
        before = now
        first, second = (1.0 - now, now) if leg else (now, 0.0)
        place = at + t * (z.size + 1)
        _sweep(weights, one, work, two, work2, near, modes, first, second, z, odds, row, chain, place, key, f)
        if t >= levels - 1:
            kept[t - levels + 1] = z
    return total


@njit(cache=True, **OPTIONS)
def annealed(
    weights, grams, pulls, odds, near, modes, rows, chains, levels, keep, key, one, work, two, work2
):
    """(row, chain, leg) log weights of chains at the end of each leg, and draws of z there
    (row, chain, leg, draw, feature), `keep` of them, the last of which goes on.

    `grams` (leg, feature, feature) and `pulls` (leg, row, feature) are those of the cells of each leg, `odds`
    (feature) the prior log odds, `near` (feature, place) features that may be flipped together with one,
    `modes` (row, mode, feature) what chains may jump between, `rows` the global numbers of the rows; the
    rest is room for two tables.
    """
    features = odds.size
    made = np.empty((rows.size, chains, 2))
    kept = np.empty((rows.size, chains, 2, keep, features), np.uint8)
    z, f = np.empty(features), np.zeros(2)
    for n in range(rows.size):
        row = np.uint64(rows[n])
        spreads = _spreads(weights, one, work, grams, pulls, n, odds, row, key, z)
        for c in range(chains):
            chain, total = np.uint64(c), 0.0
            _from_prior(z, odds, row, chain, 0, key)
            for leg in range(2):
                f[0] = _begin(weights, one, work, grams[0], pulls[0, n], z)
                if leg:
                    f[1] = _begin(weights, two, work2, grams[1], pulls[1, n], z)
                at, end, spread = (features + 1) * (1 + leg * (levels + keep)), kept[n, c, leg], spreads[leg]
                numbers = (row, chain, at, key)
                total += _leg(
                    weights,
                    one,
                    work,
                    two,
                    work2,
                    near,
                    modes[n],
                    leg,
                    levels,
                    spread,
                    z,
                    odds,
                    numbers,
                    f,
                    end,
                )
                made[n, c, leg] = total
    return made, kept
