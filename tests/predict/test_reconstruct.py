"""Means and variances of cells against the joint posterior written out one pattern and one cell at a time."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from ibpdist.predict import reconstruct as module
from ibpdist.predict.estimates import Sampling
from ibpdist.predict.moments import weights_given
from ibpdist.predict.predict import InterceptMoments
from ibpdist.predict.reconstruct import Reconstructor, reconstructor
from tests.support.predictive import (
    covariances,
    enumerate_at_most,
    log_given,
    make_predictor,
    rows_of,
)

PLAN = Sampling(chains=8, draws=10, seed=0)


@pytest.fixture
def every_pattern(monkeypatch):
    """No pattern is left out, however small its probability."""
    monkeypatch.setattr("ibpdist.predict.moments.NEGLIGIBLE", 0.0)


def with_intercept(of, seed=5):
    rng = np.random.default_rng(seed)
    columns = len(of.noise)
    moments = InterceptMoments(
        rng.normal(size=columns), rng.uniform(0.01, 0.1, columns), np.zeros((len(of.basis), of.features))
    )
    return replace(of, intercept=moments)


def weights_of(of, x, cells, z):
    """Mean and covariance of y of one row given z, by solving the joint normal of weights and cells."""
    if not of.weights.has_weights:
        return np.array(z, float), np.zeros((len(z), len(z)))
    sigma, extra = covariances(of), of.variance(np.zeros((1, of.features)))[0]
    psi = np.array([of.noise[d] + np.array(z) @ np.diag(sigma[d]) for d in range(len(x))]) + extra
    loaded = np.array(z, float)[:, None] * of.mean
    seen = np.flatnonzero(cells)
    across = loaded[:, seen]
    whole = np.diag(psi[seen]) + across.T @ across
    gain = across @ np.linalg.inv(whole) if len(seen) else across
    prior = np.diag(np.array(z, float))
    return gain @ x[seen], prior - gain @ across.T


def log_evidence(of, x, cells, z):
    """As in the plain densities, with what is uncertain of the intercept added to the noise."""
    extra = of.variance(np.zeros((1, of.features)))[0]
    if not np.any(extra):
        return log_given(of, x, cells, z)
    z, sigma = np.array(z, float), covariances(of)
    psi = np.array([of.noise[d] + z @ np.diag(sigma[d]) for d in range(len(x))]) + extra
    loaded = z[:, None] * of.mean
    if of.weights.has_weights:
        whole, mean = np.diag(psi) + loaded.T @ loaded, np.zeros(len(x))
    else:
        full = [of.noise[d] + z @ sigma[d] @ z + extra[d] for d in range(len(x))]
        whole, mean = np.diag(full), z @ of.mean
    value, cut = (x - mean)[cells], whole[np.ix_(cells, cells)]
    return -0.5 * (np.linalg.slogdet(2 * math.pi * cut)[1] + value @ np.linalg.solve(cut, value))


def by_hand(of, x, cells):
    """Mean of the signal and variance of a cell, of one row, as plain sums."""
    offset = np.zeros(len(x)) if of.intercept is None else of.intercept.mean
    error = np.zeros(len(x)) if of.intercept is None else of.intercept.error
    value, sigma = np.where(cells, x - offset, 0.0), covariances(of)
    total, first, second = 0.0, np.zeros(len(x)), np.zeros(len(x))
    for z in itertools.product([0, 1], repeat=of.features):
        prior = 1.0
        for on, odds in zip(z, of.log_odds, strict=True):
            prior *= 1 / (1 + math.exp(-odds)) if on else 1 / (1 + math.exp(odds))
        share = prior * math.exp(log_evidence(of, value, cells, z))
        mean, covariance = weights_of(of, value, cells, z)
        moments = covariance + np.outer(mean, mean)
        total += share
        for d in range(len(x)):
            along = np.outer(of.mean[:, d], of.mean[:, d]) + sigma[d]
            first[d] += share * (mean @ of.mean[:, d])
            second[d] += share * ((moments * along).sum() + error[d] + of.noise[d])
    first, second = first / total, second / total
    return first + offset, second - first**2


def gaps(rows, columns, seed, share=0.4):
    visible = np.random.default_rng(seed).random((rows, columns)) > share
    visible[0], visible[1] = False, True
    return visible


@pytest.mark.usefixtures("every_pattern")
@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("certain", [False, True])
def test_enumeration_equals_the_joint_posterior_by_hand(weights, intercept, certain):
    of = make_predictor(4, 6, seed=11, weights=weights)
    of = with_intercept(of) if intercept else of
    of = of.plug_in() if certain else of
    if certain:
        of = replace(of, basis=np.zeros_like(of.basis), spectrum=np.zeros_like(of.spectrum))
    x, visible = rows_of(of, 6, seed=1)[0], gaps(6, 6, seed=4)
    found = Reconstructor(of, PLAN)(np.where(visible, x, np.nan), visible, 0)
    wanted = [by_hand(of, *row) for row in zip(x, visible, strict=True)]
    np.testing.assert_allclose(found.mean, [mean for mean, _ in wanted], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.variance, [variance for _, variance in wanted], rtol=1e-9)


@pytest.mark.usefixtures("every_pattern")
@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_blocks_of_patterns_pairs_and_columns_do_not_matter(weights, monkeypatch):
    of = with_intercept(make_predictor(5, 7, seed=3, weights=weights))
    x, visible = rows_of(of, 9, seed=1)[0], gaps(9, 7, seed=2)
    whole = Reconstructor(of, PLAN)(x, visible, 0)
    monkeypatch.setattr(module, "_CELLS", 40)
    monkeypatch.setattr(module, "_PAIRS", 60)
    monkeypatch.setattr("ibpdist.predict.moments._NUMBERS", 50)
    parts = Reconstructor(of, PLAN)(x, visible, 0)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(parts.variance, whole.variance, rtol=1e-9)


def test_a_slab_mean_moves_the_weights_as_data_would():
    """w ~ N(mu, 1) given cells is mu and w - mu ~ N(0, 1) given what mu does not explain."""
    rng = np.random.default_rng(0)
    dictionary, psi = rng.normal(size=(3, 5)), rng.uniform(0.5, 2.0, (2, 5))
    x, cells = rng.normal(size=(2, 5)), (rng.random((2, 5)) > 0.3).astype(float)
    z, slab = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), np.array([1.5, -0.5, 3.0])
    found = weights_given(dictionary, psi, x * cells, cells, z, slab)
    plain = weights_given(dictionary, psi, (x - (z * slab) @ dictionary) * cells, cells, z)
    moved = np.take_along_axis(z * slab, found.features, axis=1)
    np.testing.assert_allclose(found.mean, plain.mean + moved, atol=1e-12)
    np.testing.assert_array_equal(found.covariance, plain.covariance)


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_chains_agree_with_enumeration(weights, monkeypatch):
    of = with_intercept(make_predictor(6, 12, seed=7, weights=weights))
    of = replace(of, spectrum=of.spectrum + 20)
    x, visible = rows_of(of, 40, seed=1)[0], gaps(40, 12, seed=2, share=0.3)
    exact = Reconstructor(of, PLAN)(x, visible, 0)
    enumerate_at_most(monkeypatch, 2)
    chains = Reconstructor(of, replace(PLAN, chains=64, draws=20))
    assert not chains.enumerates
    found = chains(x, visible, 0)
    sd = np.sqrt(exact.variance)
    assert np.abs((found.mean - exact.mean) / sd).max() < 0.12
    np.testing.assert_allclose(np.sqrt(found.variance), sd, rtol=0.1)


@pytest.mark.parametrize("freedom", [None, 3.0])
def test_chains_of_a_row_do_not_depend_on_the_other_rows(monkeypatch, freedom):
    enumerate_at_most(monkeypatch, 2)
    of = replace(make_predictor(6, 12, seed=7, weights="normal"), freedom=freedom)
    x, visible = rows_of(of, 12, seed=1)[0], gaps(12, 12, seed=2)
    one = Reconstructor(of, PLAN)
    whole, part = one(x, visible, 0), one(x[5:], visible[5:], 5)
    np.testing.assert_allclose(part.mean, whole.mean[5:], rtol=1e-12, atol=1e-12)
    other = one(x[5:], visible[5:], 6)
    assert not np.allclose(other.mean, whole.mean[5:], rtol=1e-6)


def test_rows_that_have_every_feature_need_one_pattern():
    of = replace(make_predictor(20, 8, seed=1, weights="normal"), log_odds=np.full(20, np.inf))
    x, visible = rows_of(of, 4, seed=1)[0], gaps(4, 8, seed=2)
    one = Reconstructor(of, PLAN)
    assert one.words == "exact over 1 pattern of features"
    found = one(x, visible, 0)
    mean, covariance = weights_of(of, x[2], visible[2], np.ones(20))
    np.testing.assert_allclose(found.mean[2], mean @ of.mean, atol=1e-9)
    assert (np.diag(covariance) < 1).any()


def test_features_that_cannot_matter_are_left_out():
    of = make_predictor(20, 8, seed=1, weights="normal")
    active = np.arange(20) < 4
    idle = replace(of, active=active, log_odds=np.where(active, of.log_odds, -40.0))
    x, visible = rows_of(of, 3, seed=1)[0], gaps(3, 8, seed=2)
    one = Reconstructor(idle, PLAN)
    assert one.words == "exact over 16 patterns of features"
    few = Reconstructor(of.select(np.arange(4)), PLAN)
    np.testing.assert_array_equal(one(x, visible, 0).mean, few(x, visible, 0).mean)


def test_draws_count_alike():
    each = [make_predictor(3, 5, seed=seed) for seed in (1, 2, 3)]
    x, visible = rows_of(each[0], 4, seed=1)[0], gaps(4, 5, seed=2)
    cells = [Reconstructor(one, PLAN)(x, visible, 0) for one in each]
    found = reconstructor(each, PLAN)(x, visible, 0)
    means = np.array([one.mean for one in cells])
    np.testing.assert_allclose(found.mean, means.mean(0))
    within = np.mean([one.variance for one in cells], axis=0)
    np.testing.assert_allclose(found.variance, within + means.var(0))


def test_rows_whose_chains_disagree_get_more_of_them(monkeypatch):
    enumerate_at_most(monkeypatch, 2)
    of = make_predictor(6, 30, seed=7, weights="normal", strength=3.0)
    x, visible = rows_of(of, 10, seed=1)[0], gaps(10, 30, seed=2)
    asked = []
    drawn = Reconstructor._drawn

    def counted(self, rows, x, visible, start, more):
        asked.append((len(rows), more))
        moments, _ = drawn(self, rows, x, visible, start, more)
        return moments, np.where(rows < 3, 1.0, 8.0)

    monkeypatch.setattr(Reconstructor, "_drawn", counted)
    Reconstructor(of, PLAN)(x, visible, 0)
    assert asked == [(10, 1), (1, module.MORE), (1, module.MORE), (1, module.MORE)]
