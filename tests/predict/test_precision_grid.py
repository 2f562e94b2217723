"""Integrals over the log precision, against those that are known."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import gamma

from ibpdist.predict.precision_grid import DEPTH, GRID, Integral, interpolated, log_prior


@pytest.mark.parametrize("freedom", [1.0, 4.0, 400.0])
def test_the_prior_is_that_of_the_log_of_a_gamma(freedom):
    at = np.linspace(-3, 1, 9)
    expected = gamma(freedom / 2, scale=2 / freedom).logpdf(np.exp(at)) + at
    np.testing.assert_allclose(log_prior(freedom, at), expected, rtol=1e-10)


def test_cubics_are_interpolated_without_error():
    at = np.array([[-20.0, -19.9, 0.01, 11.99, 12.0], [-5.03, -1.0, 0.3, 2.22, 7.7]])
    found = interpolated(np.array([GRID**3 - GRID, 2 * GRID]), at)
    np.testing.assert_allclose(found, [at[0] ** 3 - at[0], 2 * at[1]], rtol=1e-8)


@pytest.mark.parametrize("freedom", [1.0, 4.0, 400.0])
@pytest.mark.parametrize("cells", [0, 3, 100, 10_000])
def test_normal_cells_have_the_integral_of_a_t_law(freedom, cells):
    """Also where the posterior is a tenth of a step of the grid wide, and far from its prior."""
    square = cells * np.array([[0.01], [1.0], [3.7], [200.0]])
    found = Integral.of(0.5 * cells * GRID - 0.5 * square * np.exp(GRID), freedom)
    shape, rate = (freedom + cells) / 2, (freedom + square[:, 0]) / 2
    expected = gammaln(shape) - gammaln(freedom / 2) + freedom / 2 * np.log(freedom / 2)
    # What lies DEPTH nats below the maximum is left out; curves are interpolated.
    within = 4 * np.exp(-DEPTH) + 4e-6 * (cells + square[:, 0])
    assert (np.abs(found.log - expected + shape * np.log(rate)) < within).all()
    np.testing.assert_allclose(found.mean(np.exp(found.at)), shape / rate, rtol=3e-3)


def test_the_range_holds_most_of_the_integral():
    found = Integral.of(50 * GRID[None] - 50 * np.exp(GRID)[None], 1.0)
    low, high = found.range(3.0)
    inside = (found.at[0] >= low) & (found.at[0] <= high)
    assert 0.98 < found.shares[0, inside].sum() < 0.995, "of a normal law, within sqrt(6) deviations"
