"""Fits of counts as they are used: runs, restarts, scores by tokens, features of new rows, K, campaigns."""

import warnings

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.campaigns.campaign import runs_to_score
from ibpdist.campaigns.directory import fit_folder
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.evaluate.counts import token_predictors
from ibpdist.evaluate.heldout import summary
from ibpdist.runs import scores
from tests.support.planted_counts import planted_counts

ROWS, K = 160, 6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store, and a run with restarts that holds rows out."""
    folder = tmp_path_factory.mktemp("counts")
    x, *_ = planted_counts(rows=ROWS)
    np.save(folder / "x.npy", x.astype(np.float32))
    ibp.ingest(folder / "x.npy", folder / "x.zarr", chunk_rows=50)
    store = folder / "x.zarr"
    run = folder / "run"
    ibp.fit(store, system="counts-finite", K=K, restarts=2, holdout="rows:share=0.3", run=run, steps=40)
    return x, store, run


def perplexity(scored, estimate="prediction"):
    return float(scored.perplexity.sel(estimate=estimate))


def test_rows_that_were_held_out_are_scored_by_half_of_their_tokens(made):
    _, _, run = made
    scored = ibp.evaluate(run)
    assert perplexity(scored) < 0.8 * perplexity(scored, "unigram")
    assert scored.attrs["protocol"].startswith("rows held out from the fit (rows:share=0.3")
    assert "perplexity" in summary(scored)
    kept = ibp.open_result(run)["heldout"].to_dataset()
    assert float(kept.score.sel(estimate="prediction")[0]) == float(scored.score.sel(estimate="prediction"))
    assert kept.score.attrs["units"] == "nats per token"
    assert scores.headline(kept) == "prediction"


def test_restarts_are_averaged_where_a_run_keeps_them(made):
    x, _, run = made
    of = token_predictors(run)
    assert len(of) == 2
    assert len(token_predictors(ibp.open_result(run))) == 1
    np.testing.assert_allclose(of[0].y.sum(), of[1].y.sum(), rtol=1e-6)
    one = ibp.evaluate(ibp.open_result(run), x)
    both = ibp.evaluate(run, x)
    assert "mean of 2 predictions" in both.attrs["method"]
    assert perplexity(both) != perplexity(one)


def test_hidden_tokens_of_the_rows_of_a_fit_are_scored(made, tmp_path):
    _, store, _ = made
    recipe = "tokens:share=0.5,rows=0.4"
    ibp.fit(store, system="counts-infinite", K=K, holdout=recipe, run=tmp_path / "run", steps=30)
    scored = ibp.evaluate(tmp_path / "run")
    entries = ibp.open_dataset(store).read(0).entries
    hidden = HeldTokens(0.5, 0.4).hidden(0, entries)
    assert int(scored.cells[:50].sum()) == hidden.sum()
    assert int((scored.cells > 0).sum()) < ROWS
    assert perplexity(scored) < 0.8 * perplexity(scored, "unigram")
    assert ibp.verify(tmp_path / "run") == []


def test_fits_in_memory_are_scored_on_their_data(made):
    x, *_ = made
    found = ibp.fit(x, system="counts-dense", K=K, holdout="tokens:share=0.3,rows=0.5", steps=30)
    assert perplexity(ibp.evaluate(found, x, visible="fitted")) < 28
    with pytest.raises(UsageError, match="visible hides columns"):
        ibp.evaluate(found, x, visible="odd")
    with pytest.raises(UsageError, match="saw every token"):
        ibp.evaluate(ibp.fit(x, system="counts-dense", K=2, steps=2))


def test_draws_are_averaged(made):
    x, *_ = made
    found = ibp.fit(x[:100], system="counts-gibbs-finite", K=K, steps=40, serial=True)
    scored = ibp.evaluate(found, x[100:])
    assert "mean of 15 predictions" in scored.attrs["method"]
    assert perplexity(scored) < 0.85 * perplexity(scored, "unigram")


def test_features_of_new_rows_explain_their_tokens(made, tmp_path):
    x, store, run = made
    new = ibp.transform(run, store, tmp_path / "new.zarr")
    assert new.z.dims == ("row", "feature")
    np.testing.assert_allclose((new.z * new.w).sum("feature"), x.sum(axis=1), rtol=1e-4)
    expected = (new.z.values * new.w.values) @ ibp.open_result(run)["params"]["mean"].values
    flat = x.sum(axis=1, keepdims=True) * x.sum(axis=0) / x.sum()
    assert np.abs(x - expected).sum() < 0.75 * np.abs(x - flat).sum()


def test_the_number_of_features_is_chosen_by_tokens(made):
    x, *_ = made
    choice = ibp.choose(x, K=[1, K], systems=["counts-finite"], steps=30, serial=True)
    head = str(choice).splitlines()[1]
    assert head.split("  ")[0] == "system"
    assert "row noise" not in head
    assert "Monte Carlo" not in head
    assert choice.K == K
    assert "nats per hidden token" in str(choice)
    assert choice.table.attrs["units"] == "nats per hidden token"
    with pytest.raises(UsageError, match="are for other kinds of data"):
        ibp.choose(x, K=2, systems=["counts-finite", "fa-vi-finite"])


def test_cells_of_counts_are_not_filled_in(made, tmp_path):
    _, store, run = made
    with pytest.raises(UsageError, match="cells of poisson observations cannot be predicted"):
        ibp.reconstruct(run, store, tmp_path / "out")


def test_a_campaign_is_ranked_by_tokens(made, tmp_path):
    _, store, _ = made
    grid = {"data": str(store), "system": ["counts-finite", "counts-infinite"], "truncation": [2, K]}
    options = {"restarts": 2, "steps": 25, "holdout": "rows:share=0.3"}
    found = ibp.sweep(grid | options, tmp_path / "campaign", serial=True)
    held = found.summary["heldout"]
    assert np.isfinite(held).all()
    assert (held.sel(truncation=K).mean() > held.sel(truncation=2).mean()).item()
    best = found.best_fit()
    assert best.labels["truncation"] == K
    runs = runs_to_score(tmp_path / "campaign")
    assert runs == [fit_folder(tmp_path / "campaign", one.id) for one in found.restarts_of(best)]
    assert len(runs) == 2
    score = float(ibp.evaluate(runs).score.sel(estimate="prediction"))
    alone = [float(ibp.evaluate(one).score.sel(estimate="prediction")) for one in runs]
    assert score > np.mean(alone), "the mean prediction is better than predictions are on average"
    other = ibp.fit(store, system="counts-finite", K=2, steps=2)
    with pytest.raises(UsageError, match="did not see the same rows"):
        ibp.evaluate([runs[0], other])


def test_campaigns_of_counts_and_of_real_valued_data_are_apart(made, tmp_path):
    _, store, _ = made
    grid = {"data": str(store), "system": ["counts-finite", "fa-vi-finite"], "truncation": 3}
    with pytest.raises(UsageError, match="so their scores do not compare: make two campaigns"):
        ibp.sweep(grid, tmp_path / "campaign")


def test_counts_are_told_from_real_numbers_and_from_genotypes():
    rng = np.random.default_rng(0)
    options = {"system": "fa-vi-finite", "K": 2, "steps": 2}
    with pytest.warns(UserWarning, match="cells look like counts, and fa-vi-finite takes them for real"):
        ibp.fit(rng.poisson(0.4, (40, 6)) * 3.0, **options)
    for others in (rng.binomial(2, 0.1, (40, 6)).astype(float), rng.poisson(5.0, (40, 6)) - 0.5):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ibp.fit(others, **options)
