"""Laplace weights: y = z w, w ~ Laplace(0, 1) where the feature is on and at its prior where it is off."""

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, replace
from ibpdist.inference.ascent.params import ModelSums, weight_sums
from ibpdist.model.model import Model
from ibpdist.model.observations.joint import Joint
from ibpdist.model.priors.always import Always
from ibpdist.model.weights._base import FixedWeights
from ibpdist.model.weights.laplace import Laplace
from tests.kernels.test_laplace import weighed
from tests.support.model_cases import (
    Case,
    algorithm,
    begin,
    chunked,
    fit,
    objectives,
    prior_moments,
    problem,
    random_params,
    random_state,
    reference_state,
    sweep,
)
from tests.support.model_reference import local
from tests.support.planted_sources import SourceProblem
from tests.support.weighted_evidence import log_evidence


def test_what_a_draw_costs():
    w = np.random.default_rng(2).normal(size=(2, 5)) * 3
    np.testing.assert_allclose(Laplace().neg_log_prior(w), -laplace.logpdf(w), rtol=1e-12)


def test_samples_are_laplace_in_both_tails():
    normals = np.random.default_rng(2).normal(size=(2, 20_000))
    w = Laplace().sample(2, 20_000, normals)
    assert kstest(w.ravel(), "laplace").pvalue > 1e-3
    far = Laplace().sample(1, 2, np.array([[-20.0, 20.0]]))
    np.testing.assert_allclose(laplace.logsf(far[0, 1]), norm.logsf(20.0), rtol=1e-12)
    assert far[0, 0] == -far[0, 1]
    assert Laplace().sample(1, 2, np.zeros((1, 2), np.float32)).dtype == np.float32


def test_moments_of_the_prior():
    w = Laplace().sample(1, 200_000, np.random.default_rng(3).normal(size=(1, 200_000)))
    assert Laplace().second == pytest.approx(np.square(w).mean(), rel=0.03)
    np.testing.assert_array_equal(Laplace().variance(np.array([0.0, 0.25])), [0, 0.5])


def test_it_is_refused_where_weights_are_integrated_out_together():
    with pytest.raises(UsageError, match=r"gaussian_joint: .* normal ones, not laplace"):
        Model(Always(), Laplace(), Joint())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_turned_feature_turns_its_weights(dtype):
    """The same bits with the other sign, so nothing prefers one."""
    case = Case(weights="laplace")
    (chunk,) = chunked(problem(2, 40, 4, dtype=dtype)[0])
    alg = algorithm(case)
    params = random_params(case, alg, [chunk], 2)
    state, seen = random_state(case, params, chunk, 2), params.observation
    turn = np.array([-1.0, 1.0, 1.0])
    basis = seen.basis * turn[:, None]
    turned = replace(params, observation=replace(seen, mean=seen.mean * turn[:, None], basis=basis))
    other = replace(state, w=(state.w * turn[:, None]).astype(dtype))
    one, sums = alg.local(chunk, state, params, Draws(1))
    two, mirrored = alg.local(chunk, other, turned, Draws(1))
    np.testing.assert_allclose(two.z, one.z, rtol=1e-4 if dtype == np.float32 else 1e-10)
    np.testing.assert_allclose(two.w, one.w * turn[:, None], rtol=1e-3 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(mirrored.entries.cost, sums.entries.cost, rtol=1e-4)


def test_the_objective_is_highest_where_a_row_is():
    """Of one entry: nu (b m1 - a m2 / 2 - cost) + entropy + nu odds, at any other (b, a) of q(w | z = 1)."""
    b, a, odds = 2.3, 1.7, -0.4

    def value(near_b, near_a):
        _, mean, square, cost = weighed(near_b, near_a)[:, 0]
        gain = odds + b * mean - a * square / 2 - cost
        return np.logaddexp(0, gain)

    best = value(b, a)
    assert best == pytest.approx(np.logaddexp(0, odds + weighed(b, a)[0, 0]), rel=1e-12)
    for step in (-0.3, -1e-3, 1e-3, 0.3):
        assert value(b + step, a) < best
        assert value(b, a + step) < best


@pytest.mark.parametrize("rule", ["mean", "mode"])
def test_the_bound_is_below_the_evidence(rule):
    x = np.array([[1.2, -0.7], [0.1, 0.4], [-2.0, 1.1]])
    case = Case("finite", "laplace", noise=0.5, scale=1.5, mass=1.3, rule=rule)
    exact, error = log_evidence(x, 0.5, 1.5, 1.3)
    best = max(objectives(fit(algorithm(case, 2), chunked(x), 100, seed)[3]).max() for seed in range(3))
    assert error < 0.01
    assert exact - 6 < best < exact - 5 * error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
def test_many_steps_never_fall(missing, dtype):
    x, observed = problem(4, 60, 5, missing, dtype)
    case = Case("sticks", "laplace", noise="column", scale="feature", missing=missing)
    value = objectives(fit(algorithm(case, 4), chunked(x, observed, [25, 35]), 100)[3])
    assert np.diff(value).min() >= -(1e-6 if dtype == np.float32 else 1e-9) * (np.abs(value).max() + x.size)


def test_weights_recover_a_planted_component():
    """One with weights of both signs: w is proportional to them, up to sign."""
    rng = np.random.default_rng(4)
    w = rng.laplace(size=80)
    x = np.outer(w, [3.0, -2.0, 1.0]) + 0.1 * rng.normal(size=(80, 3))
    fits = (fit(algorithm(Case(weights="laplace"), 1), chunked(x), 60, seed) for seed in range(3))
    _, (state,), sums, _ = max(fits, key=lambda found: found[3][-1]["objective"])
    assert abs(np.corrcoef((state.z * state.w)[0], w)[0, 1]) > 0.99
    assert (sums.entries.cost >= 0).all()


def test_nothing_is_paid_where_a_feature_is_off():
    alg = algorithm(Case(weights="laplace", noise=1.0, scale=1.0, mass=0.01), 2)
    chunks = chunked(np.zeros((20, 2)))
    params, states, draws = begin(alg, chunks)
    for step in range(30):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, _ = alg.update(params, sums, draws.at(step))
    assert states[0].z.max() < 0.1
    assert sums.entries.cost.sum() < 0.05


# --- lengths ---


def test_sums_of_sizes_are_those_of_the_reference():
    """E |y| in place of E y, over complete rows and over rows with hidden cells."""
    for missing in ("complete", "rows"):
        case = Case(weights="laplace", missing=missing)
        x, observed = problem(3, 12, 4, missing)
        alg, chunks = algorithm(case, 3), chunked(x, observed)
        params = random_params(case, alg, chunks, 3)
        state = random_state(case, params, chunks[0], 3)
        on, off = prior_moments(case, params)
        met = local(case, reference_state(case, params, [state], chunks), on - off)
        _, sums = alg.local(chunks[0], state, params, Draws(1))
        np.testing.assert_allclose(sums.entries.first, (met.nu * met.size).sum(axis=0), rtol=1e-10)
        assert (sums.entries.first > np.abs(met.nu * met.m).sum(axis=0) * (1 + 1e-6)).all()


def test_lengths_are_best_for_the_objective_of_a_fit():
    """Of every feature alone, with all that goes with its length: dictionary, scale and sums."""
    x, _ = problem(3, 60, 5)
    alg, chunks = algorithm(Case("sticks", "laplace", noise="column", scale="feature")), chunked(x)
    params, _, sums, _ = fit(alg, chunks, 8)
    observation, seen, weights = alg.model.observation, params.observation, alg.model.weights
    _, best = weights.best(NOTHING, weight_sums(sums.entries), None, observation.length_prior(seen))
    assert (np.abs(np.log(best)) > 0.01).any(), "lengths are not best yet"

    def value(c):
        observed, rescaled = observation.rescaled(seen, sums.observation, c)
        moved = weights.rescaled(weight_sums(sums.entries), c)
        beside = replace(sums.entries, cost=moved.cost, first=moved.first, second=moved.second)
        info = alg.score(replace(params, observation=observed), ModelSums(beside, rescaled))
        return info.terms["objective"]

    for k in range(len(best)):
        for near in (0.9, 0.99, 1.01, 1.1):
            other = best.copy()
            other[k] *= near
            assert value(other) < value(best)


def test_fits_that_move_length_get_further(monkeypatch):
    """Ten steps from near planted sources with little noise end above ten without, in each of four."""

    def ended():
        alg = algorithm(Case(weights="laplace", noise="one", scale="feature"), 5)
        planted = (SourceProblem(seed, 0.1).planted for seed in range(4))
        return [objectives(near_truth(alg, chunked(one.x), one.mixing, 10))[-1] for one in planted]

    with_it = ended()
    monkeypatch.setattr(Laplace, "best", FixedWeights.best)
    assert (np.subtract(with_it, ended()) > 1).all()


def near_truth(alg, chunks, mixing, steps):
    """The trace of a fit whose dictionary begins near the planted one."""
    params, states, draws = begin(alg, chunks)
    near = mixing + 0.05 * np.random.default_rng(1).normal(size=mixing.shape)
    params = replace(params, observation=replace(params.observation, mean=near))
    trace = []
    for step in range(1, steps + 1):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, info = alg.update(params, sums, draws.at(step))
        trace.append(info.trace())
    return trace


def test_the_default_is_one_noise_and_independent_components():
    found = ibp.fit(
        SourceProblem(1, 0.3, rows=60).planted.x, system="ica-vi-finite", K=3, steps=3, serial=True
    )
    assert len(set(np.atleast_1d(found["params"]["noise"].values))) == 1
    assert "start_objective" in found["params"]
