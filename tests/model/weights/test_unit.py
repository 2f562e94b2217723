"""Unit weights: y = z, no state, no cost."""

import numpy as np

from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING
from ibpdist.kernels import respond
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import WeightSums
from ibpdist.model.weights.unit import Unit
from tests.support.model_cases import Case, algorithm, begin, chunked, fit, problem


def test_y_is_z():
    z = np.random.default_rng(1).random((3, 4))
    assert Unit().combine(z, np.zeros((0, 4))) is z


def test_rows_keep_no_weights():
    assert not Unit().has_weights
    x, _ = problem()
    alg = algorithm(Case())
    _, (state,), _ = begin(alg, chunked(x))
    assert state.w.shape == (0, len(x))
    _, (after,), sums, traces = fit(alg, chunked(x), 2)
    assert after.w.shape == (0, len(x))
    assert (sums.entries.cost == 0).all()
    assert "weights" not in traces[-1]


def test_no_terms():
    assert Unit().score(WeightSums(*[np.array([1.0, 2.0])] * 4), NOTHING) == {}


def test_compiled_response_and_rules():
    assert isinstance(Unit().respond(), respond.Unit)
    assert Unit().rules == frozenset(Rule)


def test_sample_is_one():
    normals = np.zeros((2, 5), np.float32)
    found = Unit().sample(2, 5, normals)
    assert found.dtype == np.float32
    assert (found == 1).all()


def test_weights_of_one_have_no_other_length():
    on, none = np.array([3.0, 0.0]), np.zeros(2)
    cost = WeightSums(on, on, on, none)
    slab, lengths = Unit().best(NOTHING, cost, on, Evidence(on, on, 0.0))
    assert slab is NOTHING
    np.testing.assert_array_equal(lengths, [1, 1])
    assert Unit().rescaled(cost, np.ones(2)) is cost


def test_a_weight_of_one_is_no_surprise():
    np.testing.assert_array_equal(Unit().neg_log_prior(np.ones((2, 3))), np.zeros((2, 3)))
