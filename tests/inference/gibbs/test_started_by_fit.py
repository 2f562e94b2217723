"""A sampler that begins where a fit has settled: when it is handed over, and what survives it."""

import json
from copy import deepcopy

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import Nothing, arrays_of, pack, unpack
from ibpdist.catalog.systems import build
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.gibbs.anchored import Anchored
from ibpdist.inference.gibbs.started_by_fit import StartedByFit, hand_entries
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.support.compare import assert_same_record
from tests.support.model_cases import begin, chunked, fit, plain, steps_of, survey, sweep

SIZES = [50, 31, 39]
KINDS = ("lg", "fa", "search", "finite")


def data(seed=0, rows=120, columns=8, features=3, weighted=False, masked=False):
    rng = np.random.default_rng(seed)
    z = (rng.random((rows, features)) < 0.4) * (rng.normal(size=(rows, features)) if weighted else 1.0)
    a = 2 * rng.normal(size=(features, columns))
    observed = rng.random((rows, columns)) < 0.9 if masked else None
    x = z @ a + 0.4 * rng.normal(size=(rows, columns))
    return (x if observed is None else np.where(observed, x, 0.0)), observed, z, a


def warmed(kind="lg", steps=30, features=5):
    weights = Normal() if kind == "fa" else Unit()
    if kind == "finite":
        sampler = Coordinate(Model(BetaBernoulli(), weights, Gaussian(missing="exact"), DRAW), features)
        return StartedByFit(plain("lg-vi-finite", features), sampler, steps)
    sampler = Anchored(Model(Buffet(), weights, Gaussian(), DRAW))
    if kind == "search":
        return StartedByFit(build("lg-vi-infinite", features), sampler, steps)
    settings = {"noise": "one", "scale": "one"}
    return StartedByFit(plain(f"{kind}-vi-infinite", features, settings=settings), sampler, steps)


def prepared(kind="lg", steps=30, masked=False):
    x, observed, *_ = data(weighted=kind == "fa", masked=masked)
    alg, chunks = warmed(kind, steps), chunked(x, observed, SIZES)
    return alg, chunks, *begin(alg, chunks)


def sampling(params):
    return not isinstance(params.sampler, Nothing)


# --- handing over ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_what_it_is_alone(kind):
    alg, chunks, *rest = prepared(kind, 6)
    alone = fit(alg.fit, chunks, 6)[3]
    for (*_, trace), expected in zip(steps_of(alg, chunks, *rest, 6), alone, strict=True):
        assert trace == {**expected, "warming": 1.0}


@pytest.mark.parametrize("steps", [1, 4])
def test_hands_over_at_the_limit(steps):
    for at, _, _, _, params, trace in steps_of(*prepared("lg", steps), steps + 3):
        assert sampling(params) is (at >= steps)
        assert isinstance(params.fit, Nothing) is (at > steps)
        assert trace["warming"] == float(at <= steps)
        assert isinstance(params.survey, Nothing) is (at >= steps)


def test_hands_over_when_the_fit_has_settled():
    alg, chunks, *rest = prepared("search", 1000)
    found = [
        (at, trace) for at, _, _, _, params, trace in steps_of(alg, chunks, *rest, 200) if sampling(params)
    ]
    first = found[0][0]
    assert 3 < first < 150
    levels = [trace["objective"] for trace in fit(alg.fit, chunks, first)[3]]
    assert 0 <= levels[-1] - levels[-2] < 1e-6 * abs(levels[-1])
    assert fit(alg.fit, chunks, first)[3][-1].get("settled", 1.0)


def test_rows_are_drawn_from_what_the_fit_says():
    alg, chunks, *rest = prepared("search", 4)
    *_, (_, _, states, _, params, _) = steps_of(alg, chunks, *rest, 4)
    named = alg.fit.describe_rows(states[0], params.fit)["z"][1]
    drawn = [hand_entries(alg.fit, chunks[0], states[0], params.fit, Draws(seed)) for seed in range(200)]
    ids = alg.fit.describe(params.fit)["id"][1]
    assert all(isinstance(d, RowState) and np.array_equal(d.ids, ids) for d in drawn)
    z = np.array([d.z for d in drawn])
    assert np.isin(z, (0, 1)).all()
    error = np.sqrt(named * (1 - named) / 200)
    assert (np.abs(z.mean(axis=0) - named) <= 5 * error + 1e-3).all()


def test_weights_are_handed_over():
    alg, chunks, *rest = prepared("fa", 10)
    *_, (_, _, states, _, params, _) = steps_of(alg, chunks, *rest, 10)
    held = hand_entries(alg.fit, chunks[1], states[1], params.fit, Draws(1))
    np.testing.assert_array_equal(held.w, alg.fit.describe_rows(states[1], params.fit)["w"][1])
    assert np.abs(held.w).max() > 0.1


@pytest.mark.parametrize("masked", [False, True])
def test_the_sampler_goes_on_where_the_fit_was(masked):
    """Its features are those planted, from the first sweeps on."""
    x, observed, z, a = data(masked=masked)
    alg, chunks = warmed("search", 100), chunked(x, observed, SIZES)
    params, states, _, traces = fit(alg, chunks, 160)
    after = [t for t in traces if t["warming"] == 0]
    assert len(after) > 20
    assert max(t["active"] for t in after) <= 6
    found, shown = alg.describe(params), [alg.describe_rows(s, params)["z"][1] for s in states]
    match = np.abs(found["mean"][1][:, None] - a).mean(axis=2)
    assert (match.min(axis=0) < 0.3).all()
    rows = np.concatenate(shown, axis=1)
    for k, place in enumerate(match.argmin(axis=0)):
        assert (rows[place] == z[:, k]).mean() > 0.95


# --- a parallel algorithm ---


@pytest.mark.parametrize("kind", KINDS)
def test_row_state_lost_at_any_step_is_made_again(kind):
    alg, chunks, params, states, draws = prepared(kind, 5, masked=kind == "lg")
    known = [params]
    for at, _, now, _, made, _ in steps_of(alg, chunks, params, states, draws, 11):
        state = alg.start(chunks[1], known[0], draws)
        for missed in range(1, at + 1):
            state, _ = alg.local(chunks[1], state, known[missed - 1], draws.at(missed))
        assert_same_record(state, now[1])
        known.append(made)


@pytest.mark.parametrize("kind", KINDS)
def test_pure_and_stored_between_steps(kind):
    def through(record):
        outline, arrays = pack(record)
        return unpack(json.loads(json.dumps(outline)), {name: a.copy() for name, a in arrays.items()})

    alg, chunks, params, states, draws = prepared(kind, 4)
    other, rows = through(params), [through(s) for s in states]
    for at, (before, old), now, _, made, trace in steps_of(alg, chunks, params, states, draws, 9):
        for record in (old, *before):
            for value in arrays_of(record).values():
                value.flags.writeable = False
        rows, sums = sweep(alg, chunks, rows, other, draws.at(at))
        other, other_info = alg.update(other, deepcopy(sums), draws.at(at))
        assert trace == other_info.trace()
        other, rows = through(other), [through(s) for s in rows]
        assert_same_record(made, other)
        for a, b in zip(now, rows, strict=True):
            assert_same_record(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_results_fit_together_at_every_step(kind):
    alg, chunks, *rest = prepared(kind, 4)
    for _, _, now, _, made, trace in steps_of(alg, chunks, *rest, 9):
        found, final = alg.describe(made), alg.handover_params(made)
        shown = [alg.describe_rows(s, made) for s in now]
        z = np.concatenate([named["z"][1] for named in shown], axis=1)
        assert found["mean"][1].shape == (len(z), 8)
        np.testing.assert_allclose(z.mean(axis=1), found["prevalence"][1], atol=1e-12)
        assert len(final.ids) == len(z)
        assert np.isfinite(list(trace.values())).all()
        assert alg.additive(made)


def test_parameters_of_another_fit_need_no_warming():
    x, observed, *_ = data()
    alg, chunks = warmed("lg"), chunked(x, observed, SIZES)
    found = alg.fit.handover_params(fit(alg.fit, chunks, 20)[0])
    params = alg.adopt(found, survey(alg, chunks))
    assert sampling(params)
    states = [alg.start(c, params, Draws(1)) for c in chunks]
    for _, _, _, _, made, trace in steps_of(alg, chunks, params, states, Draws(1), 6):
        assert trace["warming"] == 0
        assert isinstance(made.fit, Nothing)


def test_says_what_it_is():
    alg, *_ = prepared()
    assert not alg.monotone()
    assert isinstance(alg.row_inference(), Coordinate)
    assert alg.row_inference().model.draws
    with pytest.raises(UsageError, match="steps is -1"):
        warmed(steps=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_step_of_the_fit_the_sampler_begins_by_itself(kind):
    alg, chunks, params, states, draws = prepared(kind, steps=0)
    own = begin(alg.sampler, chunks)
    pairs = zip(
        steps_of(alg, chunks, params, states, draws, 4), steps_of(alg.sampler, chunks, *own, 4), strict=True
    )
    for (_, _, mine, _, made, trace), (_, _, theirs, _, other, terms) in pairs:
        assert trace == {**terms, "warming": 0.0}
        assert_same_record(made.sampler, other)
        for one, two in zip(mine, theirs, strict=True):
            assert_same_record(one, two)
