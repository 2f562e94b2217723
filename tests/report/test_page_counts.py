"""The page of counts: features as lists of words, and what they predict in perplexities."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.portraits import FIRST
from ibpdist.report.html.rows import look_at_tokens
from ibpdist.report.html.sections.words import TOP
from ibpdist.report.page import page, read, report
from ibpdist.report.summary import summary
from ibpdist.report.words import top_words
from tests.support import report_fits
from tests.support.report_page import Element, Page, Truth, same, written_right

KINDS = ("fit", "chains", "campaign")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("counts")
    fit = report_fits.counts(folder / "fit", restarts=2, holdout="rows:share=0.2")
    ibp.evaluate(fit)
    ibp.evaluate(fit, folder / "fit.zarr")
    chains = report_fits.counts(
        folder / "chains", system="counts-gibbs-beta-process", K=3, steps=20, chains=2
    )
    spec = {
        "data": str(folder / "fit.zarr"),
        "system": "counts-finite",
        "truncation": [2, 4],
        "restarts": 2,
        "seed": 1,
        "steps": 15,
        "holdout": "rows:share=0.2",
    }
    ibp.sweep(spec, folder / "campaign", serial=True)
    return {"fit": fit, "chains": chains, "campaign": folder / "campaign"}


@pytest.fixture(scope="module")
def pages(runs: dict[str, Path]) -> dict[str, Page]:
    return {kind: Page(report(run).read_text("utf-8")) for kind, run in runs.items()}


@pytest.fixture(scope="module")
def truths(runs: dict[str, Path]) -> dict[str, Truth]:
    found = {}
    for kind, run in runs.items():
        facts = read(run)
        found[kind] = Truth(facts.result, facts.summary, facts.stability, facts.logs)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_that_of_the_result(kind: str, pages: Any, truths: Any) -> None:
    found = pages[kind]
    assert len(found.numbers) > 60
    wrong = [
        one.attributes
        for one in found.numbers
        if not same(float(one.attributes["data-value"]), truths[kind].of(one))
    ]
    assert wrong == []
    assert [one.text for one in found.numbers if one.tag == "span" and not written_right(one)] == []
    assert found.naked == []
    assert found.faults == []


def sections(found: Page) -> list[str]:
    return [one.attributes["id"] for one in found.all("section")]


def test_sections_are_those_of_counts(pages: Any) -> None:
    expected = ["sure", "words", "prevalence", "together", "rounds", "groups", "rows", "trace", "cost", "run"]
    assert sections(pages["fit"]) == expected
    assert "features" not in sections(pages["chains"]) + sections(pages["campaign"])
    assert {"number", "words", "chains"} <= set(sections(pages["chains"]))
    assert {"words", "campaign", "stability"} <= set(sections(pages["campaign"]))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_of_variance_noise_and_bounds(kind: str, pages: Any) -> None:
    (body,) = (one for one in pages[kind].elements if one.tag == "main")
    hidden = "".join(one.text for one in pages[kind].all("pre"))
    said = body.text.replace(hidden, "") if hidden else body.text
    assert [word for word in ("variance", "noise", "bound", "hidden cell") if word in said] == []


def cards(found: Page) -> list[Element]:
    return [one for one in found.elements if one.attributes.get("class") == "card"]


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_lists_of_their_top_words(kind: str, pages: Any, runs: Any) -> None:
    facts = read(runs[kind])
    found = cards(pages[kind])
    assert len(found) == len(facts.active) > 1
    mean = facts.values(f"{facts.feature_node}/mean")
    for k, card in zip(facts.active, found, strict=True):
        (listing,) = (one for one in card.children if one.tag == "ul")
        expected = top_words(mean[k : k + 1], facts.columns, TOP)[0]
        assert len(listing.children) == TOP
        for line, (word, share) in zip(listing.children, expected, strict=True):
            shown, drawn, value = line.children
            assert shown.attributes["title"] == (" ".join(word.split()) or "(empty)")[:1000].replace(
                "\x00", "\ufffd"
            ).replace("\x1b", "\ufffd")
            assert float(value.children[0].attributes["data-value"]) == share
            length = float(drawn.attributes["style"].removeprefix("--v:"))
            assert length == pytest.approx(share / expected[0][1], abs=1e-4)


def test_features_come_by_falling_tokens(pages: Any, runs: Any) -> None:
    params = ibp.open_result(runs["fit"])["params"]
    active = np.flatnonzero(params["active"].values)
    order = active[np.argsort(-params["tokens"].values[active])]
    assert [one.children[0].text for one in cards(pages["fit"])] == [f"Feature {k}" for k in order]
    shares = [
        float(one.attributes["data-value"])
        for one in pages["fit"].numbers
        if one.attributes["data-variable"] == "params/tokens" and one.parent.tag == "td"
    ]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)


def test_words_stand_beside_the_number_of_a_feature(pages: Any, runs: Any) -> None:
    facts = read(runs["campaign"])
    words = top_words(facts.values("params/mean"), facts.columns, FIRST)
    beside = [one for one in pages["campaign"].elements if one.attributes.get("data-label") == "words"]
    assert len(beside) >= 3 * len(facts.active)
    for one in beside:
        name, label = one.parent.parent.children[0].text, one.attributes["title"]
        k = int(name.removeprefix("feature "))
        assert label[:20] == " ".join(", ".join(word for word, _ in words[k]).split())[:20]


def test_the_answer_is_a_perplexity(pages: Any, truths: Any) -> None:
    (headline,) = pages["fit"].all("h1")
    params = truths["fit"].result["params"]
    level = np.exp(-float(params["score"]))
    assert headline.text.endswith(f"features predict hidden tokens with perplexity {level:.2f}")
    glance = {one.text: one.parent.children[1].text for one in pages["fit"].all("dt")}
    assert glance["perplexity of hidden tokens"] == f"{level:.2f}"
    assert glance["hidden tokens"] == f"{int(params['scored_tokens']):,}"


def verdicts(found: Page) -> str:
    return " ".join(one.text for one in found.all("li") if one.parent.attributes.get("class") == "verdicts")


def test_scores_are_told_as_perplexities(pages: Any, truths: Any) -> None:
    said = verdicts(pages["fit"])
    held = truths["fit"].result["heldout"]["score"].values[0]
    level, bursts, baseline = (f"{np.exp(-one):.2f}" for one in held)
    assert f"hidden tokens its perplexity is {level} ± " in said
    assert f", {bursts} with dispersion, and {baseline} by one law of words for all rows" in said
    assert re.search(
        r"The best of 2 starts is shown; their perplexities of hidden tokens are [\d.]+ to", said
    )
    assert "by one law of words for all rows (mean of 2 predictions with up to 5 features," in said
    assert "On its own rows its perplexity is " in said
    assert "rows (prediction with 4 features," in verdicts(pages["campaign"])
    assert "No score of new rows is kept with the fit" in verdicts(pages["chains"])


def test_a_score_that_only_the_campaign_has_is_told(runs: dict[str, Path]) -> None:
    facts = read(runs["campaign"])
    del facts.result["heldout"]
    level = np.exp(-float(facts.summary["heldout"].max()))
    said = verdicts(Page(page(Facts(facts.path, facts.result, facts.campaign))))
    assert f"On hidden tokens its perplexity is {level:.2f}; lower is better." in said


def test_available_features_that_are_all_used_are_a_doubt(pages: Any) -> None:
    said = "5 of 5 available features are used, so there may be more: compare several K with ibpdist choose."
    assert said in verdicts(pages["fit"])
    of_draws = " of the draws use all 3 available features, so there may be more: compare several K"
    assert of_draws in verdicts(pages["chains"])


def test_the_trace_is_the_prediction_of_hidden_tokens(pages: Any, runs: Any) -> None:
    text = " ".join(one.text for one in pages["fit"].all("figcaption"))
    assert "The prediction of hidden tokens after each step, in nats per token." in text
    titles = [one.text for one in pages["fit"].all("title")]
    assert "The prediction of hidden tokens after each step" in titles
    assert not [one for one in pages["fit"].all("summary") if "made of" in one.text]
    ticks = [one.text for one in pages["fit"].elements if one.attributes.get("data-axis") == "nats per token"]
    result = ibp.open_result(runs["fit"])
    last = float(result["params"]["score"])
    low, high = (float(ticks[at].replace("\u2212", "-")) for at in (0, -1))
    assert low < last <= high


def test_chains_tell_the_rounds_of_the_last_draw(pages: Any, runs: Any) -> None:
    params = ibp.open_result(runs["chains"])["params"]
    section = next(one for one in pages["chains"].all("section") if one.attributes["id"] == "rounds")
    assert "The round of each feature in the last draw of the first chain" in section.text
    assert "Chains draw the rounds." in section.text
    found = [
        one for one in pages["chains"].numbers if one.attributes["data-variable"] == "params/round_chance"
    ]
    assert len(found) == int(params["active"].sum())
    assert {float(one.attributes["data-value"]) for one in found} == {1.0}


def test_a_chain_is_drawn_without_the_fit_that_it_begins_with(pages: Any, runs: Any) -> None:
    warming = ibp.open_result(runs["chains"])["trace"]["warming"].values
    curves = [
        one.attributes["points"].split()
        for one in pages["chains"].all("polyline")
        if one.attributes["data-variable"] == "trace/objective"
    ]
    assert [len(one) for one in curves] == [int((one != 1).sum()) for one in warming]
    assert (warming == 1).any()
    terms = [one.text for one in pages["chains"].all("th") if one.parent.parent.tag == "tbody"]
    assert "log joint" in terms
    assert "prediction" not in terms


def test_tables_of_a_campaign_have_units_of_tokens(pages: Any) -> None:
    heads = {one.text for one in pages["campaign"].all("th")}
    assert "best prediction of hidden tokens, nats" in heads
    assert "prediction of hidden tokens" in heads
    text = " ".join(one.text for one in pages["campaign"].all("figcaption"))
    assert "Prediction of hidden tokens, nats." in text


def test_scores_of_a_campaign_are_in_nats_per_token(pages: Any, truths: Any) -> None:
    found, held = pages["campaign"], truths["campaign"].summary["heldout"]
    text = " ".join(one.text for one in found.elements if one.tag in ("th", "figcaption", "caption"))
    assert "best held-out score, nats per token" in text
    assert "Held-out score, nats per token." in text
    assert "held-out score in nats per token," in text
    glance = {one.text: one.parent.children[1].text for one in found.all("dt")}
    assert glance["held-out perplexity"] == f"{np.exp(-float(held.max())):.2f}"


def test_typical_rows_have_their_tokens_from_the_feature() -> None:
    z = np.array([[1.0, 1.0], [0.9, 0.0], [0.2, 1.0], [1.0, 1.0]])
    w = np.array([[30.0, 10.0], [20.0, 5.0], [90.0, 40.0], [5.0, 6.0]])
    rows = xr.Dataset({"z": (("row", "feature"), z), "w": (("row", "feature"), w)})
    seen = look_at_tokens(rows)
    first, second = seen.best
    assert [one.row for one in first] == [0, 1, 3]
    assert [one.share for one in first] == pytest.approx([30 / 40, 1.0, 5 / 11])
    assert [one.row for one in second] == [2, 3, 0]
    np.testing.assert_allclose(seen.together, [[3.1, 2.2], [2.2, 3.0]])


def test_counts_are_pictures_only_when_asked(runs: dict[str, Path]) -> None:
    """36 columns are a square."""
    facts = read(runs["fit"])
    bare = facts.result.copy()
    bare["params"] = xr.DataTree(facts.result["params"].to_dataset().drop_vars("column"))
    found = Page(page(Facts(facts.path, bare)))
    assert "words" in sections(found)
    assert re.search(r"column \d+", cards(found)[0].text)
    drawn = Page(page(read(runs["fit"], (6, 6))))
    assert "features" in sections(drawn)
    assert "words" not in sections(drawn)


def test_remarks_are_those_of_show(runs: dict[str, Path]) -> None:
    facts = read(runs["fit"])
    params = facts.result["params"].to_dataset().load()
    mean, tokens = params["mean"].values.copy(), params["tokens"].values.copy()
    mean[1], tokens[2] = mean[0], 0.0
    alike = params.assign(mean=(("feature", "column"), mean), tokens=("feature", tokens))
    facts.result["params"] = xr.DataTree(alike)
    found = Page(page(Facts(facts.path, facts.result)))
    (listed,) = (one for one in found.all("ul") if one.attributes.get("class") == "remarks")
    said = [one[2:] for one in summary(facts.result).splitlines() if one.startswith("- ")]
    assert [one.text for one in listed.children] == said[:-1]
    assert len(said) == 3
    assert "feature 2 has nearly no tokens" in said[0]
    assert "features 0 and 1 look like one" in said[1]
    assert found.naked == []


def test_many_features_are_cut_and_counted(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from ibpdist.report.html import facts as module

    monkeypatch.setattr(module, "LISTED", 2)
    facts = read(runs["fit"])
    found = Page(page(facts))
    assert len(cards(found)) == 2
    most = 100 * facts.values("params/tokens")[facts.active[2]] / facts.values("params/tokens").sum()
    more = f"3 more features are not shown; each has at most {most:.1f}\u00a0% of the tokens."
    assert sum(one.text == more for one in found.all("p")) == 2
