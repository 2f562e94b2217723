"""Scores averaged over draws: how many, their Monte Carlo error, and what is said of them."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from ibpdist.evaluate import heldout
from ibpdist.predict import averaged as module
from ibpdist.predict import exact
from ibpdist.predict.averaged import BATCHES, LEAST, MOST, Averaged, averaged, predictors
from ibpdist.predict.predict import predictor
from ibpdist.predict.sampled import Sampled, Sampling, sampled, together

RNG = np.random.default_rng(3)
DRAWS, ROWS = 200, 30


def parts(scores, errors=0.0):
    return [Sampled(row, np.full(row.shape, errors)) for row in scores]


def drawn(memory=0.0, draws=DRAWS, rows=ROWS):
    """Scores (draw, row) that hang together along the draws; a bad draw is bad for all rows."""
    level = RNG.normal(size=draws)
    for t in range(1, draws):
        level[t] = memory * level[t - 1] + np.sqrt(1 - memory**2) * level[t]
    return 0.3 * level[:, None] + 0.2 * RNG.normal(size=(draws, rows))


# --- the error ---


@pytest.mark.parametrize("memory", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
def test_the_error_is_how_much_the_score_varies_with_the_draws(memory):
    """Over many sets of draws; a batch is longer than what draws remember."""
    made = [averaged(parts(drawn(memory))) for _ in range(300)]
    said = np.array([together([one]) for one in made])
    spread = np.std([one.score.sum() for one in made])
    assert said.mean() == pytest.approx(spread, rel=0.2)
    by_row = np.array([one.error for one in made])
    assert by_row.mean() == pytest.approx(np.std([one.score for one in made], axis=0).mean(), rel=0.2)
    alone = np.sqrt((by_row**2).sum(axis=1)).mean()
    assert alone < 0.5 * spread, "rows have the draws in common"


def test_the_score_is_the_log_of_the_mean_density():
    scores = drawn()
    np.testing.assert_allclose(averaged(parts(scores)).score, np.log(np.exp(scores).mean(axis=0)))


def test_draws_that_agree_leave_the_error_of_each():
    """Errors within draws are of chance numbers of the rows, so they are independent."""
    one = averaged(parts(np.full((50, 4), -1.0), 0.1))
    np.testing.assert_allclose(one.error, 0.1 / np.sqrt(50))
    assert together([one]) == pytest.approx(np.sqrt(4) * 0.1 / np.sqrt(50))
    assert together([averaged(parts(np.full((50, 4), -1.0)))]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("draws", [2, 7, BATCHES, 41])
def test_blocks_of_rows_have_the_error_of_the_whole(draws):
    scores = drawn(draws=draws)
    whole = averaged(parts(scores, 0.05))
    blocks = [averaged(parts(scores[:, cut], 0.05)) for cut in (slice(0, 7), slice(7, 7), slice(7, None))]
    assert together(blocks) == pytest.approx(together([whole]))
    np.testing.assert_allclose(np.concatenate([one.error for one in blocks]), whole.error)


def test_errors_of_a_fit_are_those_of_its_rows():
    one, other = Sampled(np.zeros(2), np.array([3.0, 0.0])), Sampled(np.zeros(1), np.array([4.0]))
    assert together([one, other]) == pytest.approx(5.0)


# --- which draws ---


def tree(features, chains=2, draws=300, columns=6):
    """Draws that all have so many features."""
    mean = RNG.normal(size=(chains, draws, features, columns)).astype(np.float32)
    place = ("chain", "draw", "place")
    held = {
        "mean": ((*place, "column"), mean),
        "prevalence": (place, np.full(mean.shape[:3], 0.3)),
        "chance": (place, np.full(mean.shape[:3], 0.3)),
        "noise": (("chain", "draw"), 0.5 + 0.1 * RNG.random((chains, draws))),
    }
    params = xr.Dataset({"spread": ("column", np.ones(columns))})
    return xr.DataTree.from_dict({"draws": xr.Dataset(held), "params": params})


def test_as_many_draws_as_are_cheap():
    assert len(predictors(tree(3), "unit")) == MOST
    assert LEAST < len(predictors(tree(10), "unit")) < MOST
    assert len(predictors(tree(14), "unit")) == LEAST
    assert len(predictors(tree(3, draws=11), "unit")) == 22


def test_they_are_those_of_all_chains():
    made = tree(2, chains=4, draws=100)
    found = {float(one.noise[0]) for one in predictors(made, "unit")}
    noise = made["draws"]["noise"].values
    for chain in noise:
        assert 45 <= len(found & set(chain.tolist())) <= 55
    assert {float(noise[0, 0]), float(noise[-1, -1])} <= found


def test_dictionaries_that_are_large_are_fewer(monkeypatch):
    monkeypatch.setattr(module, "NUMBERS", 3 * 6 * 70)
    assert len(predictors(tree(3), "unit")) == 70


# --- scoring draws ---


def test_a_draw_is_enumerated_once(monkeypatch):
    """It has no variance, so taking the features as certain is the same number."""
    of, calls = predictors(tree(3), "unit", 1)[0], []
    right = exact.evidences
    monkeypatch.setattr(exact, "evidences", lambda *given: calls.append(1) or right(*given))
    x, visible = RNG.normal(size=(5, 6)), np.tile(np.arange(6) < 3, (5, 1))
    plug, full = exact.enumerated(of, x, visible, ~visible, Sampling(), 0)
    assert len(calls) == 1
    np.testing.assert_array_equal(plug.score, full.score)
    many = sampled(of, x, visible, ~visible, Sampling(2, 5))
    np.testing.assert_array_equal(many[0].score, many[1].score)


def test_a_fit_with_variance_is_enumerated_twice():
    params = {"mean": RNG.normal(size=(2, 6)), "mean_sd": np.full((2, 6), 0.5), "noise": 0.5}
    x, visible = RNG.normal(size=(5, 6)), np.tile(np.arange(6) < 3, (5, 1))
    plug, full = exact.enumerated(
        predictor(params | {"chance": np.full(2, 0.3)}), x, visible, ~visible, Sampling(), 0
    )
    assert not np.allclose(plug.score, full.score)


def test_the_score_of_a_sampler_has_an_error(monkeypatch):
    """Patterns are enumerated, but the draws are some of many."""
    from ibpdist.data.arrays import as_source

    x = as_source(RNG.normal(size=(12, 6)))
    scored = heldout.score(predictors(tree(3), "unit"), x, heldout.columns_visible("even", 6))
    assert (scored.error > 0).all()
    lines = heldout.summary(scored).splitlines()
    assert " +- " in lines[0]
    assert not any("taken as certain" in line for line in lines), "it would be the same number"
    assert lines[-1] == "mean over 200 draws of the posterior: exact over 8 patterns of features"


# --- in words ---


def said(*words):
    return Averaged([SimpleNamespace(words=one) for one in words]).words.removeprefix(
        f"mean over {len(words)} draws of the posterior: "
    )


def test_what_differs_in_numbers_is_said_once():
    forms = [f"exact over {2**k:,} patterns of features" for k in (3, 12, 6)]
    assert said(*forms) == "exact, up to 4,096 patterns of features"
    assert said(forms[0], forms[0]) == forms[0]
    chains = [f"8 annealed chains of 25 draws a row, {k} features" for k in (17, 19)]
    assert said(*chains) == "8 annealed chains of 25 draws a row, up to 19 features"
    assert said(forms[0], *chains, forms[2]) == (
        "exact, up to 64 patterns of features or 8 annealed chains of 25 draws a row, up to 19 features"
    )


def test_numbers_that_are_no_counts_stay():
    words = "exact over 8 patterns of features, without 2 idle features (1e-05 expected in a row)"
    assert said(words, words) == words
