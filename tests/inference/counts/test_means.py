"""Fits of counts by collapsed means: steps, hidden tokens, starts, and when they end."""

from functools import reduce

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import ibpdist as ibp
from ibpdist.base.errors import InputError, UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine
from ibpdist.catalog.systems import SYSTEMS, build, most_features
from ibpdist.data._base import Chunk
from ibpdist.data.entries import entries_of
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.inference._base import Info
from ibpdist.inference.counts.documents import Documents, DocumentsQuestion
from ibpdist.inference.counts.means import EVALUATIONS, SEED, WAIT
from ibpdist.inference.stopping import SLACK, WINDOW, Snapshot, Steady
from ibpdist.model.weights.gamma import LEAST, MOST, mean_weights, presence
from tests.support import counts_reference as reference
from tests.support.model_cases import COUNTS, begin, chunked, fit, problem_of, steps_of, sweep
from tests.support.planted_counts import planted_counts

MEANS = [name for name in COUNTS if SYSTEMS[name].method == "collapsed_means"]
every = pytest.mark.parametrize("system", MEANS)


def stepped(system, x, features=4, steps=WAIT + 2, **settings):
    """Algorithm, chunk, and (step, before, states, sums, params, trace) of the last step."""
    alg, chunks = build(system, features, settings=settings), chunked(x)
    *_, last = steps_of(alg, chunks, *begin(alg, chunks), steps)
    return alg, chunks[0], last


def split(x, share=0.05):
    """Seen and hidden counts (row, column)."""
    chunk = Chunk(0, 0, x)
    seen, hidden = HeldTokens(share, 1.0, SEED).divided(0, entries_of(chunk))
    return seen.dense(x.shape[1], x.dtype), hidden.dense(x.shape[1], x.dtype)


@every
def test_a_step_is_the_transcription(system):
    x, *_ = problem_of(system, 3, 12, 5)
    x[3] = 0
    alg, _, (_, (states, old), new, sums, made, _) = stepped(system, x)
    seen, hidden = split(x)
    eta = float(alg.model.observation.eta)
    rho = reference.found(
        seen, states[0].y, states[0].rate, old.y, old.shape, np.minimum(old.odds, 700), eta, EVALUATIONS
    )
    y, rate, expected = reference.summed(
        seen, rho, states[0].y, states[0].rate, old.shape, np.minimum(old.odds, 700)
    )
    np.testing.assert_allclose(new[0].y, y, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(new[0].rate, rate, rtol=1e-9)
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(sums, name), value, rtol=1e-9, atol=1e-9, err_msg=name)
    shape = np.clip(old.shape * sums.seen / sums.exposed, LEAST, MOST)
    np.testing.assert_allclose(made.shape, shape, rtol=1e-10)
    assert float(sums.scored) == hidden.sum()
    assert float(sums.nats) == pytest.approx(predicted(hidden, y, rate, old, alg), rel=1e-9)


def predicted(hidden, y, rate, params, alg):
    """Log density of hidden tokens, in loops."""
    smoothing, total = alg.model.observation.smoothing, 0.0
    words = params.y + smoothing
    for n, v in np.argwhere(hidden > 0):
        f = [
            reference.gate(y[n, k], rate[n], params.shape[k], min(params.odds[k], 700))
            for k in range(y.shape[1])
        ]
        weights = [y[n, k] + f[k] * params.shape[k] for k in range(y.shape[1])]
        law = sum(w * words[v, k] / words[:, k].sum() for k, w in enumerate(weights)) / sum(weights)
        total += hidden[n, v] * np.log(law)
    return total


@every
def test_laws_of_features_add_to_one_and_weights_to_the_lengths_of_rows(system):
    x, *_ = planted_counts(rows=40, columns=20)
    alg, _, (_, _, states, sums, made, _) = stepped(system, x.astype(float))
    found = alg.describe(made)
    np.testing.assert_allclose(found["mean"][1].sum(axis=1), 1, rtol=1e-12)
    assert found["tokens"][1].sum() == pytest.approx(float(sums.tokens), rel=1e-10)
    rows = alg.describe_rows(states[0], made)
    lengths = split(x.astype(float))[0].sum(axis=1)
    np.testing.assert_allclose((rows["z"][1] * rows["w"][1]).sum(axis=0), lengths, rtol=0.05)


def test_presence_and_weights_are_those_of_the_transcription():
    rng = np.random.default_rng(0)
    y, rate, shape, odds = (
        rng.gamma(0.5, size=(6, 3)),
        rng.gamma(1, 0.1, 6),
        rng.gamma(1, 0.3, 3),
        np.zeros(3),
    )
    f = presence(y, rate, shape, odds)
    expected = [[reference.gate(y[n, k], rate[n], shape[k], odds[k]) for k in range(3)] for n in range(6)]
    np.testing.assert_allclose(f, expected, rtol=1e-12)
    np.testing.assert_allclose(mean_weights(y, rate, shape, f), (y + f * shape) / (1 + rate[:, None]))


@every
def test_chunks_do_not_change_rows(system):
    x, *_ = planted_counts(rows=30, columns=20)
    x = x.astype(float)
    alg = build(system, 4)
    whole, parts = chunked(x), chunked(x, sizes=[7, 1, 22])
    params, states, draws = begin(alg, whole)
    _, some, _ = begin(alg, parts)
    one, sums = sweep(alg, whole, states, params, draws.at(1))
    several, added = sweep(alg, parts, some, params, draws.at(1))
    np.testing.assert_array_equal(one[0].y, np.concatenate([state.y for state in several]))
    np.testing.assert_allclose(added.y, sums.y, rtol=1e-12, atol=1e-12)
    assert float(added.nats) == pytest.approx(float(sums.nats), rel=1e-12)


def test_a_share_of_the_tokens_of_every_row_is_hidden():
    x = np.random.default_rng(0).poisson(1.0, (400, 12)).astype(float)
    seen, hidden = split(x)
    np.testing.assert_array_equal(seen + hidden, x)
    assert hidden.sum() == pytest.approx(0.05 * x.sum(), rel=0.15), "short rows hide tokens too"
    assert (seen.sum(axis=1)[x.sum(axis=1) > 0] > 0).all()


def test_fits_of_all_seeds_hide_the_same_tokens():
    x, *_ = planted_counts(rows=50)
    found = [ibp.fit(x, system="counts-finite", K=3, steps=3, seed=seed) for seed in (1, 2)]
    assert float(found[0]["params"].scored_tokens) == float(found[1]["params"].scored_tokens)
    assert found[0].attrs["objective"] != found[1].attrs["objective"]


# --- starts ---


def asked(features, rows, seed=0):
    alg = build("counts-finite", features)
    survey = alg.summarise(Chunk(0, 0, np.ones((rows, 2))))
    return Documents().ask(survey, features, Draws(seed))


def test_no_document_is_used_twice_before_all_are():
    few, many = asked(4, 100), asked(30, 20)
    assert len(few.rows) == 20
    assert len(set(few.rows)) == 20
    assert np.bincount(few.features).tolist() == [5] * 4
    assert sorted(many.rows[:20]) == list(range(20))
    assert len(many.rows) == 30


def test_features_begin_with_halves_of_documents():
    x = np.random.default_rng(1).poisson(2.0, (9, 6)).astype(float)
    question = DocumentsQuestion(np.array([4, 4, 7]), np.array([0, 1, 1]), np.asarray(2))
    parts = [Documents().look(c.start, c.entries, 6, question, Draws(3)).y for c in chunked(x, sizes=[5, 4])]
    first, second = np.sum(parts, axis=0).T
    assert first.sum() == (x[4].sum() + 1) // 2
    assert second.sum() == (x[4].sum() + 1) // 2 + (x[7].sum() + 1) // 2
    assert (first <= x[4]).all()
    assert (first != second).any()
    whole = Documents().look(0, entries_of(Chunk(0, 0, x)), 6, question, Draws(3)).y
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)


def test_planted_features_are_found():
    x, words, _ = planted_counts(rows=400)
    found = ibp.fit(x, system="counts-infinite", K=5, seed=3)["params"]["mean"].values
    distance = np.abs(words[:, None] - found).sum(axis=2) / 2
    assert distance[linear_sum_assignment(distance)].max() < 0.25
    assert np.median(distance[linear_sum_assignment(distance)]) < 0.1


def test_a_fit_begins_with_the_features_of_another():
    x, *_ = planted_counts(rows=150)
    first = ibp.fit(x, system="counts-finite", K=5, seed=3)
    again = ibp.fit(x, system="counts-finite", K=5, seed=8, start=first, steps=2)
    assert again.attrs["objective"] == pytest.approx(first.attrs["objective"], rel=0.01)
    cold = ibp.fit(x, system="counts-finite", K=5, seed=8, steps=2)
    assert cold.attrs["objective"] < again.attrs["objective"]


# --- the end ---


def info(objective, slope):
    terms = {"objective": objective, "bound": 0.0, "active": 1.0, "prediction": objective}
    return Snapshot(30, None, Info(terms, slope=slope))


def test_a_fit_ends_when_the_prediction_gains_no_more():
    rule = Steady(1e-6)
    assert rule(None, info(-1000.0, None)) is None
    assert rule(None, info(-1000.0, 2e-6 * SLACK * 1000)) is None
    for slope in (0.5e-6 * SLACK * 1000, 0.0, -3.0):
        said = rule(None, info(-1000.0, slope)).sentence
        assert said.startswith("converged: the prediction of hidden tokens gained ")
        assert " nats a step over the last 10 steps, at most 1e-05 of 1000" in said


def test_the_slope_is_that_of_the_last_steps():
    x, *_ = planted_counts(rows=40)
    alg = build("counts-finite", 4)
    traces = fit(alg, chunked(x.astype(float)), WINDOW + 4)[3]
    assert all("slope" not in trace for trace in traces[:WINDOW])
    gained = traces[-1]["objective"] - traces[-1 - WINDOW]["objective"]
    assert traces[-1]["slope"] == pytest.approx(gained / WINDOW)


def test_the_prior_and_the_shapes_wait():
    x, *_ = planted_counts(rows=40)
    alg, chunks = build("counts-finite", 4), chunked(x.astype(float))
    steps = list(steps_of(alg, chunks, *begin(alg, chunks), WAIT + 1))
    first, waited, learned = steps[0][4], steps[WAIT - 1][4], steps[WAIT][4]
    np.testing.assert_array_equal(waited.shape, first.shape)
    np.testing.assert_array_equal(waited.odds, first.odds)
    assert (learned.shape != waited.shape).all()
    assert (learned.odds != waited.odds).all()


# --- odd data ---


ODD = {
    "empty rows": np.array([[0, 0, 0], [2, 1, 0], [0, 0, 0]]),
    "rows of one token": np.eye(4, 3),
    "a word that never occurs": np.array([[1, 0, 2], [3, 0, 1]]),
    "one row": np.array([[3, 0, 4, 1]]),
    "one word": np.array([[3], [0], [5]]),
    "equal rows": np.tile([2, 0, 1, 3], (6, 1)),
    "nothing": np.zeros((3, 2)),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("features", [1, 3])
@every
@pytest.mark.filterwarnings("ignore:array. column")
def test_odd_counts_give_finite_results(system, name, features):
    found = ibp.fit(ODD[name].astype(float), system=system, K=features, steps=WAIT + 3)
    for group in ("params", "rows"):
        for variable, values in found[group].data_vars.items():
            assert np.isfinite(values).all(), variable


@pytest.mark.parametrize(
    ("value", "words"), [(-1.0, "no count"), (0.5, "no count"), (np.nan, "counts have no missing cells")]
)
def test_what_is_no_count_is_refused(value, words):
    x = np.ones((5, 3))
    x[2, 1] = value
    with pytest.raises(InputError, match=words) as error:
        ibp.fit(x, system="counts-finite", K=2)
    assert (error.value.row, error.value.column) == (2, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eta": 0.0}, "eta"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"shape": 0.0}, "shape"),
        ({"hidden": 0.0}, "hidden"),
        ({"hidden": 1.0}, "hidden"),
        ({"noise": 1.0}, "noise"),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        ibp.fit(np.ones((4, 2)), system="counts-finite", K=2, **settings)


@pytest.mark.parametrize("system", COUNTS)
def test_an_unknown_number_is_refused_with_the_way_out(system):
    with pytest.raises(UsageError, match=f"ibpdist choose --system {system}"):
        most_features(system, {})


@pytest.mark.parametrize("holdout", [0.2, "cells:share=0.2"])
def test_cells_of_counts_are_not_held_out(holdout):
    with pytest.raises(UsageError, match=r"hold out rows:share=0.1 or tokens:share=0.5,rows=0.25"):
        ibp.fit(np.ones((4, 2)), system="counts-finite", K=2, holdout=holdout)


def test_tokens_of_real_valued_data_are_not_held_out():
    with pytest.raises(UsageError, match="is for real-valued data: hold out cells or rows"):
        ibp.fit(np.ones((4, 2)), system="lg-vi-finite", K=2, holdout="tokens:share=0.5,rows=0.25")


def test_counts_far_from_zero_are_not_centred():
    x = np.random.default_rng(0).poisson(10_000, (30, 4)).astype(float)
    found = ibp.fit(x, system="counts-finite", K=2, steps=3)
    assert float(found["params"].tokens.sum()) == pytest.approx(0.95 * x.sum(), rel=1e-3)


def test_sums_of_chunks_add_up_to_those_of_all_rows():
    x, *_ = planted_counts(rows=20)
    alg, parts = build("counts-dense", 3), chunked(x.astype(float), sizes=[12, 8])
    params, states, draws = begin(alg, parts)
    each = [alg.local(c, s, params, draws.at(1))[1] for c, s in zip(parts, states, strict=True)]
    assert float(reduce(combine, each).rows) == 20
