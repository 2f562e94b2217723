"""Truncation bounds: tables of priors.md 13 to the printed digits, order, Monte Carlo, the K they ask for."""

import math
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

from ibpdist.base.errors import UsageError
from ibpdist.model.bounds import Bound, probability, render, table, truncation

NAMES = get_args(Bound)
PRINTED = {
    (30, 5, 20): (".8436", ".9761", ".9800", ".9809", ".9996"),
    (30, 5, 40): (".0880", ".0967", ".0970", ".0971", ".1846"),
    (500, 2, 20): (".1509", ".2591", ".2597", ".2599", ".4520"),
    (1000, 1, 10): (".2115", ".6204", ".6234", ".6250", ".8582"),
    (1000, 1, 20): ("8.42e-4", "9.53e-4", "9.53e-4", "9.53e-4", "1.91e-3"),
}


def unit_of_last_digit(number: str) -> float:
    digits, _, power = number.partition("e")
    return 10.0 ** (-len(digits.partition(".")[2]) + int(power or 0))


@pytest.mark.parametrize("case", PRINTED)
@pytest.mark.parametrize("bound", NAMES)
def test_printed_table(case: tuple[int, int, int], bound: Bound) -> None:
    printed = PRINTED[case][NAMES.index(bound)]
    found = probability(*case, bound)
    assert abs(found - float(printed)) <= 0.501 * unit_of_last_digit(printed)


@pytest.mark.parametrize("bound", ["exact", "eq12"])
@pytest.mark.parametrize(
    ("rows", "mass", "size"), [(30, 5, 53), (1000, 1, 17), (1000, 5, 72), (10**6, 5, 110)]
)
def test_printed_truncations(bound: Bound, rows: int, mass: int, size: int) -> None:
    assert truncation(rows, mass, 0.01, bound) == size


@pytest.mark.parametrize("rows", [1, 30, 10**6])
@pytest.mark.parametrize("mass", [0.01, 1.0, 8.0, 200.0])
@pytest.mark.parametrize("size", [1, 7, 60, 900])
def test_order(rows: int, mass: float, size: int) -> None:
    values = [probability(rows, mass, size, bound) for bound in NAMES]
    assert all(0 <= value <= 1 for value in values)
    for low, high in pairwise(values):
        assert low <= high * (1 + 1e-11)


@pytest.mark.parametrize(("rows", "mass", "size"), [(5, 1.0, 2), (20, 2.0, 6), (3, 0.5, 1)])
def test_exact_by_monte_carlo(rows: int, mass: float, size: int) -> None:
    """1 - E prod_{k > K} (1 - pi_k)^N over draws of the sticks."""
    rng = np.random.default_rng(5)
    sticks = np.cumprod(rng.random((100_000, size + 60)) ** (1 / mass), axis=1)
    some = 1 - np.prod(1 - sticks[:, size:], axis=1) ** rows
    error = some.std() / math.sqrt(len(some))
    assert abs(some.mean() - probability(rows, mass, size)) < 4 * error


@pytest.mark.parametrize(("rows", "mass", "size"), [(30, 5.0, 20), (7, 0.05, 3), (100, 40.0, 300)])
def test_exact_by_adaptive_quadrature(rows: int, mass: float, size: int) -> None:
    """The integral over g = -log pi_K with h_N as a plain sum."""

    def inside(g: float) -> float:
        h = sum(-math.expm1(j * math.log1p(-math.exp(-g))) / j for j in range(1, rows + 1))
        log_density = size * math.log(mass) + (size - 1) * math.log(g) - mass * g - gammaln(size)
        return -math.expm1(-mass * h) * math.exp(log_density)

    edges = np.concatenate([[1e-9], np.linspace(0.05, 1, 12) * (size + 12 * math.sqrt(size) + 30) / mass])
    pieces = [quad(inside, a, b, epsrel=1e-10, epsabs=0)[0] for a, b in pairwise(edges)]
    assert probability(rows, mass, size) == pytest.approx(sum(pieces), rel=1e-7)


@pytest.mark.parametrize(("mass", "size"), [(0.7, 2), (3.0, 9)])
def test_equation_11_by_its_series(mass: float, size: int) -> None:
    """E exp(-mass pi_K) = sum_r (-mass)^r / r! (mass / (mass + r))^K."""
    terms = [(-mass) ** r / math.factorial(r) * (mass / (mass + r)) ** size for r in range(60)]
    expected = 1 - math.fsum(terms) ** 40
    assert probability(40, mass, size, "eq11") == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("rows", "mass", "size"), [(30, 5, 20), (1000, 1, 12), (4_000_000, 3, 60)])
def test_closed_forms(rows: int, mass: float, size: int) -> None:
    """Errata E20, E21: one term is (12), more terms are looser, strict doubles the exponent of (12)."""
    twelve = probability(rows, mass, size, "eq12")
    assert twelve == pytest.approx(1 - math.exp(-rows * mass * (mass / (1 + mass)) ** size), rel=1e-10)
    assert probability(rows, mass, size, "series", terms=1) == pytest.approx(twelve, rel=1e-12)
    strict = probability(rows, mass, size, "strict")
    assert 1 - strict == pytest.approx((1 - twelve) ** 2, rel=1e-9)
    growing = [probability(rows, mass, size, "series", terms=r) for r in (1, 2, 5, 50)]
    growing.append(probability(rows, mass, size, "series"))
    assert np.all(np.diff(growing) >= 0)


def test_series_of_all_terms() -> None:
    """Slowest case, K = 1: against sum_r mass^2 / (r^2 (mass + r)) summed much further."""
    mass, r = 0.8, np.arange(1.0, 4e6)
    expected = 1 - math.exp(-3 * float(np.sum(mass / r**2 * mass / (mass + r))))
    assert probability(3, mass, 1, "series") == pytest.approx(expected, rel=1e-8)


def test_half_of_the_distance_is_below_the_exact_probability() -> None:
    """priors.md 14: N = D = 1, noise .05, scale 4, mass 2, K = 1: half the L1 distance .207, P_K .703."""
    assert probability(1, 2.0, 1) < 0.703 + 5e-4
    counts = np.arange(0, 40)
    x = np.linspace(-60, 60, 24_001)
    poisson = np.exp(counts * math.log(2.0) - 2.0 - gammaln(counts + 1))
    densities = [np.exp(-(x**2) / (2 * s)) / math.sqrt(2 * math.pi * s) for s in 0.05 + 4.0 * counts]
    infinite = poisson @ np.array(densities)
    on = 2.0 / 3.0
    truncated = (1 - on) * densities[0] + on * densities[1]
    half = 0.5 * float(np.sum(np.abs(truncated - infinite)) * (x[1] - x[0]))
    assert half == pytest.approx(0.207, abs=5e-4)
    assert half <= probability(1, 2.0, 1)
    assert probability(1, 2.0, 1) == pytest.approx(0.703, abs=5e-4)


@pytest.mark.parametrize("bound", NAMES)
@pytest.mark.parametrize(("rows", "mass", "error"), [(1, 0.01, 0.3), (40, 2.0, 0.05), (10**6, 5.0, 1e-6)])
def test_truncation_is_the_smallest(bound: Bound, rows: int, mass: float, error: float) -> None:
    size = truncation(rows, mass, error, bound)
    assert probability(rows, mass, size, bound) <= error
    assert size == 1 or probability(rows, mass, size - 1, bound) > error


def test_large_and_small_settings() -> None:
    assert truncation(10**12, 1000, 1e-9) == pytest.approx(55_290, abs=700)
    assert probability(10**12, 1000, 20_000) == 1.0
    one = 1 - sum((-1e-3) ** r / math.factorial(r) * 1e-3 / (1e-3 + r) for r in range(6))
    assert probability(1, 1e-3, 1) == pytest.approx(one, rel=1e-9)
    assert probability(4_000_000, 2.0, 500) == pytest.approx(8e6 * (2 / 3) ** 500, rel=1e-9)


def test_table() -> None:
    asked = table(1_000_000, 5, 0.01)
    assert [line.bound for line in asked] == list(NAMES)
    assert [line.truncation for line in asked] == [110, 110, 110, 110, 114]
    assert all(line.error <= 0.01 for line in asked)
    given = table(1000, 1, truncation=20)
    assert all(line.truncation == 20 for line in given)
    assert given[0].error == probability(1000, 1, 20)
    text = render(asked)
    assert all(name in text for name in NAMES)
    assert "half the L1 distance" in text
    assert "110" in text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: probability(0, 1, 5), "rows is 0; expected a whole number from 1 to 1e12"),
        (lambda: probability(2.5, 1, 5), "rows is 2.5"),
        (lambda: probability(10, 0, 5), "mass is 0; expected a positive number"),
        (lambda: probability(10, math.nan, 5), "mass is nan"),
        (lambda: probability(10, 1, 0), "truncation is 0; expected a whole number of features"),
        (lambda: probability(10, 1, 5, "eq13"), "expected one of exact, eq11, eq12, series, strict"),
        (lambda: probability(10, 1, 5, "series", terms=0), "terms is 0"),
        (lambda: truncation(10, 1, 0.0), "error is 0.0; expected a probability between 0 and 1"),
        (lambda: truncation(10, 1, 1.0), "error is 1.0"),
        (lambda: truncation(10, 1e9, 0.01), "10000000 features are enough"),
        (lambda: table(10, 1), "exactly one of the two"),
        (lambda: table(10, 1, 0.01, 5), "exactly one of the two"),
    ],
)
def test_settings_are_checked(call: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call()  # type: ignore[operator]
