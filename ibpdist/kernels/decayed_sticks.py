"""Prevalences pi = V exp(-T) of atoms of the beta process: a stick and a decay each (beta_process.md 4, 5).

q(V) = Beta(a, b), q(T) = Gamma(u, v). What log(1 - pi) is worth is minus the `absence`

    Delta = E[-log(1 - V exp(-T))] = sum_{m >= 1} (1/m) B(a + m, b) / B(a, b) (1 + m / v)^-u,

summed in full: term by term for m < 16, then by eight nodes an octave. Stick and decay climb along their
natural gradients, with steps that are halved until the objective rises.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

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


@njit(**INLINED)
def _stick_value(a, b, on, off, weight, delta):
    """What the objective says of q(V) (beta_process.md 5), given Delta."""
    both = digamma(a + b)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    odds = (on + 1 - a) * (digamma(a) - both) + (off + 1 - b) * (digamma(b) - both)
    return odds + log_beta - weight * delta


@njit(**OPTIONS)
def climb_stick(a, b, u, v, on, off, weight, nodes, shares):
    """(a, b) where on E log V + off E log(1 - V) + H(V) - weight Delta is highest."""
    delta, da, db, _, _ = absence(a, b, u, v, nodes, shares)
    value = _stick_value(a, b, on, off, weight, delta)
    for _ in range(STEPS):
        one, two, both = trigamma(a), trigamma(b), trigamma(a + b)
        one, two = one - both, two - both
        size = one * two - both * both
        step_a = on + 1 - a - weight * (two * da + both * db) / size
        step_b = off + 1 - b - weight * (both * da + one * db) / size
        slope_a = one * (on + 1 - a) - both * (off + 1 - b) - weight * da
        slope_b = two * (off + 1 - b) - both * (on + 1 - a) - weight * db
        rise, length, found = slope_a * step_a + slope_b * step_b, 1.0, False
        if not rise > STILL * (1 + abs(value)):
            break
        for _ in range(HALVINGS):
            x, y = a + length * step_a, b + length * step_b
            if LEAST <= x <= MOST and LEAST <= y <= MOST:
                delta, dx, dy, _, _ = absence(x, y, u, v, nodes, shares)
                reached = _stick_value(x, y, on, off, weight, delta)
                if reached >= value + ARMIJO * length * rise:
                    a, b, da, db, value, found = x, y, dx, dy, reached, True
                    break
            length *= 0.5
        if not found:
            break
    return a, b


@njit(**INLINED)
def _decay_value(u, v, shape, rate, weight, delta):
    log_mean = digamma(u) - math.log(v)
    entropy = u - math.log(v) + math.lgamma(u) + (1 - u) * digamma(u)
    return shape * log_mean - rate * u / v + entropy - weight * delta


@njit(**OPTIONS)
def climb_decay(a, b, u, v, shape, rate, weight, nodes, shares):
    """(u, v) where shape E log T - rate E T + H(T) - weight Delta is highest."""
    delta, _, _, du, dv = absence(a, b, u, v, nodes, shares)
    value = _decay_value(u, v, shape, rate, weight, delta)
    for _ in range(STEPS):
        one, cross, two = trigamma(u), -1 / v, u / (v * v)
        size = one * two - cross * cross
        step_u = shape + 1 - u - weight * (two * du - cross * dv) / size
        step_v = rate - v - weight * (one * dv - cross * du) / size
        slope_u = one * (shape + 1 - u) + cross * (rate - v) - weight * du
        slope_v = cross * (shape + 1 - u) + two * (rate - v) - weight * dv
        rise, length, found = slope_u * step_u + slope_v * step_v, 1.0, False
        if not rise > STILL * (1 + abs(value)):
            break
        for _ in range(HALVINGS):
            x, y = u + length * step_u, v + length * step_v
            if LEAST <= x <= MOST and LEAST <= y <= MOST:
                delta, _, _, dx, dy = absence(a, b, x, y, nodes, shares)
                reached = _decay_value(x, y, shape, rate, weight, delta)
                if reached >= value + ARMIJO * length * rise:
                    u, v, du, dv, value, found = x, y, dx, dy, reached, True
                    break
            length *= 0.5
        if not found:
            break
    return u, v


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
        a, b = climb_stick(a, b, u, v, on[k], off[k], weight[k], nodes, shares)
        if moved[k]:
            u, v = climb_decay(a, b, u, v, shape[k], rate[k], absent[k], nodes, shares)
        sticks[k, 0], sticks[k, 1], decays[k, 0], decays[k, 1] = a, b, u, v
    return sticks, decays
