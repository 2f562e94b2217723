"""Collapsed Gibbs: rows in turn, the dictionary integrated out (samplers.md 7).

With the row taken out, Lambda = Z'Z + c I and Abar = Lambda^-1 Z'X of the other rows predict it as
N(z Abar, noise (1 + z Lambda^-1 z') + own scale), and nothing else depends on its z. A flip changes

    u = Lambda^-1 z,   z u,   |e|^2 with e = x - z Abar,   t = Abar e

by a row of Lambda^-1 and one of Abar Abar', so it costs O(K) once t is known, which is the one product
of a row with a table (feature, column). A row that comes back as it left changes nothing; one
that does not costs one more pass over that table, for both rank-one steps at once.

Features that only this row has are exchangeable and say nothing of other rows, so they are counted: `own`
of them add `own` times scale to the variance while the other entries flip, and then their number is
drawn anew (samplers.md 9, 17). To the features that are shared, the row is one of noise
noise + own scale: it leaves and comes back with the weight c / (c + own), and the parts of the tables that
belong to its own features follow in closed form. So no step is close to singular because of them.

Where a row alone tells features apart its leverage is close to one and rank-one steps lose digits like
1 / (1 - leverage); beyond STEEP everything is made anew from Z'Z and Z'X.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ibpdist.kernels.buffet import any_slot, is_own, last_called, log_odds, number_of_own
from ibpdist.kernels.options import INLINED, OPTIONS

STEEP = 1e-3
"""Rank-one steps are made where 1 - leverage is larger."""
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
    residual of its old z; `within` (column) is that of its new one.

    By slot: whether only this row has it, z before and after; gain = Lambda^-1 z with the row in, reach =
    Lambda^-1 z with it out and pull = Abar e, all of shared features and zero for the row's own;
    numbers that say where own features go and come; and spare room.
    """

    inverse: Any
    inner: Any
    mine: Any
    old: Any
    new: Any
    gain: Any
    reach: Any
    pull: Any
    numbers: Any
    spare: Any
    without: Any
    within: Any


@njit(**INLINED)
def _add(to, factor, row):
    """to += factor row."""
    for i in range(row.size):
        to[index(i)] += factor * row[index(i)]


@njit(**INLINED)
def _rank_two(to, source, a, p, b, q):
    """A row of a table: to = source + a p + b q."""
    for i in range(source.size):
        to[index(i)] = source[index(i)] + a * p[index(i)] + b * q[index(i)]


@njit(cache=True, **OPTIONS)
def renew(tables, ridge):
    """Lambda^-1, Abar and Abar Abar' from their definitions; ridge (slot) is c where the slot is in use."""
    size = tables.sizes[0]
    if size == 0:
        return
    inverse, mean = _solved(tables.pairs[:size, :size] + np.diag(ridge[:size]), tables.cross[:size])
    tables.inverse[:size, :size] = inverse
    tables.mean[:size] = mean
    tables.inner[:size, :size] = np.dot(mean, mean.T)


@njit(**OPTIONS)
def _solved(precision, cross):
    """The inverse of a positive definite matrix, and its product with `cross`."""
    half = np.linalg.inv(np.linalg.cholesky(precision))
    inverse = np.dot(half.T, half)
    return inverse, np.dot(inverse, cross)


@njit(**OPTIONS)
def _take_out(row, z, tables, scratch, law):
    """Tables and vectors as they are without a row.

    Returns |e|^2 of its old z, how many features it has for itself, and whether it was steep.
    """
    size, own, ridge = tables.sizes[0], 0, law.noise / law.scale
    old, gain, e = scratch.old[:size], scratch.gain[:size], scratch.without
    e[:] = row
    gain[:] = 0.0
    for k in range(size):
        old[k] = scratch.new[k] = z[k]
        scratch.mine[k] = 1.0 if old[k] and is_own(law, tables.pairs[k, k] - 1.0) else 0.0
        if scratch.mine[k]:
            own += 1
        elif old[k]:
            _add(e, -1.0, tables.mean[k])
            _add(gain, 1.0, tables.inverse[k, :size])
    weight, leverage = ridge / (own + ridge), 0.0
    for k in range(size):
        if scratch.mine[k]:
            gain[k] = 0.0
        leverage += weight * old[k] * gain[k]
    if not 1.0 - leverage > STEEP:
        return _take_out_anew(row, tables, scratch, ridge), own, True
    e *= 1.0 / (1.0 - leverage)
    return _step_out(tables, scratch, weight, 1.0 / (1.0 - leverage), ridge), own, False


@njit(**OPTIONS)
def _step_out(tables, scratch, weight, grown, ridge):
    """Rank-one steps for a row of this weight; |e|^2."""
    size = tables.sizes[0]
    gain, reach, pull = scratch.gain[:size], scratch.reach[:size], scratch.pull[:size]
    spare, squares = scratch.spare[:size], np.dot(scratch.without, scratch.without)
    spare[:] = np.dot(tables.mean[:size], scratch.without)
    for k in range(size):
        reach[k] = grown * gain[k]
        pull[k] = spare[k] - weight * squares * gain[k]
    for k in range(size):
        whole, inner = tables.inverse[k, :size], tables.inner[k, :size]
        _rank_two(scratch.inverse[k, :size], whole, weight * reach[k], gain, 0.0, gain)
        _rank_two(scratch.inner[k, :size], inner, -weight * pull[k], gain, -weight * gain[k], spare)
    for k in range(size):
        if scratch.mine[k]:
            _set_apart(k, scratch, size, ridge)
    return squares


@njit(**OPTIONS)
def _set_apart(k, scratch, size, ridge):
    """A feature as it is before any data."""
    scratch.inverse[k, :size] = 0.0
    scratch.inverse[:size, k] = 0.0
    scratch.inner[k, :size] = 0.0
    scratch.inner[:size, k] = 0.0
    scratch.inverse[k, k] = 1.0 / ridge
    scratch.gain[k] = scratch.reach[k] = scratch.pull[k] = 0.0


@njit(**OPTIONS)
def _take_out_anew(row, tables, scratch, ridge):
    """Everything from its definition; |e|^2."""
    size = tables.sizes[0]
    precision, cross = tables.pairs[:size, :size].copy(), tables.cross[:size].copy()
    for k in range(size):
        _add(precision[k], -scratch.old[k], scratch.old[:size])
        _add(cross[k], -scratch.old[k], row)
        precision[k, k] += ridge
        if scratch.mine[k]:
            cross[k] = 0.0
    inverse, mean = _solved(precision, cross)
    scratch.inverse[:size, :size] = inverse
    scratch.inner[:size, :size] = np.dot(mean, mean.T)
    e = scratch.without
    e[:] = row
    scratch.reach[:size] = 0.0
    for k in range(size):
        if scratch.old[k] and not scratch.mine[k]:
            _add(e, -1.0, mean[k])
            _add(scratch.reach[:size], 1.0, inverse[k])
    scratch.pull[:size] = np.dot(mean, e)
    for k in range(size):
        if scratch.mine[k]:
            _set_apart(k, scratch, size, ridge)
    return np.dot(e, e)


@njit(**OPTIONS)
def _flip(tables, scratch, law, logits, own, squares):
    """Draw z of every feature that other rows have; returns |e|^2, z Lambda^-1 z' over them, and how many
    changed."""
    size, cells, changed = tables.sizes[0], scratch.without.size, 0
    new, reach, pull = scratch.new[:size], scratch.reach[:size], scratch.pull[:size]
    inverse, inner, spread = scratch.inverse, scratch.inner, np.dot(new, reach)
    base = law.noise + own * law.scale
    for k in range(size):
        others = tables.pairs[k, k] - scratch.old[k]
        if scratch.mine[k]:
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
def _move(source, to, tables, scratch):
    """What is in one slot is in another."""
    for vector in (scratch.old, scratch.new, scratch.gain, scratch.reach, scratch.pull, scratch.mine):
        vector[to] = vector[source]
    scratch.numbers[to] = scratch.numbers[source]
    size = max(source, to) + 1
    for table in (scratch.inverse, scratch.inner, tables.pairs):
        table[to, :size] = table[source, :size]
        table[:size, to] = table[:size, source]
        table[to, to] = table[source, source]
    tables.mean[to], tables.cross[to] = tables.mean[source], tables.cross[source]
    tables.z[:, to] = tables.z[:, source]
    tables.ids[to] = tables.ids[source]


@njit(**OPTIONS)
def _drop(k, tables, scratch):
    """Take a feature out of the tables; the last one moves to its slot."""
    last = tables.sizes[0] - 1
    _move(last, k, tables, scratch)
    tables.z[:, last] = 0
    tables.sizes[0] = last


@njit(**OPTIONS)
def _found(k, tables, scratch, ridge):
    """A new feature of the row in any slot, before any data; what was there moves to the end."""
    last = tables.sizes[0]
    _move(k, last, tables, scratch)
    for table in (scratch.inverse, scratch.inner, tables.pairs):
        table[k, : last + 1] = 0.0
        table[: last + 1, k] = 0.0
    scratch.inverse[k, k] = 1.0 / ridge
    scratch.old[k] = scratch.gain[k] = scratch.reach[k] = scratch.pull[k] = 0.0
    scratch.new[k] = scratch.mine[k] = 1.0
    tables.mean[k] = 0.0
    tables.cross[k] = 0.0
    tables.z[:, k] = 0
    tables.ids[k] = tables.sizes[1]
    tables.sizes[0] += 1
    tables.sizes[1] += 1


@njit(**OPTIONS)
def _renumber(tables, scratch, ridge, own, number):
    """Let the row have `number` features of its own: some go, or some are added."""
    for _ in range(own - number):
        _drop(last_called(scratch.mine, scratch.numbers, tables.sizes[0]), tables, scratch)
    for _ in range(number - own):
        slots = tables.sizes[0] + 1
        _found(any_slot(slots, scratch.numbers[slots - 1]), tables, scratch, ridge)


@njit(**OPTIONS)
def _note(row, n, tables, scratch):
    """z, Z'Z and Z'X after a row has changed."""
    size = tables.sizes[0]
    old, new = scratch.old[:size], scratch.new[:size]
    for k in range(size):
        _rank_two(tables.pairs[k, :size], tables.pairs[k, :size], new[k], new, -old[k], old)
        if new[k] != old[k]:
            _add(tables.cross[k], new[k] - old[k], row)
            tables.z[n, k] = new[k]


@njit(**OPTIONS)
def _put_back(tables, scratch, ridge, number, weight):
    """Rank-one steps for a row with its new z that left with this weight; whether they were not too steep.

    Its own features are in the tables already, without data.
    """
    size = tables.sizes[0]
    old, new, gain = scratch.old[:size], scratch.new[:size], scratch.gain[:size]
    reach, pull, e, left = scratch.reach[:size], scratch.pull[:size], scratch.without, scratch.within
    left[:] = e
    spread = 0.0
    for k in range(size):
        spread += new[k] * reach[k]
        sign = new[k] - old[k]
        if sign and not scratch.mine[k]:
            _rank_two(left, left, -sign, tables.mean[k], sign * weight * gain[k], e)
    back = ridge / (number + ridge)
    grown = 1.0 + back * spread
    if not STEEP * grown < 1.0:
        return False
    squares = np.dot(left, left)
    for k in range(size):
        step = back / grown * reach[k]
        _rank_two(tables.mean[k], tables.mean[k], -weight * gain[k], e, step, left)
        _rank_two(tables.inverse[k, :size], scratch.inverse[k, :size], -step, reach, 0.0, reach)
        first = back / grown * (pull[k] + squares * step)
        _rank_two(tables.inner[k, :size], scratch.inner[k, :size], first, reach, step, pull)
    for k in range(size):
        if scratch.mine[k]:
            _write_own(k, tables, scratch, ridge, number, spread, squares)
    return True


@njit(**OPTIONS)
def _write_own(k, tables, scratch, ridge, number, spread, squares):
    """The parts of the tables that belong to a feature of the row's own, given those that are shared."""
    size = tables.sizes[0]
    share = 1.0 / (number + ridge)
    grown = 1.0 + ridge * share * spread
    tables.mean[k] = 0.0
    _add(tables.mean[k], share / grown, scratch.within)
    for j in range(size):
        if scratch.mine[j]:
            tables.inverse[k, j] = ((j == k) - share) / ridge + share * share * spread / grown
            tables.inner[k, j] = squares * (share / grown) ** 2
        else:
            step = ridge * share / grown * scratch.reach[j]
            tables.inverse[k, j] = tables.inverse[j, k] = -share / grown * scratch.reach[j]
            inner = share / grown * (scratch.pull[j] + squares * step)
            tables.inner[k, j] = tables.inner[j, k] = inner


@njit(cache=True, **OPTIONS)
def sweep_rows(x, logits, births, law, tables, scratch, first):
    """Rows from `first` on in turn; the number of rows that are done, fewer than all where slots run out.

    x (row, column), logits (row, slot) of uniforms, births (row) uniforms: of these rows; `first` is the
    place of the first of them in tables.z. Rows before the one that has no room are done.
    """
    cells, squares, level = np.empty(1), np.empty(1), np.empty(1)
    cells[0], ridge = x.shape[1], law.noise / law.scale
    for i in range(x.shape[0]):
        n = first + i
        missed, own, steep = _take_out(x[i], tables.z[n], tables, scratch, law)
        missed, spread, changed = _flip(tables, scratch, law, logits[i], own, missed)
        squares[0], level[0] = missed, law.noise * (1.0 + spread)
        number = number_of_own(cells, squares, level, law, births[i])
        if tables.sizes[0] + number - own > tables.ids.size:
            return i
        if changed or number != own:
            scratch.numbers[:] = logits[i]
            _renumber(tables, scratch, ridge, own, number)
            stepped = not steep and _put_back(tables, scratch, ridge, number, ridge / (own + ridge))
            _note(x[i], n, tables, scratch)
            if not stepped:
                renew(tables, np.full(tables.ids.size, ridge))
    return x.shape[0]
