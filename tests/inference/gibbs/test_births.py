"""Births and deaths of a row's own features: ratios, the law they lead to, and what newborns look like."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, poisson

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.params import ModelParams, without_parents
from ibpdist.inference.gibbs import births
from ibpdist.inference.gibbs.births import (
    BirthPrior,
    Block,
    birth_chance,
    log_evidence,
    propose_marks,
    row_changes,
    sample_block,
    without_dead_features,
)
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit

NOISE = np.array([0.4, 0.9, 1.3])
ROW = np.array([1.1, -0.7, 2.0])


def law(weights=Unit(), offer=0.3, rate=0.6, scale=0.8):  # noqa: B008  # frozen
    return BirthPrior(weights, offer, rate, NOISE, scale, np.zeros(NOISE.size))


def density(marks, scale=0.8):
    """N(row; 0, noise + scale |marks|^2), its logarithm."""
    spread = NOISE + scale * float(np.sum(np.square(marks)))
    return float(norm.logpdf(ROW, 0, np.sqrt(spread)).sum())


@pytest.mark.parametrize("marks", [[], [1.0], [1.0, 1.0], [0.3, -1.7, 2.2]])
def test_evidence_is_a_ratio_of_densities(marks):
    found = log_evidence(np.array(marks), ROW, NOISE, 0.8)
    assert found == pytest.approx(density(marks) - density([]), abs=1e-12)


def test_no_column_says_nothing():
    assert log_evidence(np.ones(2), ROW[:0], NOISE[:0], 0.8) == 0.0


# --- one turn ---


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_birth_is_accepted_up_to_its_ratio(size):
    now, marks = law(), np.ones(size)
    ratio = np.exp(density(np.ones(size + 1)) - density(marks)) * now.rate / (size + 1)
    ratio *= (1 - now.offer) / now.offer
    for chance, accepted in ((0.999 * ratio, True), (1.001 * ratio, False)):
        made = propose_marks(marks, ROW, NOISE, now, np.array([[now.offer - 1e-9, 0.5, chance, 0.5]]))
        assert made.size == size + accepted
        assert (made is marks) is not accepted


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_death_is_accepted_up_to_its_ratio(size):
    now, marks = law(rate=3.0), np.ones(size)
    ratio = np.exp(density(np.ones(size - 1)) - density(marks)) * size / now.rate
    ratio *= now.offer / (1 - now.offer)
    for chance, accepted in ((0.999 * ratio, True), (1.001 * ratio, False)):
        made = propose_marks(marks, ROW, NOISE, now, np.array([[now.offer + 1e-9, 0.5, chance, 0.5]]))
        assert made.size == size - accepted


def test_the_one_that_dies_is_picked_evenly():
    now, marks = law(Normal(), rate=1e-9), np.array([0.1, 0.2, 0.3])
    for pick, left in ((0.1, [0.2, 0.3]), (0.5, [0.1, 0.3]), (0.99, [0.1, 0.2])):
        made = propose_marks(marks, ROW, NOISE, now, np.array([[0.9, pick, 1e-9, 0.5]]))
        np.testing.assert_array_equal(made, left)


def test_without_singletons_there_is_no_death():
    nothing = np.zeros(0)
    assert propose_marks(nothing, ROW, NOISE, law(), np.array([[0.9, 0.5, 1e-300, 0.5]])) is nothing


def test_newborn_weights_are_from_the_prior():
    rng = np.random.default_rng(0)
    now = BirthPrior(Normal(), 0.5, 1e9, NOISE, 1e-12, np.zeros(NOISE.size))
    found = [
        propose_marks(np.zeros(0), ROW, NOISE, now, np.array([[0.1, pick, 0.5, 0.5]]))[0]
        for pick in rng.random(2000)
    ]
    assert np.mean(found) == pytest.approx(0, abs=4 / np.sqrt(2000))
    assert np.var(found) == pytest.approx(1, abs=0.15)


def test_newborn_weights_have_unknown_means():
    """A mark is a normal about a mean that is uniform between its limits."""
    now, rng = law(Normal("learn"), offer=0.5, rate=1e9, scale=1e-12), np.random.default_rng(2)
    turns = np.column_stack([np.full((2000, 1), 0.1), rng.random((2000, 1)), np.full((2000, 1), 0.5)])
    turns = np.column_stack([turns, rng.random(2000)])
    found = np.array([propose_marks(np.zeros(0), ROW, NOISE, now, turn[None])[0] for turn in turns])
    assert found.mean() == pytest.approx(0, abs=4 * np.sqrt((1 + 16 / 3) / 2000))
    assert found.var() == pytest.approx(1 + 16 / 3, rel=0.1)
    fixed = law(Normal(1.5), offer=0.5, rate=1e9, scale=1e-12)
    assert propose_marks(np.zeros(0), ROW, NOISE, fixed, np.array([[0.1, 0.5, 0.5, 0.9]]))[0] == 1.5


# --- the law of many turns ---


def numbers_of(now, turns, seed=1):
    rng = np.random.default_rng(seed)
    marks, seen = np.zeros(0), []
    for u in np.insert(rng.random((turns, 1, 3)), 3, 0.5, axis=2):
        marks = propose_marks(marks, ROW, NOISE, now, u)
        seen.append(marks.size)
    return np.array(seen)


@pytest.mark.parametrize("offer", [0.5, 0.1])
def test_number_of_singletons_has_its_exact_law(offer):
    """With unit weights p(kappa) is Poisson(rate) times the density of the row."""
    now = law(offer=offer, rate=1.5)
    sizes = np.arange(15)
    chance = np.exp([poisson.logpmf(k, 1.5) + density(np.ones(k)) for k in sizes])
    chance /= chance.sum()
    seen = numbers_of(now, 40_000)
    found = np.array([(seen == k).mean() for k in sizes])
    batches = np.array([[(part == k).mean() for k in sizes] for part in np.split(seen, 40)])
    error = batches.std(axis=0, ddof=1) / np.sqrt(40)
    usual = chance > 0.01
    assert (np.abs(found - chance)[usual] < 4.5 * error[usual]).all()


def test_dropping_and_starting_from_none_has_another_law():
    """samplers.md 18: what must not be done is seen at the same length."""
    now = law(rate=1.5, offer=0.5)
    chance = np.exp([poisson.logpmf(k, 1.5) + density(np.ones(k)) for k in range(15)])
    exact = np.arange(15) @ chance / chance.sum()
    rng = np.random.default_rng(2)
    turns = np.insert(rng.random((4000, 2, 3)), 3, 0.5, axis=2)
    dropped = [propose_marks(np.zeros(0), ROW, NOISE, now, u).size for u in turns]
    assert abs(np.mean(dropped) - exact) > 6 * np.std(dropped) / np.sqrt(4000)


# --- what newborns look like ---


@pytest.mark.parametrize("marks", [np.array([1.0]), np.array([0.5, -1.5])])
def test_newborns_have_their_conditional_law(marks):
    """Mean and covariance given the row, columns that are not observed from the prior."""
    now, seen = law(Normal()), np.array([True, False, True])
    rng, size, draws = np.random.default_rng(3), marks.size, 20_000
    found = np.array(
        [sample_block(marks, ROW, seen, now, rng.normal(size=(size + 1, 3))).mean for _ in range(draws)]
    )
    for column in range(3):
        cross, spread = now.scale * marks, NOISE[column] + now.scale * marks @ marks
        mean = cross * ROW[column] / spread if seen[column] else np.zeros(size)
        cov = now.scale * np.eye(size) - (np.outer(cross, cross) / spread if seen[column] else 0)
        each = found[:, :, column]
        assert np.abs(each.mean(axis=0) - mean).max() < 4.5 * np.sqrt(cov.diagonal().max() / draws)
        np.testing.assert_allclose(np.cov(each.T).reshape(size, size), cov, atol=0.04)
    density = multivariate_normal(np.zeros(3), np.diag(NOISE))
    assert np.isfinite(density.logpdf(ROW - marks @ found[0]))


def test_offers():
    assert birth_chance(8, 4, 20_000) == pytest.approx(1e-4)
    assert birth_chance(8, 4, 2) == 0.5
    assert birth_chance(8, 4, 0) == 0.5


# --- chunks ---


def chunked(seed=0, rows=40, features=3, weights=Unit(), observed=None):  # noqa: B008
    """A chunk, row state in which feature 0 has one holder, 1 two in one row each, and parameters."""
    rng = np.random.default_rng(seed)
    z = (rng.random((features, rows)) < 0.4).astype(float)
    z[0], z[1] = 0, 0
    z[0, 7], z[1, 7] = 1, 1
    w = rng.normal(size=z.shape) if weights.has_weights else np.zeros((0, rows))
    x = rng.normal(size=(rows, 3)) * 2
    chunk = Chunk(0, 100, x if observed is None else np.where(observed, x, 0), observed)
    seen = Gaussian().init(Gaussian().summarise(chunk), features, rng)
    seen = replace(seen, noise=NOISE)
    prior = Buffet().init(features, rows)
    now = ModelParams(
        prior,
        seen,
        ids=np.arange(features),
        **without_parents(features),
        on=z.sum(axis=1),
        rows=np.asarray(rows),
    )
    return chunk, RowState(now.ids, z, w), now


def likelihood(chunk, y, mean):
    left = (chunk.x - y.T @ mean) ** 2 / NOISE
    return -0.5 * (left if chunk.observed is None else left * chunk.observed).sum()


@pytest.mark.parametrize("weights", [Unit(), Normal()])
@pytest.mark.parametrize("masked", [False, True])
def test_gains_are_those_of_the_rows(weights, masked):
    observed = np.random.default_rng(5).random((40, 3)) < 0.7 if masked else None
    chunk, state, now = chunked(weights=weights, observed=observed)
    found = list(row_changes(chunk, state, now, law(weights, offer=0.4, rate=2.0), 3, Draws(1, 3)))
    assert len(found) > 5
    assert any(c.died.size for c in found)
    y, mean = weights.combine(state.z, state.w), now.observation.mean
    after, cost = y.copy(), sum(c.cost for c in found)
    for c in found:
        after[c.died, c.place] = 0
    extra = np.zeros(chunk.x.shape)
    for c in found:
        extra[c.place] = c.born.marks @ c.born.mean
    gained = likelihood(Chunk(0, 0, chunk.x - extra, observed), after, mean) - likelihood(chunk, y, mean)
    assert sum(c.likelihood for c in found) == pytest.approx(gained, abs=1e-8)
    dead = list(itertools.chain.from_iterable((k, c.place) for c in found for k in c.died))
    old = (
        sum(weights.neg_log_prior(state.w[k, place]) for k, place in zip(dead[::2], dead[1::2], strict=True))
        if (weights.has_weights)
        else 0.0
    )
    new = sum(weights.neg_log_prior(c.born.marks).sum() for c in found)
    assert cost == pytest.approx(new - old, abs=1e-10)


def test_only_singletons_die():
    chunk, state, now = chunked()
    for seed in range(30):
        for c in row_changes(chunk, state, now, law(rate=1e-6), 4, Draws(seed)):
            if c.died.size:
                assert c.place == 7
                assert set(c.died) == {0, 1}


def test_rows_do_not_depend_on_chunking():
    """The same uniforms and normals reach the same rows."""
    chunk, state, now = chunked()
    whole = list(row_changes(chunk, state, now, law(rate=2.0), 3, Draws(4)))
    parts = []
    for a, b in ((0, 6), (6, 7), (7, 40)):
        part = Chunk(0, 100 + a, chunk.x[a:b])
        held = replace(state, z=state.z[:, a:b], w=state.w[:, a:b])
        parts += [(a, c) for c in row_changes(part, held, now, law(rate=2.0), 3, Draws(4))]
    assert [c.place for c in whole] == [a + c.place for a, c in parts]
    for c, (_, d) in zip(whole, parts, strict=True):
        np.testing.assert_allclose(c.born.mean, d.born.mean, rtol=1e-12)
        np.testing.assert_array_equal(c.died, d.died)


def test_rows_without_an_offer_and_without_singletons_are_left_alone(monkeypatch):
    chunk, state, now = chunked()
    met = []
    monkeypatch.setattr(births, "_row", lambda chunk, state, now, place, *rest: met.append(place))
    list(row_changes(chunk, state, now, law(offer=1e-12), 4, Draws(1)))
    assert met == [7]


def test_the_dead_are_off_and_the_given_state_stays():
    _, state, _ = chunked()
    block = Block(np.zeros(0), np.zeros((0, 3)))
    made = without_dead_features(state, [births.RowChange(7, np.array([0, 1]), block, 0.0, 0.0)])
    assert made.z[:2, 7].sum() == 0
    assert state.z[:2, 7].sum() == 2
    assert without_dead_features(state, [births.RowChange(3, np.zeros(0, int), block, 0.0, 0.0)]) is state
