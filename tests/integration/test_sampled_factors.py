"""Samplers of factors with intercept, means of weights and row noise, from the data to the result."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing
from ibpdist.catalog.systems import build
from ibpdist.inference.gibbs.started_by_fit import StartedByFit, hand_entries
from ibpdist.model.observations.gaussian_params import intercept_mean
from tests.support.model_cases import begin, chunked, steps_of, survey

SYSTEMS = ["fa-gibbs-finite", "fa-gibbs-infinite"]
every = pytest.mark.parametrize("system", SYSTEMS)


def data(rows=120, seed=0, gaps=False):
    """Positive amounts above a baseline of 3; some rows are noisy."""
    rng = np.random.default_rng(seed)
    y = (rng.random((rows, 3)) < [0.5, 0.3, 0.2]) * rng.gamma(4.0, 0.4, (rows, 3))
    noise = np.where(rng.random((rows, 1)) < 0.15, 1.2, 0.4) * rng.normal(size=(rows, 8))
    x = 3 + y @ (2 * rng.normal(size=(3, 8))) + noise
    if gaps:
        x[rng.random(x.shape) < 0.05] = np.nan
    return x


@pytest.mark.slow
@every
def test_chunks_and_workers_do_not_matter(system, tmp_path):
    store = tmp_path / "x.zarr"
    ibp.ingest(data(gaps=True), store, chunk_rows=32)
    options = {"system": system, "K": 3, "seed": 2, "steps": 6, "chains": 1, "burn": 0}
    one, two = ibp.fit(store, serial=True, **options), ibp.fit(store, workers=2, **options)
    for group in ("params", "draws", "posterior"):
        for name in one[group].data_vars:
            np.testing.assert_array_equal(one[group][name], two[group][name])
    assert {"intercept", "weight_mean", "row_freedom"} <= set(one["params"].data_vars)
    assert "precision" in one["rows"]


@every
def test_a_fit_hands_over_all_that_it_learned(system):
    """As the start of a sampler of other data, and as its own first steps."""
    chunks = chunked(data(), None, [50, 70])
    sampler = build(system, 4, burn=40)
    assert isinstance(sampler, StartedByFit)
    start = begin(sampler, chunks)
    steps = steps_of(sampler, chunks, *start, 20)
    states, params = next(
        (now, made) for _, _, now, _, made, _ in steps if not isinstance(made.sampler, Nothing)
    )
    fit, found = sampler.fit.handover_params(params.fit), params.sampler
    now = getattr(found, "now", found)
    np.testing.assert_allclose(intercept_mean(now.observation), intercept_mean(fit.observation))
    np.testing.assert_array_equal(now.weights.mean[: len(fit.ids)], fit.weights.mean)
    assert now.observation.row_noise.freedom == fit.observation.row_noise.freedom
    held = hand_entries(sampler.fit, chunks[1], states[1], params.fit, Draws(1))
    own = sampler.fit.describe_rows(states[1], params.fit)["precision"][1]
    np.testing.assert_array_equal(held.precision.mean, own)
    assert np.ptp(held.precision.mean) > 0.5
    other = sampler.sampler.adopt(fit, survey(sampler.sampler, chunks))
    other = getattr(other, "now", other)
    np.testing.assert_array_equal(other.weights.mean, now.weights.mean)


@every
def test_rows_are_even_where_columns_have_mostly_one_value(system):
    x = (np.random.default_rng(1).random((80, 5)) < 0.1).astype(float)
    found = ibp.fit(x, system=system, K=2, steps=4, chains=1, burn=0)
    assert np.isinf(found["params"]["row_freedom"])
    assert "precision" not in found["rows"]


@every
def test_each_of_them_can_be_switched_off(system):
    off = {"intercept": False, "mu": 0.0, "row_noise": "none"}
    found = ibp.fit(data(60), system=system, K=2, steps=4, chains=1, burn=0, **off)
    assert not {"intercept", "weight_mean", "row_freedom"} & set(found["params"].data_vars)
    assert not {"intercept", "weight_mean", "row_freedom"} & set(found["draws"].data_vars)
    assert "precision" not in found["rows"]


@pytest.mark.slow
@every
def test_finds_the_baseline_and_predicts_with_it(system):
    x = data(260)
    found = ibp.fit(x[:200], system=system, K=4, seed=1, steps=120, chains=1)
    # Of one draw; its error is about noise / root of the rows, and that of the dictionary times y.
    np.testing.assert_allclose(found["params"]["intercept"], 3.0, atol=0.4)
    plain = ibp.fit(x[:200], system=system, K=4, seed=1, steps=120, chains=1, intercept=False, mu=0.0)
    ours, theirs = (float(ibp.evaluate(run, x[200:])["score"][-1]) for run in (found, plain))
    assert ours > theirs
