"""The law of the words of rows, against a transcription and against what it must not depend on."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ibpdist.predict import tokens
from ibpdist.predict.tokens import laws_of, predicted_laws, token_predictor, unigram
from tests.support import token_prediction as reference
from tests.support.token_prediction import entries_of, predictor


def counts(rows=12, columns=9, seed=1, mean=0.8):
    return np.random.default_rng(seed).poisson(mean, (rows, columns))


@pytest.mark.parametrize(("features", "every"), [(1, False), (4, False), (4, True), (19, False)])
@pytest.mark.parametrize("steps", [1, 50])
def test_rows_and_laws_are_the_transcription(features, every, steps):
    of, x = predictor(features=features, every=every), counts()
    x[3] = 0
    x[4] = 0
    x[4, 2] = 1
    seen = entries_of(x)
    placed = of.place(seen, steps)
    ((_, laws),) = laws_of([of], [of.weights(placed)])
    for n, row in enumerate(x):
        y, _, f = reference.placed(of, row, steps)
        np.testing.assert_allclose(placed.y[n], y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(placed.f[n], f, rtol=1e-10)
        np.testing.assert_allclose(laws[n], reference.law(of, row, steps), rtol=1e-10)


def test_a_word_that_only_one_feature_has_belongs_to_it():
    of = predictor(columns=3, features=2)
    of = replace(of, y=np.array([[50.0, 0.0], [0.0, 50.0], [5.0, 5.0]]), smoothing=1e-9)
    placed = of.place(entries_of(np.array([[4, 0, 0], [0, 3, 0]])))
    np.testing.assert_allclose(placed.y, [[4, 0], [0, 3]], atol=1e-6)


def test_weights_add_to_the_number_of_tokens():
    of, x = predictor(features=5), counts()
    seen = entries_of(x)
    placed = of.place(seen)
    weights = of.weights(placed)
    np.testing.assert_allclose(weights.sum(axis=1)[x.sum(axis=1) > 0], x.sum(axis=1)[x.sum(axis=1) > 0])
    rate = (placed.f * of.shape).sum(axis=1) / np.maximum(x.sum(axis=1), 1)
    np.testing.assert_allclose(weights, (placed.y + placed.f * of.shape) / (1 + rate)[:, None], rtol=1e-12)


def test_blocks_of_any_size_give_the_same_bits(monkeypatch):
    of, x = [predictor(features=7, seed=seed) for seed in (0, 1)], counts(rows=53)
    x[[5, 6, 52]] = 0
    seen = entries_of(x)
    whole, placed = predicted_laws(of, seen), of[0].place(seen)
    for numbers in (1, 40, 1000):
        monkeypatch.setattr(tokens, "SHARES", numbers)
        monkeypatch.setattr(tokens, "CELLS", numbers)
        for one, other in zip(of[0].place(seen), placed, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(predicted_laws(of, seen), whole)
    for rows in (slice(0, 1), slice(20, 37), slice(4, 7)):
        np.testing.assert_array_equal(predicted_laws(of, seen.between(rows.start, rows.stop)), whole[rows])


@pytest.mark.parametrize(
    ("cells", "sizes"), [(1, [1] * 40), (9 * 15, [15, 15, 10]), (9 * 17, [16, 16, 8]), (9 * 35, [32, 8])]
)
def test_laws_come_in_blocks_of_few_cells(cells, sizes, monkeypatch):
    monkeypatch.setattr(tokens, "CELLS", cells)
    of, x = predictor(), counts(rows=40)
    parts = list(laws_of([of], [of.weights(of.place(entries_of(x)))]))
    ends = np.cumsum([0, *sizes]).tolist()
    assert [part for part, _ in parts] == [slice(*part) for part in pairwise(ends)]
    assert [laws.shape for _, laws in parts] == [(size, 9) for size in sizes]


def test_the_law_of_several_predictors_is_the_mean_of_their_laws():
    of = [predictor(seed=0), predictor(features=6, seed=1), predictor(seed=2, every=True)]
    seen = entries_of(counts())
    each = [predicted_laws([one], seen) for one in of]
    np.testing.assert_allclose(predicted_laws(of, seen), np.mean(each, axis=0), rtol=1e-13)
    twice = predicted_laws([of[0], of[0]], seen)
    np.testing.assert_array_equal(twice, each[0])


def test_an_empty_row_has_the_law_that_the_prior_expects():
    of = predictor(every=True)
    laws = predicted_laws([of], entries_of(np.zeros((2, 9), int)))
    words = (of.y + of.smoothing) / (of.y + of.smoothing).sum(axis=0)
    np.testing.assert_allclose(laws, np.tile(words @ of.shape / of.shape.sum(), (2, 1)), rtol=1e-12)


def test_no_rows_have_no_laws():
    assert predicted_laws([predictor()], entries_of(np.zeros((0, 9), int))).shape == (0, 9)


def test_words_that_were_never_seen_have_a_small_probability():
    of = predictor()
    of.y[4] = 0
    x = counts()
    x[:, 4] = 3
    laws = predicted_laws([of], entries_of(x))
    assert np.isfinite(laws).all()
    assert (laws[:, 4] > 0).all()
    assert laws[:, 4].max() < 0.001


@pytest.mark.parametrize(("columns", "features"), [(1, 1), (1, 3), (6, 1)])
def test_one_word_and_one_feature(columns, features):
    of, x = predictor(columns, features), counts(columns=columns)
    laws = predicted_laws([of], entries_of(x))
    np.testing.assert_allclose(laws.sum(axis=1), 1)
    if columns == 1 or features == 1:
        words = (of.y[:, 0] + of.smoothing) / (of.y[:, 0] + of.smoothing).sum()
        np.testing.assert_allclose(laws, np.tile(words, (len(x), 1)), rtol=1e-12)


def test_features_in_single_precision_predict_the_same():
    of, seen = predictor(), entries_of(counts())
    single = replace(of, y=of.y.astype(np.float32))
    laws = predicted_laws([single], seen)
    np.testing.assert_allclose(laws, predicted_laws([of], seen), rtol=1e-5)
    np.testing.assert_allclose(laws.sum(axis=1), 1)


def test_the_unigram_law_has_one_token_more_of_every_word():
    np.testing.assert_allclose(unigram(np.array([5.0, 0.0, 2.0])), [0.6, 0.1, 0.3], rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_result_has_all_that_predicts(dtype):
    of, prevalence = predictor(), np.linspace(0.1, 0.9, 4)
    of.y[2] = 0
    words = of.y + of.smoothing
    named = {
        "mean": (words / words.sum(axis=0)).T.astype(dtype),
        "tokens": of.y.sum(axis=0),
        "weight_shape": of.shape,
        "log_odds": of.odds,
        "prevalence": prevalence,
    }
    found = token_predictor(named, of.smoothing)
    np.testing.assert_allclose(found.y, of.y, atol=1e-12 if dtype == np.float64 else 1e-5)
    assert (found.y >= 0).all()
    for name in ("shape", "odds", "smoothing"):
        np.testing.assert_array_equal(getattr(found, name), getattr(of, name))
    assert found.presence == pytest.approx(sum(prevalence * of.shape))


def test_some_rows_have_their_own_entries():
    x = counts(rows=9)
    x[[2, 8]] = 0
    for rows in ([8], [2, 1, 4], [], list(range(9))):
        found = entries_of(x).some(np.array(rows, int))
        np.testing.assert_array_equal(found.dense(9, x.dtype), x[rows])
    np.testing.assert_array_equal(entries_of(x).between(1, 4).dense(9, x.dtype), x[1:4])
