"""Moments of beta distributions: quadrature, exact sums, and the slopes by differences."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from ibpdist.model.priors._beta import beta_entropy, log_moments, log_slopes, sticks, weighted
from tests.support.prior_cases import STICKS, numeric_gradient

TAU = STICKS["used, then unused"]


def test_by_quadrature() -> None:
    x, w = np.polynomial.legendre.leggauss(150)
    v, w = 0.5 + 0.5 * x, 0.5 * w
    for one, two in [(2.0, 3.5), (40.0, 6.0), (3.0, 2.0)]:
        density = v ** (one - 1) * (1 - v) ** (two - 1)
        density /= density @ w
        tau = np.array([[one, two]])
        log_on, log_off = log_moments(tau)
        assert log_on[0] == pytest.approx((density * np.log(v)) @ w, rel=1e-6)
        assert log_off[0] == pytest.approx((density * np.log1p(-v)) @ w, rel=1e-6)
        assert beta_entropy(tau)[0] == pytest.approx(-(density * np.log(density)) @ w, rel=1e-6)


@pytest.mark.parametrize("x", [1e-20, 0.01, 1.0, 29.9, 1e3, 4e6, 1e12])
@pytest.mark.parametrize("steps", [1, 5, 300])
def test_whole_steps_are_exact(x: float, steps: int) -> None:
    """digamma(x) - digamma(x + n) = -sum_{i < n} 1 / (x + i)."""
    expected = -float(sum(Fraction(1) / (Fraction(x) + i) for i in range(steps)))
    assert log_moments(np.array([[x, float(steps)]]))[0][0] == pytest.approx(expected, rel=1e-13)
    assert log_moments(np.array([[float(steps), x]]))[1][0] == pytest.approx(expected, rel=1e-13)


def test_small_drop_keeps_its_digits() -> None:
    """At 1e12 and 0.03 a plain difference of digammas has no digit right but the first."""
    assert log_moments(np.array([[1e12, 0.03]]))[0][0] == pytest.approx(-3e-14, rel=1e-10)


@pytest.mark.parametrize("name", STICKS)
def test_polygammas(name: str) -> None:
    tau = STICKS[name]
    at = sticks(tau)
    x = np.stack([tau[:, 0], tau[:, 1], tau.sum(axis=1)])
    assert np.array_equal(at.both, x[2])
    assert at.trigamma == pytest.approx(polygamma(1, x), rel=1e-13)
    assert at.tetragamma == pytest.approx(polygamma(2, x), rel=1e-8)
    assert pytest.approx(digamma(x[:2]) - digamma(x[2]), rel=1e-10) == at.log.T


def test_slopes_of_the_log_moments() -> None:
    slopes = log_slopes(sticks(TAU))
    for side, other in np.ndindex(2, 2):
        numeric = numeric_gradient(lambda tau, s=side: float(log_moments(tau)[s].sum()), TAU)[:, other]
        assert slopes[:, side, other] == pytest.approx(numeric * TAU[:, other], rel=1e-5)


@pytest.mark.parametrize("name", STICKS)
def test_weighted_log_moments(name: str) -> None:
    """Slope and curvature in log tau by differences of the sum and of its slope."""
    tau, step = STICKS[name], 1e-5
    weight = np.random.default_rng(0).normal(size=tau.shape)
    slope, curvature = weighted(sticks(tau), weight)
    numeric = tau * numeric_gradient(lambda at: float(np.sum(weight * sticks(at).log)), tau)
    assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-8)
    for side in range(2):
        factor = np.exp(step * np.eye(2)[side])
        ahead, behind = (weighted(sticks(at), weight)[0] for at in (tau * factor, tau / factor))
        assert curvature[:, :, side] == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-8)
