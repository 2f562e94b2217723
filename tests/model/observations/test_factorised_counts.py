"""Counts as products of factors: sums, objective, updates, starts and laws, against a transcription."""

import json
from dataclasses import fields
from dataclasses import replace as changed

import numpy as np
import pytest
from scipy.special import gammaln

from ibpdist.base.errors import UsageError
from ibpdist.base.structs import combine, pack, replace, unpack
from ibpdist.kernels.token_flips import Effort, RowModes
from ibpdist.model.observations.factorised_counts import (
    EVERY,
    MANY,
    FactorisedCounts,
    FactorisedParams,
    everywhere,
    largest,
)
from ibpdist.model.priors import BetaBernoulli, StickBreaking
from ibpdist.model.priors.always import Always
from ibpdist.model.priors.beta_process import BetaProcess
from tests.support import counts_flips_reference as reference
from tests.support.factorised_fit import Fit

EXACT = {"rtol": 1e-10, "atol": 1e-10}
PRIORS = {
    "always": Always(),
    "finite": BetaBernoulli(),
    "sticks": StickBreaking(),
    "beta process": BetaProcess(rounds=8),
}
SETTINGS = {"posterior": FactorisedCounts(0.3, 0.4), "point": FactorisedCounts(0.3, 0.4, point=True)}
settings = pytest.mark.parametrize("name", SETTINGS)
every_prior = pytest.mark.parametrize("prior", PRIORS)


def planted(rows=60, columns=40, features=4, seed=0, mean=30.0):
    """Words of features (column, feature), how many tokens of each a row expects, and counts."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(columns, 0.1), features).T
    z = rng.random((rows, features)) < 0.5
    amount = z * rng.gamma(2.0, mean / 2, z.shape)
    return words, amount, rng.poisson(amount @ words.T).astype(float)


def some_words(x, features, seed=0):
    """(column, feature) tokens of random rows."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(len(x), 2 + len(x) // (3 * features)) for _ in range(features)]
    return np.array([x[rows].sum(axis=0) for rows in chosen]).T + 0.1


def prepared(counts, rows=9, columns=11, features=4):
    """Rows that have some features, a dictionary, and the sums of these rows."""
    rng = np.random.default_rng(3)
    x = rng.poisson(0.8, (rows, columns)).astype(float)
    x[1], x[:, 4] = 0, 0
    shape = counts._word_shape + rng.gamma(2.0, 3.0, (columns, features))
    params = FactorisedParams(shape=shape, rate=rng.gamma(5.0, 1.0, features))
    on = (rng.random((rows, features)) < 0.6).astype(np.int8)
    on[:, 0] = 1
    before = RowModes(on, on * rng.gamma(2.0, 1.0, on.shape), rng.gamma(3.0, 0.4, rows))
    odds = rng.normal(size=features)
    _, sums = counts.local(params, odds, Fit().entries(x), np.arange(columns), before, Effort(0, 0))
    world = reference.World(
        shape, params.rate, odds, counts._weight_shape, counts._word_shape, point=counts.point
    )
    return x, params, before, sums, world


def totalled(counts, params, sums):
    return sum(counts.score(params, sums).values())


def compare(sums, expected):
    for field in fields(sums):
        np.testing.assert_allclose(
            getattr(sums, field.name), expected[field.name], **EXACT, err_msg=field.name
        )


@settings
def test_sums_are_the_transcription(name):
    x, _, rows, sums, world = prepared(SETTINGS[name])
    compare(sums, reference.summed(world, x, rows.on, rows.y, rows.exposure, np.ones(4)))


@settings
def test_terms_of_the_objective_are_the_transcription(name):
    """Of the dictionary that rows were made with, and of the next one."""
    counts = SETTINGS[name]
    _, params, _, sums, world = prepared(counts)
    for own in (params, counts.updated(sums)):
        here = changed(world, shape=np.maximum(own.shape, 1e-290), rate=own.rate)
        expected = reference.scored(here, {f.name: getattr(sums, f.name) for f in fields(sums)})
        found = counts.score(own, sums)
        assert found.keys() == expected.keys()
        np.testing.assert_allclose([*found.values()], [expected[term] for term in found], **EXACT)


def test_a_step_without_new_rounds_tells_the_objective_of_rows():
    """The terms add up to the values of rows, less what does not depend on them."""
    counts = SETTINGS["posterior"]
    x, params, rows, sums, world = prepared(counts)
    own = sum(
        reference.row_value(world, x[n], rows.on[n], rows.y[n], rows.exposure[n]) for n in range(len(x))
    )
    terms = counts.score(params, sums)
    found = terms["counts"] + terms["weights"] + float(sums.on @ world.odds) + gammaln(x + 1).sum()
    assert found == pytest.approx(own, rel=1e-12)


@settings
def test_the_dictionary_has_its_optimum(name):
    counts = SETTINGS[name]
    _, _, _, sums, _ = prepared(counts)
    best = counts.updated(sums)
    top = totalled(counts, best, sums)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1):
        for _ in range(5):
            shape = best.shape * np.exp(size * rng.normal(size=best.shape.shape))
            rate = best.rate * np.exp(size * rng.normal(size=best.rate.shape))
            assert totalled(counts, FactorisedParams(shape=shape, rate=rate), sums) < top


def test_scaled_weights_have_the_sums_of_scaled_weights():
    counts = SETTINGS["posterior"]
    x, _, rows, sums, world = prepared(counts)
    scaled = counts.balanced(sums)
    length = sums.amount / scaled.amount
    assert (np.abs(np.log(length)) > 0.01).all()
    compare(scaled, reference.summed(world, x, rows.on, rows.y, rows.exposure, length))


def test_lengths_are_at_their_optimum_together_with_the_dictionary():
    """Any other length of any feature ends lower, also with the best dictionary for it."""
    counts = SETTINGS["posterior"]
    x, _, rows, sums, world = prepared(counts)
    scaled = counts.balanced(sums)
    best = totalled(counts, counts.updated(scaled), scaled)
    length = sums.amount / scaled.amount
    assert best > totalled(counts, counts.updated(sums), sums)
    for k in range(4):
        for factor in (0.5, 0.99, 1.01, 2.0):
            other = length.copy()
            other[k] *= factor
            made = reference.summed(world, x, rows.on, rows.y, rows.exposure, other)
            made = replace(sums, **made)
            assert totalled(counts, counts.updated(made), made) < best


def test_a_feature_that_no_row_has_keeps_its_length():
    counts = SETTINGS["posterior"]
    _, _, _, sums, _ = prepared(counts)
    bare = replace(
        sums,
        y=sums.y * [1, 0, 1, 1],
        **{name: getattr(sums, name) * [1, 0, 1, 1] for name in ("on", "amount", "exposed")},
    )
    scaled = counts.balanced(bare)
    assert scaled.amount[1] == scaled.exposed[1] == 0
    assert np.isfinite(totalled(counts, counts.updated(scaled), scaled))
    prior = counts.updated(scaled)
    np.testing.assert_allclose(prior.shape[:, 1] / prior.rate[1], 1 / 11)


def test_point_estimates_have_no_lengths_to_choose():
    sums = prepared(SETTINGS["point"])[3]
    assert SETTINGS["point"].balanced(sums) is sums


@every_prior
@pytest.mark.parametrize("exposed", [False, True])
def test_the_objective_never_falls(prior, exposed):
    """200 steps of rows, lengths, dictionary and prior, told before and after each update."""
    _, _, x = planted()
    state = Fit(PRIORS[prior], exposed=exposed).run(x, some_words(x, 6), 200)
    trace = np.array(state.trace[-400:])
    assert (np.diff(trace) >= -1e-9 * (np.abs(trace[1:]) + x.size)).all()
    assert trace[-1] > trace[0] + (1 if prior == "always" else 20)


def test_the_likelihood_of_point_estimates_never_falls():
    _, _, x = planted()
    state = Fit(counts=FactorisedCounts(point=True)).run(x, some_words(x, 4), 200)
    assert (np.diff(state.trace) >= -1e-9 * (np.abs(state.trace[1:]) + x.size)).all()


def test_point_estimates_are_those_of_lee_and_seung():
    """The update of W, L refreshed, then both from the same ratios, in units where W has as many tokens."""
    _, _, x = planted(20, 15)
    x[np.arange(20), np.arange(20) % 15] += 1  # no row or column of nothing: the plain update divides by it
    fit = Fit(counts=FactorisedCounts(point=True))
    state = fit.start(x, some_words(x, 3))
    words = state.params.shape / state.params.rate
    w = state.rows.y / words.sum(axis=0)
    for _ in range(5):
        w = w * ((x / (w @ words.T)) @ words) / words.sum(axis=0)
        rate = w @ words.T
        likelihood = (x * np.log(rate) - rate - gammaln(x + 1)).sum()
        after = words * ((x / rate).T @ w) / w.sum(axis=0)
        w, words = w * ((x / rate) @ words) / after.sum(axis=0), after
        state = fit.step(x, state, EVERY)
        assert state.trace[-2] == pytest.approx(likelihood, rel=1e-12)
        np.testing.assert_allclose(state.params.shape / state.params.rate, words, rtol=1e-9)
        np.testing.assert_allclose(state.rows.y / words.sum(axis=0), w, rtol=1e-9)


def sampled_evidence(x, z, counts, draws, rng):
    """log of the mean of p(x | z, w, Phi) over the prior, and its standard error."""
    features, columns = z.shape[-1], x.shape[1]
    e, b = counts.weight_shape, counts.word_shape
    w = rng.gamma(e, 1 / e, (draws, len(x), features)) * z
    words = rng.gamma(b, 1 / (b * columns), (draws, features, columns))
    rate = np.maximum(np.einsum("snk,skv->snv", w, words), 1e-300)
    logs = (x * np.log(rate) - rate - gammaln(x + 1)).sum(axis=(1, 2))
    part = np.exp(logs - logs.max())
    return logs.max() + np.log(part.mean()), part.std() / part.mean() / np.sqrt(draws)


@pytest.mark.parametrize("prior", ["always", "finite"])
def test_the_objective_is_below_the_evidence(prior):
    rng, counts = np.random.default_rng(0), FactorisedCounts(1.0, 1.0)
    x = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    own = Always() if prior == "always" else BetaBernoulli(mass=1.5)
    trace = Fit(own, counts).run(x, some_words(x, 2), 100).trace
    draws, z = 200_000, np.ones((200_000, 2, 2))
    if prior == "finite":
        z = rng.random((draws, 2, 2)) < rng.beta(0.75, 1.0, (draws, 1, 2))
    evidence, error = sampled_evidence(x, z, counts, draws, rng)
    assert error < 0.02
    assert trace[-1] < evidence - 3 * error
    assert trace[-1] > evidence - 6.0


def test_chunks_give_the_rows_and_sums_of_all():
    """Rows to the last bit, whatever words the chunk has."""
    counts = SETTINGS["posterior"]
    x, params, rows, _, world = prepared(counts)
    after, whole = counts.local(params, world.odds, Fit().entries(x), np.arange(11), rows, Effort(3, 4))
    total = None
    for part in (slice(0, 1), slice(1, 5), slice(5, 9)):
        own = RowModes(*(field[part] for field in rows))
        columns = np.flatnonzero(x[part].any(axis=0))
        made, some = counts.local(
            params, world.odds, Fit().entries(x[part][:, columns]), columns, own, Effort(3, 4)
        )
        np.testing.assert_array_equal(made.on, after.on[part])
        np.testing.assert_array_equal(made.y, after.y[part])
        total = some if total is None else combine(total, some)
    for field in fields(whole):
        np.testing.assert_allclose(getattr(total, field.name), getattr(whole, field.name), rtol=1e-11)


def test_a_step_leaves_the_rows_that_it_is_given():
    counts = SETTINGS["posterior"]
    x, params, rows, _, world = prepared(counts)
    before = RowModes(*(field.copy() for field in rows))
    counts.local(params, world.odds, Fit().entries(x), np.arange(11), rows, Effort(3, 4))
    for one, other in zip(rows, before, strict=True):
        np.testing.assert_array_equal(one, other)


@every_prior
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (6, 8)])
def test_odd_data_have_finite_fits(prior, shape):
    """Empty rows, rows of one token, words that nobody has, one row, one word; with one feature and three."""
    x = np.zeros(shape)
    x[0, 0] = 7
    x[-1, shape[1] // 2] += 1
    for features in (1, 3):
        for counts in SETTINGS.values():
            if counts.point and prior != "always":
                continue
            fit = Fit(PRIORS[prior], counts)
            state = fit.run(x, some_words(x, features), 5)
            assert np.isfinite(state.trace).all()
            law = counts.law(state.params, fit.new_rows(x, state, 3))
            np.testing.assert_allclose(law.sum(axis=1), 1)
            assert (law >= 0).all()


@pytest.mark.parametrize("prior", ["finite", "sticks", "beta process"])
def test_a_fit_finds_who_has_what(prior):
    """Of twice as many features as there are, those that rows have are planted ones; two may share one."""
    words, amount, x = planted(150, 60, 4, seed=1, mean=60.0)
    state = Fit(PRIORS[prior]).run(x, some_words(x, 8), 30)
    found = state.params.shape / state.params.shape.sum(axis=0)
    common = np.flatnonzero(state.sums.on > 5)
    cosine = (words / np.linalg.norm(words, axis=0)).T @ (found / np.linalg.norm(found, axis=0))[:, common]
    assert (cosine.max(axis=1) > 0.98).all()
    of = cosine.argmax(axis=0)
    has = np.array([state.rows.on[:, common[of == k]].any(axis=1) for k in range(4)]).T
    told = (amount == 0) | (amount > 10)
    assert (has == (amount > 0))[told].mean() > 0.97
    assert state.sums.on.sum() < 1.1 * (amount > 0).sum()


@pytest.mark.parametrize("seed", [2, 3])
def test_few_flips_at_first_end_higher_than_many(seed):
    """With many, rows have features that they do not have, where a word that a feature lacks is expensive."""
    _, _, x = planted(300, 60, 6, seed=seed, mean=60.0)
    few, many = (
        Fit(BetaBernoulli(), FactorisedCounts(0.25, 0.1), effort).run(x, some_words(x, 9), 60)
        for effort in (None, MANY)
    )
    assert few.trace[-1] > many.trace[-1] + 50
    assert few.sums.on.sum() < many.sums.on.sum()


def test_the_first_dictionary_has_the_tokens_of_rows():
    counts, words = FactorisedCounts(), np.array([[4.0, 0.0], [2.0, 2.0], [0.0, 0.0]])
    params = counts.begun(words, 4.0)
    np.testing.assert_allclose(counts.size(params), [2.0, 2.0])
    np.testing.assert_allclose(params.shape, words + 0.5)
    assert np.isfinite(counts.begun(words, 0.0).rate).all()


def test_every_feature_begins_with_an_equal_part():
    rows = everywhere(np.array([6.0, 0.0]), 3, np.ones(2))
    np.testing.assert_array_equal(rows.y, [[2, 2, 2], [0, 0, 0]])
    assert rows.on.all()


def test_rows_keep_their_largest_feature():
    y = np.array([[50.0, 2.9, 3.1, 44.0], [0.4, 0.6, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    rows = largest(RowModes(np.ones((4, 4), np.int8), y, np.ones(4)))
    np.testing.assert_array_equal(rows.on, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(rows.y, y * rows.on)


@settings
def test_a_law_is_the_mean_of_weights_times_the_mean_of_words(name):
    counts = SETTINGS[name]
    _, params, rows, _, world = prepared(counts)
    law = counts.law(params, rows)
    for n in range(len(law)):
        plain = np.zeros(11)
        for k in range(4):
            s, t = reference.weight(world, rows.y[n, k], k, rows.exposure[n])
            plain += rows.on[n, k] * s / t * params.shape[:, k] / params.rate[k]
        if plain.sum() > 0:
            np.testing.assert_allclose(law[n], plain / plain.sum(), rtol=1e-12)
    assert law.min() >= 0
    np.testing.assert_allclose(law.sum(axis=1), 1)


def test_a_floor_gives_a_chance_to_words_that_nobody_has():
    counts = SETTINGS["point"]
    params = FactorisedParams(shape=np.array([[3.0, 0.0], [1.0, 4.0], [0.0, 0.0]]), rate=np.array([2.0, 4.0]))
    rows = RowModes(np.ones((1, 2), np.int8), np.array([[6.0, 2.0]]), np.ones(1))
    assert counts.law(params, rows)[0, 2] == 0
    shares, floor = np.array([0.75, 0.25]), 0.1
    words = (params.shape + floor) / (params.shape + floor).sum(axis=0)
    np.testing.assert_allclose(counts.law(params, rows, floor)[0], words @ shares, rtol=1e-12)


def test_parameters_come_back():
    params = prepared(SETTINGS["posterior"])[1]
    outline, arrays = pack(params)
    back = unpack(json.loads(json.dumps(outline)), arrays)
    np.testing.assert_array_equal(back.shape, params.shape)
    np.testing.assert_array_equal(back.rate, params.rate)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "learn", 0.001])
@pytest.mark.parametrize("name", ["weight_shape", "word_shape"])
def test_a_shape_that_is_none_is_refused(name, value):
    with pytest.raises(UsageError, match=f"{name} is .*expected a number of at least"):
        FactorisedCounts(**{name: value})
