"""What one entry (row, feature) does, compiled into the loop by the type of a tag.

A weight is a tag and one function `weigh`; a rule is a tag and one function `decide`. The
likelihood of y = z w reaches them as a pair: log p(x | y) = linear y - quad y^2 / 2 + const.
Registering a new tag adds a member to the axis; the loop (sweep.py) does not change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from ibpdist.kernels.options import INLINED
from ibpdist.kernels.scalars import exp_negative, log1p_unit, log_positive

LOG_2PI = math.log(2 * math.pi)


class Unit(NamedTuple):
    """w = 1."""

    precision: float = 1.0


class Normal(NamedTuple):
    """w ~ N(0, 1 / precision)."""

    precision: float = 1.0


class Mean(NamedTuple):
    """Keep the mean: z = E z."""

    level: float = 0.5


class Mode(NamedTuple):
    """Keep the mode: z = 1 when its log odds exceed zero."""

    level: float = 0.5


class Draw(NamedTuple):
    """Keep a draw."""

    level: float = 0.5


def weigh(weights, rule, linear, quad, normal):
    """(evidence, w, w2, cost): log p(x | z=1) - log p(x | z=0) with w integrated out; E w and
    E w^2 given z = 1; and KL(q(w | z=1) || p(w)), or -log p(w) for a draw."""
    raise NotImplementedError("compiled only")


def decide(rule, log_odds, uniform):
    """(z, entropy) of one entry."""
    raise NotImplementedError("compiled only")


def varies(weights):
    """Whether w can be other than 1; known when the loop is compiled."""
    raise NotImplementedError("compiled only")


def two_sided(weights):
    """Whether rows add up E |y| too: weights have both signs, and their prior needs it. Known when the loop
    is compiled."""
    raise NotImplementedError("compiled only")


def size_of(weights, rule, linear, quad, mean):
    """E |w| given z=1, where E w is `mean`."""
    raise NotImplementedError("compiled only")


def noise_at(rule, table, k, i):
    """Entry of a table of uniforms; zero for rules that use none."""
    raise NotImplementedError("compiled only")


def normal_at(weights, rule, table, k, i):
    """Entry of a table of normals; zero for weights and rules that use none."""
    raise NotImplementedError("compiled only")


def weight_at(weights, table, k, i):
    """E w of one entry; one where rows keep no weights."""
    raise NotImplementedError("compiled only")


def odds_at(odds, i):
    """Log odds of a row: the same for all rows, or one for each."""
    raise NotImplementedError("compiled only")


def precision_at(precision, like, r):
    """By how much the cells of a row of a strip are more precise than the noise says; one where none are
    given."""
    raise NotImplementedError("compiled only")


def if_uneven(precision, table):
    """A table where rows have precisions of their own, otherwise None."""
    raise NotImplementedError("compiled only")


def uneven(precision):
    """Whether rows have precisions of their own; known when the loop is compiled."""
    raise NotImplementedError("compiled only")


def _float(kind):
    return np.float32 if kind == types.float32 else np.float64


@overload(weigh, jit_options=INLINED)
def _weigh_unit(weights, rule, linear, quad, normal):
    if weights.instance_class is not Unit:
        return None
    F = _float(linear)
    half, one, zero = F(0.5), F(1.0), F(0.0)
    return lambda weights, rule, linear, quad, normal: (linear - half * quad, one, one, zero)


@overload(weigh, jit_options=INLINED)
def _weigh_normal(weights, rule, linear, quad, normal):
    """q(w | z=1) = N(m, v), v = 1 / (precision + quad), m = v linear (factors.md 2)."""
    if weights.instance_class is not Normal or rule.instance_class is Draw:
        return None
    F = _float(linear)
    half, one = F(0.5), F(1.0)

    def impl(weights, rule, linear, quad, normal):
        precision = F(weights.precision)
        v = one / (precision + quad)
        m = v * linear
        shrink = log_positive(precision * v)
        w2 = m * m + v
        return half * (shrink + m * linear), m, w2, half * (precision * w2 - shrink - one)

    return impl


@overload(weigh, jit_options=INLINED)
def _draw_normal(weights, rule, linear, quad, normal):
    if weights.instance_class is not Normal or rule.instance_class is not Draw:
        return None
    F = _float(linear)
    half, one, log_2pi = F(0.5), F(1.0), F(LOG_2PI)

    def impl(weights, rule, linear, quad, normal):
        precision = F(weights.precision)
        v = one / (precision + quad)
        m = v * linear
        w = m + math.sqrt(v) * normal
        cost = half * (precision * w * w + log_2pi - F(math.log(precision)))
        return half * (log_positive(precision * v) + m * linear), w, w * w, cost

    return impl


@overload(decide, jit_options=INLINED)
def _decide_mean(rule, log_odds, uniform):
    """sigmoid and its entropy from the log odds, exact at both ends (linear-gaussian.md 4)."""
    if rule.instance_class is not Mean:
        return None
    one, zero = _float(log_odds)(1.0), _float(log_odds)(0.0)

    def impl(rule, log_odds, uniform):
        size = abs(log_odds)
        e = exp_negative(-size)
        high = one / (one + e)
        low = e * high
        return (high if log_odds >= zero else low), log1p_unit(e) + size * low

    return impl


@overload(decide, jit_options=INLINED)
def _decide_mode(rule, log_odds, uniform):
    if rule.instance_class is not Mode:
        return None
    one, zero = _float(log_odds)(1.0), _float(log_odds)(0.0)
    return lambda rule, log_odds, uniform: ((one if log_odds > zero else zero), zero)


@overload(decide, jit_options=INLINED)
def _decide_draw(rule, log_odds, uniform):
    if rule.instance_class is not Draw:
        return None
    one, zero = _float(log_odds)(1.0), _float(log_odds)(0.0)

    def impl(rule, log_odds, uniform):
        e = exp_negative(-abs(log_odds))
        high = one / (one + e)
        chance = high if log_odds >= zero else e * high
        return (one if uniform < chance else zero), zero

    return impl


@overload(varies, jit_options=INLINED)
def _varies(weights):
    found = weights.instance_class is not Unit
    return lambda weights: found


@overload(two_sided, jit_options=INLINED)
def _two_sided(weights):
    return (lambda weights: False) if weights.instance_class in (Unit, Normal) else None


@overload(size_of, jit_options=INLINED)
def _size_of(weights, rule, linear, quad, mean):
    """Not needed of these weights."""
    plain = weights.instance_class in (Unit, Normal)
    return (lambda weights, rule, linear, quad, mean: mean) if plain else None


@overload(noise_at, jit_options=INLINED)
def _noise_at(rule, table, k, i):
    if rule.instance_class is Draw:
        return lambda rule, table, k, i: table[k, i]
    zero = _float(table.dtype)(0.0)
    return lambda rule, table, k, i: zero


@overload(normal_at, jit_options=INLINED)
def _normal_at(weights, rule, table, k, i):
    if rule.instance_class is Draw and weights.instance_class is not Unit:
        return lambda weights, rule, table, k, i: table[k, i]
    zero = _float(table.dtype)(0.0)
    return lambda weights, rule, table, k, i: zero


@overload(weight_at, jit_options=INLINED)
def _weight_at(weights, table, k, i):
    if weights.instance_class is Unit:
        one = _float(table.dtype)(1.0)
        return lambda weights, table, k, i: one
    return lambda weights, table, k, i: table[k, i]


@overload(odds_at, jit_options=INLINED)
def _odds_at(odds, i):
    if isinstance(odds, types.Array):
        return lambda odds, i: odds[i]
    return lambda odds, i: odds


@overload(precision_at, jit_options=INLINED)
def _precision_at(precision, like, r):
    if isinstance(precision, types.Array):
        return lambda precision, like, r: precision[r]
    one = _float(like)(1.0)
    return lambda precision, like, r: one


@overload(if_uneven, jit_options=INLINED)
def _if_uneven(precision, table):
    if isinstance(precision, types.Array):
        return lambda precision, table: table
    return lambda precision, table: None


@overload(uneven, jit_options=INLINED)
def _uneven(precision):
    found = isinstance(precision, types.Array)
    return lambda precision: found
