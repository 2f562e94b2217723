"""Densities that draws of the atoms of a beta process are made from (beta_process.md 11).

pi = V exp(-T). An atom has its round d, from 1, its decay T, which is zero in the first round alone, log V
and log(1 - V).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from ibpdist.kernels.options import OPTIONS
from ibpdist.kernels.rounds import EXACT
from ibpdist.kernels.row_numbers import uniform

WIDTH, WIDEST = 2.0, 50
"""Of a slice: the first interval, and the most intervals of that length side by side."""
HUGE, LEAST, TINY = 1e200, 1e-300, 1e-12
"""Terms beyond the first are scaled down; decays of later rounds are no less than the second; below the third
1 - e^-x is x."""


class Fixed(NamedTuple):
    """What draws do not change: rows with and without each atom (atom); `length` (round), the log weight of
    each number of rounds; `law` of rounds as in rounds.py; shape and rate of the prior of the concentration,
    whose log stays between `low` and `high`. Where these are equal, it is known."""

    on: Any
    off: Any
    length: Any
    law: int
    shape: float
    rate: float
    low: float
    high: float


class Numbers(NamedTuple):
    """Random numbers of a key, and how many of them are used (one)."""

    key: Any
    used: Any


class AtomState(NamedTuple):
    """(atom) rounds, decays, log V and log(1 - V)."""

    rounds: Any
    decays: Any
    log_on: Any
    log_off: Any


@njit(**OPTIONS)
def random(numbers):
    return uniform(np.uint64(0), numbers.used, numbers.key)


@njit(**OPTIONS)
def exponential(numbers):
    return -math.log(random(numbers))


@njit(**OPTIONS)
def log_not(x):
    """log(1 - e^x), x below zero."""
    return math.log(-math.expm1(x)) if x > -0.7 else math.log1p(-math.exp(x))


@njit(**OPTIONS)
def soft(x):
    """log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@njit(**OPTIONS)
def log_absent(rest, log_rest):
    """log(1 - e^-rest), also where rest underflows."""
    return log_rest if rest < TINY else log_not(-rest)


@njit(**OPTIONS)
def log_rest(log_on, log_off):
    """log(-log V), also where V is nearly one."""
    return log_off if log_on > -TINY else math.log(-log_on)


@njit(**OPTIONS)
def prevalence(decay, log_on, log_off):
    """log pi and log(1 - pi) of a stick and a decay."""
    if decay == 0.0:
        return log_on, log_off
    on = log_on - decay
    if on < -0.7:
        return on, math.log1p(-math.exp(on))
    return on, log_off + soft(log_on + log_not(-decay) - log_off)


@njit(**OPTIONS)
def paid(law, others):
    """The weight of a round that so many others are of."""
    return 1.0 / (1.0 + others) if law == EXACT else 1.0


@njit(**OPTIONS)
def later_rounds(x, last, others, law, terms):
    """Log of the sum over rounds 2 .. `last` of Poisson(round - 2; x) times the weight of the round, and its
    `terms`, up to one factor; `others` (round) share each round."""
    total, size, scale = 0.0, 1.0, -x
    for j in range(last - 1):
        if j > 0:
            size *= x / j
        if size > HUGE:
            terms[:j] /= HUGE
            total, size, scale = total / HUGE, size / HUGE, scale + math.log(HUGE)
        terms[j] = size * paid(law, others[j + 1])
        total += terms[j]
    return scale + math.log(total)


class Stick(NamedTuple):
    """The log odds of a later stick given its decay."""

    on: float
    off: float
    concentration: float
    decay: float


class Ridge(NamedTuple):
    """The decay given the prevalence exp(-size), by the log of T over what is left for the stick."""

    size: float
    concentration: float
    last: int
    law: int
    others: Any
    terms: Any


class Level(NamedTuple):
    """The log of the concentration: a gamma law between bounds."""

    shape: float
    rate: float
    low: float
    high: float


class Scaled(NamedTuple):
    """The log of the concentration c where c T and c log(1 - V) stay."""

    fixed: Any
    atoms: Any
    concentration: float


def density(block, x):
    """Log density of a block at x, up to a constant."""
    raise NotImplementedError("compiled only")


@overload(density, jit_options=OPTIONS)
def _of_stick(block, x):
    if block.instance_class is not Stick:
        return None

    def impl(block, x):
        log_on, log_off = -soft(-x), -soft(x)
        absent = prevalence(block.decay, log_on, log_off)[1]
        return (block.on + 1) * log_on + block.concentration * log_off + block.off * absent

    return impl


@overload(density, jit_options=OPTIONS)
def _of_ridge(block, x):
    if block.instance_class is not Ridge:
        return None

    def impl(block, x):
        size = math.log(block.size)
        log_decay, log_rest = size - soft(-x), size - soft(x)
        decay, rest = math.exp(log_decay), math.exp(log_rest)
        level = block.concentration
        free = later_rounds(level * decay, block.last, block.others, block.law, block.terms)
        return free + decay + (level - 1) * log_absent(rest, log_rest) + log_decay + log_rest

    return impl


@overload(density, jit_options=OPTIONS)
def _of_level(block, x):
    if block.instance_class is not Level:
        return None

    def impl(block, x):
        if not block.low <= x <= block.high:
            return -np.inf
        return block.shape * x - block.rate * math.exp(x)

    return impl


@overload(density, jit_options=OPTIONS)
def _of_scaled(block, x):
    if block.instance_class is not Scaled:
        return None

    def impl(block, x):
        fixed, atoms = block.fixed, block.atoms
        found = density(Level(fixed.shape, fixed.rate, fixed.low, fixed.high), x)
        if found == -np.inf:
            return found
        factor = block.concentration * math.exp(-x)
        for k in range(atoms.rounds.size):
            log_off = atoms.log_off[k] * factor
            on, off = prevalence(atoms.decays[k] * factor, log_not(log_off), log_off)
            found += fixed.on[k] * on + fixed.off[k] * off
        return found

    return impl


@njit(**OPTIONS)
def draw_slice(numbers, block, at):
    """A draw by a slice of the density of a block, which is stepped out and narrowed (Neal 2003)."""
    level = density(block, at) - exponential(numbers)
    left = at - WIDTH * random(numbers)
    right = left + WIDTH
    before = int(WIDEST * random(numbers))
    after = WIDEST - 1 - before
    while before > 0 and density(block, left) > level:
        left, before = left - WIDTH, before - 1
    while after > 0 and density(block, right) > level:
        right, after = right + WIDTH, after - 1
    while True:
        tried = left + (right - left) * random(numbers)
        if tried == at or density(block, tried) > level:
            return tried
        if tried < at:
            left = tried
        else:
            right = tried
