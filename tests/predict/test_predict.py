"""Densities given z against plain sums, and predictors from named arrays."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from ibpdist.base.errors import UsageError
from ibpdist.catalog.systems import weights_names
from ibpdist.model.weights.normal import Normal
from ibpdist.predict.exact import patterns
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.predict import InterceptMoments, predictor
from tests.support.predictive import covariances, log_given, make_predictor, rows_of


def density(of):
    return kind_of(of).density(of)


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("plug", [False, True])
@pytest.mark.parametrize("masked", ["all", "one mask", "own masks"])
def test_grid_and_each_are_the_plain_sums(weights, plug, masked):
    of = make_predictor(3, 5, seed=1, weights=weights)
    of = of.plug_in() if plug else of
    x, _ = rows_of(of, 6, seed=2)
    rng = np.random.default_rng(3)
    cells = {"all": np.ones((1, 5), bool), "one mask": np.array([[1, 0, 1, 1, 0]], bool)}.get(
        masked, rng.random((6, 5)) < 0.6
    )
    every = np.broadcast_to(cells, (6, 5))
    x = np.where(every, x, 0.0)
    z = patterns(3, 0, 8)
    expected = np.array([[log_given(of, x[n], every[n], p) for p in z] for n in range(6)])
    law = density(of)
    np.testing.assert_allclose(law.grid(x, cells.astype(float), z), expected, rtol=1e-11, atol=1e-11)
    own = z[[0, 7, 3, 3, 5, 1]]
    each = law.each(x, every.astype(float), own)
    np.testing.assert_allclose(each, expected[np.arange(6), [0, 7, 3, 3, 5, 1]], rtol=1e-11, atol=1e-11)


def test_variance_is_that_of_the_covariance_of_each_column():
    of = make_predictor(4, 6, seed=5, groups=3)
    y = np.random.default_rng(0).normal(size=(7, 4))
    expected = np.array([[v @ sigma @ v for sigma in covariances(of)] for v in y])
    np.testing.assert_allclose(of.variance(y), expected, rtol=1e-12)
    np.testing.assert_allclose(of.variances(), np.array([np.diag(s) for s in covariances(of)]).T, rtol=1e-12)


def test_plug_in_has_no_variance():
    of = make_predictor(4, 6, seed=5).plug_in()
    assert (of.variance(np.ones((1, 4))) == 0).all()


def test_leaving_features_out_marginalises_the_dictionary():
    of = make_predictor(4, 6, seed=7)
    kept = of.select(np.array([2, 0]))
    y = np.random.default_rng(0).normal(size=(3, 2))
    full = np.zeros((3, 4))
    full[:, [2, 0]] = y
    np.testing.assert_allclose(kept.variance(y), of.variance(full), rtol=1e-12)
    np.testing.assert_array_equal(kept.mean, of.mean[[2, 0]])


def test_log_prior_sums_to_one_and_survives_certain_features():
    of = make_predictor(5, 2, seed=1)
    assert np.exp(of.log_prior(patterns(5, 0, 32))).sum() == pytest.approx(1, abs=1e-12)
    certain = predictor({"mean": np.ones((2, 3)), "noise": 1.0, "prevalence": np.array([1.0, 0.0])})
    prior = certain.log_prior(patterns(2, 0, 4))
    np.testing.assert_allclose(prior[1], 0, atol=1e-12)
    assert (prior[[0, 2, 3]] < -400).all()
    assert np.isfinite(prior).all()


def test_predictor_reads_basis_and_odds():
    of = make_predictor(3, 4, seed=2)
    named = {
        "mean": of.mean,
        "noise": of.noise,
        "basis": of.basis,
        "spectrum": of.spectrum,
        "group": of.group.astype(float),
        "log_odds": of.log_odds,
        "active": np.array([1, 1, 0]),
    }
    made = predictor(named, "normal")
    np.testing.assert_array_equal(made.variances(), of.variances())
    np.testing.assert_array_equal(made.log_odds, of.log_odds)
    assert made.active.tolist() == [True, True, False]
    assert made.weights == Normal()


def test_the_odds_are_those_of_the_chance_where_there_is_one():
    bare = {"mean": np.zeros((2, 3)), "noise": 1.0, "prevalence": np.array([0.1, 0.2])}
    with_odds = bare | {"log_odds": np.array([-3.0, -2.0])}
    with_chance = with_odds | {"chance": np.array([0.25, 0.5])}
    np.testing.assert_allclose(predictor(bare).log_odds, [-np.log(9), -np.log(4)])
    np.testing.assert_array_equal(predictor(with_odds).log_odds, [-3, -2])
    np.testing.assert_allclose(predictor(with_chance).log_odds, [-np.log(3), 0], atol=1e-12)


def test_predictor_from_standard_deviations_and_prevalence_alone():
    sd = np.random.default_rng(1).uniform(0.1, 1, (2, 4))
    params = {"mean": np.zeros((2, 4)), "mean_sd": sd, "noise": 0.5, "prevalence": np.array([0.25, 0.5])}
    made = predictor(params)
    np.testing.assert_allclose(made.variances(), sd**2, rtol=1e-12)
    np.testing.assert_allclose(made.log_odds, [np.log(1 / 3), 0], atol=1e-12)
    np.testing.assert_array_equal(made.noise, np.full(4, 0.5))
    bare = predictor({name: value for name, value in params.items() if name != "mean_sd"})
    assert (bare.variances() == 0).all()


def test_a_feature_that_is_off_changes_nothing():
    for weights in ("unit", "normal"):
        of = make_predictor(3, 5, seed=4, weights=weights)
        x, _ = rows_of(of, 4, seed=1)
        less, cells = of.select(np.array([0, 2])), np.ones((1, 5))
        z = patterns(2, 0, 4)
        full = np.insert(z, 1, 0.0, axis=1)
        np.testing.assert_allclose(
            density(less).grid(x, cells, z), density(of).grid(x, cells, full), rtol=1e-12
        )


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_densities_integrate_to_one(weights):
    of = make_predictor(2, 2, seed=6, weights=weights)
    grid = np.linspace(-25, 25, 501)
    x = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    density_at = np.exp(density(of).grid(x, np.ones((1, 2)), patterns(2, 0, 4)))
    np.testing.assert_allclose(density_at.sum(0) * (grid[1] - grid[0]) ** 2, 1, rtol=1e-6)


def test_rows_of_normal_weights_have_the_covariance_of_the_model():
    of = make_predictor(2, 3, seed=8, weights="normal").plug_in()
    rng = np.random.default_rng(1)
    w = rng.normal(size=(200_000, 2)) * np.array([1.0, 0.0])
    x = w @ of.mean + np.sqrt(of.noise) * rng.normal(size=(200_000, 3))
    z = np.tile([1.0, 0.0], (200_000, 1))
    scored = density(of).each(x, np.ones((1, 3)), z)
    covariance = np.diag(of.noise) + np.outer(of.mean[0], of.mean[0])
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]
    assert abs(scored.mean() + entropy) < 4 * scored.std() / np.sqrt(200_000)


def test_unknown_weights_are_refused():
    with pytest.raises(UsageError, match=r"unknown weights 'norma'; did you mean normal\?"):
        predictor({"mean": np.ones((1, 2)), "noise": 1.0}, "norma")


@pytest.mark.parametrize("weights", weights_names())
def test_the_typical_noise_is_the_mean_over_rows(weights):
    """Moments of y drawn from the prior; weights may have a mean, and the intercept goes with A."""
    of, rng = make_predictor(3, 5, seed=3, weights=weights), np.random.default_rng(1)
    centre = rng.normal(1.0, 0.5, (len(of.basis), 3))
    of = replace(of, intercept=InterceptMoments(rng.normal(size=5), np.full(5, 0.01), centre))
    z = rng.random((200_000, 3)) < expit(of.log_odds)
    y = z * of.weights.sample(3, len(z), rng.normal(size=(3, len(z)))).T if of.weights.has_weights else z
    np.testing.assert_allclose(of.typical_noise(), of.noise + of.variance(y).mean(axis=0), rtol=0.01)
