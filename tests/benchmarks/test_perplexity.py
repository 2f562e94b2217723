"""The benchmark of new documents: its halves, its fits and its laws."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.benchmarks.perplexity import (
    Fitted,
    Settings,
    corpus,
    dispersed,
    fit,
    fit_in_turn,
    main,
    ours,
    planted,
    predict,
    problem,
    unigram,
)

SHORT = Settings(steps=60, folds=30)


@cache
def made(split=0):
    return problem(corpus(None), split)


def test_half_of_each_new_document_is_seen():
    x, of = corpus(None), made()
    assert len(of.train) + len(of.seen) == len(x)
    both = of.seen + of.hidden
    np.testing.assert_array_equal(of.seen.sum(axis=1), (both.sum(axis=1) + 1) // 2)
    assert of.seen.min() == of.hidden.min() == 0
    assert np.concatenate([of.train, both]).sum() == x.sum()
    np.testing.assert_array_equal(problem(x, 0).seen, of.seen)
    inner = problem(x, 0, inner=True)
    assert len(inner.train) + len(inner.seen) == len(of.train)


def test_a_perplexity_is_that_of_the_hidden_tokens():
    of = made()
    columns = of.train.shape[1]
    assert of.perplexity(np.full(of.hidden.shape, 1 / columns)) == pytest.approx(columns)


@pytest.mark.parametrize("prior", ["finite", "sticks", "always"])
@pytest.mark.parametrize("keep", [True, False])
def test_a_fit_finds_the_features_of_documents(prior, keep):
    """Words are predicted nearly as well as with the laws that made them."""
    of, settings = made(), replace(SHORT, prior=prior, keep=keep)
    law, features, _ = ours(settings, of, 8, 0)
    np.testing.assert_allclose(law.sum(axis=1), 1)
    words, shape = planted()[0].T, np.full(8, 0.2)
    true = Fitted(1e6 * words, shape, np.full(8, np.inf), np.ones((len(of.train), 8)), 0.0)
    assert of.perplexity(law) < 1.1 * of.perplexity(predict(true, of.seen, settings))
    assert of.perplexity(law) < 0.7 * of.perplexity(unigram(of, 0, 0)[0])
    assert (features < 8) == (prior != "always")


def test_rows_in_turn_end_as_rows_at_once():
    of = made()
    settings = replace(SHORT, keep=True)
    both = [of.perplexity(predict(f(of.train, 8, 0, settings), of.seen)) for f in (fit, fit_in_turn)]
    assert both[0] == pytest.approx(both[1], rel=0.002)


def test_a_rate_for_each_word_helps_where_words_come_in_bursts():
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.full(60, 1.0), 40)
    burst = law * rng.gamma(0.3, 1.0, law.shape)
    burst /= burst.sum(axis=1, keepdims=True)
    for true, best in ((burst, True), (law, False)):
        seen, hidden = (np.array([rng.multinomial(100, row) for row in true]) for _ in range(2))
        before, after = (-np.sum(hidden * np.log(p)) for p in (law, dispersed(law, seen)))
        assert after < 0.8 * before if best else after < 1.01 * before


def test_the_command_runs(capsys):
    assert main(["--sizes", "3", "--restarts", "2", "--methods", "finite", "unigram"]) == 0
    told = capsys.readouterr().out
    assert "finite" in told
    assert "unigram" in told
