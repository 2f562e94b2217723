"""Collapsed Gibbs: rows in turn, the dictionary integrated out (vibp 5.2).

With the row taken out, Lambda = Z'Z + c I and Abar = Lambda^-1 Z'X of the other rows predict it as
N(z Abar, noise (1 + z Lambda^-1 z') + own scale), and nothing else depends on its z. A flip changes

    u = Lambda^-1 z,   z u,   |e|^2 with e = x - z Abar,   t = Abar e

by a row of Lambda^-1 and one of Abar Abar', so it costs O(K) once t is known, which is the one product
of a row with a table (feature, column). A row that comes back as it left changes nothing; one
that does not costs one more pass over that table, for both rank-one steps at once.

Features that only this row has are exchangeable and their part of Lambda^-1 is 1 / c exactly, so they are
counted: `own` of them add `own` times scale to the variance while the other entries flip, and then
their number is drawn anew (vibp E24, nsfa 5.2).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ibpdist.kernels.buffet import is_own, log_odds, number_of_own

OPTIONS = {"nogil": True, "error_model": "numpy"}
index = np.uint64


class Tables(NamedTuple):
    """What rows in turn change. Slots are features, of which the first `sizes[0]` are in use.

    inverse (slot, slot): Lambda^-1; mean (slot, column): Abar; inner (slot, slot): Abar Abar';
    pairs (slot, slot): Z'Z; cross (slot, column): Z'X; z (row, slot); ids (slot); sizes: features in
    use, and the id of the next one.
    """

    inverse: Any
    mean: Any
    inner: Any
    pairs: Any
    cross: Any
    z: Any
    ids: Any
    sizes: Any


class Scratch(NamedTuple):
    """One row at a time. Without it: `inverse` and `inner` (slot, slot), and `without` (column), the
    residual of its old z; `within` (column) is that of its new one. By slot: z before and after,
    gain = Lambda^-1 z with the row in, reach = Lambda^-1 z with it out, pull = Abar e, and
    spare room."""

    inverse: Any
    inner: Any
    old: Any
    new: Any
    gain: Any
    reach: Any
    pull: Any
    spare: Any
    without: Any
    within: Any


@njit(inline="always", **OPTIONS)
def _add(to, factor, row):
    """to += factor row."""
    for i in range(row.size):
        to[index(i)] += factor * row[index(i)]


@njit(inline="always", **OPTIONS)
def _rank_two(to, source, a, p, b, q):
    """A row of a table: to = source + a p + b q."""
    for i in range(source.size):
        to[index(i)] = source[index(i)] + a * p[index(i)] + b * q[index(i)]


@njit(**OPTIONS)
def _take_out(row, z, tables, scratch):
    """Tables and vectors as they are without a row; returns |e|^2 of its old z."""
    size = tables.sizes[0]
    old, gain, reach = scratch.old[:size], scratch.gain[:size], scratch.reach[:size]
    pull, spare, e = scratch.pull[:size], scratch.spare[:size], scratch.without
    e[:] = row
    gain[:] = 0.0
    for k in range(size):
        old[k] = scratch.new[k] = z[k]
        if z[k]:
            _add(e, -1.0, tables.mean[k])
            _add(gain, 1.0, tables.inverse[k, :size])
    grown = 1.0 / (1.0 - np.dot(old, gain))
    e *= grown
    squares = np.dot(e, e)
    spare[:] = np.dot(tables.mean[:size], e)
    for k in range(size):
        reach[k] = grown * gain[k]
        pull[k] = spare[k] - squares * gain[k]
    for k in range(size):
        whole, inner = tables.inverse[k, :size], tables.inner[k, :size]
        _rank_two(scratch.inverse[k, :size], whole, reach[k], gain, 0.0, gain)
        _rank_two(scratch.inner[k, :size], inner, -pull[k], gain, -gain[k], spare)
    return squares


@njit(**OPTIONS)
def _set_apart(tables, scratch, law):
    """How many features only this row has; without the row they are as before any data."""
    size, own, alone = tables.sizes[0], 0, law.scale / law.noise
    for k in range(size):
        if scratch.old[k] and is_own(law, tables.pairs[k, k] - 1):
            own += 1
            for j in range(size):
                scratch.inverse[k, j] = scratch.inverse[j, k] = 0.0
                scratch.inner[k, j] = scratch.inner[j, k] = 0.0
            scratch.inverse[k, k] = scratch.reach[k] = alone
            scratch.gain[k] = scratch.pull[k] = 0.0
    return own


@njit(**OPTIONS)
def _flip(tables, scratch, law, logits, own, squares):
    """Draw z of every feature that other rows have; returns |e|^2, z Lambda^-1 z' over them, and how many
    changed."""
    size, cells, changed, spread = tables.sizes[0], scratch.without.size, 0, 0.0
    new, reach, pull = scratch.new[:size], scratch.reach[:size], scratch.pull[:size]
    inverse, inner = scratch.inverse, scratch.inner
    for k in range(size):
        if not is_own(law, tables.pairs[k, k] - scratch.old[k]):
            spread += new[k] * reach[k]
    base = law.noise + own * law.scale
    for k in range(size):
        others = tables.pairs[k, k] - scratch.old[k]
        if is_own(law, others):
            continue
        sign = 1.0 - 2.0 * new[k]
        wider = spread + 2.0 * sign * reach[k] + inverse[k, k]
        other = squares - 2.0 * sign * pull[k] + inner[k, k]
        here, there = base + law.noise * spread, base + law.noise * wider
        gain = 0.5 * (squares / here - other / there - cells * math.log(there / here))
        if (logits[k] < log_odds(law, others) + sign * gain) != (new[k] > 0.5):
            new[k] += sign
            spread, squares = wider, other
            _add(reach, sign, inverse[k, :size])
            _add(pull, -sign, inner[k, :size])
            changed += 1
    return squares, spread, changed


@njit(**OPTIONS)
def _drop(k, tables, scratch):
    """Take a feature out of the tables; the last one moves to its slot."""
    last = tables.sizes[0] - 1
    for vector in (scratch.old, scratch.new, scratch.gain, scratch.reach, scratch.pull):
        vector[k] = vector[last]
    for table in (scratch.inverse, scratch.inner, tables.pairs):
        table[k, : last + 1] = table[last, : last + 1]
        table[: last + 1, k] = table[: last + 1, last]
    tables.mean[k], tables.cross[k] = tables.mean[last], tables.cross[last]
    tables.z[:, k] = tables.z[:, last]
    tables.z[:, last] = 0
    tables.ids[k] = tables.ids[last]
    tables.sizes[0] = last


@njit(**OPTIONS)
def _found(tables, scratch, law):
    """A new feature of the row, before any data; it was not there before."""
    k = tables.sizes[0]
    for table in (scratch.inverse, scratch.inner, tables.pairs):
        table[k, : k + 1] = 0.0
        table[: k + 1, k] = 0.0
    scratch.inverse[k, k] = scratch.reach[k] = law.scale / law.noise
    scratch.old[k] = scratch.gain[k] = scratch.pull[k] = 0.0
    scratch.new[k] = 1.0
    tables.mean[k] = 0.0
    tables.cross[k] = 0.0
    tables.ids[k] = tables.sizes[1]
    tables.sizes[0] += 1
    tables.sizes[1] += 1


@njit(**OPTIONS)
def _renumber(tables, scratch, law, own, number):
    """Let the row have `number` features of its own: some go, or some are added."""
    for k in range(tables.sizes[0]):
        if scratch.old[k] and is_own(law, tables.pairs[k, k] - 1):
            tables.mean[k] = 0.0
    k = tables.sizes[0] - 1
    while own > number:
        if scratch.old[k] and is_own(law, tables.pairs[k, k] - 1):
            _drop(k, tables, scratch)
            own -= 1
        k -= 1
    for _ in range(number - own):
        _found(tables, scratch, law)


@njit(**OPTIONS)
def _put_back(row, n, tables, scratch):
    """Tables with the row in, after its z has changed."""
    size = tables.sizes[0]
    old, new, gain = scratch.old[:size], scratch.new[:size], scratch.gain[:size]
    reach, pull, e, left = scratch.reach[:size], scratch.pull[:size], scratch.without, scratch.within
    left[:] = e
    for k in range(size):
        if new[k] != old[k]:
            sign = new[k] - old[k]
            _rank_two(left, left, -sign, tables.mean[k], sign * gain[k], e)
            _add(tables.cross[k], sign, row)
            tables.z[n, k] = new[k]
    squares, shrunk = np.dot(left, left), 1.0 / (1.0 + np.dot(new, reach))
    for k in range(size):
        step = shrunk * reach[k]
        _rank_two(tables.mean[k], tables.mean[k], -gain[k], e, step, left)
        _rank_two(tables.inverse[k, :size], scratch.inverse[k, :size], -step, reach, 0.0, reach)
        first = shrunk * (pull[k] + squares * step)
        _rank_two(tables.inner[k, :size], scratch.inner[k, :size], first, reach, step, pull)
        _rank_two(tables.pairs[k, :size], tables.pairs[k, :size], new[k], new, -old[k], old)


@njit(cache=True, **OPTIONS)
def sweep_rows(x, logits, births, law, tables, scratch, first):
    """Rows from `first` on in turn; the number of rows that are done, fewer than all where slots run out.

    x (row, column), logits (row, slot) of uniforms, births (row) uniforms: of these rows; `first` is the
    place of the first of them in tables.z. Rows before the one that has no room are done.
    """
    cells, squares, level = np.empty(1), np.empty(1), np.empty(1)
    cells[0] = x.shape[1]
    for i in range(x.shape[0]):
        n = first + i
        missed = _take_out(x[i], tables.z[n], tables, scratch)
        own = _set_apart(tables, scratch, law)
        missed, spread, changed = _flip(tables, scratch, law, logits[i], own, missed)
        squares[0], level[0] = missed, law.noise * (1.0 + spread)
        number = number_of_own(cells, squares, level, law, births[i])
        if tables.sizes[0] + number - own > tables.ids.size:
            return i
        if changed or number != own:
            _renumber(tables, scratch, law, own, number)
            _put_back(x[i], n, tables, scratch)
    return x.shape[0]
