"""The benchmark of new documents: its halves, its fits and its laws."""

from functools import cache

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.evaluate.counts import token_predictors
from ibpdist.predict.tokens import TokenPredictor, predicted_laws
from tests.benchmarks.perplexity import corpus, dispersed, main, ours, planted, problem, tokens_of, unigram
from tests.support.model_cases import COUNTS
from tests.support.tokens_in_turn import fit_at_once, fit_in_turn


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


@pytest.mark.parametrize("system", COUNTS[:4])
def test_a_fit_finds_the_features_of_documents(system):
    """Words are predicted nearly as well as with the laws that made them."""
    of = made()
    law, features, _ = ours(system, {"restarts": 3}, of, 8, 0)
    np.testing.assert_allclose(law.sum(axis=1), 1)
    true = TokenPredictor(1e6 * planted()[0].T, np.full(8, 0.2), np.full(8, np.inf), 0.02, 1.6)
    assert of.perplexity(law) < 1.1 * of.perplexity(predicted_laws([true], tokens_of(of.seen)))
    assert of.perplexity(law) < 0.7 * of.perplexity(unigram(of, 0, 0)[0])
    assert (features < 8) == (system != "counts-dense")


def test_rows_in_turn_end_as_rows_at_once():
    of, alg, found = made(), build("counts-finite", 8), []
    chunk = Chunk(0, 0, of.train.astype(np.float32))
    for run in (fit_at_once, fit_in_turn):
        params = run(alg, chunk, 60)
        presence = float(params.on @ params.shape / params.rows)
        one = TokenPredictor(params.y, params.shape, params.odds, 0.02, presence)
        found.append(of.perplexity(predicted_laws([one], tokens_of(of.seen))))
    assert found[0] == pytest.approx(found[1], rel=0.002)


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
    assert main(["--sizes", "3", "--restarts", "2", "--methods", "counts-finite", "unigram"]) == 0
    told = capsys.readouterr().out
    assert "counts-finite" in told
    assert "unigram" in told
    assert "counts-gibbs" not in told


def test_a_chain_predicts_by_the_mean_of_its_draws(capsys):
    """Documents are split as told, and settings reach the fit."""
    given = ["steps=24", "burn=18", "thin=2", "start=documents"]
    sets = [part for setting in given for part in ("--set", setting)]
    chosen = ["--methods", "counts-gibbs-finite", "--sizes", "4", "--restarts", "1"]
    assert main(["--splits", "1", "--train", "150", *chosen, *sets]) == 0
    shown = capsys.readouterr().out.splitlines()[0].split("  ")
    of = problem(corpus(None), 0, size=150)
    assert len(of.train) == 150
    settings = {"steps": 24, "burn": 18, "thin": 2, "start": "documents"}
    found = ibp.fit(of.train.astype(np.float32), system="counts-gibbs-finite", K=4, seed=0, **settings)
    draws = token_predictors(found)
    assert len(draws) == 3
    assert shown[2] == f"{of.perplexity(predicted_laws(draws, tokens_of(of.seen))):.1f}"
