"""The response of Laplace weights in decimal arithmetic, from power series and continued fractions."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cache

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from tests.support.reference_updates import decide

PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862")
DIGITS = Context(prec=55, Emax=MAX_EMAX, Emin=MIN_EMIN)


@cache
def below(h: Decimal) -> Decimal:
    """I_0(h), the integral of exp(-h s - s^2 / 2) over s > 0: I_0 = 1 / (h + 1 / (h + 2 / (h + ...)))."""
    if h < -8:
        return (2 * PI).sqrt() * (h * h / 2).exp() - below(-h)
    if h > 8:
        rest = (h * h + 480).sqrt() / 2 - h / 2
        for n in range(119, 0, -1):
            rest = n / (h + rest)
        return 1 / (h + rest)
    term = total = h
    for n in range(1, 180):
        term = term * h * h / (2 * n + 1)
        total += term
    return (PI / 2).sqrt() * (h * h / 2).exp() - total


def response(b: float, a: float, rate: float = 1.0) -> tuple[float, float, float, float]:
    """(evidence, mean, variance, cost) of exp(b w - a w^2 / 2 - rate |w|) rate / 2; b is zero where a is."""
    if a == 0:
        assert b == 0
        return 0.0, 0.0, 2.0 / rate**2, 0.0
    with localcontext(DIGITS):
        root, mass, first, second = Decimal(a).sqrt(), [], [], []
        for sign in (1, -1):
            h = (Decimal(rate) - sign * Decimal(b)) / root
            one = below(h)
            mean = 1 / one - h
            mass.append(one / root)
            first.append(sign * mean / root)
            second.append((1 - h * mean) / Decimal(a))
        total = sum(mass)
        share = [part / total for part in mass]
        mean = sum(s * m for s, m in zip(share, first, strict=True))
        square = sum(s * m for s, m in zip(share, second, strict=True))
        evidence = (total * Decimal(rate) / 2).ln()
        cost = Decimal(b) * mean - Decimal(a) * square / 2 - evidence
        return tuple(float(value) for value in (evidence, mean, square - mean * mean, cost))


def laplace_size(b: float, a: float) -> float:
    """E |w| under q(w | z = 1): the means of both sides, each as often as it is chosen."""
    if a == 0:
        assert b == 0
        return 1.0
    with localcontext(DIGITS):
        root = Decimal(a).sqrt()
        places = [(1 - sign * Decimal(b)) / root for sign in (1, -1)]
        masses = [below(h) for h in places]
        means = [(1 / mass - h) / root for mass, h in zip(masses, places, strict=True)]
        return float(sum(mass * mean for mass, mean in zip(masses, means, strict=True)) / sum(masses))


def respond_laplace(log_odds: float, b: float, a: float, rule: str = "mean") -> tuple[float, float, float]:
    """(nu, m, s2) of one entry with Laplace weights, w integrated out of z (factors.md 7)."""
    evidence, mean, variance, _ = response(b, a)
    return decide(log_odds + evidence, rule), mean, variance


def laplace_cost(b: float, a: float) -> float:
    """KL(q(w | z = 1) || p(w))."""
    return response(b, a)[3]


def laplace_quantile(b: float, a: float, normal: float) -> float:
    """w with P(w' <= w) = Phi(normal) under q(w | z = 1): a root of its smaller tail, in plain float64."""
    if normal < 0:
        return -laplace_quantile(-b, a, -normal)
    evidence, wanted = response(b, a)[0], float(ndtr(-normal))
    most = 40 * (1 + abs(b)) / a + 40 / math.sqrt(a) + 40
    return brentq(lambda w: above(w, b, a, evidence) - wanted, -most, most, xtol=1e-300, rtol=1e-12)


def above(w: float, b: float, a: float, evidence: float) -> float:
    """P(w' > w): what lies beyond w on its own side of zero or, for w < 0, between it and zero too."""
    root = math.sqrt(a)
    beyond = log_mass((1 - b) / root, max(w, 0.0) * root, math.inf)
    between = log_mass((1 + b) / root, 0.0, max(-w, 0.0) * root)
    return sum(math.exp(log - math.log(2 * root) - evidence) for log in (beyond, between))


def log_mass(h: float, start: float, stop: float) -> float:
    """log of the integral of exp(-h s - s^2 / 2) over start < s < stop."""
    low, high = h + start, h + stop
    low, high = (-high, -low) if low > 0 else (low, high)  # where distribution functions are small
    one, two = float(log_ndtr(low)), float(log_ndtr(high))
    if one >= two:
        return -math.inf
    return 0.5 * math.log(2 * math.pi) + h * h / 2 + two + math.log(-math.expm1(one - two))
