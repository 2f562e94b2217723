"""Uncollapsed Gibbs: rows in turn, the dictionary explicit but for what a row has for itself (samplers.md 8).

With e = x - z A and a weight v_d for each column, a flip of feature k has the evidence

    A_k V e' + z_k A_k V A_k' - A_k V A_k' / 2,    V = diag(v),

where v_d = 1 / (noise_d + own scale), zero where the cell is missing: `own` features of the row alone have
their part of the dictionary integrated out. Then their number is drawn given the rest of the row, and
their part of the dictionary given their number: for each column mean r_d / (k + c_d) for all of them and
covariance scale (I - 1 1' / (k + c_d)), c_d = noise_d / scale.

With candidates nothing is integrated out: the row's own features are subtracted like all others, v_d = 1 /
noise_d, and then what the row has for itself competes with so many numbers and dictionaries drawn from
the prior, with the likelihood of the row as the odds (samplers.md 8, 17). The one that is there must be among
them, and a number stays with its dictionary, or the posterior is not left as it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ibpdist.kernels.buffet import any_slot, is_own, last_called, log_odds, number_of_own
from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.philox import _philox

index = np.uint64
_LOW = np.uint64(0xFFFFFFFF)
MOST = 32
"""Features of a candidate at most; rows have a few at most, of which one alone has even fewer."""


class Tables(NamedTuple):
    """What rows in turn change. Slots are features, of which the first `sizes[0]` are in use.

    mean, square (slot, column): A and its squares; on (slot): counts; z (row, slot); ids (slot);
    sizes: features in use, and the id of the next one.
    """

    mean: Any
    square: Any
    on: Any
    z: Any
    ids: Any
    sizes: Any


class Facts(NamedTuple):
    """What rows in turn do not change: x (row, column), zero where `seen` (row, column) is; the distinct
    values of the noise, and which of them each column has; the number of the first row; a key; how many
    candidates there are for what a row has for itself, none where its dictionary is integrated out."""

    x: Any
    seen: Any
    noise: Any
    level: Any
    start: int
    key: Any
    candidates: Any = 0


class Scratch(NamedTuple):
    """One row at a time, by slot: whether only this row has it, z before and after, linear and quadratic
    evidence, and numbers that say where own features go and come; residual, weight and their product,
    and what own features add up to (column); cells and squares by level of the noise."""

    mine: Any
    old: Any
    new: Any
    linear: Any
    quad: Any
    numbers: Any
    residual: Any
    weight: Any
    weighted: Any
    apart: Any
    cells: Any
    squares: Any


@njit(**OPTIONS)
def _normal(row, at, key):
    """A standard normal for a place of a row."""
    a, b, _, _ = _philox(row & _LOW, row >> np.uint64(32), np.uint64(at), np.uint64(0), key[0], key[1])
    u, v = (np.float64(a) + 0.5) * 2.0**-32, (np.float64(b) + 0.5) * 2.0**-32
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


@njit(**OPTIONS)
def _take_out(n, facts, law, tables, scratch):
    """Residual and evidence of a row's shared features; how many it has for itself."""
    size, own = tables.sizes[0], 0
    residual, weighted, apart = scratch.residual, scratch.weighted, scratch.apart
    residual[:] = facts.x[n]
    apart[:] = 0.0
    for k in range(size):
        scratch.old[k] = scratch.new[k] = tables.z[n, k]
        scratch.mine[k] = 1.0 if scratch.old[k] and is_own(law, tables.on[k] - 1) else 0.0
        own += int(scratch.mine[k])
        if not scratch.old[k]:
            continue
        row = tables.mean[k]
        if scratch.mine[k]:
            apart += row
            continue
        for d in range(row.size):
            residual[index(d)] -= row[index(d)]
    spread = own * law.scale
    if facts.candidates:
        residual -= apart
        spread = 0.0
    for d in range(residual.size):
        variance = facts.noise[facts.level[d]] + spread
        scratch.weight[d] = facts.seen[n, d] / variance
        weighted[d] = scratch.weight[d] * residual[d]
    scratch.linear[:size] = np.dot(tables.mean[:size], weighted)
    scratch.quad[:size] = np.dot(tables.square[:size], scratch.weight)
    return own


@njit(**OPTIONS)
def _flip(tables, scratch, law, logits):
    """Draw z of every feature that other rows have."""
    size, new, linear, quad = tables.sizes[0], scratch.new, scratch.linear, scratch.quad
    weight, weighted, residual = scratch.weight, scratch.weighted, scratch.residual
    for k in range(size):
        if scratch.mine[k]:
            continue
        others = tables.on[k] - scratch.old[k]
        evidence = linear[k] + (new[k] - 0.5) * quad[k]
        if (logits[k] < log_odds(law, others) + evidence) != (new[k] > 0.5):
            sign = 1.0 - 2.0 * new[k]
            new[k] += sign
            row = tables.mean[k]
            for d in range(row.size):
                residual[index(d)] -= sign * row[index(d)]
            for d in range(row.size):
                weighted[index(d)] = weight[index(d)] * residual[index(d)]
            linear[:size] = np.dot(tables.mean[:size], weighted)


@njit(**OPTIONS)
def _number(n, facts, law, scratch, uniform):
    """How many features the row has for itself."""
    if law.rate == 0.0:
        return 0
    scratch.cells[:] = 0.0
    scratch.squares[:] = 0.0
    for d in range(scratch.residual.size):
        if facts.seen[n, d]:
            scratch.cells[facts.level[d]] += 1.0
            scratch.squares[facts.level[d]] += scratch.residual[d] ** 2
    return number_of_own(scratch.cells, scratch.squares, facts.noise, law, uniform)


@njit(**OPTIONS)
def _move(source, to, tables, scratch):
    """What is in one slot is in another."""
    for vector in (scratch.mine, scratch.numbers, tables.on):
        vector[to] = vector[source]
    tables.mean[to], tables.square[to] = tables.mean[source], tables.square[source]
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
def _found(k, n, tables, scratch):
    """A new feature of the row in any slot; what was there moves to the end."""
    _move(k, tables.sizes[0], tables, scratch)
    scratch.mine[k] = tables.on[k] = 1.0
    tables.z[:, k] = 0
    tables.z[n, k] = 1
    tables.ids[k] = tables.sizes[1]
    tables.sizes[0] += 1
    tables.sizes[1] += 1


@njit(**OPTIONS)
def _renumber(n, tables, scratch, own, number):
    """Let the row have `number` features of its own: some go, or some are added."""
    for _ in range(own - number):
        _drop(last_called(scratch.mine, scratch.numbers, tables.sizes[0]), tables, scratch)
    for _ in range(number - own):
        slots = tables.sizes[0] + 1
        _found(any_slot(slots, scratch.numbers[slots - 1]), n, tables, scratch)


@njit(**OPTIONS)
def _look_of_own(n, facts, scale, tables, scratch, number):
    """The part of the dictionary of the row's own features, given their number."""
    row, at = np.uint64(facts.start + n), 0
    for k in range(tables.sizes[0]):
        if scratch.mine[k]:
            for d in range(scratch.residual.size):
                tables.mean[k, d] = _normal(row, at * scratch.residual.size + d, facts.key)
            at += 1
    for d in range(scratch.residual.size):
        ridge = facts.noise[facts.level[d]] / scale
        middle, shrink = 0.0, 1.0
        if facts.seen[n, d]:
            middle, shrink = scratch.residual[d] / (number + ridge), math.sqrt(ridge / (number + ridge))
        total = 0.0
        for k in range(tables.sizes[0]):
            if scratch.mine[k]:
                total += tables.mean[k, d]
        shift = (1.0 - shrink) * total / number
        for k in range(tables.sizes[0]):
            if scratch.mine[k]:
                tables.mean[k, d] = middle + math.sqrt(scale) * (tables.mean[k, d] - shift)
                tables.square[k, d] = tables.mean[k, d] ** 2


@njit(**OPTIONS)
def _candidate(n, j, facts, law, total):
    """How many features candidate j has, and in `total` (column) what they add up to, from the prior."""
    row = np.uint64(facts.start + n)
    a, b, _, _ = _philox(
        row & _LOW, row >> np.uint64(32), np.uint64(j), np.uint64(1), facts.key[0], facts.key[1]
    )
    uniform = (np.float64(((a << np.uint64(32)) | b) >> np.uint64(12)) + 0.5) * 2.0**-52
    number, chance = 0, math.exp(-law.rate)
    while uniform > chance and number < MOST:
        uniform -= chance
        number += 1
        chance *= law.rate / number
    total[:] = 0.0
    for i in range(number):
        for d in range(total.size):
            total[d] += math.sqrt(law.scale) * _normal(row, (j * MOST + i) * total.size + d, facts.key)
    return number


@njit(**OPTIONS)
def _log_fit(n, facts, base, total):
    """Log density of a row less `total`, up to a constant; base (column) is the row less shared features."""
    found = 0.0
    for d in range(base.size):
        if facts.seen[n, d]:
            found -= 0.5 * (base[d] - total[d]) ** 2 / facts.noise[facts.level[d]]
    return found


@njit(**OPTIONS)
def _chosen(n, facts, law, scratch, own, uniform):
    """Which candidate the row gets, the first (0) being what it has, and how many features that has."""
    base, total = scratch.residual, scratch.weighted
    base += scratch.apart
    count = facts.candidates + 1
    level, number = np.empty(count), np.empty(count, np.int64)
    level[0], number[0] = _log_fit(n, facts, base, scratch.apart), own
    for j in range(1, count):
        number[j] = _candidate(n, j, facts, law, total)
        level[j] = _log_fit(n, facts, base, total)
    weight = np.exp(level - level.max())
    left = uniform * weight.sum()
    for j in range(count):
        left -= weight[j]
        if left <= 0.0:
            return j, number[j]
    return 0, own


@njit(**OPTIONS)
def _look_of_candidate(n, j, facts, scale, tables, scratch):
    """The part of the dictionary of the row's own features, as the candidate has it."""
    row, at, size = np.uint64(facts.start + n), 0, scratch.residual.size
    for k in range(tables.sizes[0]):
        if scratch.mine[k]:
            for d in range(size):
                number = (j * MOST + at) * size + d
                tables.mean[k, d] = math.sqrt(scale) * _normal(row, number, facts.key)
                tables.square[k, d] = tables.mean[k, d] ** 2
            at += 1


@njit(cache=True, **OPTIONS)
def sweep_rows(facts, logits, births, law, tables, scratch, first):
    """Rows from `first` on in turn, as many as there are `births`; the number of those that are done, fewer
    where slots run out. logits (row, slot) of uniforms, births (row) uniforms."""
    for i in range(births.size):
        n = first + i
        own = _take_out(n, facts, law, tables, scratch)
        _flip(tables, scratch, law, logits[i])
        chosen = -1
        if facts.candidates and law.rate > 0.0:
            chosen, number = _chosen(n, facts, law, scratch, own, births[i])
        else:
            number = _number(n, facts, law, scratch, births[i])
        if tables.sizes[0] + number - own > tables.ids.size:
            return i
        for k in range(tables.sizes[0]):
            if scratch.new[k] != scratch.old[k]:
                tables.on[k] += scratch.new[k] - scratch.old[k]
                tables.z[n, k] = scratch.new[k]
        scratch.numbers[:] = logits[i]
        _renumber(n, tables, scratch, own, number)
        if chosen > 0:
            _look_of_candidate(n, chosen, facts, law.scale, tables, scratch)
        elif chosen < 0 and number:
            _look_of_own(n, facts, law.scale, tables, scratch, number)
    return births.size
