"""Contrasts are what their docstrings say: derivatives, posteriors, likelihoods that rise."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from ibpdist.inference.starts import contrast
from ibpdist.inference.starts.contrast import Matrix, Mixture

STEP = 1e-6


@pytest.fixture
def u() -> Matrix:
    return np.random.default_rng(3).standard_normal((4, 50))


@pytest.fixture
def mixture() -> Mixture:
    return Mixture(
        np.array([0.1, 0.5, 0.7, 0.95]),
        np.array([-0.4, -1.0, -1.5, -4.0]),
        np.array([3.0, 1.1, 0.6, 0.2]),
        np.array([0.5, 0.2, 0.3, 0.1]),
    )


def binary(
    prevalence: list[float], rows: int = 2000, sd: float = 0.2, seed: int = 0
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Binary columns of unit variance in noise, (component, row), and their classes."""
    rng = np.random.default_rng(seed)
    p = np.array(prevalence)[:, None]
    z = rng.random((len(p), rows)) < p
    return (z - p) / np.sqrt(p * (1 - p)) + sd * rng.standard_normal(z.shape), z


@pytest.mark.parametrize("name", ["skew", "tanh", "cube"])
def test_slope_is_the_mean_derivative(name: str, u: Matrix) -> None:
    g = contrast.CONTRASTS[name]
    numeric = (g(u + STEP)[0] - g(u - STEP)[0]).mean(1) / (2 * STEP)
    np.testing.assert_allclose(g(u)[1], numeric, rtol=1e-6, atol=1e-8)


def test_two_valued_slope_is_the_mean_derivative(u: Matrix, mixture: Mixture) -> None:
    up, down = (contrast.two_valued(u + d, mixture)[0] for d in (STEP, -STEP))
    numeric = (up - down).mean(1) / (2 * STEP)
    np.testing.assert_allclose(contrast.two_valued(u, mixture)[1], numeric, rtol=1e-6)


def test_two_valued_is_the_derivative_of_the_log_density(u: Matrix, mixture: Mixture) -> None:
    # Tweedie: E[m | u] = u + v d/du log p(u).
    def density(at: Matrix) -> Matrix:
        return np.array(
            [
                [
                    contrast.log_likelihood(np.full((1, 1), value), mixture.take(np.array([k])))[0]
                    for value in row
                ]
                for k, row in enumerate(at)
            ]
        )

    slope = (density(u + STEP) - density(u - STEP)) / (2 * STEP)
    expected = u + mixture.variance[:, None] * slope
    np.testing.assert_allclose(contrast.two_valued(u, mixture)[0], expected, atol=1e-7)


def test_posterior_and_likelihood_by_bayes(u: Matrix, mixture: Mixture) -> None:
    sd = np.sqrt(mixture.variance)[:, None]
    high = mixture.share[:, None] * norm.pdf(u, mixture.high[:, None], sd)
    low = (1 - mixture.share[:, None]) * norm.pdf(u, mixture.low[:, None], sd)
    np.testing.assert_allclose(contrast.posterior(u, mixture), high / (high + low), rtol=1e-9)
    np.testing.assert_allclose(contrast.log_likelihood(u, mixture), np.log(high + low).mean(1), rtol=1e-9)


def test_posterior_far_out_is_zero_or_one(mixture: Mixture) -> None:
    far = contrast.posterior(np.array([[-1e6, 1e6]] * 4), mixture)
    np.testing.assert_allclose(far, [[0.0, 1.0]] * 4, atol=1e-30)


def test_split_has_the_largest_between_class_variance() -> None:
    u = np.random.default_rng(1).standard_normal((3, 12)) ** 3
    z, mixture = contrast.split(u)
    for k, row in enumerate(u):
        best = max(
            (np.mean(row > t) * np.mean(row <= t) * (row[row > t].mean() - row[row <= t].mean()) ** 2, t)
            for t in np.sort(row)[:-1]
        )
        assert np.array_equal(z[k], row > best[1])
        within = np.where(z[k], row - row[z[k]].mean(), row - row[~z[k]].mean())
        assert mixture.high[k] == pytest.approx(row[z[k]].mean())
        assert mixture.low[k] == pytest.approx(row[~z[k]].mean())
        assert mixture.share[k] == pytest.approx(z[k].mean())
        assert mixture.variance[k] == pytest.approx(np.mean(within**2))


def test_expectation_maximisation_never_lowers_the_likelihood() -> None:
    u, _ = binary([0.05, 0.3, 0.5, 0.8], rows=300, sd=0.6)
    state = contrast.split(u)[1]
    before = contrast.log_likelihood(u, state)
    for _ in range(15):
        state = contrast.fit(u, state, 1)
        after = contrast.log_likelihood(u, state)
        assert np.all(after >= before - 1e-12)
        before = after


def test_start_finds_the_classes() -> None:
    prevalence = [0.05, 0.3, 0.5, 0.79]
    u, z = binary(prevalence)
    state = contrast.start(u, 20)
    np.testing.assert_allclose(state.share, z.mean(1), atol=0.01)
    np.testing.assert_allclose(state.variance, 0.04, rtol=0.15)
    assert np.mean((contrast.posterior(u, state) > 0.5) != z) < 0.01


def test_components_do_not_touch_each_other() -> None:
    u, _ = binary([0.1, 0.5, 0.9], rows=200)
    whole = contrast.start(u)
    for k in range(3):
        alone = contrast.start(u[[k]])
        for name in ("share", "low", "high", "variance"):
            assert getattr(alone, name)[0] == pytest.approx(getattr(whole, name)[k], rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_constant_projections_stay_finite(rows: int) -> None:
    u = np.full((2, rows), 3.0)
    state = contrast.start(u)
    g, slope = contrast.two_valued(u, state)
    assert np.all(np.isfinite(g))
    assert np.all(np.isfinite(slope))
    assert np.all(np.isfinite(contrast.log_likelihood(u, state)))
