"""What every rule promises of z."""

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule
from ibpdist.model.observations.tiles import RULES as COMPILED
from tests.support.model_cases import (
    RULES,
    WEIGHTS,
    Case,
    algorithm,
    chunked,
    fit,
    objectives,
    problem,
    random_params,
)
from tests.support.model_cases import random_state as state_of

every = pytest.mark.parametrize("rule", RULES)
BOTH = pytest.mark.parametrize("weights", WEIGHTS)


def step(rule, weights, seed=1, missing="masked", draws=None):
    case = Case(weights=weights, rule=rule, missing=missing)
    x, observed = problem(2, 40, 4, missing)
    (chunk,), alg = chunked(x, observed), algorithm(case)
    params = random_params(case, alg, [chunk], 2)
    return alg.local(chunk, state_of(case, params, chunk, 2), params, draws or Draws(seed, 1))


def test_every_rule_has_a_compiled_tag():
    assert set(COMPILED) == set(Rule)
    assert len({type(tag) for tag in COMPILED.values()}) == len(Rule)


@every
@BOTH
def test_z_is_a_probability_or_a_decision(rule, weights):
    z = step(rule, weights)[0].z
    if rule == "mean":
        assert ((z > 0) & (z < 1)).mean() > 0.9
    else:
        assert set(np.unique(z)) == {0.0, 1.0}


@every
@BOTH
def test_entropy_only_of_means(rule, weights):
    entropy = step(rule, weights)[1].entries.entropy
    assert (entropy > 0).all() == (rule == "mean")
    assert (entropy == 0).all() == (rule != "mean")


@every
@BOTH
def test_the_same_draws_give_the_same_rows(rule, weights):
    one, two = step(rule, weights, 3), step(rule, weights, 3)
    np.testing.assert_array_equal(one[0].z, two[0].z)
    np.testing.assert_array_equal(one[0].w, two[0].w)


@every
@BOTH
def test_only_draws_depend_on_the_seed(rule, weights):
    one, two = step(rule, weights, 3), step(rule, weights, 4)
    assert np.array_equal(one[0].z, two[0].z) == (rule != "draw")


@BOTH
def test_the_mode_is_where_the_mean_is_above_a_half(weights):
    """For the first feature of a sweep; later ones see what the first became."""
    case = Case(weights=weights)
    x, _ = problem(2, 40, 4)
    (chunk,) = chunked(x)
    params = random_params(case, algorithm(case), [chunk], 2)
    state = state_of(case, params, chunk, 2)
    found = {
        rule: algorithm(Case(weights=weights, rule=rule)).local(chunk, state, params, Draws(1))[0].z[0]
        for rule in ("mean", "mode")
    }
    np.testing.assert_array_equal(found["mode"], found["mean"] > 0.5)


@BOTH
def test_draws_average_to_the_mean_of_the_first_feature(weights):
    case = Case(weights=weights)
    x, _ = problem(2, 5, 4)
    (chunk,) = chunked(x)
    params = random_params(case, algorithm(case), [chunk], 2)
    state = state_of(case, params, chunk, 2)
    mean = algorithm(case).local(chunk, state, params, Draws(1))[0].z[0]
    alg = algorithm(Case(weights=weights, rule="draw"))
    drawn = np.array([alg.local(chunk, state, params, Draws(1, s))[0].z[0] for s in range(2000)])
    error = np.sqrt(mean * (1 - mean) / 2000) + 1e-9
    assert (np.abs(drawn.mean(axis=0) - mean) < 4 * error + 1e-3).all()


@every
def test_only_draws_may_fall(rule):
    x, _ = problem(4, 20, 4)
    alg = algorithm(Case(rule=rule))
    value = objectives(fit(alg, chunked(x), 40)[3])
    assert alg.monotone() == (rule != "draw")
    assert (np.diff(value).min() >= -1e-9 * np.abs(value).max()) == (rule != "draw")
