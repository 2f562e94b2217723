"""The response of Laplace weights, w ~ exp(-rate |w|) rate / 2 (factors.md 7).

Given z = 1 the likelihood exp(b w - a w^2 / 2) leaves two normals, each cut at zero. On the major side, that
of the sign of b, and on the minor one the density of |w| is, in units of 1 / sqrt a, that of

    exp(-h s - s^2 / 2),  s > 0,      h = (rate - |b|) / sqrt a  and  (rate + |b|) / sqrt a.

With I_0(h) the integral of it, the evidence is log((I_0(major) + I_0(minor)) / sqrt a) + log(rate / 2). Only
the major h can be below zero, where the exponent of I_0 is kept apart (cut.py). All is made of sums and
quotients of positive numbers, without a branch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from ibpdist.kernels.cut import LEAST, cut_normal, cut_ratio, quantile
from ibpdist.kernels.options import INLINED
from ibpdist.kernels.respond import Draw, size_of, two_sided, weigh
from ibpdist.kernels.scalars import log_positive


class Laplace(NamedTuple):
    """w ~ Laplace(0, 1 / rate)."""

    rate: float = 1.0


def sides(rate, size, quad):
    """(unit, h, exponent, total, share, means, variances, spare) of both sides, for |b| = `size`.

    `unit` is 1 / sqrt a; exp(exponent) `total` is I_0(major) + I_0(minor), `share` the part of the minor
    side; pairs are (major, minor) in units: h, means, variances, and the entropies less log I_0, in `spare`
    without the exponent.
    """
    raise NotImplementedError("compiled only")


@overload(sides, jit_options=INLINED)
def _sides(rate, size, quad):
    F = np.float32 if size == types.float32 else np.float64
    one, half = F(1.0), F(0.5)
    least = F(LEAST[F])

    def impl(rate, size, quad):
        unit = one / F(math.sqrt(max(quad, least)))
        h, g = (F(rate) - size) * unit, (F(rate) + size) * unit
        exponent, shrunk, major, mean, variance, spare = cut_normal(h)
        q2 = cut_ratio(g)
        q1 = one / (g + q2)
        minor = shrunk * (one / (g + q1))
        total = major + minor
        return (
            unit,
            (h, g),
            exponent,
            total,
            minor / total,
            (mean, q1),
            (variance, q1 * (q2 - q1)),
            (spare, half + half * g * q1),
        )

    return impl


@overload(weigh, jit_options=INLINED)
def _weigh_laplace(weights, rule, linear, quad, normal):
    """The cost is what the entropies of the sides and of the choice between them leave of E rate |w|."""
    if weights.instance_class is not Laplace or rule.instance_class is Draw:
        return None
    single = linear == types.float32
    F = np.float32 if single else np.float64
    one, zero, most = F(1.0), F(0.0), F(60.0 if single else 700.0)

    def impl(weights, rule, linear, quad, normal):
        unit, _, exponent, total, share, means, variances, spare = sides(weights.rate, abs(linear), quad)
        rate, log_half = F(weights.rate), F(math.log(0.5 * weights.rate))
        log_total, other = log_positive(total * unit), one - share
        major, minor = means[0] * unit, means[1] * unit
        size = other * major - share * minor
        spread = other * variances[0] + share * variances[1]
        variance = spread * unit * unit + other * share * (major + minor) * (major + minor)
        mean = size if linear >= zero else -size
        paid = other * (rate * major - spare[0]) + share * (rate * minor - spare[1])
        cost = paid - log_half - log_total - share * min(exponent, most)
        return exponent + log_total + log_half, mean, mean * mean + variance, max(cost, zero)

    return impl


@overload(two_sided, jit_options=INLINED)
def _laplace_two_sided(weights):
    return (lambda weights: True) if weights.instance_class is Laplace else None


@overload(size_of, jit_options=INLINED)
def _size_laplace(weights, rule, linear, quad, mean):
    """|w| of a draw, else the sum of both sides, of which the mean is the difference."""
    if weights.instance_class is not Laplace:
        return None
    if rule.instance_class is Draw:
        return lambda weights, rule, linear, quad, mean: abs(mean)
    two = (np.float32 if linear == types.float32 else np.float64)(2.0)

    def impl(weights, rule, linear, quad, mean):
        unit, _, _, _, share, means, _, _ = sides(weights.rate, abs(linear), quad)
        return abs(mean) + two * share * means[1] * unit

    return impl


@overload(weigh, jit_options=INLINED)
def _draw_laplace(weights, rule, linear, quad, normal):
    """The quantile of q(w | z=1) at the probability of a standard normal, in float64: its upper tail begins
    at the end of the major side."""
    if weights.instance_class is not Laplace or rule.instance_class is not Draw:
        return None
    F = np.float32 if linear == types.float32 else np.float64

    def impl(weights, rule, linear, quad, normal):
        size, turned = abs(np.float64(linear)), math.copysign(np.float64(normal), normal * linear)
        unit, h, exponent, total, share, _, _, _ = sides(weights.rate, size, np.float64(quad))
        upper, lower = 0.5 * math.erfc(turned / math.sqrt(2)), 0.5 * math.erfc(-turned / math.sqrt(2))
        other = 1.0 - share
        if upper <= other:
            w = unit * quantile(h[0], upper / other, (lower - share) / other)
        else:
            w = -unit * quantile(h[1], lower / share, 1.0)
        w = math.copysign(w, w * linear)
        log_half = math.log(0.5 * weights.rate)
        evidence = exponent + math.log(total * unit) + log_half
        return F(evidence), F(w), F(w * w), F(weights.rate * abs(w) - log_half)

    return impl
