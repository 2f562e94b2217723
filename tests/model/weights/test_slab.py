"""Normal weights whose mean is learned, against densities written out and integrals."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import kstest, multivariate_normal, norm, truncnorm, uniform

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.inference.moves import delete
from ibpdist.inference.moves.relabel import Edit, blank
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import Slab, WeightSums
from ibpdist.model.weights.normal import ENERGY, MOST, Normal
from ibpdist.predict.annealed import Law
from ibpdist.predict.estimates import Sampling
from ibpdist.predict.exact import exact, patterns
from ibpdist.predict.predict import predictor
from ibpdist.predict.sequential import sequential
from tests.support.model_cases import Case, algorithm, begin, chunked, problem, sweep

LEARNED = Normal(mu="learn")
CASES = [
    Case("finite", "normal", mu="learn"),
    Case("sticks", "normal", noise="column", scale="feature", mu="learn"),
    Case("finite", "normal", noise="column", scale="feature", missing="block", mu="learn"),
    Case("sticks", "normal", noise="column", scale="feature", missing="rows", mu="learn"),
    Case("finite", "normal", family="factorised", scale="feature", mu=1.5),
    Case("finite", "normal", noise="column", scale="feature", rule="mode", mu="learn"),
]


def prepared(case, steps=6, seed=3, rows=30, **settings):
    """A fit after some steps of data far from zero, so that means are far from zero too."""
    x, observed = problem(seed, rows, 4, case.missing)
    x = 2 * x if observed is None else np.where(observed, 2 * x, 0.0)
    chunks, alg = chunked(x, observed, (rows // 3, rows - rows // 3)), algorithm(case, **settings)
    params, states, draws = begin(alg, chunks, seed)
    for step in range(1, steps + 1):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        before, (params, info) = params, alg.update(params, sums, draws.at(step))
    return alg, chunks, states, before, params, sums, info


# --- the entry ---


@pytest.mark.parametrize("mean", [-2.0, 0.3, 4.0])
@pytest.mark.parametrize(("linear", "curve"), [(0.0, 0.0), (1.3, 0.4), (-6.0, 5.0)])
def test_tilt_and_odds_stand_for_the_mean(mean, linear, curve):
    """The evidence of an entry by quadrature, and by the standard response with tilt and other odds."""
    prior = LEARNED.entry_prior(np.array([0.7]), Slab(np.array([mean])))
    shifted = linear + prior.tilt[0]
    v = 1 / (1 + curve)
    found = prior.log_odds[0] + 0.5 * (np.log(v) + v * shifted**2)
    value, _ = quad(lambda w: np.exp(linear * w - curve * w * w / 2) * norm.pdf(w, mean), -15, 20, limit=200)
    assert found == pytest.approx(0.7 + np.log(value), abs=1e-8)


def test_odds_of_each_row_are_tilted_alike():
    slab = Slab(np.array([1.0, -2.0]))
    by_row = LEARNED.entry_prior(np.zeros((2, 5)), slab).log_odds
    np.testing.assert_array_equal(by_row[:, 3], LEARNED.entry_prior(np.zeros(2), slab).log_odds)


def test_the_cost_is_a_divergence_from_the_prior_with_its_mean():
    rng = np.random.default_rng(5)
    z, m, v, mean = rng.random((2, 9)), rng.normal(size=(2, 9)), rng.random((2, 9)), np.array([1.3, -0.4])
    standard = (z * 0.5 * (m * m + v - np.log(v) - 1)).sum(axis=1)
    sums = WeightSums(z.sum(axis=1), (z * m).sum(axis=1), (z * (m * m + v)).sum(axis=1), standard)
    away = m - mean[:, None]
    expected = (z * 0.5 * (away**2 + v - np.log(v) - 1)).sum()
    assert LEARNED.score(sums, Slab(mean))["weights"] == pytest.approx(-expected, rel=1e-12)


# --- mean and length at their best ---


def sums_of(seed, shift):
    rng = np.random.default_rng(seed)
    z, m, v = rng.random((1, 12)), shift + rng.normal(size=(1, 12)), rng.random((1, 12))
    standard = (z * 0.5 * (m * m + v - np.log(v) - 1)).sum(axis=1)
    return WeightSums(z.sum(axis=1), (z * m).sum(axis=1), (z * (m * m + v)).sum(axis=1), standard)


def value(sums, mean, length, beside):
    """The terms of the objective that depend on mean and length."""
    made = LEARNED.rescaled(sums, np.array([length]))
    weights = LEARNED.score(made, Slab(np.array([mean])))["weights"]
    return weights - float(beside.cells[0] * np.log(length) + beside.squares[0] / (2 * length**2))


@pytest.mark.parametrize("shift", [0.0, 1.5, -30.0])
@pytest.mark.parametrize("seed", range(3))
def test_mean_and_length_are_where_the_objective_is_highest(seed, shift):
    sums, beside = sums_of(seed, shift), Evidence(np.full(1, 2.0), np.full(1, 0.6), 0.0)
    slab, lengths = LEARNED.best(Slab(np.zeros(1)), sums, np.ones(1), beside)
    found = minimize(
        lambda at: -value(sums, at[0], np.exp(at[1]), beside),
        [np.clip(shift, -MOST, MOST), 0.1],
        bounds=[(-MOST, MOST), (-5, 8)],
        tol=1e-12,
    )
    assert value(sums, slab.mean[0], lengths[0], beside) >= -found.fun - 1e-7
    assert abs(slab.mean[0]) <= MOST
    assert (abs(slab.mean[0]) == MOST) == (shift == -30.0)


@pytest.mark.parametrize("kept", [-1.0, 0.0, 2.0])
def test_a_feature_without_energy_keeps_its_mean(kept):
    sums, beside = sums_of(1, 1.0), Evidence(np.full(1, 2.0), np.full(1, 0.6), 0.0)
    slab, lengths = LEARNED.best(Slab(np.full(1, kept)), sums, np.full(1, 0.9 * ENERGY), beside)
    assert slab.mean[0] == kept
    for near in (0.9, 0.999, 1.001, 1.1):
        assert value(sums, kept, lengths[0], beside) > value(sums, kept, near * lengths[0], beside)


def test_without_free_lengths_the_mean_alone_is_set():
    sums = sums_of(2, 1.0)
    slab, lengths = LEARNED.best(Slab(np.zeros(1)), sums, np.ones(1), None)
    assert lengths == 1
    np.testing.assert_allclose(slab.mean, sums.first / sums.on)


def test_a_mean_of_zero_is_the_model_without_one():
    sums, beside = sums_of(3, 0.0), Evidence(np.full(1, 2.0), np.full(1, 0.6), 0.0)
    slab, lengths = Normal().best(NOTHING, sums, np.ones(1), beside)
    assert slab is NOTHING
    np.testing.assert_array_equal(lengths, np.sqrt((sums.second + 0.6) / (sums.on + 2)))


# --- fits ---


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case}-{case.mu}")
def test_the_objective_never_falls(case, intercept):
    alg, chunks, states, _, params, _, info = prepared(case, intercept=intercept)
    levels = [info.objective]
    for step in range(7, 60):
        states, sums = sweep(alg, chunks, states, params, Draws(1, step))
        params, info = alg.update(params, sums, Draws(1, step))
        levels.append(info.objective)
    assert np.diff(levels).min() > -1e-8 * abs(levels[-1])
    assert params.weights.mean.any(), "means that stay at zero show nothing"


def test_the_objective_term_by_term():
    """What weights pay, entry by entry, from the state of the rows."""
    alg, _, states, before, params, sums, info = prepared(CASES[1])
    gamma = alg.model.observation
    z, m = (np.concatenate([getattr(s, name) for s in states], axis=1) for name in ("z", "w"))
    lengths, mean = params.observation.stretch[:, None], params.weights.mean[:, None]
    assert gamma.strength(params.observation).shape == (3,)
    variances = posterior_variances(before.observation)[:, None] / lengths**2
    away = m / lengths - mean
    expected = (z * 0.5 * (away**2 + variances - np.log(variances) - 1)).sum()
    assert info.terms["weights"] == pytest.approx(-expected, rel=1e-9)
    np.testing.assert_allclose(sums.entries.first, (z * m).sum(axis=1), rtol=1e-12)


def posterior_variances(observed):
    from ibpdist.model.observations.gaussian_params import precision_gram

    return 1 / (1 + np.diagonal(precision_gram(observed)[0]))


def test_deleting_a_feature_keeps_the_means_of_the_others():
    alg, _, _, _, params, sums, _ = prepared(CASES[1])
    edit = Edit.keep(params.ids, np.array([2, 0]))
    made = blank(alg.model, edit, params)
    np.testing.assert_array_equal(made.weights.mean, params.weights.mean[[2, 0]])
    gains = delete.gains(alg.model, params, sums)
    assert np.isfinite(gains).all()


def test_a_warm_start_keeps_learned_means_alone():
    alg, chunks, _, _, params, _, _ = prepared(CASES[0])
    survey = alg.summarise(chunks[0])
    assert alg.adopt(params, survey).weights is params.weights
    plain = algorithm(dataclasses.replace(CASES[0], mu=0.0))
    assert plain.adopt(params, survey).weights is NOTHING
    again = alg.adopt(replace(params, weights=NOTHING), survey)
    np.testing.assert_array_equal(again.weights.mean, np.zeros(3))


@pytest.mark.parametrize("value", ["yes", 5.0, -4.1, True, float("nan")])
def test_bad_settings(value):
    with pytest.raises(UsageError, match=r"mu: .*expected learn or a number between -4 and 4"):
        Normal(mu=value)


# --- draws ---


def test_means_are_drawn_from_their_conditional():
    """The normal about the mean weight, cut at its limits; uniform for a feature that no row has."""
    on, first = np.array([4.0, 25.0, 1.0, 0.0, 9.0, 2.0]), np.array([2.0, 99.0, -9.0, 0.0, -90.0, 70.0])
    sums = WeightSums(on, first, first**2, on)
    slab, rng = Slab(np.zeros(6)), np.random.default_rng(3)
    found = np.array([Normal("learn").drawn(slab, sums, rng).mean for _ in range(4000)])
    assert (np.abs(found) <= MOST).all()
    for k in range(6):
        low, high, centre, sd = -MOST, MOST, 0.0, 1.0
        law = uniform(low, high - low)
        if on[k]:
            centre, sd = first[k] / on[k], on[k] ** -0.5
            law = truncnorm((low - centre) / sd, (high - centre) / sd, centre, sd)
        assert kstest(found[:, k], law.cdf).pvalue > 1e-3


def test_means_far_beyond_their_limits_are_at_them():
    sums = WeightSums(np.full(2, 1e6), np.array([1e9, -1e9]), np.ones(2), np.ones(2))
    found = Normal("learn").drawn(Slab(np.zeros(2)), sums, np.random.default_rng(0))
    np.testing.assert_allclose(found.mean, [MOST, -MOST], atol=1e-6)


def test_a_mean_that_is_a_number_stays():
    slab, sums = Slab(np.full(2, 1.5)), WeightSums(*np.ones((4, 2)))
    assert Normal(1.5).drawn(slab, sums, np.random.default_rng(0)) is slab
    assert Normal(1.5).newborn(np.array([0.1])).mean == [1.5]
    assert isinstance(Normal(0.0).newborn(np.array([0.1])), Nothing)
    np.testing.assert_allclose(Normal("learn").newborn(np.array([0.0, 0.5, 1.0])).mean, [-MOST, 0, MOST])


@pytest.mark.parametrize("slab", [NOTHING, Slab(np.array([0.5, -2.0]))])
def test_weights_are_sampled_about_their_means(slab):
    normals = np.random.default_rng(1).normal(size=(2, 3))
    mean = np.zeros(2) if slab is NOTHING else slab.mean
    np.testing.assert_array_equal(Normal().sample(2, 3, normals, slab), normals + mean[:, None])


# --- rows that were not fitted ---


def law(seed=4, features=3, columns=5, intercept=True):
    """A predictor with means of weights, variance of the dictionary and an intercept."""
    rng = np.random.default_rng(seed)
    params = {
        "mean": rng.normal(size=(features, columns)),
        "basis": 0.3 * rng.normal(size=(1, features, features)),
        "spectrum": rng.random((1, features)),
        "group": np.zeros(columns, int),
        "noise": 0.3 + rng.random(columns),
        "chance": rng.uniform(0.2, 0.8, features),
        "weight_mean": np.array([2.0, -0.5, 3.5])[:features],
    }
    if intercept:
        params |= {
            "intercept": rng.normal(size=columns),
            "centre": rng.normal(size=(1, features)),
            "intercept_error": 0.05 * rng.random(columns),
        }
    return predictor(params, "normal"), rng


def joint_density(of, x, cells):
    """log p of the cells (flags) of one row: each pattern's normal with its mean and covariance."""
    logs = []
    for z in patterns(of.features, 0, 2**of.features):
        on = z > 0
        a, mu = of.mean[on], of.tilt[on]
        psi = np.empty(len(of.noise))
        for d in range(len(psi)):
            sigma = (of.basis[0] / (1 + of.spectrum[0] / of.noise[d])) @ of.basis[0].T
            centre = np.zeros(of.features) if of.intercept is None else of.intercept.centre[0]
            away = z * of.tilt - centre
            error = 0.0 if of.intercept is None else of.intercept.error[d]
            psi[d] = of.noise[d] + error + away @ sigma @ away + z @ np.diag(sigma)
        cov = np.diag(psi) + a.T @ a
        density = multivariate_normal((mu @ a)[cells], cov[np.ix_(cells, cells)]).logpdf(x[cells])
        prior = np.log(expit(of.log_odds))[on].sum() + np.log(expit(-of.log_odds))[~on].sum()
        logs.append(prior + density)
    return logsumexp(logs)


@pytest.mark.parametrize("intercept", [False, True])
def test_enumerated_scores_are_those_of_the_joint_normal(intercept):
    of, rng = law(intercept=intercept)
    x = rng.normal(size=(6, 5)) + 2
    visible = rng.random((6, 5)) < 0.6
    visible[:, 0], visible[:, 1] = True, False
    found = exact(of, x, visible, ~visible)
    for n in range(len(x)):
        every = np.ones(5, bool)
        expected = joint_density(of, x[n], every) - joint_density(of, x[n], visible[n])
        assert found[n] == pytest.approx(expected, abs=1e-9)


def test_patterns_of_rows_one_by_one_have_the_same_density():
    from ibpdist.predict.predict import NormalDensity

    of, rng = law()
    x, cells = rng.normal(size=(8, 5)), (rng.random((8, 5)) < 0.7).astype(float)
    z = patterns(3, 0, 8)
    density = NormalDensity(of)
    grid = density.grid(np.where(cells > 0, x, 0.0), cells, z)
    each = density.each(np.where(cells > 0, x, 0.0), cells, z)
    np.testing.assert_allclose(each, np.diagonal(grid), rtol=1e-10)


@pytest.mark.slow
def test_chains_agree_with_enumeration():
    of, rng = law(intercept=False)
    x = rng.normal(size=(20, 5)) + 1
    visible = np.tile([True, False, True, True, False], (20, 1))
    plug, _ = sequential(of, x, visible, ~visible, Sampling(chains=32))
    expected = exact(of.plug_in(), x, visible, ~visible)
    assert (np.abs(plug.score - expected) < 4 * plug.error + 0.02).all()
    assert abs((plug.score - expected).mean()) < 0.03


def test_the_typical_noise_is_the_mean_over_rows():
    """Moments of y drawn from the prior."""
    of, rng = law()
    z = rng.random((200_000, 3)) < expit(of.log_odds)
    y = z * (of.tilt + rng.normal(size=z.shape))
    np.testing.assert_allclose(Law.of(of).psi, of.noise + of.variance(y).mean(axis=0), rtol=0.01)


def test_selecting_features_takes_their_means():
    of, _ = law()
    np.testing.assert_array_equal(of.select(np.array([2, 0])).tilt, of.tilt[[2, 0]])
