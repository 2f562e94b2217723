"""Exponential weights: y = z w, w ~ Exp(1) where the feature is on and at its prior where it is off."""

import numpy as np
import pytest
from scipy.stats import expon, kstest, norm

from ibpdist.base.errors import UsageError
from ibpdist.base.structs import replace
from ibpdist.inference.ascent.params import ModelSums
from ibpdist.model.model import Model
from ibpdist.model.observations.joint import Joint
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.priors.always import Always
from ibpdist.model.weights._balanced import change_of_cost, length
from ibpdist.model.weights.exponential import Exponential
from tests.kernels.test_exponential import weighed
from tests.support.model_cases import Case, algorithm, begin, chunked, fit, objectives, problem, sweep
from tests.support.weighted_evidence import log_evidence


def test_what_a_draw_costs():
    w = np.random.default_rng(2).exponential(size=(2, 5)) * 3
    np.testing.assert_allclose(Exponential().neg_log_prior(w), -expon.logpdf(w), rtol=1e-12)
    assert np.isinf(Exponential().neg_log_prior(np.array([-0.1])))


def test_samples_are_exponential_in_both_tails():
    normals = np.random.default_rng(2).normal(size=(2, 20_000))
    w = Exponential().sample(2, 20_000, normals)
    assert kstest(w.ravel(), "expon").pvalue > 1e-3
    near, far = Exponential().sample(1, 2, np.array([[-20.0, 20.0]]))[0]
    np.testing.assert_allclose(-far, norm.logsf(20.0), rtol=1e-12)
    np.testing.assert_allclose(near, norm.cdf(-20.0), rtol=1e-12)
    assert Exponential().sample(1, 2, np.zeros((1, 2), np.float32)).dtype == np.float32


def test_moments_of_the_prior():
    rng = np.random.default_rng(3)
    w = Exponential().sample(1, 400_000, rng.normal(size=(1, 400_000)))
    assert Exponential().second == pytest.approx(np.square(w).mean(), rel=0.03)
    chance = np.array([0.0, 0.25, 1.0])
    y = (rng.random((3, w.size)) < chance[:, None]) * w
    np.testing.assert_allclose(Exponential().variance(chance), y.var(axis=1), rtol=0.03)


def test_it_is_refused_where_weights_are_integrated_out_together():
    with pytest.raises(UsageError, match=r"gaussian_joint: .* normal ones, not exponential"):
        Model(Always(), Exponential(), Joint())


# --- fits ---


def test_the_objective_is_highest_where_a_row_is():
    """Of one entry: nu (b m1 - a m2 / 2 - cost) + entropy + nu odds, at any other (b, a) of q(w | z = 1)."""
    b, a, odds = 2.3, 1.7, -0.4

    def value(near_b, near_a):
        _, mean, square, cost = weighed(near_b, near_a)[:, 0]
        return np.logaddexp(0, odds + b * mean - a * square / 2 - cost)

    best = value(b, a)
    assert best == pytest.approx(np.logaddexp(0, odds + weighed(b, a)[0, 0]), rel=1e-12)
    for step in (-0.3, -1e-3, 1e-3, 0.3):
        assert value(b + step, a) < best
        assert value(b, a + step) < best


@pytest.mark.parametrize("rule", ["mean", "mode"])
def test_the_bound_is_below_the_evidence(rule):
    x = np.array([[1.2, -0.7], [0.1, 0.4], [2.0, -1.1]])
    case = Case("finite", "exponential", noise=0.5, scale=1.5, mass=1.3, rule=rule)
    exact, error = log_evidence(x, 0.5, 1.5, 1.3, "exponential", 300_000)
    best = max(objectives(fit(algorithm(case, 2), chunked(x), 100, seed)[3]).max() for seed in range(3))
    assert error < 0.02
    assert exact - 6 < best < exact - 5 * error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
def test_many_steps_never_fall(missing, dtype):
    x, observed = problem(3, 60, 5, missing, dtype)
    case = Case("sticks", "exponential", noise="column", scale="feature", missing=missing)
    value = objectives(fit(algorithm(case, 4), chunked(x, observed, [25, 35]), 100)[3])
    assert np.diff(value).min() >= -(1e-6 if dtype == np.float32 else 1e-9) * (np.abs(value).max() + x.size)


def test_nothing_is_paid_where_a_feature_is_off():
    alg = algorithm(Case(weights="exponential", noise=1.0, scale=1.0, mass=0.01), 2)
    chunks = chunked(np.zeros((20, 2)))
    params, states, draws = begin(alg, chunks)
    for step in range(30):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, _ = alg.update(params, sums, draws.at(step))
    assert states[0].z.max() < 0.1
    assert sums.entries.cost.sum() < 0.05


def test_weights_recover_a_planted_component():
    """With its sign, whatever the sign of the start."""
    rng, feature = np.random.default_rng(4), np.array([3.0, -2.0, 1.0])
    w = rng.exponential(size=80)
    x = np.outer(w, feature) + 0.1 * rng.normal(size=(80, 3))
    for seed in range(3):
        params, (state,), sums, _ = fit(algorithm(Case(weights="exponential"), 1), chunked(x), 60, seed)
        assert np.corrcoef((state.z * state.w)[0], w)[0, 1] > 0.99
        assert params.observation.mean[0] @ feature > 0.99 * 14**0.5 * np.linalg.norm(params.observation.mean)
        assert (state.w > 0).all()
        assert (sums.entries.cost >= 0).all()


PREVALENCE = np.array([0.5, 0.36, 0.26, 0.15, 0.05])


@pytest.mark.parametrize("prior", ["finite", "sticks"])
def test_prevalences_are_right_from_a_start_near_the_truth(prior):
    rng = np.random.default_rng(7)
    dictionary = rng.normal(size=(5, 20))
    on = rng.random((600, 5)) < PREVALENCE
    x = (on * rng.exponential(size=on.shape)) @ dictionary + 0.2 * rng.normal(size=(600, 20))
    alg = algorithm(Case(prior, "exponential", noise="column", scale="feature"), 5)
    chunks = chunked(x)
    params, states, draws = begin(alg, chunks)
    near = dictionary + 0.3 * rng.normal(size=dictionary.shape)
    params = replace(params, observation=replace(params.observation, mean=near))
    for step in range(1, 101):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, _ = alg.update(params, sums, draws.at(step))
    assert np.abs(params.on / 600 - on.mean(axis=0)).max() < 0.05
    found = params.observation.mean
    cosine = (found * dictionary).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(dictionary, axis=1)
    assert (cosine > 0.98).all()


# --- lengths ---


PLACES, STEP = np.linspace(0, 60, 60_001, retstep=True)


def entries(seed=4, rows=6, features=3):
    """z, and log densities (feature, row, place) of q(w | z = 1)."""
    rng = np.random.default_rng(seed)
    b, a = 2 * rng.normal(size=(features, rows)), rng.uniform(0.3, 3, (features, rows))
    log = b[..., None] * PLACES - a[..., None] * PLACES**2 / 2 - PLACES
    log -= np.log(np.trapezoid(np.exp(log), dx=STEP, axis=-1))[..., None]
    return rng.random((features, rows)), log


def cost(z, log, c):
    """sum_n E z KL(q(v) || Exp(1)) of v = w / c, integrated over v."""
    length = c[:, None, None]
    made, v = log + np.log(length), PLACES / length
    inside = np.exp(made) * (made + v)
    return (z * np.trapezoid(inside, v, axis=-1)).sum(axis=1)


def test_cost_of_smaller_weights():
    z, log = entries()
    first, c = (z * np.trapezoid(np.exp(log) * PLACES, dx=STEP, axis=-1)).sum(1), np.array([0.5, 1.0, 3.0])
    found = cost(z, log, np.ones(3)) + change_of_cost(z.sum(axis=1), first, c)
    np.testing.assert_allclose(found, cost(z, log, c), rtol=1e-6, atol=1e-6)


def test_lengths_are_where_the_objective_is_highest():
    """Minus the cost, minus half of (cells log c^2 + squares (1 / c^2 - 1)) of the dictionary's prior."""
    z, log = entries()
    beside = Evidence(np.full(3, 2.0), np.array([0.1, 1.0, 30.0]), 0.0)
    first = (z * np.trapezoid(np.exp(log) * PLACES, dx=STEP, axis=-1)).sum(axis=1)
    best = length(z.sum(axis=1), first, beside)

    def value(c):
        return -cost(z, log, c) - 0.5 * (beside.cells * np.log(c**2) + beside.squares * (c**-2.0 - 1))

    for near in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert (value(best) > value(near * best)).all()


def test_unused_features_take_the_length_of_their_prior():
    found = length(np.zeros(1), np.zeros(1), Evidence(np.full(1, 2.0), np.full(1, 8.0), 0.0))
    assert found == pytest.approx(2.0)


def test_lengths_are_best_for_the_objective_of_a_fit():
    """Of every feature alone, with all that goes with its length: dictionary, scale and sums."""
    x, _ = problem(3, 60, 5)
    alg, chunks = algorithm(Case("sticks", "exponential", noise="column", scale="feature")), chunked(x)
    params, (state,), sums, _ = fit(alg, chunks, 8)
    observation, seen, on = alg.model.observation, params.observation, sums.entries.on
    first = (state.z * state.w).sum(axis=1)
    best = length(on, first, observation.length_prior(seen))
    assert (np.abs(np.log(best)) > 0.01).any(), "lengths are not best yet"

    def value(c):
        observed, rescaled = observation.rescaled(seen, sums.observation, c)
        moved = sums.entries.cost + change_of_cost(on, first, c)
        beside = replace(sums.entries, cost=moved, second=sums.entries.second / c**2)
        return alg.score(replace(params, observation=observed), ModelSums(beside, rescaled)).terms[
            "objective"
        ]

    for k in range(len(best)):
        for near in (0.9, 0.99, 1.01, 1.1):
            assert value(best) > value(best * np.where(np.arange(len(best)) == k, near, 1.0))
