"""h_N(p): against the sum, a series for tiny p, the asymptotic form for large N, and its meaning."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from ibpdist.model.priors.tail import h


def exact_sum(p: Fraction, rows: int) -> float:
    """sum_{j <= N} (1 - (1 - p)^j) / j in rational arithmetic."""
    total, power = Fraction(0), Fraction(1)
    for j in range(1, rows + 1):
        power *= 1 - p
        total += (1 - power) / j
    return float(total)


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 41, 60, 100])
@pytest.mark.parametrize("p", [1e-300, 1e-12, 1e-3, 0.02, 0.25, 0.5, 0.9, 1 - 1e-9, 1.0])
def test_equals_the_sum_in_rational_arithmetic(p: float, rows: int) -> None:
    assert float(h(p, rows)) == pytest.approx(exact_sum(Fraction(p), rows), rel=2e-14)


@pytest.mark.parametrize("rows", [10**3, 10**6, 4 * 10**6, 10**9, 10**12])
def test_small_p_is_rows_times_p(rows: int) -> None:
    p = 1e-4 / rows
    x = rows * p
    expected = x - x * (rows - 1) * p / 4 + x * (rows - 1) * p * (rows - 2) * p / 18
    assert float(h(p, rows)) == pytest.approx(expected, rel=1e-13)
    assert float(h(1e-300, rows)) == pytest.approx(rows * 1e-300, rel=1e-13)


@pytest.mark.parametrize("rows", [10**4, 4 * 10**6, 10**9, 10**12])
@pytest.mark.parametrize("p", [0.01, 0.3, 1.0])
def test_large_rows(p: float, rows: int) -> None:
    """h_N(p) = H_N + log p when (1 - p)^N vanishes."""
    harmonic = math.log(rows) + np.euler_gamma + 1 / (2 * rows) - 1 / (12 * rows**2)
    assert float(h(p, rows)) == pytest.approx(harmonic + math.log(p), rel=1e-13)


@pytest.mark.parametrize("rows", [50, 1000, 4 * 10**6, 10**12])
@pytest.mark.parametrize("scaled", [0.5, 0.999, 1.001, 3.0, 20.0, 41.0, 43.0])
def test_between(rows: int, scaled: float) -> None:
    """p of the order of 1/N, where the three pieces meet, against adaptive quadrature."""
    p = min(1.0, scaled / rows)

    def inside(u: float) -> float:
        x = p * math.exp(-u)
        return -math.expm1(rows * math.log1p(-x)) if x < 1 else 1.0

    pieces = [quad(inside, a, a + 2, epsabs=1e-15, epsrel=1e-13)[0] for a in range(0, 50, 2)]
    assert float(h(p, rows)) == pytest.approx(math.fsum(pieces), rel=1e-12)


def test_shapes_zero_rows_and_zero_p() -> None:
    p = np.array([[0.0, 0.1], [0.5, 1.0]])
    assert h(p, 7).shape == (2, 2)
    assert h(p, 7)[1] == pytest.approx([float(h(0.5, 7)), float(h(1.0, 7))], rel=1e-15)
    assert h(0.0, 100) == 0.0
    assert np.all(h(p, 0) == 0.0)


@pytest.mark.parametrize("rows", [1, 20, 10**6])
def test_concave_and_increasing(rows: int) -> None:
    p = np.geomspace(1e-12, 1.0, 200)
    value = h(p, rows)
    slope = np.diff(value) / np.diff(p)
    assert np.all(slope > 0)
    assert np.all(np.diff(slope) <= 1e-9 * slope[:-1])


def test_is_the_price_of_later_sticks() -> None:
    """exp(-mass h_N(p)) = E prod_k (1 - p v_1 ... v_k)^N over the later sticks."""
    rng = np.random.default_rng(3)
    mass, rows, p = 1.7, 6, 0.6
    later = p * np.cumprod(rng.random((100_000, 60)) ** (1 / mass), axis=1)
    none = np.prod(1 - later, axis=1) ** rows
    error = none.std() / math.sqrt(len(none))
    assert abs(none.mean() - math.exp(-mass * float(h(p, rows)))) < 4 * error
