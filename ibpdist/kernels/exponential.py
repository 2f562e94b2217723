"""The response of exponential weights, w ~ rate exp(-rate w) on w > 0 (factors.md 11).

Given z = 1 the likelihood exp(b w - a w^2 / 2) leaves a normal cut at zero: in units of 1 / sqrt a the
density of w is that of

    exp(-h s - s^2 / 2),  s > 0,      h = (rate - b) / sqrt a.

With I_0(h) the integral of it (cut.py), the evidence is log(I_0(h) / sqrt a) + log rate. Where b is above
zero that is the major side of Laplace weights (laplace.py). Where b is below zero there is no other side,
and the evidence falls as -log(-b).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from ibpdist.kernels.cut import LEAST, cut_normal, quantile
from ibpdist.kernels.options import INLINED
from ibpdist.kernels.respond import Draw, size_of, two_sided, weigh
from ibpdist.kernels.scalars import log_positive


class Exponential(NamedTuple):
    """w ~ Exp(rate), with mean 1 / rate."""

    rate: float = 1.0


@overload(weigh, jit_options=INLINED)
def _weigh_exponential(weights, rule, linear, quad, normal):
    """The cost is what the entropy leaves of E rate w - log rate; the exponent is in neither."""
    if weights.instance_class is not Exponential or rule.instance_class is Draw:
        return None
    F = np.float32 if linear == types.float32 else np.float64
    one, zero, least = F(1.0), F(0.0), F(LEAST[F])

    def impl(weights, rule, linear, quad, normal):
        rate, log_rate = F(weights.rate), F(math.log(weights.rate))
        unit = one / F(math.sqrt(max(quad, least)))
        exponent, _, mass, mean, variance, entropy = cut_normal((rate - linear) * unit)
        log_mass, w = log_positive(mass * unit), mean * unit
        cost = rate * w - entropy - log_mass - log_rate
        return exponent + log_mass + log_rate, w, w * w + variance * unit * unit, max(cost, zero)

    return impl


@overload(two_sided, jit_options=INLINED)
def _exponential_two_sided(weights):
    return (lambda weights: False) if weights.instance_class is Exponential else None


@overload(size_of, jit_options=INLINED)
def _size_exponential(weights, rule, linear, quad, mean):
    return (lambda weights, rule, linear, quad, mean: mean) if weights.instance_class is Exponential else None


@overload(weigh, jit_options=INLINED)
def _draw_exponential(weights, rule, linear, quad, normal):
    """The quantile of q(w | z=1) at the probability of a standard normal, in float64."""
    if weights.instance_class is not Exponential or rule.instance_class is not Draw:
        return None
    F = np.float32 if linear == types.float32 else np.float64
    least, root_2 = LEAST[np.float64], math.sqrt(2)

    def impl(weights, rule, linear, quad, normal):
        unit = 1.0 / math.sqrt(max(np.float64(quad), least))
        h, place = (weights.rate - np.float64(linear)) * unit, np.float64(normal) / root_2
        exponent, _, mass, _, _, _ = cut_normal(h)
        w = unit * quantile(h, 0.5 * math.erfc(place), 0.5 * math.erfc(-place))
        log_rate = math.log(weights.rate)
        evidence = exponent + math.log(mass * unit) + log_rate
        return F(evidence), F(w), F(w * w), F(weights.rate * w - log_rate)

    return impl
