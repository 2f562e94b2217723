"""The response of Laplace weights in decimal arithmetic, from power series and continued fractions."""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cache

PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862")
DIGITS = Context(prec=75, Emax=MAX_EMAX, Emin=MIN_EMIN)


@cache
def below(h: Decimal) -> Decimal:
    """I_0(h), the integral of exp(-h s - s^2 / 2) over s > 0: I_0 = 1 / (h + 1 / (h + 2 / (h + ...)))."""
    if h < -8:
        return (2 * PI).sqrt() * (h * h / 2).exp() - below(-h)
    if h > 8:
        rest = (h * h + 1600).sqrt() / 2 - h / 2
        for n in range(399, 0, -1):
            rest = n / (h + rest)
        return 1 / (h + rest)
    term = total = h
    for n in range(1, 400):
        term = term * h * h / (2 * n + 1)
        total += term
    return (PI / 2).sqrt() * (h * h / 2).exp() - total


def response(b: float, a: float, rate: float = 1.0) -> tuple[float, float, float, float]:
    """(evidence, mean, variance, cost) of exp(b w - a w^2 / 2 - rate |w|) rate / 2, for a > 0."""
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
