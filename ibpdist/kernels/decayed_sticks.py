"""Prevalences pi = V exp(-T) of atoms of the beta process: a stick and a decay each (beta_process.md 4, 5).

q(V) = Beta(a, b), q(T) = Gamma(u, v). What log(1 - pi) is worth is minus the `absence`

    Delta = E[-log(1 - V exp(-T))] = sum_{m >= 1} (1/m) B(a + m, b) / B(a, b) (1 + m / v)^-u,

summed in full: term by term for m < 16, then by eight nodes an octave. Stick and decay climb along their
natural gradients, with steps that are halved until the objective rises.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from ibpdist.kernels.gamma import digamma, digamma_rest, log_gamma_rest, trigamma
from ibpdist.kernels.options import INLINED, OPTIONS

HEAD = 16
"""The first term that is not summed by itself."""
PER_OCTAVE = 8
ENOUGH = 1e-16
"""Share of the sum below which an octave is the last one."""
STEPS, HALVINGS = 20, 40
ARMIJO = 1e-4
"""Least share of the rise that the slope promises."""
STILL = 1e-9
"""Promised rise, relative to the value, below which the climb has ended."""
LEAST, MOST = 1e-8, 1e12
"""Parameters stay between these."""


@njit(**INLINED)
def _log_ratio(x, b):
    """log Gamma(x) - log Gamma(x + b), and its slope in x, for x of at least HEAD - 1."""
    y, log_step = x + b, math.log1p(b / x)
    value = b - (x - 0.5) * log_step - b * math.log(y) + log_gamma_rest(x) - log_gamma_rest(y)
    return value, digamma_rest(x) - digamma_rest(y) - log_step


@njit(**OPTIONS)
def absence(a, b, u, v, nodes, shares):
    """(Delta, its slopes in a, b, u, v); `nodes` and `shares` as of `octaves`."""
    ratio, above, below = 1.0, 0.0, 0.0
    total = da = db = du = dv = 0.0
    for m in range(1, HEAD):
        ratio *= (a + m - 1) / (a + b + m - 1)
        above += 1.0 / (a + m - 1)
        below += 1.0 / (a + b + m - 1)
        fall = math.log1p(m / v)
        term = ratio / m * math.exp(-u * fall)
        total += term
        da += term * (above - below)
        db -= term * below
        du -= term * fall
        dv += term * u * m / (v * (v + m))
    first, slope = _log_ratio(a + HEAD - 1, b)
    start, gap = math.log(ratio) - first, above - below - slope
    near = digamma(a + b)
    for at in range(0, nodes.size, PER_OCTAVE):
        part = 0.0
        for i in range(at, at + PER_OCTAVE):
            m = nodes[i]
            value, slope = _log_ratio(a + m, b)
            fall = math.log1p(m / v)
            term = shares[i] / m * math.exp(start + value - u * fall)
            part += term
            da += term * (gap + slope)
            db -= term * (math.log(a + b + m) + digamma_rest(a + b + m) - near)
            du -= term * fall
            dv += term * u * m / (v * (v + m))
        total += part
        if part <= ENOUGH * total:
            return total, da, db, du, dv
    return _with_rest(a, b, u, v, start, gap, near, 2 * nodes[nodes.size - 1], (total, da, db, du, dv))


@njit(**OPTIONS)
def _with_rest(a, b, u, v, start, gap, near, m, sums):
    """Sums with what is left beyond m, where terms fall as m^(-1 - b - u)."""
    value, slope = _log_ratio(a + m, b)
    fall, order = math.log1p(m / v), b + u
    rest = math.exp(start + value - u * fall) / order
    total, da, db, du, dv = sums
    return (
        total + rest,
        da + rest * (gap + slope),
        db - rest * (math.log(a + b + m) + digamma_rest(a + b + m) - near + 1 / order),
        du - rest * (fall + 1 / order),
        dv + rest * u * m / (v * (v + m)),
    )


class Stick(NamedTuple):
    """q(V) = Beta(x, y): on E log V + off E log(1 - V) + H(V) - weight Delta, the decay being Gamma(u, v)."""

    on: float
    off: float
    weight: float
    u: float
    v: float


class Decay(NamedTuple):
    """q(T) = Gamma(x, y): shape E log T - rate E T + H(T) - weight Delta, the stick being Beta(a, b)."""

    shape: float
    rate: float
    weight: float
    a: float
    b: float


def look(block, x, y, nodes, shares):
    """The objective of a block at (x, y), and the slopes of Delta there."""
    raise NotImplementedError("compiled only")


def target(block):
    """(x, y) of the optimum without Delta, where the law is conjugate."""
    raise NotImplementedError("compiled only")


def information(block, x, y):
    """Fisher information of (x, y): first, mixed, second."""
    raise NotImplementedError("compiled only")


@overload(look, jit_options=OPTIONS)
def _look_at_stick(block, x, y, nodes, shares):
    if block.instance_class is not Stick:
        return None

    def impl(block, x, y, nodes, shares):
        delta, dx, dy, _, _ = absence(x, y, block.u, block.v, nodes, shares)
        both = digamma(x + y)
        log_beta = math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
        odds = (block.on + 1 - x) * (digamma(x) - both) + (block.off + 1 - y) * (digamma(y) - both)
        return odds + log_beta - block.weight * delta, dx, dy

    return impl


@overload(look, jit_options=OPTIONS)
def _look_at_decay(block, x, y, nodes, shares):
    if block.instance_class is not Decay:
        return None

    def impl(block, x, y, nodes, shares):
        delta, _, _, dx, dy = absence(block.a, block.b, x, y, nodes, shares)
        log_mean = digamma(x) - math.log(y)
        entropy = x - math.log(y) + math.lgamma(x) + (1 - x) * digamma(x)
        value = block.shape * log_mean - block.rate * x / y + entropy - block.weight * delta
        return value, dx, dy

    return impl


@overload(target, jit_options=INLINED)
def _target(block):
    if block.instance_class is Stick:
        return lambda block: (block.on + 1.0, block.off + 1.0)
    return lambda block: (block.shape + 1.0, block.rate)


@overload(information, jit_options=INLINED)
def _information(block, x, y):
    if block.instance_class is Decay:
        return lambda block, x, y: (trigamma(x), -1.0 / y, x / (y * y))

    def impl(block, x, y):
        both = trigamma(x + y)
        return trigamma(x) - both, -both, trigamma(y) - both

    return impl


@njit(**OPTIONS)
def climb_block(block, x, y, nodes, shares):
    """(x, y) where the objective of a stick or a decay is highest, from there."""
    value, dx, dy = look(block, x, y, nodes, shares)
    best_x, best_y = target(block)
    for _ in range(STEPS):
        one, cross, two = information(block, x, y)
        size, gap_x, gap_y = one * two - cross * cross, best_x - x, best_y - y
        step_x = gap_x - block.weight * (two * dx - cross * dy) / size
        step_y = gap_y - block.weight * (one * dy - cross * dx) / size
        rise = (one * gap_x + cross * gap_y - block.weight * dx) * step_x
        rise += (cross * gap_x + two * gap_y - block.weight * dy) * step_y
        if not rise > STILL * (1 + abs(value)):
            break
        length, found = 1.0, False
        for _ in range(HALVINGS):
            near_x, near_y = x + length * step_x, y + length * step_y
            if LEAST <= near_x <= MOST and LEAST <= near_y <= MOST:
                reached, slope_x, slope_y = look(block, near_x, near_y, nodes, shares)
                if reached >= value + ARMIJO * length * rise:
                    x, y, value, dx, dy, found = near_x, near_y, reached, slope_x, slope_y, True
                    break
            length *= 0.5
        if not found:
            break
    return x, y


@njit(cache=True, **OPTIONS)
def absences(sticks, decays, nodes, shares):
    """(atom) Delta."""
    found = np.empty(len(sticks))
    for k in range(len(sticks)):
        found[k] = absence(sticks[k, 0], sticks[k, 1], decays[k, 0], decays[k, 1], nodes, shares)[0]
    return found


@njit(cache=True, **OPTIONS)
def climb(sticks, decays, on, off, weight, shape, rate, absent, moved, nodes, shares):
    """(sticks, decays), (atom, side) each, after a climb of either where `moved`; (atom) all else.

    `on`, `off`, `weight` are of the objective of a stick, `shape`, `rate`, `absent` of that of a decay.
    """
    sticks, decays = sticks.copy(), decays.copy()
    for k in range(len(sticks)):
        a, b, u, v = sticks[k, 0], sticks[k, 1], decays[k, 0], decays[k, 1]
        a, b = climb_block(Stick(on[k], off[k], weight[k], u, v), a, b, nodes, shares)
        if moved[k]:
            u, v = climb_block(Decay(shape[k], rate[k], absent[k], a, b), u, v, nodes, shares)
        sticks[k, 0], sticks[k, 1], decays[k, 0], decays[k, 1] = a, b, u, v
    return sticks, decays
