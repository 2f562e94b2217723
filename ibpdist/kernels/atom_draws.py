"""Draws of the atoms of a beta process given their counts (beta_process.md 11).

No atom is beyond round `last`, which is drawn too: given it, atoms depend on each other only through how many
share a round. Where a decay moves, the round of its atom is summed out, and drawn again.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ibpdist.kernels.atom_laws import (
    LEAST,
    Level,
    Ridge,
    Scaled,
    Stick,
    draw_slice,
    exponential,
    later_rounds,
    log_absent,
    log_not,
    log_rest,
    paid,
    prevalence,
    random,
    soft,
)
from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.row_numbers import gamma


@njit(**OPTIONS)
def _gamma(shape, numbers):
    return gamma(shape, np.uint64(0), numbers.used, numbers.key)


@njit(**OPTIONS)
def _pick(numbers, terms, number):
    """A place with probability in proportion to its term."""
    level = random(numbers) * terms[:number].sum()
    for j in range(number - 1):
        level -= terms[j]
        if level < 0:
            return j
    return number - 1


@njit(**OPTIONS)
def _draw_first(numbers, on, off):
    """log V and log(1 - V), V ~ Beta(on, off), also where one of them is nearly zero."""
    one = math.log(_gamma(on + 1, numbers)) - exponential(numbers) / on
    other = math.log(_gamma(off + 1, numbers)) - exponential(numbers) / off
    both = max(one, other) + math.log1p(math.exp(-abs(one - other)))
    return one - both, other - both


@njit(**OPTIONS)
def _jump(numbers, k, atoms, c, last, law, others, terms):
    """Branch, decay and stick given the prevalence: as if every round had the same weight, with rounds
    without end, and taken or not by the weight that the rounds have."""
    on, off = prevalence(atoms.decays[k], atoms.log_on[k], atoms.log_off[k])
    first = math.log(paid(law, others[0]))
    if random(numbers) < math.exp(on):
        decay, log_on, log_off, new = 0.0, on, off, first
    else:
        fall = -exponential(numbers) / c
        decay = max(soft(off - on + log_not(fall)), LEAST)
        log_on, log_off = on + decay, off + fall
        new = later_rounds(c * decay, last, others, law, terms)
    old = first
    if atoms.decays[k] > 0:
        old = later_rounds(c * atoms.decays[k], last, others, law, terms)
    if log_on < 0 and -exponential(numbers) < new - old:
        atoms.decays[k], atoms.log_on[k], atoms.log_off[k] = decay, log_on, log_off


@njit(**OPTIONS)
def _draw_atom(numbers, k, fixed, atoms, c, last, others, terms):
    """Branch, decay, round and stick of an atom; `others` are without it."""
    law = fixed.law
    _jump(numbers, k, atoms, c, last, law, others, terms)
    if atoms.decays[k] == 0.0:
        atoms.rounds[k] = 1
        atoms.log_on[k], atoms.log_off[k] = _draw_first(numbers, 1 + fixed.on[k], c + fixed.off[k])
        return
    size = atoms.decays[k] - atoms.log_on[k]
    at = math.log(atoms.decays[k]) - log_rest(atoms.log_on[k], atoms.log_off[k])
    y = draw_slice(numbers, Ridge(size, c, last, law, others, terms), at)
    decay = max(size * math.exp(-soft(-y)), LEAST)
    later_rounds(c * decay, last, others, law, terms)
    atoms.decays[k], atoms.rounds[k] = decay, 2 + _pick(numbers, terms, last - 1)
    rest, block = math.log(size) - soft(y), Stick(fixed.on[k], fixed.off[k], c, decay)
    x = draw_slice(numbers, block, -math.exp(rest) - log_absent(math.exp(rest), rest))
    atoms.log_on[k], atoms.log_off[k] = -soft(-x), -soft(x)


@njit(**OPTIONS)
def _draw_level(numbers, fixed, atoms, c):
    """The concentration given sticks, decays and rounds, and then given what they are in units of it."""
    shape = fixed.shape + atoms.rounds.sum()
    block = Level(shape, fixed.rate + atoms.decays.sum() - atoms.log_off.sum(), fixed.low, fixed.high)
    c = math.exp(draw_slice(numbers, block, math.log(c)))
    new = math.exp(draw_slice(numbers, Scaled(fixed, atoms, c), math.log(c)))
    for k in range(atoms.rounds.size):
        if atoms.decays[k] > 0:
            atoms.decays[k] = max(atoms.decays[k] * c / new, LEAST)
        atoms.log_off[k] *= c / new
        atoms.log_on[k] = log_not(atoms.log_off[k])
    return new


@njit(**OPTIONS)
def round_weights(numbers, c, decays, last, law, rounds, again, others, terms):
    """Log of the weight of the rounds of all atoms, of which each knows those before it; they are drawn if
    `again`. `others` (round) ends as the number of atoms of each."""
    others[:] = 0
    total = 0.0
    for k in range(rounds.size):
        if decays[k] == 0.0:
            total += math.log(paid(law, others[0]))
        else:
            total += later_rounds(c * decays[k], last, others, law, terms)
            if again:
                rounds[k] = 2 + _pick(numbers, terms, last - 1)
        others[rounds[k] - 1] += 1
    return total


@njit(**OPTIONS)
def _try_last(numbers, fixed, atoms, c, last, others, terms):
    """One round more or less: decays of atoms that no row has, the concentration, or both, are scaled
    with it, and rounds are drawn again. Returns the concentration and the last round."""
    new_last = last + 1 if random(numbers) < 0.5 else last - 1
    if not 1 <= new_last <= fixed.length.size:
        return c, last
    factor, share = math.log(new_last / last), random(numbers)
    held = share * factor if fixed.low < fixed.high else 0.0
    new = c * math.exp(held)
    if not fixed.low <= math.log(new) <= fixed.high:
        return c, last
    longer = factor - held
    decays, rounds = atoms.decays.copy(), atoms.rounds.copy()
    gain = fixed.length[new_last - 1] - fixed.length[last - 1]
    if held != 0.0:
        gain += fixed.shape * held - fixed.rate * (new - c)
    for k in range(rounds.size):
        gain += held + (new - c) * atoms.log_off[k]
        if decays[k] > 0:
            gain += held
            if fixed.on[k] < 0.5:
                decays[k] = max(decays[k] * math.exp(longer), LEAST)
                old = prevalence(atoms.decays[k], atoms.log_on[k], atoms.log_off[k])
                now = prevalence(decays[k], atoms.log_on[k], atoms.log_off[k])
                gain += longer + fixed.on[k] * (now[0] - old[0]) + fixed.off[k] * (now[1] - old[1])
    gain -= round_weights(numbers, c, atoms.decays, last, fixed.law, rounds, False, others, terms)
    gain += round_weights(numbers, new, decays, new_last, fixed.law, rounds, True, others, terms)
    if -exponential(numbers) < gain:
        atoms.decays[:], atoms.rounds[:] = decays, rounds
        return new, new_last
    return c, last


@njit(**OPTIONS)
def _draw_last(numbers, length, least):
    """A last round of at least `least`."""
    weights = np.exp(length - length[least - 1])
    return least + _pick(numbers, weights[least - 1 :], length.size - least + 1)


@njit(cache=True, **OPTIONS)
def draw_atoms(numbers, fixed, atoms, c, sweeps, tries):
    """The concentration after so many sweeps, each with so many tries to change the number of rounds; atoms
    are changed in place."""
    count, rounds = atoms.rounds.size, fixed.length.size
    others, terms = np.zeros(rounds, np.int64), np.zeros(rounds)
    last = _draw_last(numbers, fixed.length, atoms.rounds.max())
    for _ in range(sweeps):
        others[:] = 0
        for k in range(count):
            others[atoms.rounds[k] - 1] += 1
        for k in range(count):
            others[atoms.rounds[k] - 1] -= 1
            _draw_atom(numbers, k, fixed, atoms, c, last, others, terms)
            others[atoms.rounds[k] - 1] += 1
        if fixed.low < fixed.high:
            c = _draw_level(numbers, fixed, atoms, c)
        for _ in range(tries):
            c, last = _try_last(numbers, fixed, atoms, c, last, others, terms)
    return c
