"""The response of exponential weights in decimal arithmetic."""

import math
from decimal import Decimal, localcontext

from scipy.optimize import brentq
from scipy.special import ndtr

from tests.support.laplace_reference import DIGITS, below, log_mass
from tests.support.reference_updates import decide


def response(b: float, a: float, rate: float = 1.0) -> tuple[float, float, float, float]:
    """(evidence, mean, variance, cost) of rate exp(b w - a w^2 / 2 - rate w) on w > 0; b is below the rate
    where a is zero."""
    with localcontext(DIGITS):
        tilt, b, a = Decimal(rate) - Decimal(b), Decimal(b), Decimal(a)
        if a == 0:
            assert tilt > 0
            total, mean, square = 1 / tilt, 1 / tilt, 2 / tilt**2
        else:
            root = a.sqrt()
            h = tilt / root
            side = below(h)
            total, mean = side / root, (1 / side - h) / root
            square = (1 - tilt * mean) / a
        evidence = (total * Decimal(rate)).ln()
        cost = b * mean - a * square / 2 - evidence
        return tuple(float(value) for value in (evidence, mean, square - mean * mean, cost))


def respond_exponential(
    log_odds: float, b: float, a: float, rule: str = "mean"
) -> tuple[float, float, float]:
    """(nu, m, s2) of one entry with exponential weights, w integrated out of z (factors.md 11)."""
    evidence, mean, variance, _ = response(b, a)
    return decide(log_odds + evidence, rule), mean, variance


def exponential_cost(b: float, a: float) -> float:
    """KL(q(w | z = 1) || p(w))."""
    return response(b, a)[3]


def exponential_quantile(b: float, a: float, normal: float) -> float:
    """w with P(w' <= w) = Phi(normal) under q(w | z = 1): a root in its smaller tail, in plain float64."""
    root = math.sqrt(a)
    h, wanted = (1 - b) / root, float(ndtr(-abs(normal)))
    whole = log_mass(h, 0.0, math.inf)

    def tail(s: float) -> float:
        ends = (s, math.inf) if normal > 0 else (0.0, s)
        return math.exp(log_mass(h, *ends) - whole) - wanted

    most = max(-h, 0.0) + 40 / max(h, 1.0) + 40
    return brentq(tail, 0.0, most, xtol=1e-300, rtol=1e-12) / root
