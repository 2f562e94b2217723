"""Differences of gamma functions: against exact rational sums."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from ibpdist.priors._gamma import digamma_drop, digamma_rest, log_gamma_rest


@pytest.mark.parametrize("x", [0.01, 1.0, 29.9, 30.1, 1e3, 4e6, 1e12])
@pytest.mark.parametrize("steps", [1, 5, 300])
def test_drop_over_whole_steps(x: float, steps: int) -> None:
    """digamma(x + n) - digamma(x) = sum_{i < n} 1 / (x + i)."""
    expected = -float(sum(Fraction(1) / (Fraction(x) + i) for i in range(steps)))
    found = float(digamma_drop(np.float64(x), np.float64(steps)))
    assert found == pytest.approx(expected, rel=1e-13)


def test_small_drop_keeps_its_digits() -> None:
    """At x = 1e12 and b = 0.03 a plain difference of digammas has no digit right but the first."""
    assert float(digamma_drop(np.float64(1e12), np.float64(0.03))) == pytest.approx(-3e-14, rel=1e-10)


@pytest.mark.parametrize("x", [30.5, 47.0, 200.0])
def test_series(x: float) -> None:
    stirling = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi)
    assert float(log_gamma_rest(np.float64(x))) == pytest.approx(gammaln(x) - stirling, abs=5e-13)
    assert float(digamma_rest(np.float64(x))) == pytest.approx(digamma(x) - np.log(x), abs=1e-15)
