"""Moments of a normal cut at zero, to all digits in both precisions: what Laplace and exponential weights
need of erfcx.

With I_n(h) the integral of s^n exp(-h s - s^2 / 2) over s > 0 and r_n = I_n / I_(n-1), integration by parts
gives

    r_n = n / (h + r_(n+1)),      I_0 = 1 / (h + r_1),

so for h >= 0 all comes from r_2 by sums and quotients of positive numbers, and nothing cancels: I_0 is
sqrt(pi / 2) erfcx(h / sqrt 2), the mean r_1, the second moment r_1 r_2 and the variance r_1 (r_2 - r_1)
(factors.md 7). r_2 (h + 2) is a polynomial in u = (h - 4) / (h + 4), which is -1 at h = 0 and 1 at infinity.
For h < 0 the normal has its mean inside. There I_0(h) is exp(h^2 / 2) times
sqrt(2 pi) - exp(-h^2 / 2) I_0(-h), and the exponent is kept apart.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

from ibpdist.kernels.options import INLINED, OPTIONS
from ibpdist.kernels.scalars import exp_negative

F = np.float32
ROOT_2, ROOT_2PI = math.sqrt(2), math.sqrt(2 * math.pi)
LEAST = {np.float32: 1e-12, np.float64: 1e-24}
"""The least quad of an entry; a smaller one changes nothing."""
_DIGITS = (
    2.5949024512387111,
    -0.52522665011679459,
    -0.35127154837962382,
    0.37168279055442482,
    -0.0075793093864299057,
    -0.13717715216500881,
    0.029341042378289068,
    0.052060137497453585,
    -0.018390340857568285,
    -0.020628768087217204,
    0.0092638756279973238,
    0.0084878179367403501,
    -0.0042395322155916555,
    -0.0035858573648851868,
    0.0018173293399047952,
    0.0015319340825787758,
    -0.00073619117733161833,
    -0.0006504197413514858,
    0.00028237793046064581,
    0.00026910891127670438,
    -0.00010227310478504083,
    -0.0001054552316288302,
    3.4497931529429601e-05,
    3.7160923672376829e-05,
    -1.0422581003852979e-05,
    -1.0734508932177808e-05,
    2.5996057984698146e-06,
    2.1722559248216712e-06,
    -4.6123453926126817e-07,
    -2.2226175244791352e-07,
    4.2199682815027938e-08,
)
"""Coefficients in float64, from the constant on: within 2e-15 relative."""


@njit(**INLINED)
def _cut32(h):
    """Within 2e-7 relative."""
    u = (h - F(4.0)) / (h + F(4.0))
    p = F(-0.0009004514608)
    p = p * u - F(0.00110610647)
    p = p * u + F(0.005547709573)
    p = p * u + F(0.00604407797)
    p = p * u - F(0.01871833841)
    p = p * u - F(0.01650122529)
    p = p * u + F(0.05134989903)
    p = p * u + F(0.02873633416)
    p = p * u - F(0.137037013)
    p = p * u - F(0.007484246473)
    p = p * u + F(0.3716703671)
    p = p * u - F(0.3512772514)
    p = p * u - F(0.5252263278)
    p = p * u + F(2.594902508)
    return p / (h + F(2.0))


@njit(**OPTIONS)
def _cut64(h):
    u = (h - 4.0) / (h + 4.0)
    square, even, odd = u * u, 0.0, 0.0  # two chains of products at once
    for i in range(len(_DIGITS) - 1, 0, -2):
        even = even * square + _DIGITS[i]
        odd = odd * square + _DIGITS[i - 1]
    return (even * square + _DIGITS[0] + odd * u) / (h + 2.0)


def cut_ratio(h):
    """r_2 of h >= 0."""
    raise NotImplementedError("compiled only")


@overload(cut_ratio, jit_options=INLINED)
def _cut_ratio(h):
    if h == types.float32:
        return lambda h: _cut32(h)
    return lambda h: _cut64(h)


def cut_normal(h):
    """(exponent, shrunk, mass, mean, variance, entropy) of the density exp(-h s - s^2 / 2) / I_0(h) on s > 0.

    I_0(h) is exp(exponent) `mass`; `shrunk` is exp(-exponent); `entropy` is without log `mass`.
    """
    raise NotImplementedError("compiled only")


@overload(cut_normal, jit_options=INLINED)
def _cut_normal(h):
    """Sums and quotients of positive numbers, without a branch."""
    single = h == types.float32
    F = np.float32 if single else np.float64
    one, half, zero, root = F(1.0), F(0.5), F(0.0), F(ROOT_2PI)
    most = F(60.0) if single else F(700.0)  # beyond it exp(-exponent) is nothing

    def impl(h):
        inside, x = h < zero, abs(h)
        r2 = cut_ratio(x)
        r1 = one / (x + r2)
        left = one / (x + r1)
        exponent = half * x * x if inside else zero
        shrunk = exp_negative(-min(exponent, most))
        mass = root - shrunk * left if inside else left
        inverse = shrunk / mass
        mean = x + inverse if inside else r1
        variance = one - mean * inverse if inside else r1 * (r2 - r1)
        entropy = half - half * x * inverse if inside else half + half * x * r1
        return exponent, shrunk, mass, mean, variance, entropy

    return impl


@njit(**OPTIONS)
def _log_tail(y):
    """(log Q(y), 1 / hazard) of the standard normal, for y >= 0."""
    mills = 1.0 / (y + 1.0 / (y + _cut64(y)))
    return -0.5 * y * y + math.log(mills / ROOT_2PI), mills


@njit(**OPTIONS)
def _upper(p):
    """y >= 0 with Q(y) = p for 0 < p <= 1/2: Newton on the log from a start within 5e-4 (Abramowitz and
    Stegun 1964, 26.2.23)."""
    t = math.sqrt(-2.0 * math.log(p))
    y = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    for _ in range(3):
        log_q, mills = _log_tail(max(y, 0.0))
        y = max(y, 0.0) + (log_q - math.log(p)) * mills
    return max(y, 0.0)


@njit(**OPTIONS)
def quantile(h, upper, lower):
    """s > 0 that exp(-h s - s^2 / 2) exceeds with probability `upper`; `lower` is 1 - upper, for h < 0.

    For h >= 0, with L = -log upper, the root of h s + s^2 / 2 + log(I_0(h) / I_0(h + s)) = L: convex in s,
    so that Newton's steps from below are followed by steps from above that close in.
    """
    upper = min(max(upper, 1e-300), 1.0)
    if h < 0.0:
        p = upper * 0.5 * math.erfc(h / ROOT_2)
        rest = max(lower, 0.0) + upper * 0.5 * math.erfc(-h / ROOT_2)
        y = _upper(p) if p <= 0.5 else -_upper(rest)
        return max(y - h, 0.0)
    wanted = -math.log(upper)
    hazard = h + 1.0 / (h + _cut64(h))
    s = 2.0 * wanted / (hazard + math.sqrt(hazard * hazard + 2.0 * wanted))
    for _ in range(6):
        there = h + s
        mills = 1.0 / (there + 1.0 / (there + _cut64(there)))
        s = max(s - (h * s + 0.5 * s * s - math.log(hazard * mills) - wanted) * mills, 0.0)
    return s
