"""Fits of counts by mean field: steps are those of the plain loop, and results are used."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.catalog.systems import SYSTEMS, build
from ibpdist.data._base import Chunk
from ibpdist.model.observations.factorised_counts import WARM, FactorisedCounts
from ibpdist.model.priors import BetaBernoulli
from ibpdist.model.priors.always import Always
from tests.support.factorised_fit import Fit
from tests.support.model_cases import COUNTS, begin, chunked, fit, sweep
from tests.support.planted_counts import planted_counts

MODES = [name for name in COUNTS if SYSTEMS[name].method == "token_modes"]
every = pytest.mark.parametrize("system", MODES)
PLAIN = {
    "counts-finite-hard": Fit(BetaBernoulli()),
    "nmf-vi": Fit(Always()),
    "nmf": Fit(Always(), FactorisedCounts(point=True)),
}


@pytest.mark.parametrize("system", PLAIN)
def test_steps_are_those_of_the_plain_loop(system):
    x, *_ = planted_counts(rows=40, columns=20)
    x = x.astype(float)
    alg, chunks = build(system, 4), chunked(x, sizes=[25, 15])
    traces = fit(alg, chunks, WARM + 6)[3]
    words = alg.begin.look(
        0, Chunk(0, 0, x).entries, 20, alg.begin.ask(alg.summarise(Chunk(0, 0, x)), 4, Draws(1)), Draws(1)
    ).y
    plain = PLAIN[system]
    steps = WARM + 6 if plain.prior.dense else 6
    expected = np.array(plain.run(x, words, steps).trace[1::2])
    found = np.array([trace["objective"] for trace in traces])[-steps:]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@every
def test_the_objective_never_falls_once_rows_choose(system):
    x, *_ = planted_counts(rows=60)
    traces = fit(build(system, 5), chunked(x.astype(float)), WARM + 60)[3]
    warming = [trace.get("warming", 0.0) for trace in traces]
    assert sum(warming) == (0 if SYSTEMS[system].prior == "always" else WARM)
    value = np.array([t["objective"] for t, w in zip(traces, warming, strict=True) if not w])
    assert np.diff(value).min() > -1e-9 * np.abs(value).max()


@every
def test_rows_have_the_same_bits_in_any_chunk(system):
    x, *_ = planted_counts(rows=30, columns=20)
    alg, draws = build(system, 4), Draws(1)
    whole, parts = chunked(x.astype(float)), chunked(x.astype(float), sizes=[11, 19])
    params, states, _ = begin(alg, whole)
    one, _ = sweep(alg, whole, states, params, draws.at(1))
    some, _ = sweep(alg, parts, [alg.start(c, params, draws) for c in parts], params, draws.at(1))
    np.testing.assert_array_equal(one[0].y, np.concatenate([state.y for state in some]))


@every
def test_fits_predict_and_say_how(system):
    x, *_ = planted_counts(rows=150)
    found = ibp.fit(x[:110], system=system, K=6, seed=1, steps=60)
    scored = ibp.evaluate(found, x[110:])
    perplexity = scored.perplexity.sel(estimate="prediction")
    assert float(perplexity) < 0.85 * float(scored.perplexity.sel(estimate="unigram"))
    assert ("0.1 tokens more for each word" in scored.attrs["method"]) == (system == "nmf")
    new = ibp.transform(found, x[110:])
    np.testing.assert_allclose((new.z * new.w).sum("feature"), x[110:].sum(axis=1), rtol=0.15)
    np.testing.assert_allclose(found["params"]["mean"].sum("column"), 1)
    assert float(found["params"]["tokens"].sum()) == pytest.approx(x[:110].sum(), rel=1e-6)


ODD = {
    "empty rows": np.array([[0, 0, 0], [2, 1, 0], [0, 0, 0]]),
    "rows of one token": np.eye(4, 3),
    "a word that never occurs": np.array([[1, 0, 2], [3, 0, 1]]),
    "one row": np.array([[3, 0, 4, 1]]),
    "one word": np.array([[3], [0], [5]]),
    "nothing": np.zeros((3, 2)),
}


@every
@pytest.mark.parametrize("name", ODD)
def test_odd_counts_give_finite_results(system, name):
    for features in (1, 3):
        found = ibp.fit(ODD[name].astype(float), system=system, K=features, steps=WARM + 4)
        for group in ("params", "rows"):
            for variable, values in found[group].data_vars.items():
                assert np.isfinite(values).all(), variable


@pytest.mark.parametrize(
    ("system", "settings", "words"),
    [
        ("counts-finite-hard", {"shape": "learn"}, "give a number"),
        ("counts-finite-hard", {"word_shape": 0.0}, "word_shape"),
        ("nmf", {"floor": 0.0}, "floor"),
        ("nmf", {"eta": 0.1}, "eta"),
        ("counts-finite", {"eta": "learn"}, "is for samplers"),
    ],
)
def test_wrong_settings_are_refused(system, settings, words):
    with pytest.raises(UsageError, match=words):
        ibp.fit(np.ones((4, 2)), system=system, K=2, **settings)


def test_a_batch_knows_that_rows_choose_after_the_start(tmp_path):
    """Several fits advance together: the fall between start and choice is no fault."""
    x, *_ = planted_counts(rows=60)
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    grid = {"data": str(tmp_path / "x.npy"), "system": "counts-finite-hard", "truncation": [3, 4]}
    found = ibp.sweep(grid | {"steps": WARM + 5}, tmp_path / "campaign", serial=True)
    assert set(found.summary["status"].values.ravel()) == {"finished"}
