"""Series of gamma functions: against scipy, and against exact rational sums."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import digamma, gammaln, polygamma

from ibpdist.model.priors._gamma import (
    SHIFT,
    digamma_rest,
    log_gamma_rest,
    reciprocals,
    tetragamma_far,
    trigamma_far,
)


@pytest.mark.parametrize("x", [30.5, 47.0, 200.0])
def test_log_gamma(x: float) -> None:
    stirling = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi)
    assert float(log_gamma_rest(np.float64(1 / x))) == pytest.approx(gammaln(x) - stirling, abs=5e-13)


@pytest.mark.parametrize("x", [12.0, 13.7, 30.5, 200.0, 1e9])
def test_polygamma_from_twelve_on(x: float) -> None:
    r = np.float64(1 / x)
    assert float(digamma_rest(r)) == pytest.approx(digamma(x) - np.log(x), abs=2e-15 * max(1, np.log(x)))
    assert float(trigamma_far(r)) == pytest.approx(polygamma(1, x), rel=1e-14)
    assert float(tetragamma_far(r)) == pytest.approx(polygamma(2, x), rel=1e-9)


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 7.2, 1e6])
def test_recurrence_reaches_the_series(x: float) -> None:
    """trigamma(x) = sum_i 1 / (x + i)^2 + trigamma(x + 12)."""
    near, far = reciprocals(np.array([x]))
    exact = [float(1 / (Fraction(x) + i)) for i in range(SHIFT + 1)]
    assert [*near[0], far[0]] == pytest.approx(exact, rel=4e-16)
    assert float(np.sum(near**2) + trigamma_far(far)[0]) == pytest.approx(float(polygamma(1, x)), rel=1e-14)
