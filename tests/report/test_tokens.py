"""A result of counts in words: tokens, top words and perplexities."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.evaluate import posterior
from ibpdist.report import campaign, tokens
from ibpdist.report.page import report
from ibpdist.report.summary import LISTED, summary
from ibpdist.report.words import top_words
from tests.support import report_fits

FACTS: dict[str, Any] = {
    "rows": 100, "columns": 6, "objective": -20.0, "stopped": "converged: no gain", "steps": 9,
    "system": "counts-infinite", "truncation": 9, "seed": "1", "fingerprint": "0123456789abcdef",
}  # fmt: skip
WORDS = ["oil", "bank", "wheat", "ship", "rate", "grain"]
MEAN = [
    [0.02, 0.50, 0.03, 0.05, 0.30, 0.10],
    [0.40, 0.01, 0.10, 0.29, 0.12, 0.08],
    [0.10, 0.10, 0.40, 0.05, 0.05, 0.30],
]


def tree(
    mean: Any = MEAN, of_tokens: Any = (20.0, 50.0, 30.0), words: Any = WORDS, **more: Any
) -> xr.DataTree:
    shares, count = np.array(mean), np.array(of_tokens, float)
    prevalence = np.linspace(0.9, 0.5, len(count))
    held = {
        "mean": (("feature", "column"), shares),
        "tokens": ("feature", count),
        "prevalence": ("feature", prevalence),
        "active": ("feature", prevalence > 0),
        "mass": ((), 2.0),
        "score": ((), -2.0),
        "scored_tokens": ((), 10.0),
    }
    params = xr.Dataset(held, {} if words is None else {"column": words})
    made = xr.DataTree.from_dict({"params": params, **more})
    made.attrs = FACTS | {"columns": shares.shape[1]}
    return made


def lines(result: xr.DataTree) -> list[str]:
    return summary(result).splitlines()


def line(result: xr.DataTree, name: str) -> str:
    (found,) = (one for one in lines(result) if one.startswith(name))
    return found.split(name, 1)[1].strip()


def test_features_are_told_by_their_tokens_and_words() -> None:
    assert lines(tree())[:6] == [
        "3 features, of at most 9",
        "  feature  prevalence         rows    tokens  words",
        "        1      0.7000         70.0    50.0 %  oil, ship, rate, wheat, grain",
        "        2      0.5000         50.0    30.0 %  wheat, grain, oil, bank, ship",
        "        0      0.9000         90.0    20.0 %  bank, rate, grain, ship, wheat",
        "",
    ]


def test_the_objective_is_told_as_a_perplexity() -> None:
    facts = {one.split()[0]: one.split(None, 1)[1] for one in lines(tree())[6:]}
    assert facts["prediction"] == "perplexity 7.39 of 10 hidden tokens of the rows (-2.0000 nats a token)"
    assert facts["mass"] == "2"
    text = summary(tree())
    assert not [word for word in ("objective", "bound", "noise", "variance") if word in text]
    many = tree()
    many["params"]["score"] = -np.log(1213.44)
    many["params"]["scored_tokens"] = 12345.0
    assert line(many, "prediction").startswith("perplexity 1213.4 of 12,345 hidden tokens")
    many["params"]["scored_tokens"] = 1.0
    assert "of 1 hidden token of the rows" in line(many, "prediction")
    many["params"]["scored_tokens"] = 0.0
    assert line(many, "prediction") == "no tokens are hidden"


@pytest.mark.parametrize(("error", "margin"), [(0.05, " +- 60.67"), (1.0, " +- 1213.4"), (0.0, "")])
def test_scores_are_told_as_perplexities(error: float, margin: str) -> None:
    levels = -np.log([[1213.4, 1112.44, 2696.1]])
    names = {"prediction": 0, "dispersed": 1, "unigram": 2}
    scores = xr.Dataset(
        {
            "score": (("evaluation", "estimate"), levels),
            "error": (("evaluation", "estimate"), [[error, 0.5, 0.5]]),
            "cells": ("evaluation", [12345]),
            "data": ("evaluation", ["news.zarr"]),
            "protocol": ("evaluation", ["half of them"]),
            "method": ("evaluation", ["by one fit"]),
        },
        {"estimate": list(names)},
    )
    said = line(tree(heldout=scores), "held out")
    levels_said = f"1213.4{margin}, 1112.4 with dispersion, baseline 2696.1"
    assert said == f"perplexity {levels_said}; 12,345 tokens of news.zarr, half of them; by one fit"


@pytest.mark.parametrize(
    ("objectives", "said"),
    [
        ([-22.0, -20.0, -21.0], "3; the best is 1, perplexity 7.39; the worst has 9.03"),
        ([-20.0, -20.0 + 1e-12], "2; all predict the hidden tokens alike"),
    ],
)
def test_how_far_starts_are_apart_is_told_in_perplexities(objectives: list[float], said: str) -> None:
    restarts = xr.Dataset({"objective": ("restart", objectives)})
    assert line(tree(restarts=restarts), "restarts") == said


def remarks(result: xr.DataTree) -> list[str]:
    return [one[2:] for one in lines(result) if one.startswith("- ")]


def test_features_without_tokens_and_with_the_same_words_are_remarked() -> None:
    assert remarks(tree()) == []
    even = [1 / 6] * 6
    near = [0.02, 0.46, 0.03, 0.09, 0.30, 0.10]
    found = remarks(tree([*MEAN, near, even, even], (20, 50, 30, 40, 0.001, 0.1)))
    same = "they have nearly the same words (total variation distance 0.04)"
    assert found == [
        "features 4 and 5 have nearly no tokens (less than 1 % of an even share): a smaller K does as well",
        f"features 0 and 3 look like one: {same}; try other starts (--restarts 4)",
    ]


def test_no_tokens_at_all() -> None:
    nothing = "features 0, 1 and 2 have nearly no tokens"
    assert [one.partition(" (")[0] for one in remarks(tree(of_tokens=(0, 0, 0)))] == [nothing]
    assert lines(tree(of_tokens=(0, 0, 0)))[2].split()[3] == "0.0"


@pytest.mark.parametrize("moved", [0.09, 0.11])
def test_words_are_nearly_the_same_up_to_a_tenth(moved: float) -> None:
    other = np.add(MEAN[0], [0, -moved, 0, 0, 0, moved])
    assert bool(remarks(tree([*MEAN, other], (20, 50, 30, 20)))) is (moved < tokens.ALIKE)


def test_pairs_are_those_of_all_distances() -> None:
    draw = np.random.default_rng(3)
    some = draw.dirichlet(np.full(40, 0.4), 12)
    mean = np.concatenate([some, 0.9 * some + 0.1 * draw.dirichlet(np.ones(40), 12), some[:3]])
    result = tree(mean, np.full(27, 5.0), words=None)
    pairs = [(k, j) for j in range(27) for k in range(j)]
    near = [0.5 * np.abs(mean[k] - mean[j]).sum() < tokens.ALIKE for k, j in pairs]
    found = list(tokens._alike(np.arange(27), mean))
    assert {(k, j) for _, k, j in found} == {
        pair for pair, is_near in zip(pairs, near, strict=True) if is_near
    }
    assert 3 < len(found) < 30
    said = [one for one in remarks(result) if "look like one" in one]
    assert [one.split(":")[0] for one in said[:3]] == [
        f"features {k} and {k + 24} look like one" for k in range(3)
    ]


def test_a_word_is_never_cut() -> None:
    long = ["a" * 200, "b" * 30, "c" * 30, "d" * 30, "two\nlines", "f"]
    assert [one.split("%")[1].strip() for one in lines(tree(words=long))[2:5]] == [
        long[0],
        f"{long[2]}, f",
        f"{long[1]}, two lines, f",
    ]


def test_columns_without_labels_have_numbers() -> None:
    assert "50.0 %  column 0, column 3, column 4, column 2, column 5" in lines(tree(words=None))[2]


def test_a_long_list_is_cut() -> None:
    count = LISTED + 5
    mean = np.random.default_rng(0).dirichlet(np.full(6, 0.2), count)
    said = lines(tree(mean, np.arange(1.0, count + 1)))
    assert said[2].split()[0] == str(count - 1)
    assert said[2 + LISTED].split(None, 1) == ["...", "5 more, the smallest with 0.3 % of the tokens"]


def test_a_fit_is_told_as_it_is(tmp_path: Path) -> None:
    run = report_fits.counts(tmp_path / "run", restarts=2, holdout="rows:share=0.3")
    ibp.evaluate(run)
    result = ibp.open_result(run)
    said, params = lines(result), result["params"]
    held = result["heldout"]["score"].sel(estimate="prediction").item()
    assert line(result, "held out").startswith(f"perplexity {np.exp(-held):.2f} +- ")
    assert "; mean of 2 predictions" in line(result, "held out")
    assert f"perplexity {np.exp(-float(params['score'])):.2f} of" in line(result, "prediction")
    assert "perplexity" in line(result, "restarts")
    first = int(np.argmax(params["tokens"].values))
    assert said[2].split()[0] == str(first)


def test_features_of_chains_are_told_by_their_words(tmp_path: Path) -> None:
    run = report_fits.counts(tmp_path / "run", system="counts-gibbs-finite", K=3, steps=16, chains=2)
    result = ibp.open_result(run)
    features = posterior.features(result)
    words = top_words(features["mean"].values, features["column"].values, 1)
    said = lines(result)
    assert said[1].split()[-2:] == ["rows", "words"]
    listed = [one for one in said[2:] if one and one.split()[0].isdigit()]
    assert listed
    for one in listed:
        first = " ".join(words[int(one.split()[0])][0][0].split())
        assert first in one


@pytest.mark.parametrize("system", ["counts-finite-hard", "nmf"])
def test_fits_by_mean_field_are_told_by_their_objective(system: str, tmp_path: Path) -> None:
    run = report_fits.counts(tmp_path / "run", system=system, restarts=2)
    result = ibp.open_result(run)
    assert line(result, "objective") == f"{result.attrs['objective']:,.4f}"
    assert "above the worst" in line(result, "restarts")
    assert "The objective after each step" in report(run).read_text("utf-8")


def test_a_campaign_of_counts_tells_predictions_of_hidden_tokens(tmp_path: Path) -> None:
    run = report_fits.counts(tmp_path / "run")
    grid = {"data": str(tmp_path / "run.zarr"), "truncation": [2, 3], "steps": 12}
    found = ibp.sweep(grid | {"system": "counts-finite"}, tmp_path / "one", serial=True)
    said = campaign.summary(found).splitlines()
    assert "feature" in said[0]
    assert "by the prediction of hidden tokens the best" in said[0]
    assert said[2].split()[:3] == ["system", "truncation", "prediction"]
    both = ibp.sweep(
        grid | {"system": ["counts-finite", "counts-finite-hard"]}, tmp_path / "two", serial=True
    )
    assert "objective" in campaign.summary(both)
    assert run.exists()
