"""What every observation promises, in all its settings."""

from copy import deepcopy
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import MEAN, Rule
from ibpdist.base.structs import arrays_of, combine
from ibpdist.catalog import systems as catalog
from ibpdist.model.priors.always import Always
from ibpdist.model.weights._base import EntryPrior
from tests.support.model_cases import Case, algorithm, chunked, grid, problem, random_params, random_state

OBSERVATIONS = {name: axis for name, axis in catalog._observations().items() if not axis.counts}
CASES = grid(("finite",), ("unit", "normal"), rules=("mean",))


def suits(name, case):
    """An observation of rows that have every feature is one of weights, whose cells are all told apart."""
    return not OBSERVATIONS[name].dense or (case.weights == "normal" and case.missing != "rows")


EVERY = [(name, case) for name in OBSERVATIONS for case in CASES if suits(name, case)]
every = pytest.mark.parametrize(("name", "case"), EVERY, ids=str)
SIZES = [4, 5]


def algorithm_of(name, case):
    """A case with the observation of this name, and with the prior that it goes with."""
    made = algorithm(case)
    observation = OBSERVATIONS[name](
        **{f.name: getattr(made.model.observation, f.name) for f in fields(made.model.observation)}
    )
    prior = Always() if observation.dense else made.model.prior
    return replace(made, model=replace(made.model, prior=prior, observation=observation))


def prepared(name, case):
    x, observed = problem(7, sum(SIZES), 4, case.missing)
    chunks, alg = chunked(x, observed, SIZES), algorithm_of(name, case)
    params = random_params(case, alg, chunks, 7)
    states = [random_state(case, params, chunk, 7) for chunk in chunks]
    odds = EntryPrior.untilted(alg.model.prior.log_odds(params.prior))
    made = [
        alg.model.observation.sweep(c, params.observation, odds, alg.model.weights, MEAN, s, Draws(1), 1)
        for c, s in zip(chunks, states, strict=True)
    ]
    return alg.model.observation, params.observation, chunks, made


@every
def test_sweep(name, case):
    _, _, _, made = prepared(name, case)
    for (state, entries, sums), size in zip(made, SIZES, strict=True):
        assert is_dataclass(state)
        assert is_dataclass(sums)
        assert state.z.shape == (3, size)
        assert state.w.shape == (3 if case.weights == "normal" else 0, size)
        assert float(sums.rows) == size
        np.testing.assert_allclose(entries.on, state.z.sum(axis=1), rtol=1e-12)
        assert (entries.entropy >= 0).all()
        assert (OBSERVATIONS[name].dense) == bool((entries.entropy == 0).all())


@every
def test_update_keeps_what_is_not_its_own(name, case):
    """Shapes, groups and facts of the data stay; variances are positive; q(A) has an entropy."""
    seen, params, _, made = prepared(name, case)
    sums = combine(made[0][2], made[1][2])
    found = seen.update(params, sums, Rule.MEAN, np.random.default_rng(0))
    for field, value in arrays_of(params).items():
        after = arrays_of(found)[field]
        assert after.shape == value.shape, field
        assert np.isfinite(after).all(), field
        if field in ("group", "cells", "squares", "rows", "unit"):
            np.testing.assert_array_equal(after, value)
    assert (found.noise > 0).all()
    assert (found.scale > 0).all()


@every
def test_update_never_lowers_the_score(name, case):
    seen, params, _, made = prepared(name, case)
    sums, rng = combine(made[0][2], made[1][2]), np.random.default_rng(0)
    params, value = seen.update(params, sums, Rule.MEAN, rng), []
    for _ in range(5):
        value.append(sum(seen.score(params, sums).terms.values()))
        params = seen.update(params, sums, Rule.MEAN, rng)
    assert np.diff(value).min() >= -1e-9 * (abs(value[0]) + 36)


@every
def test_score_depends_on_the_sums_alone(name, case):
    """Never a second pass: chunks reduced in either bracketing, read-only, and copied."""
    seen, params, _, made = prepared(name, case)
    sums = combine(made[0][2], made[1][2])
    terms = seen.score(params, sums).terms
    assert terms == seen.score(params, deepcopy(sums)).terms
    assert all(isinstance(v, float) and np.isfinite(v) for v in terms.values())
    assert {"likelihood", "dictionary"} <= terms.keys()


@every
def test_survey_is_a_sum(name, case):
    seen, _, chunks, _ = prepared(name, case)
    x, observed = problem(7, sum(SIZES), 4, case.missing)
    whole = seen.summarise(chunked(x, observed)[0])
    both = combine(*(seen.summarise(chunk) for chunk in chunks))
    for field, value in arrays_of(whole).items():
        if field not in ("looked", "common"):  # frequent values are counted in some rows of each chunk
            np.testing.assert_allclose(arrays_of(both)[field], value, rtol=1e-12, err_msg=field)


@every
def test_results(name, case):
    seen, params, _, _ = prepared(name, case)
    found = seen.describe(params, np.array([1, 2, 0]))
    assert {"mean", "mean_sd", "noise", "scale"} <= found.keys()
    np.testing.assert_array_equal(found["mean"][1], params.mean[[1, 2, 0]])
    assert (found["mean_sd"][1] >= 0).all()


def test_cases_cover_the_members_and_the_settings():
    assert {name for name, _ in EVERY} == set(OBSERVATIONS)
    assert {c.missing for c in CASES} == {"complete", "masked", "block", "rows"}
    assert {c.noise for c in CASES} == {"one", "column", 0.7}
    assert Case() in CASES
