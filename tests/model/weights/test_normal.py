"""Normal weights: y = z w, w ~ N(0, 1) where the feature is on and at its prior where it is off."""

import numpy as np
import pytest
from scipy.stats import norm

from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING
from ibpdist.kernels import respond
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import WeightSums
from ibpdist.model.weights.normal import Normal
from tests.support.model_cases import Case, algorithm, begin, chunked, fit, problem


def test_y_is_z_times_w():
    rng = np.random.default_rng(1)
    z, w = rng.random((3, 4)), rng.normal(size=(3, 4))
    np.testing.assert_array_equal(Normal().combine(z, w), z * w)
    assert (Normal().combine(np.zeros((3, 4)), w) == 0).all()


def test_score_is_minus_the_cost():
    none = np.zeros(2)
    assert Normal().score(WeightSums(none, none, none, np.array([1.5, 2.0])), NOTHING) == {"weights": -3.5}


def test_compiled_response_and_rules():
    assert isinstance(Normal().respond(), respond.Normal)
    assert Normal().respond().precision == 1
    assert Normal().rules == {Rule.MEAN, Rule.DRAW}


def test_sample_is_the_normals():
    normals = np.random.default_rng(2).normal(size=(2, 5))
    np.testing.assert_array_equal(Normal().sample(2, 5, normals), normals)


def test_rows_keep_weights_of_both_signs():
    x, _ = problem(3, 30, 4)
    alg = algorithm(Case(weights="normal"))
    assert begin(alg, chunked(x))[1][0].w.shape == (3, 30)
    _, (state,), sums, traces = fit(alg, chunked(x), 5)
    assert state.w.min() < 0 < state.w.max()
    assert (sums.entries.cost >= 0).all(), "a divergence"
    assert traces[-1]["weights"] == pytest.approx(-sums.entries.cost.sum())


def test_weights_recover_a_planted_factor():
    """One factor with weights of every size: w is proportional to them, up to sign."""
    rng = np.random.default_rng(4)
    w = rng.normal(size=60)
    x = np.outer(w, [3.0, -2.0, 1.0]) + 0.1 * rng.normal(size=(60, 3))
    best = max(
        (fit(algorithm(Case(weights="normal"), 1), chunked(x), 60, seed) for seed in range(3)),
        key=lambda found: found[3][-1]["objective"],
    )
    found = (best[1][0].z * best[1][0].w)[0]
    assert abs(np.corrcoef(found, w)[0, 1]) > 0.99


def test_the_price_of_a_weight_is_paid_only_where_it_is_on():
    """With z off everywhere nothing is paid: prevalence at zero."""
    x = np.zeros((20, 2))
    _, (state,), sums, _ = fit(
        algorithm(Case(weights="normal", noise=1.0, scale=1.0, mass=0.01), 2), chunked(x), 30
    )
    assert state.z.max() < 0.05
    assert sums.entries.cost.sum() < 0.05


# --- lengths ---


def length_problem(seed=4, rows=30, features=3):
    """z, m, v of entries and what the dictionary's prior says of the lengths."""
    rng = np.random.default_rng(seed)
    shape = (features, rows)
    z, m, v = rng.random(shape), 2 * rng.normal(size=shape), rng.random(shape)
    beside = Evidence(np.full(features, 2.0), rng.random(features), 0.0)
    return z, m, v, beside


def cost(z, m, v):
    """sum_n E z KL(N(m, v) || N(0, 1)), one entry at a time."""
    made = np.zeros(len(z))
    for k, n in np.ndindex(z.shape):
        made[k] += z[k, n] * 0.5 * (m[k, n] ** 2 + v[k, n] - np.log(v[k, n]) - 1)
    return made


def test_cost_of_smaller_weights():
    z, m, v, _ = length_problem()
    c = np.array([0.5, 1.0, 3.0])
    on, second = z.sum(axis=1), (z * (m**2 + v)).sum(axis=1)
    first = (z * m).sum(axis=1)
    found = Normal().rescaled(WeightSums(on, first, second, cost(z, m, v)), c)
    np.testing.assert_allclose(found.cost, cost(z, m / c[:, None], v / c[:, None] ** 2), rtol=1e-12)
    np.testing.assert_allclose(found.first, first / c)
    np.testing.assert_allclose(found.second, second / c**2)


def test_lengths_are_where_the_objective_is_highest():
    """Minus the cost, minus half of (cells log c^2 + squares (1 / c^2 - 1)) of the dictionary's prior."""
    z, m, v, beside = length_problem()
    on, second = z.sum(axis=1), (z * (m**2 + v)).sum(axis=1)
    slab, best = Normal().best(NOTHING, WeightSums(on, on, second, on), on, beside)
    assert slab is NOTHING

    def value(c):
        rest = 0.5 * (beside.cells * np.log(c**2) + beside.squares * (c**-2.0 - 1))
        return -cost(z, m / c[:, None], v / c[:, None] ** 2) - rest

    for near in (0.9, 0.999, 1.001, 1.1):
        assert (value(best) > value(near * best)).all()


def test_unused_features_take_the_length_of_their_prior():
    none, beside = np.zeros(1), Evidence(np.full(1, 2.0), np.full(1, 8.0), 0.0)
    _, found = Normal().best(NOTHING, WeightSums(none, none, none, none), none, beside)
    assert found == pytest.approx(2.0)


def test_surprise_is_what_a_draw_costs():
    w = np.random.default_rng(2).normal(size=(2, 5)) * 3
    np.testing.assert_allclose(Normal().neg_log_prior(w), -norm.logpdf(w), rtol=1e-12)
