"""Scores of hidden tokens: what they are, what they must not depend on, and what good features score."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.entries import entries_of
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.evaluate.perplexity import ESTIMATES, held_from_fit, new_documents, summary, token_scores
from ibpdist.predict.dispersion import count_rates, dispersed
from ibpdist.predict.tokens import TokenPredictor, predicted_laws, token_predictor, unigram
from ibpdist.runs import scores
from tests.support.planted_counts import planted_counts

WORDS, FEATURES = 60, 4


@cache
def planted(rows=120, bursts=np.inf, length=80, seed=0):
    """The features that made documents, as a fit that is sure of them, and the documents (row, column)."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(WORDS, 0.1), FEATURES)
    laws = rng.dirichlet(np.full(FEATURES, 0.3), rows) @ phi
    rates = laws if np.isinf(bursts) else laws * rng.gamma(bursts, 1 / bursts, laws.shape)
    x = rng.poisson(length * rates).astype(float)
    return predictor_of(1e6 * phi.T), x


def predictor_of(y):
    return TokenPredictor(y, np.full(y.shape[1], 0.3), np.full(y.shape[1], np.inf), 0.02, 1.2)


def halves(x, protocol):
    """Seen and hidden tokens (row, column) by the split itself."""
    chunk = ArrayData(x, len(x)).read(0)
    entries = entries_of(chunk)
    hidden = entries.with_counts(protocol.split.hidden(0, entries)).dense(x.shape[1], np.dtype(float))
    return x - hidden, hidden


def plain(of, x, protocol, words=slice(None)):
    """(row) log probabilities of the hidden tokens by each estimate, from whole matrices."""
    seen, hidden = halves(x, protocol)
    scored = hidden.any(axis=1)
    entries = entries_of(ArrayData(seen[scored], len(seen)).read(0))
    laws = predicted_laws(of, entries)
    a = count_rates(laws, entries).dispersion()
    found = np.zeros((3, len(x)))
    for at, law in enumerate(
        (laws, dispersed(laws, entries, a), unigram(np.mean([one.y.sum(axis=1) for one in of], axis=0))[None])
    ):
        found[at, scored] = np.sum((hidden[scored] * np.log(law))[:, words], axis=1)
    return found, hidden[:, words].sum(axis=1), a


@pytest.mark.parametrize("several", [False, True])
def test_scores_are_those_of_whole_matrices(several):
    of, x = planted()
    of = [of, predictor_of(np.roll(of.y, 1, axis=0))] if several else [of]
    protocol = new_documents(seed=3)
    found = token_scores(of, ArrayData(x, 50), protocol)
    nats, tokens, a = plain(of, x, protocol)
    np.testing.assert_allclose(found.row_score, nats, rtol=1e-10)
    np.testing.assert_array_equal(found.cells, tokens)
    np.testing.assert_allclose(found.score, nats.sum(axis=1) / tokens.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.perplexity, np.exp(-nats.sum(axis=1) / tokens.sum()), rtol=1e-12)
    assert float(found.dispersion) == a
    assert list(found.estimate.values) == list(ESTIMATES)
    assert found.score.attrs["units"] == "nats per token"
    assert not found.row_error.any()
    assert not found.disagree.any()


def test_the_error_is_that_of_a_ratio_over_documents():
    of, x = planted()
    found = token_scores([of], ArrayData(x), new_documents())
    for estimate in ESTIMATES:
        nats, tokens = found.row_score.sel(estimate=estimate).values, found.cells.values
        score, size = nats.sum() / tokens.sum(), (tokens > 0).sum()
        squares = sum((nats[n] - score * tokens[n]) ** 2 for n in range(len(nats)))
        expected = np.sqrt(size / (size - 1) * squares) / tokens.sum()
        assert float(found.error.sel(estimate=estimate)) == pytest.approx(expected, rel=1e-12)


def test_the_error_says_how_much_other_documents_would_score():
    of, x = planted(rows=1200)
    each = [token_scores([of], ArrayData(part), new_documents()) for part in np.split(x, 30)]
    spread = np.std([float(one.score[0]) for one in each], ddof=1)
    assert np.mean([float(one.error[0]) for one in each]) == pytest.approx(spread, rel=0.3)


@pytest.mark.parametrize("protocol", [new_documents(seed=1), held_from_fit(HeldTokens(seed=2))])
def test_chunks_and_threads_give_the_same_bits(protocol):
    of, x = planted()
    of = [of, predictor_of(np.roll(of.y, 1, axis=0))]
    whole = token_scores(of, ArrayData(x, len(x)), protocol)
    for chunk_rows, threads in ((1, 1), (7, 2), (50, 2)):
        assert token_scores(of, ArrayData(x, chunk_rows), protocol, threads).identical(whole)


def test_features_that_are_known_predict_far_better_than_all_rows_together():
    """The law that made a document has the least perplexity, and half of the tokens come close to it."""
    of, x = planted(length=300)
    found = token_scores([of], ArrayData(x), new_documents())
    rng = np.random.default_rng(0)  # as `planted` draws them
    phi = rng.dirichlet(np.full(WORDS, 0.1), FEATURES)
    laws = rng.dirichlet(np.full(FEATURES, 0.3), len(x)) @ phi
    _, hidden = halves(x, new_documents())
    best = np.exp(-np.sum(hidden * np.log(laws)) / hidden.sum())
    assert best < float(found.perplexity.sel(estimate="prediction")) < 1.05 * best
    assert float(found.perplexity.sel(estimate="unigram")) > 1.5 * best
    wrong = token_scores([predictor_of(of.y[::-1])], ArrayData(x), new_documents())
    assert float(wrong.perplexity.sel(estimate="prediction")) > 1.5 * best


@pytest.fixture(scope="module")
def fits():
    """Counts (row, column) and their laws, and fits of two thirds of the rows, one without some tokens."""
    x, _, laws = planted_counts(300, WORDS, FEATURES)
    options = {"system": "counts-finite", "K": 8, "seed": 1}
    whole = ibp.fit(x[:200].astype(float), **options)
    part = ibp.fit(x[:200].astype(float), holdout="tokens:share=0.5,rows=0.5,seed=3", **options)
    return x.astype(float), laws, whole, part


def test_a_fit_predicts_new_documents_nearly_as_well_as_their_laws(fits):
    x, laws, result, _ = fits
    of, protocol = token_predictor(result["params"].to_dataset(), 0.02), new_documents(seed=1)
    found = token_scores([of], ArrayData(x[200:]), protocol)
    _, hidden = halves(x[200:], protocol)
    best = np.exp(-np.sum((hidden * np.log(laws[200:]))[hidden > 0]) / hidden.sum())
    assert best < float(found.perplexity.sel(estimate="prediction")) < 1.15 * best
    assert float(found.perplexity.sel(estimate="unigram")) > 1.5 * best


def test_a_fit_predicts_the_tokens_that_it_did_not_see(fits):
    x, laws, whole, part = fits
    own = held_from_fit(HeldTokens(share=0.5, rows=0.5, seed=3))
    each = [token_predictor(one["params"].to_dataset(), 0.02) for one in (part, whole)]
    part_score, whole_score = (
        float(token_scores([of], ArrayData(x[:200]), own).perplexity.sel(estimate="prediction"))
        for of in each
    )
    _, hidden = halves(x[:200], own)
    best = np.exp(-np.sum((hidden * np.log(laws[:200]))[hidden > 0]) / hidden.sum())
    assert best < part_score < 1.15 * best
    assert whole_score < part_score, "a fit that saw them knows them"


def test_dispersion_helps_where_words_come_in_bursts_and_harms_nowhere():
    for bursts, most in ((0.3, 0.85), (np.inf, 1.01)):
        of, x = planted(bursts=bursts)
        found = token_scores([of], ArrayData(x), new_documents()).perplexity
        assert float(found.sel(estimate="dispersed")) < most * float(found.sel(estimate="prediction"))


def test_several_predictors_score_better_than_each():
    of, x = planted()
    rng = np.random.default_rng(1)
    each = [replace(of, y=of.y * rng.gamma(1.0, 1.0, of.y.shape)) for _ in range(4)]
    mean = token_scores(each, ArrayData(x), new_documents())
    alone = [float(token_scores([one], ArrayData(x), new_documents()).score[0]) for one in each]
    assert float(mean.score[0]) > max(alone)
    assert "mean of 4 predictions with up to 4 features" in mean.attrs["method"]


def test_words_that_do_not_occur_in_training_are_also_left_out():
    of, x = planted()
    of = predictor_of(of.y.copy())
    of.y[[3, 7]] = 0
    words = np.setdiff1d(np.arange(WORDS), [3, 7])
    protocol = new_documents()
    found = token_scores([of], ArrayData(x), protocol)
    nats, tokens, _ = plain([of], x, protocol, words)
    assert 0 < tokens.sum() < found.cells.sum()
    np.testing.assert_array_equal(found.cells_known, tokens)
    np.testing.assert_allclose(found.score_known, nats.sum(axis=1) / tokens.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.perplexity_known, np.exp(-found.score_known), rtol=1e-12)
    assert (found.perplexity_known < found.perplexity).all()


def test_rows_without_hidden_tokens_are_not_scored():
    of, x = planted()
    x = x.copy()
    x[0], x[1] = 0, 0
    x[1, 5] = 1
    found = token_scores([of], ArrayData(x, 10), new_documents())
    assert not found.row_score[:, :2].any()
    assert not found.cells[:2].any()
    without = token_scores([of], ArrayData(x), replace(new_documents(), split=HeldTokens(rows=0.3)))
    assert 0 < int((without.cells > 0).sum()) < 60


def test_the_tokens_that_a_fit_did_not_see_are_scored():
    of, x = planted()
    split = HeldTokens(share=0.4, rows=0.5, seed=4)
    found = token_scores([of], ArrayData(x), held_from_fit(split))
    hidden = x - np.concatenate([split.train(ArrayData(x)).read(0).x])
    np.testing.assert_array_equal(found.cells, hidden.sum(axis=1))
    assert found.attrs["protocol"] == f"tokens held out from the fit ({split.text})"


def test_no_hidden_token_is_refused():
    of, _ = planted()
    with pytest.raises(UsageError, match="no token is hidden, so there is nothing to score"):
        token_scores([of], ArrayData(np.eye(4, WORDS)), new_documents())


def test_numbers_that_are_no_counts_are_refused():
    of, x = planted()
    with pytest.raises(InputError, match="is no count"):
        token_scores([of], ArrayData(x + 0.5), new_documents())


def test_one_document_and_words_that_are_all_unknown():
    of, x = planted()
    found = token_scores([predictor_of(0 * of.y)], ArrayData(x[:1]), new_documents())
    assert float(found.perplexity.sel(estimate="prediction")) == pytest.approx(WORDS)
    assert not found.error.any()
    assert np.isnan(found.score_known).all()
    text = summary(found)
    assert "+-" not in text
    assert "occur in training" not in text
    assert " tokens in 1 document: 50 % of the tokens of each row hidden (seed 0)" in text


def test_progress_ends_at_the_number_of_rows():
    of, x = planted()
    told = []
    token_scores([of], ArrayData(x, 50), new_documents(), progress=lambda *at: told.append(at))
    assert told[-1] == (120, 120)
    assert told == sorted(told)


def test_the_scores_in_words():
    of, x = planted()
    found = token_scores([of], ArrayData(x), new_documents())
    first, second, third, fourth = summary(found).splitlines()
    one, bursts, baseline = (float(found.perplexity.sel(estimate=name)) for name in ESTIMATES)
    error = one * float(found.error[0])
    expected = f"perplexity {one:.1f} (+- {error:.1f} over documents), {bursts:.1f} with dispersion; "
    assert first == expected + f"unigram baseline {baseline:.1f}"
    assert second.startswith(f"of words that occur in training: {float(found.perplexity_known[0]):.1f}, ")
    assert third == f"{int(found.cells.sum()):,} tokens in 120 documents: {new_documents().words}"
    assert fourth == "prediction with 4 features, 50 steps for each row"


def test_a_run_keeps_the_scores(tmp_path, monkeypatch):
    monkeypatch.setattr(scores, "is_run", lambda path: True)
    of, x = planted()
    each = [token_scores([of], ArrayData(x), new_documents(seed)) for seed in (0, 1)]
    for one in each:
        scores.keep(tmp_path, one, "news.zarr", "abc")
    kept = scores.read(tmp_path)
    np.testing.assert_array_equal(kept.score, [one.score for one in each])
    np.testing.assert_array_equal(kept.error, [one.error for one in each])
    assert list(kept.estimate.values) == list(ESTIMATES)
    assert kept.cells.values.tolist() == [int(one.cells.sum()) for one in each]
