"""What a truncation of the infinite model can lose, before any data (priors.md 13).

P_K is the prior probability that some of `rows` rows has a feature beyond the first K sticks.
Half of the L1 distance between the truncated and the infinite model's law of the data is at
most P_K (by coupling; the report says a quarter of it, which is true and twice as loose).
The bounds of P_K, in increasing order, are in `FORMULAS`. They concern the prior, not the
quality of a fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, zeta

from ibpdist.base.errors import UsageError
from ibpdist.model.priors.tail import h

Vector = NDArray[np.float64]
Bound = Literal["exact", "eq11", "eq12", "series", "strict"]

FORMULAS: dict[Bound, str] = {
    "exact": "P_K = 1 - E exp(-mass h_N(pi_K)),  -log pi_K ~ Gamma(K, rate mass)",
    "eq11": "1 - (E exp(-mass pi_K))^N",
    "eq12": "1 - exp(-N mass (mass / (1 + mass))^K)",
    "series": "1 - exp(-N sum_r mass / r^2 (mass / (mass + r))^K)",
    "strict": "1 - exp(-2 N mass (mass / (1 + mass))^K)",
}
DISTANCE = (
    "error bounds P_K, and half the L1 distance of the laws of the data, 1/2 int |m_K - m|, is at most P_K"
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANELS, _MOST_PANELS = 60, 4000
_SUMMED = 20_000
_LARGEST = 10_000_000


@dataclass(frozen=True)
class Line:
    """One bound at one truncation; `error` is the bound of P_K."""

    bound: Bound
    truncation: int
    error: float


def probability(
    rows: float, mass: float, truncation: int, bound: Bound = "exact", terms: int | None = None
) -> float:
    """A bound of P_K for K = `truncation`; `terms` is R of the series (None: all)."""
    _check(rows, mass, bound)
    if isinstance(truncation, bool) or truncation != int(truncation) or truncation < 1:
        raise UsageError(f"truncation is {truncation!r}; expected a whole number of features, at least 1")
    if terms is not None and terms < 1:
        raise UsageError(f"terms is {terms}; expected at least 1 term of the series")
    if bound == "series" and terms is not None:
        return -math.expm1(-rows * _first_terms(mass, truncation, terms))
    return _BOUNDS[bound](float(rows), float(mass), int(truncation))


def truncation(rows: float, mass: float, error: float, bound: Bound = "exact") -> int:
    """The smallest K whose bound of P_K is at most `error`; bisection below the K of `strict`."""
    _check(rows, mass, bound)
    if not 0 < error < 1:
        raise UsageError(f"error is {error!r}; expected a probability between 0 and 1, for example 0.01")
    wanted = math.log(2 * rows * mass / -math.log1p(-error)) / math.log1p(1 / mass)
    if wanted > _LARGEST:
        raise UsageError(f"mass is {mass:g}; expected a mass for which {_LARGEST} features are enough")
    low, high = 0, max(1, math.ceil(wanted) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        enough = _BOUNDS[bound](float(rows), float(mass), middle) <= error
        low, high = (low, middle) if enough else (middle, high)
    return high


_smallest = truncation


def table(rows: float, mass: float, error: float | None = None, truncation: int | None = None) -> list[Line]:
    """Every bound side by side: the K it asks for a wanted error, or its value at a given K."""
    if (error is None) == (truncation is None):
        raise UsageError("give an error or a truncation (K), exactly one of the two")
    names: tuple[Bound, ...] = get_args(Bound)
    if truncation is not None:
        sizes = dict.fromkeys(names, truncation)
    if error is not None:
        sizes = {name: _smallest(rows, mass, error, name) for name in names}
    return [Line(name, k, probability(rows, mass, k, name)) for name, k in sizes.items()]


def render(lines: list[Line]) -> str:
    """The table as text, with what the numbers bound."""
    shown = [f"{'bound':<8}{'K':>8}  {'error':<12}formula"]
    shown += [f"{x.bound:<8}{x.truncation:>8}  {x.error:<12.4g}{FORMULAS[x.bound]}" for x in lines]
    return "\n".join([*shown, "", DISTANCE])


def _exact(rows: float, mass: float, truncation: int) -> float:
    log_p, weight = _last_stick(mass, truncation)
    return min(1.0, float(weight @ -np.expm1(-mass * h(np.exp(log_p), rows))))


def _eq11(rows: float, mass: float, truncation: int) -> float:
    log_p, weight = _last_stick(mass, truncation)
    one_row = float(weight @ -np.expm1(-mass * np.exp(log_p)))
    return -math.expm1(rows * math.log1p(-min(one_row, 1 - 1e-16)))


def _eq12(rows: float, mass: float, truncation: int) -> float:
    return -math.expm1(-rows * mass * _power(mass, truncation))


def _series(rows: float, mass: float, truncation: int) -> float:
    """All terms: those beyond the sum are rounded up, (mass / (mass + r))^K to its first value."""
    rest = mass * math.exp(-truncation * math.log1p(_SUMMED / mass)) * float(zeta(2, _SUMMED + 1))
    return -math.expm1(-rows * (_first_terms(mass, truncation, _SUMMED) + rest))


def _strict(rows: float, mass: float, truncation: int) -> float:
    return -math.expm1(-2 * rows * mass * _power(mass, truncation))


_BOUNDS: dict[Bound, Callable[[float, float, int], float]] = {
    "exact": _exact,
    "eq11": _eq11,
    "eq12": _eq12,
    "series": _series,
    "strict": _strict,
}


def _power(mass: float, truncation: int) -> float:
    """E pi_K = (mass / (1 + mass))^K."""
    return math.exp(-truncation * math.log1p(1 / mass))


def _first_terms(mass: float, truncation: int, terms: int) -> float:
    r = np.arange(1.0, terms + 1)
    return float(np.sum(mass / r**2 * np.exp(-truncation * np.log1p(r / mass))))


def _last_stick(mass: float, truncation: int) -> tuple[Vector, Vector]:
    """log pi_K at quadrature nodes, and the weights of its law: t = -mass log pi_K ~ Gamma(K, 1).

    Nodes are even in log t, from the lower end of the law weighted by pi_K, which decides a small
    P_K and sits a factor mass / (1 + mass) below, to the upper end of the law itself.
    """
    spread = 12 * math.sqrt(truncation) + 60
    low = math.log(mass / (1 + mass) * max(truncation - spread, 1e-18))
    length = math.log(truncation + spread) - low
    panels = min(_MOST_PANELS, _PANELS + math.ceil(length * math.sqrt(truncation)))
    half = 0.5 * length / panels
    log_t = (low + half * (2 * np.arange(panels)[:, None] + 1 + _NODES)).ravel()
    t = np.exp(log_t)
    weight = np.exp(truncation * log_t - t - gammaln(truncation)) * np.tile(half * _WEIGHTS, panels)
    return -t / mass, weight / weight.sum()


def check_levels(rows: float, mass: float) -> None:
    """Refuse what is not a number of rows, or not a mass."""
    if isinstance(rows, bool) or not 1 <= rows <= 1e12 or rows != int(rows):
        raise UsageError(f"rows is {rows!r}; expected a whole number from 1 to 1e12")
    if isinstance(mass, bool) or not 0 < mass < math.inf:
        raise UsageError(f"mass is {mass!r}; expected a positive number, the features expected in a row")


def _check(rows: float, mass: float, bound: Bound) -> None:
    check_levels(rows, mass)
    if bound not in _BOUNDS:
        raise UsageError(f"bound is {bound!r}; expected one of {', '.join(get_args(Bound))}")
