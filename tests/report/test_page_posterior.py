"""The page of a sampler: the answer, the features and the doubts are those of all draws."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.evaluate import posterior
from ibpdist.report import chains
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.sections import posterior as section
from ibpdist.report.html.sections import trace
from ibpdist.report.page import page, read, report
from ibpdist.report.summary import summary
from ibpdist.runs import diagnostics
from tests.support import report_fits
from tests.support.report_page import Page, Truth, same, written_right

SYSTEMS = ("lg-gibbs-infinite", "lg-collapsed-infinite")


@pytest.fixture(scope="module", params=SYSTEMS)
def run(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_fits.drawn(tmp_path_factory.mktemp("drawn") / request.param, request.param)


@pytest.fixture(scope="module")
def found(run: Path) -> Page:
    return Page(report(run).read_text("utf-8"))


@pytest.fixture(scope="module")
def truth(run: Path) -> Truth:
    return Truth(ibp.open_result(run), logs=read(run).logs)


def test_every_number_is_that_of_the_draws(found: Page, truth: Truth) -> None:
    assert len(found.numbers) > 100
    nodes = {one.attributes["data-variable"].partition("/")[0] for one in found.numbers}
    assert {"posterior", "number", "features", "diagnostics", "trace"} <= nodes
    assert nodes & {"params", "diagnosis", "rows"} == set()
    wrong = [
        one.attributes
        for one in found.numbers
        if not same(float(one.attributes["data-value"]), truth.of(one))
    ]
    assert wrong == []
    assert [one.text for one in found.numbers if one.tag == "span" and not written_right(one)] == []
    assert found.naked == []
    assert found.faults == []


def test_a_chain_that_never_changed_its_number_of_features_is_a_doubt(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page in the words of `show`."""
    monkeypatch.setattr(diagnostics, "UNLIKELY", 2)
    facts = read(run)
    facts.result["posterior"]["features"][0] = 7
    text = "chain 0 kept 7 features in every draw: it may be stuck"
    assert f"- {text}" in summary(facts.result)
    doubts = [one.text for one in Page(page(facts)).all("li") if one.attributes.get("class") == "doubt"]
    assert any(text[1:] in doubt for doubt in doubts)


def test_the_answer_is_that_of_show(found: Page, truth: Truth) -> None:
    assert found.all("h1")[0].text.replace("\u00a0", " ") == chains.answer(truth.result)


def test_each_number_of_features_has_a_bar(found: Page, truth: Truth) -> None:
    share = posterior.number(truth.result)
    (listed,) = (one for one in found.all("section") if one.attributes["id"] == "number")
    bars = [one for one in found.elements if one.attributes.get("class") == "bar" and _within(one, listed)]
    assert len(bars) == int((share > 0).sum())
    drawn = [float(one.attributes["style"].removeprefix("--v:")) for one in bars]
    assert np.allclose(drawn, share.values[share.values > 0], atol=1e-4)


def test_the_planted_shapes_are_the_pictures(found: Page, truth: Truth) -> None:
    features = posterior.features(truth.result)
    often = int((features["share"] >= chains.RARE).sum())
    assert often >= 4
    pictures = [one for one in found.elements if "picture" in one.attributes.get("class", "").split()]
    assert len(pictures) == often
    cards = [one.text for one in found.all("article")]
    assert "in 100\u00a0% of the draws" in cards[0]
    from ibpdist.evaluate.synthetic import shapes

    for planted in shapes():
        assert min(np.abs(mean - planted).mean() for mean in features["mean"].values[:often]) < 0.15


def test_the_doubts_are_those_of_show(found: Page, truth: Truth) -> None:
    told = [one.text for one in found.elements if one.attributes.get("data-remark") == "diagnostics"]
    assert [text[:-1].lower() for text in told] == [text.lower() for text in chains.remarks(truth.result)]
    assert not any("converged" in one.text for one in found.all("li"))


def test_what_is_bad_in_the_table_is_marked(found: Page, truth: Truth) -> None:
    table = truth.result["diagnostics"]
    marked = [one for one in found.all("strong") if one.attributes.get("class") == "bad"]
    bad = (table["rhat"] > 1.01).sum() + (table["ess_bulk"] < 400).sum() + (table["ess_tail"] < 400).sum()
    assert len(marked) == int(bad) > 0


def test_there_is_a_trace_for_each_chain(found: Page) -> None:
    names = {one.text for one in found.all("bdi") if one.attributes.get("data-label") == "curve"}
    assert {f"log joint, chain {at}" for at in range(3)} <= names
    lines = [one for one in found.all("polyline") if one.attributes["data-variable"] == "trace/objective"]
    assert len(lines) == 3
    (caption,) = (one.text for one in found.all("figcaption") if "log joint density" in one.text)
    assert "Draws are kept from step 101 on." in caption


def sums_up(facts: Facts) -> None:
    """The terms that are listed are those of the objective, at the last step of every chain."""
    table = facts.result["trace"].isel(step=-1)
    total = sum(table[name].values for name in trace.terms(facts))
    np.testing.assert_allclose(total, table["objective"].values, rtol=1e-12)


def test_the_log_joint_is_made_of_its_terms(found: Page, truth: Truth, run: Path) -> None:
    sums_up(read(run))
    (section_,) = (one for one in found.all("details") if "log joint density" in one.text)
    shown = [one.text for one in found.elements if one.tag in ("td", "th") and _within(one, section_)]
    names = {text for text in shown if re.fullmatch("[a-z ]+", text)} - {"term"}
    assert names == {"likelihood", "dictionary", "z prior", "mass", "noise", "scale", "log joint"}
    assert truth.result["trace"].data_vars.keys() > names - {"log joint"}


PARTICLES = {"noise": 0.1, "scale": 1.0, "mass": 1.0}


@pytest.mark.parametrize(
    ("system", "options"),
    [
        ("lg-gibbs-finite", {"chains": 2}),
        pytest.param("fa-gibbs-finite", {"chains": 2}, marks=pytest.mark.slow),
        ("fa-gibbs-infinite", {"chains": 2}),
        pytest.param("lg-uncollapsed-finite", {}, marks=pytest.mark.slow),
        ("lg-particle", PARTICLES),
        ("lg-vi-finite", {}),
        ("fa-vi-infinite", {}),
        ("fa-vi-dense", {}),
    ],
)
def test_terms_sum_up(system: str, options: dict[str, Any], tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 5))
    sums_up(Facts(tmp_path, ibp.fit(x, system=system, K=3, steps=8, **options)))


def test_features_that_few_draws_have_are_counted(run: Path) -> None:
    facts = read(run)
    few = facts.features.copy(deep=True)
    few["share"][-1] = chains.RARE / 2
    facts.__dict__["features"] = few
    said = [one.text for one in Page(page(facts)).all("p")]
    assert any(re.match(r"1 more features are not shown; at most 2.5", text) for text in said)


def test_chains_that_agree_are_said_to(run: Path) -> None:
    result = ibp.open_result(run).load()
    table = result["diagnostics"].to_dataset()
    table["rhat"][:] = 1.001
    table["ess_bulk"][:] = table["ess_tail"][:] = 900.0
    result["diagnostics"] = type(result)(table)
    found = Page(page(Facts(run, result)))
    good = [one.text for one in found.all("li") if one.attributes.get("class") == "good"]
    assert any("The chains agree: R-hat is at most 1.001." in text for text in good)
    assert [one for one in found.all("strong") if one.attributes.get("class") == "bad"] == []


def test_many_numbers_of_features_are_cut(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section, "MOST", 1)
    facts = read(run)
    made = section.body(facts)
    assert made is not None
    assert made.count("<tr>") == 2
    assert "likeliest are listed" in made


def test_a_fit_has_no_draws(tmp_path: Path) -> None:
    facts = read(report_fits.labelled(tmp_path / "fit", restarts=1, steps=3))
    assert facts.features is None
    assert facts.number is None
    assert section.body(facts) is None
    assert section.agreement(facts) is None


def test_all_features_provided_in_use_leave_doubt(tmp_path: Path) -> None:
    run = report_fits.drawn(tmp_path / "finite", "lg-gibbs-finite", K=3, chains=1, steps=40)
    text = " ".join(one.text for one in Page(page(read(run))).all("li"))
    assert re.search(r"100\u00a0% of the draws use all 3 available features", text)
    assert "One chain cannot show that it has forgotten where it began" in text


def test_columns_have_intervals(tmp_path: Path) -> None:
    run = report_fits.labelled(tmp_path / "run", system="fa-gibbs-finite", K=3, steps=30, restarts=1)
    found = Page(report(run).read_text("utf-8"))
    values = [one.text for one in found.elements if one.attributes.get("class") == "value"]
    assert values
    assert all(re.fullmatch(r"\S+ \(\S+ to \S+\)", text) for text in values)
    facts = read(run)
    low, mean, high = (facts.values(f"features/{name}") for name in ("low", "mean", "high"))
    assert (low <= high).all()
    assert ((low <= mean) & (mean <= high)).mean() > 0.9


def _within(one: Any, other: Any) -> bool:
    while one is not None and one is not other:
        one = one.parent
    return one is other
