"""The held-out score: protocols, the score of the truth, and what is refused."""

from dataclasses import replace as changed

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import ibpdist as ibp
from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.splits import as_split, held
from ibpdist.evaluate import heldout
from ibpdist.evaluate.fitted import predictor_of
from ibpdist.evaluate.heldout import (
    Protocol,
    columns_visible,
    evaluate,
    evaluate_truth,
    score,
    scorer_of,
    summary,
)
from ibpdist.evaluate.synthetic import synthesise, synthetic
from ibpdist.predict.exact import enumerable, enumerated, exact
from ibpdist.predict.predict import predictor
from ibpdist.predict.rownoise import UNEVEN
from ibpdist.predict.sampled import Sampling, sampled
from ibpdist.predict.sequential import closed, sequential
from tests.support.predictive import enumerate_at_most, log_predictive, make_predictor, rows_of


def truth_of(data):
    """The predictor that knows the planted truth."""
    named = {name: data[name].values for name in ("prevalence", "noise")}
    return predictor(named | {"mean": data.dictionary.values}, data.attrs["weights"])


@pytest.mark.parametrize("kind", ["linear-gaussian", "factor-analysis"])
def test_the_truth_scores_what_a_plain_sum_gives(kind):
    data = synthetic(kind, 40, 8, 3, 0.5, seed=2, missing=0.2, dtype="float64")
    of, visible = truth_of(data), np.arange(8) % 2 == 0
    found = score(of, ArrayData(data.x.values), columns_visible("even", 8), uneven=False)
    observed = ~np.isnan(data.x.values)
    rows = [
        log_predictive(of, np.nan_to_num(x), seen & visible, seen & ~visible)
        if (seen & ~visible).any()
        else 0
        for x, seen in zip(data.x.values, observed, strict=True)
    ]
    for estimate in ("plug_in", "variance"):
        one = found.sel(estimate=estimate)
        np.testing.assert_allclose(one.row_score, rows, rtol=1e-10, atol=1e-12)
        assert float(one.score) == pytest.approx(np.sum(rows) / observed[:, ~visible].sum(), rel=1e-12)
        assert float(one.error) == 0
    np.testing.assert_array_equal(found.cells, observed[:, ~visible].sum(1))


def test_the_truth_scores_minus_the_conditional_entropy():
    # With all features known to be on or off the hidden cells are normal given nothing else.
    data = synthetic("linear-gaussian", 3000, 10, 2, 0.5, seed=1, dtype="float64")
    certain = predictor(
        {"mean": data.dictionary.values, "noise": 0.5, "prevalence": np.array([1.0, 0.0])}, "unit"
    )
    x = data.dictionary.values[0] + np.sqrt(0.5) * np.random.default_rng(0).normal(size=(3000, 10))
    found = score(certain, ArrayData(x), columns_visible("odd", 10))
    entropy = norm(scale=np.sqrt(0.5)).entropy()
    assert float(found.score[0]) == pytest.approx(-entropy, abs=4 * np.sqrt(0.5 / (3000 * 5)))


def test_a_better_model_scores_better():
    data = synthetic("images", 400, seed=3)
    source, protocol = ArrayData(data.x.values), columns_visible("even", 36)
    true = truth_of(data)
    rng = np.random.default_rng(0)
    worse = predictor(
        {
            "mean": data.dictionary.values + 0.4 * rng.normal(size=(4, 36)),
            "noise": 0.25,
            "prevalence": np.full(4, 0.5),
        }
    )
    best, other, none = (
        float(score(of, source, protocol).score[0])
        for of in (true, worse, true.select(np.array([], dtype=int)))
    )
    assert best > other + 0.02
    assert best > none + 0.05


def test_variance_helps_when_the_dictionary_is_uncertain():
    # Rows made with dictionaries drawn from q: the variance is then the truth.
    of = make_predictor(3, 30, seed=4, groups=1)
    rng = np.random.default_rng(5)
    z = rng.random((300, 3)) < 1 / (1 + np.exp(-of.log_odds))
    sd = np.sqrt(of.noise + of.variance(z.astype(float)))
    x = z @ of.mean + sd * rng.normal(size=(300, 30))
    found = score(of, ArrayData(x), columns_visible("even", 30))
    assert float(found.score.sel(estimate="variance")) > float(found.score.sel(estimate="plug_in")) + 0.01


@pytest.mark.parametrize("weights", ["unit", pytest.param("normal", marks=pytest.mark.slow)])
def test_chunks_and_threads_do_not_matter(weights, monkeypatch):
    enumerate_at_most(monkeypatch, 3)
    of = make_predictor(4, 10, seed=6, weights=weights)
    x, _ = rows_of(of, 50, seed=1)
    protocol = columns_visible("even", 10)
    whole = score(of, ArrayData(x), protocol)
    parts = score(of, ArrayData(x, chunk_rows=7), protocol, threads=3)
    np.testing.assert_allclose(parts.row_score, whole.row_score, rtol=1e-11)


def test_who_may_have_uneven_rows():
    """Rows with weights, unless told otherwise; and the method says so."""
    for weights, told, expected in (
        ("unit", None, 1),
        ("normal", None, 5),
        ("unit", True, 5),
        ("normal", False, 1),
    ):
        scorer = scorer_of(make_predictor(3, 6, seed=1, weights=weights), Sampling(), told)
        assert len(scorer.row_noise.levels) == expected
        assert ("5 levels of noise" in scorer.words) == (expected == 5)


def test_uneven_rows_are_the_mixture_of_scores_at_each_level():
    of = make_predictor(3, 8, seed=2, weights="unit")
    x, _ = rows_of(of, 20, seed=3)
    found = score(of, ArrayData(x), columns_visible("even", 8), uneven=True).row_score
    visible = np.broadcast_to(np.arange(8) % 2 == 0, x.shape)
    each = []
    for level in UNEVEN.levels:
        parts = enumerated(changed(of, extra=level), x, visible, ~visible, Sampling(), 0)
        each.append(np.array([part.score for part in parts]))
    expected = np.log(sum(share * np.exp(part) for share, part in zip(UNEVEN.shares, each, strict=True)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_how_rows_with_weights_are_summed(monkeypatch):
    enumerate_at_most(monkeypatch, 3)
    of = make_predictor(4, 6, seed=1, weights="normal")
    assert scorer_of(of.select(np.arange(3)), Sampling()).estimate is enumerated
    assert scorer_of(of, Sampling()).estimate is sequential
    everywhere = changed(of, log_odds=np.full(4, np.inf))
    assert scorer_of(everywhere, Sampling()).estimate is closed
    assert "every row has all of 4 features" in scorer_of(everywhere, Sampling()).words


def test_sampling_agrees_with_enumeration_through_the_front_door(monkeypatch):
    of = make_predictor(5, 20, seed=7)
    x, _ = rows_of(of, 200, seed=1)
    source, protocol = ArrayData(x, chunk_rows=64), columns_visible("even", 20)
    true = score(of, source, protocol)
    enumerate_at_most(monkeypatch, 4)
    drawn = score(of, source, protocol, Sampling(8, 40, 1))
    assert "8 annealed chains of 40 draws" in drawn.attrs["method"]
    assert (drawn.error > 0).all()
    assert (np.abs(drawn.score - true.score) < 3 * drawn.error).all()
    assert "+-" in summary(drawn)
    assert "+-" not in summary(true)


def test_idle_features_are_left_out_only_when_they_cannot_matter(monkeypatch):
    enumerate_at_most(monkeypatch, 3)
    params = {
        "mean": np.zeros((5, 4)),
        "noise": 1.0,
        "active": np.array([1, 1, 0, 0, 1]),
        "prevalence": np.array([0.5, 0.4, 2e-4, 3e-4, 0.3]),
    }
    kept = scorer_of(predictor(params), Sampling())
    assert kept.estimate is enumerated
    assert kept.of.features == 3
    assert "without 2 idle features (0.0005 expected in a row)" in kept.words
    common = predictor(params | {"prevalence": np.array([0.5, 0.4, 0.01, 0.02, 0.3])})
    assert scorer_of(common, Sampling()).estimate is sampled
    assert scorer_of(common, Sampling()).of.features == 5
    assert enumerable(kept.of)


def test_few_features_are_all_kept():
    params = {"mean": np.zeros((3, 4)), "noise": 1.0, "active": np.zeros(3), "prevalence": np.full(3, 1e-6)}
    assert scorer_of(predictor(params), Sampling()).of.features == 3


def test_one_row_and_one_hidden_cell():
    of = make_predictor(2, 3, seed=1)
    x, _ = rows_of(of, 1, seed=1)
    visible = np.array([True, True, False])
    found = score(of, ArrayData(x), columns_visible(visible, 3))
    expected = exact(of, x, visible[None], ~visible[None])[0]
    assert float(found.score.sel(estimate="variance")) == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module")
def fitted():
    data = synthetic("images", 500, seed=3, dtype="float64")
    return data, ibp.fit(data.x.values[:400], system="lg-vi-finite", K=6, seed=1, restarts=4)


def test_a_fit_is_scored_on_new_rows_close_to_the_truth(fitted):
    data, result = fitted
    new = data.x.values[400:]
    found = evaluate(result, new)
    best = score(truth_of(data), ArrayData(new), columns_visible("even", 36))
    assert (
        float(best.score[0]) - 0.05
        < float(found.score.sel(estimate="variance"))
        < float(best.score[0]) + 0.02
    )
    assert found.attrs["method"] == f"exact over {2 ** len(result['params'].feature)} patterns of features"
    assert found.attrs["protocol"] == "even columns visible, the others hidden"
    text = summary(found)
    assert f"{100 * 18:,} hidden cells in 100 rows" in text
    one = evaluate(result, new[:1], visible=np.arange(36) > 0)
    assert "\n1 hidden cell in 1 row: " in summary(one)
    odd = evaluate(result, new, visible="odd")
    flags = evaluate(result, new, visible=np.arange(36) % 2 == 1)
    np.testing.assert_array_equal(odd.row_score, flags.row_score)
    assert not np.array_equal(odd.row_score, found.row_score)


def test_a_store_scores_like_its_array(fitted, tmp_path):
    _, result = fitted
    store = synthesise("images", tmp_path / "new.zarr", rows=60, seed=9)
    x = np.concatenate([store.read(i).x for i in range(store.chunks)])
    np.testing.assert_array_equal(evaluate(result, tmp_path / "new.zarr").score, evaluate(result, x).score)
    assert isinstance(evaluate(result, store), xr.Dataset)


def test_progress_ends_at_the_number_of_rows(fitted):
    data, result = fitted
    seen = []
    evaluate(result, data.x.values[:50], progress=lambda done, whole: seen.append((done, whole)))
    assert seen[-1] == (50, 50)


@pytest.mark.parametrize(
    ("visible", "sentence"),
    [
        ("all", "'all'; expected even, odd"),
        (np.ones(3, bool), "has 3 flags, expected one for each of 36"),
        (np.ones(36, bool), "no cell is hidden"),
    ],
)
def test_wrong_protocols_are_refused(fitted, visible, sentence):
    data, result = fitted
    with pytest.raises(UsageError, match=sentence):
        evaluate(result, data.x.values[:5], visible=visible)


def test_other_columns_are_refused(fitted):
    data, result = fitted
    with pytest.raises(InputError, match="35 columns, the fit has 36"):
        evaluate(result, data.x.values[:5, :35])


def test_a_fit_that_saw_everything_has_no_held_out_cells(fitted):
    with pytest.raises(UsageError, match="saw every cell"):
        evaluate(fitted[1])


@pytest.mark.parametrize("kind", ["images", "factor-analysis"])
def test_the_truth_of_a_store_is_scored(kind, tmp_path):
    sizes = {} if kind == "images" else {"columns": 8, "features": 3}
    store = synthesise(kind, tmp_path / "a.zarr", rows=50, seed=2, **sizes)
    data = synthetic(kind, 50, seed=2, **sizes)
    found = evaluate_truth(tmp_path / "a.zarr")
    shown = columns_visible("even", store.columns)
    expected = score(truth_of(data), ArrayData(data.x.values), shown, uneven=False)
    np.testing.assert_allclose(found.row_score, expected.row_score, rtol=1e-12)


def held_out(tmp_path, run=None, **options):
    """Images, a fit that did not see a third of the columns in the last half of the rows, and its cells."""
    store = synthesise("images", tmp_path / "a.zarr", rows=300, seed=4, chunk_rows=64, missing=0.1)
    result = ibp.fit(store, system="lg-vi-finite", K=6, seed=2, restarts=4, holdout=1 / 3, run=run, **options)
    seen = np.concatenate([held(store, 1 / 3).read(i).observed for i in range(store.chunks)])
    every = np.concatenate([store.read(i).observed for i in range(store.chunks)])
    x = np.concatenate([store.read(i).x for i in range(store.chunks)])
    return store, result, x, seen, every & ~seen


def test_cells_held_out_from_the_fit_are_scored_from_those_it_saw(tmp_path):
    store, _, x, seen, hidden = held_out(tmp_path, run=tmp_path / "run")
    found = evaluate(tmp_path / "run")
    of = predictor_of(ibp.open_result(tmp_path / "run"))
    np.testing.assert_allclose(
        found.row_score.sel(estimate="variance"), exact(of, x.astype(float), seen, hidden), rtol=1e-10
    )
    assert (found.cells[:150] == 0).all()
    assert (found.cells[150:] > 0).all()
    assert "held out from the fit (cells:" in found.attrs["protocol"]
    best = score(truth_of(synthetic("images", 300, seed=4)), store, columns_visible("even", 36))
    assert abs(float(found.score[0]) - float(best.score[0])) < 0.08


def test_rows_held_out_from_the_fit_are_scored_as_new_rows(tmp_path):
    store = synthesise("images", tmp_path / "a.zarr", rows=300, seed=4, chunk_rows=64)
    recipe = "rows:share=0.2,seed=3"
    options = {"system": "lg-vi-finite", "K": 6, "seed": 2, "restarts": 2, "holdout": recipe}
    result = ibp.fit(store, **options)
    split = as_split(recipe)
    assert result["rows"].sizes["row"] == split.train(store).rows < 300
    found = evaluate(result, store, visible="fitted")
    assert found.attrs["protocol"].startswith(
        "rows held out from the fit (rows:share=0.2,seed=3), even columns"
    )
    assert found.sizes["row"] == split.test(store).rows
    expected = evaluate(result, split.test(store))
    np.testing.assert_array_equal(found.row_score, expected.row_score)


def test_the_data_of_a_fit_in_memory_are_given(tmp_path):
    store, result, *_ = held_out(tmp_path)
    given = evaluate(result, store, visible="fitted")
    assert int(given.cells.sum()) > 1000
    other = synthesise("images", tmp_path / "b.zarr", rows=300, seed=5, chunk_rows=64)
    with pytest.raises(InputError, match="not the data of the fit"):
        evaluate(result, other, visible="fitted")


def test_rows_that_hide_nothing_change_no_draw(monkeypatch):
    enumerate_at_most(monkeypatch, 2)
    of = make_predictor(4, 10, seed=6)
    x, _ = rows_of(of, 30, seed=1)
    scorer = scorer_of(of, Sampling(2, 5))
    visible = np.tile(np.arange(10) % 2 == 0, (30, 1))
    hidden = ~visible
    whole = scorer(x, visible, hidden, 100)[1].score
    hidden = hidden & (np.arange(30) >= 12)[:, None] & (np.arange(30) < 25)[:, None]
    part = scorer(x, visible, hidden, 100)[1].score
    np.testing.assert_allclose(part[12:25], whole[12:25], rtol=1e-12)
    assert (part[:12] == 0).all()
    assert (part[25:] == 0).all()
    assert scorer(x, visible, np.zeros_like(hidden), 100)[0].score.shape == (30,)


@pytest.mark.parametrize(("draws", "expected"), [(1, [16, 32, 40]), (2, [8, 16, 20, 28, 36, 40])])
def test_it_tells_of_rows_and_of_draws(draws, expected, monkeypatch):
    """A single chunk takes long where there are many rows, or many draws to average over."""
    of, told = make_predictor(3, 6, seed=1), []
    source = ArrayData(rows_of(of, 40, seed=2)[0])
    monkeypatch.setattr(heldout, "ROWS", 16)
    columns = columns_visible("even", 6)
    score([of] * draws, source, columns, progress=lambda done, whole: told.append((done, whole)))
    assert told == [(done, 40) for done in expected]


def test_rows_that_hide_nothing_are_done_too():
    """Only the second half of the rows has hidden cells; all of them are told of in the end."""
    data = synthetic("images", 90, seed=4, dtype="float64")
    result, told = ibp.fit(data.x.values, system="lg-vi-finite", K=4, seed=1, steps=5, holdout=0.2), []
    own = ArrayData(data.x.values, chunk_rows=20)
    evaluate(result, data.x.values, visible="fitted", progress=lambda *at: told.append(at))
    assert told[-1] == (90, 90)
    told.clear()
    hidden = Protocol(lambda chunk: (hides(chunk, False), hides(chunk, True)), "the second half")
    score(make_predictor(3, 36, seed=1), own, hidden, progress=lambda *at: told.append(at))
    assert [done for done, _ in told] == [20, 40, 60, 80, 90]


def hides(chunk, hidden):
    """Odd columns of rows from 45 on are hidden, even ones visible."""
    later = np.arange(chunk.start, chunk.start + chunk.rows)[:, None] >= 45
    return later & (np.arange(36) % 2 == hidden)
