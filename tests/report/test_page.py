"""The page of a report: every number is that of the result, nothing runs, nothing is missing."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import StorageError, UsageError
from ibpdist.report.html.facts import LISTED, Facts
from ibpdist.report.html.markup import sentence
from ibpdist.report.html.sections import SECTIONS
from ibpdist.report.html.sections._base import Section
from ibpdist.report.page import page, read, report
from tests.support import report_fits
from tests.support.report_page import Page, Truth, same, words_of, written_right


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    return {
        "images": report_fits.images(folder / "images"),
        "labelled": report_fits.labelled(folder / "labelled <b>&"),
        "short": report_fits.labelled(folder / "short", system="lg-vi-finite", K=2, steps=3, restarts=1),
        "subsampled": report_fits.labelled(folder / "subsampled", restarts=1, stability=2, steps=30),
        "rounds": report_fits.rounds(folder / "rounds"),
        "counts": report_fits.counts(folder / "counts"),
        "sampled": report_fits.labelled(
            folder / "sampled", system="fa-gibbs-finite", K=3, steps=6, restarts=1
        ),
        "drawn": report_fits.labelled(
            folder / "drawn", system="lg-gibbs-infinite", K=3, steps=40, restarts=1, chains=2
        ),
    }


@pytest.fixture(scope="module")
def pages(runs: dict[str, Path]) -> dict[str, Page]:
    made = {name: Page(report(run).read_text("utf-8")) for name, run in runs.items()}
    best = ibp.open_result(runs["images"])
    held = report_fits.campaign(best)
    facts = Facts(runs["images"], best, held, stability=held.stability())
    return made | {"campaign": Page(page(facts))}


@pytest.fixture(scope="module")
def truths(runs: dict[str, Path]) -> dict[str, Truth]:
    results = {name: ibp.open_result(run) for name, run in runs.items()}
    made = {
        name: Truth(result, stability=result.children.get("stability"), logs=read(runs[name]).logs)
        for name, result in results.items()
    }
    best = ibp.open_result(runs["images"])
    held = report_fits.campaign(best)
    return made | {"campaign": Truth(best, held.summary, held.stability())}


KINDS = ("images", "labelled", "short", "subsampled", "rounds", "counts", "sampled", "drawn", "campaign")


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_that_of_the_result(kind: str, pages: Any, truths: Any) -> None:
    numbers = pages[kind].numbers
    assert len(numbers) > 60
    wrong = [
        one.attributes
        for one in numbers
        if not same(float(one.attributes["data-value"]), truths[kind].of(one))
    ]
    assert wrong == []


def test_what_comes_back_in_subsamples_has_a_section(runs: dict[str, Path], pages: Any) -> None:
    stability = ibp.open_result(runs["subsampled"])["stability"].to_dataset()
    found = pages["subsampled"]
    section = next(one for one in found.all("section") if one.attributes.get("id") == "subsamples")
    assert "when the cosine is above 0.9" in section.text
    cells = [one for one in found.numbers if one.attributes["data-variable"] == "stability/similarity"]
    shaded = [one for one in cells if one.parent.attributes["class"] == "cell"]
    assert len(cells) == stability.present.size
    assert len(shaded) == int(stability.present.sum())
    sure = next(one for one in found.all("section") if one.attributes.get("id") == "sure")
    stable, features = int(stability.stable.sum()), stability.sizes["feature"]
    assert f"{stable} of {features} features come back in at least 2 of 2 subsamples" in sure.text
    assert "subsamples" not in [one.attributes.get("id") for one in pages["labelled"].all("section")]


def test_rounds_and_groups_have_sections(runs: dict[str, Path], pages: Any) -> None:
    result, found = ibp.open_result(runs["rounds"]), pages["rounds"]
    sections = {one.attributes["id"]: one for one in found.all("section")}
    chances = [one for one in found.numbers if one.attributes["data-variable"] == "params/round_chance"]
    active = int(result["params"]["active"].sum())
    total = sum(float(one.attributes["data-value"]) for one in chances)
    assert total == pytest.approx(active, abs=0.005 * 9 * active)
    assert len(chances) > active, "atoms of several rounds"
    assert "south" in sections["groups"].text
    shared = [one for one in found.numbers if one.attributes["data-variable"] == "groups/shared"]
    assert len(shared) == 9
    for kind in ("labelled", "subsampled", "sampled"):
        assert not {"rounds", "groups"} & {one.attributes.get("id") for one in pages[kind].all("section")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_written_as_it_is(kind: str, pages: Any) -> None:
    spans = [one for one in pages[kind].numbers if one.tag == "span"]
    assert [(one.text, one.attributes) for one in spans if not written_right(one)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_stands_without_a_name(kind: str, pages: Any) -> None:
    assert pages[kind].naked == []


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_the_result_are_repeated_as_they_are(kind: str, pages: Any, truths: Any) -> None:
    found = [one for one in pages[kind].texts if one.attributes["data-variable"].startswith("attrs/")]
    named = {one.attributes["data-variable"] for one in found}
    assert {"attrs/fingerprint", "attrs/spec", "attrs/versions", "attrs/system"} <= named
    assert ("attrs/stopped" in named) is (kind not in ("sampled", "drawn"))
    assert [one.text for one in found if one.text != words_of(truths[kind].result, one)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_structure_is_sound(kind: str, pages: Any) -> None:
    found = pages[kind]
    assert found.faults == []
    names = [one.attributes["id"] for one in found.elements if "id" in one.attributes]
    assert len(names) == len(set(names))
    for link in found.all("a"):
        assert link.attributes["href"].removeprefix("#") in names
    assert len(found.all("h1")) == 1
    assert found.all("html")[0].attributes["lang"] == "en"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_seen_can_be_heard(kind: str, pages: Any) -> None:
    found = pages[kind]
    levels = [int(one.tag[1]) for one in found.elements if re.fullmatch("h[1-6]", one.tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for table in found.all("table"):
        assert table.children[0].tag == "caption"
        assert table.children[0].text.strip()
    assert all(cell.attributes["scope"] in ("col", "row") for cell in found.all("th"))
    for drawn in found.all("svg"):
        assert drawn.attributes["role"] == "img"
        assert drawn.attributes["aria-label"]
    pictures = [one for one in found.elements if "picture" in one.attributes.get("class", "").split()]
    assert all(
        one.attributes["role"] == "img" and "image" in one.attributes["aria-label"] for one in pictures
    )


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_fetched_and_nothing_runs(kind: str, pages: Any) -> None:
    found = pages[kind]
    assert {one.tag for one in found.elements} & {
        "script",
        "iframe",
        "object",
        "embed",
        "img",
        "form",
    } == set()
    for one in found.elements:
        assert [name for name in one.attributes if name.startswith("on")] == []
        for name in ("src", "href", "data", "action"):
            assert re.match(r"#|data:,$|$", one.attributes.get(name, ""))
    style = "".join(one.text for one in found.all("style"))
    assert re.findall(r"url\((?!\"data:image/png;base64,)", style) == []
    assert "@import" not in style
    assert len(found.source.encode()) < 5_000_000


def test_the_answer_comes_first(pages: Any, truths: Any) -> None:
    found = pages["images"]
    result = truths["images"].result
    share = float(result["diagnosis"]["explained_together"])
    count = int(result["params"]["active"].values.sum())
    assert found.all("h1")[0].text == f"{count} features explain {100 * share:.1f}\u00a0% of the variance"
    first = next(one for one in found.elements if one.tag == "section")
    assert first.attributes["id"] == "sure"


def test_hostile_labels_are_shown_and_do_nothing(pages: Any, runs: Any) -> None:
    found = pages["labelled"]
    labels = {str(text) for text in ibp.open_result(runs["labelled"])["params"]["column"].values}
    shown = [one for one in found.all("bdi") if one.attributes["data-label"] == "column"]
    titles = {one.attributes["title"] for one in shown}
    assert any(title.startswith("<script>") for title in titles)
    assert any("onmouseover" in title for title in titles)
    for one in shown:
        assert len(one.text) <= 120
        whole = one.attributes["title"]
        assert whole == "(empty)" or any(
            " ".join(re.sub("[\x00\x1b]", "\ufffd", text).split()).startswith(whole) for text in labels
        )
    assert "\x00" not in found.source
    assert "<b>&" in found.all("title")[0].text


def test_rows_are_named_by_their_labels(pages: Any, runs: Any) -> None:
    shown = [one.text for one in pages["labelled"].all("bdi") if one.attributes["data-label"] == "row"]
    labels = {str(text) for text in ibp.open_result(runs["labelled"])["rows"]["row"].values}
    assert shown
    assert set(shown) <= labels


def test_features_are_images_when_columns_are_pixels(pages: Any) -> None:
    drawn = {
        kind: [e for e in pages[kind].elements if "picture" in e.attributes.get("class", "")]
        for kind in KINDS
    }
    assert len(drawn["images"]) >= 4
    assert drawn["labelled"] == []
    style = "".join(one.text for one in pages["images"].all("style"))
    assert style.count("data:image/png;base64,") == len(
        [e for e in drawn["images"] if "f" in e.attributes["class"]]
    )


def test_a_draw_has_no_standard_deviation(pages: Any) -> None:
    assert "±" not in pages["sampled"].source
    assert "±" in pages["labelled"].source


def said(found: Page, kind: str) -> list[str]:
    return [one.text for one in found.all("li") if one.attributes.get("class") == kind]


def test_doubts_are_told_in_words(pages: Any) -> None:
    doubts = " ".join(said(pages["short"], "doubt"))
    assert "has not converged: it was stopped at the limit of 3 steps" in doubts
    assert "2 of 2 available features are used, so there may be more" in doubts
    assert "converged" in " ".join(said(pages["images"], "good"))
    assert "One start was made" in " ".join(said(pages["images"], "open"))
    assert "The best of 2 starts is shown" in " ".join(said(pages["labelled"], "open"))
    assert "One chain cannot show" in " ".join(said(pages["sampled"], "doubt"))
    assert not any("not converged" in text for text in said(pages["sampled"], "doubt"))


@pytest.mark.parametrize(
    ("gap", "kind", "words"),
    [
        (7.3e-12, "fact", "The 2 starts have come to the same objective."),
        (2.5, "open", "The best of 2 starts is shown; their objectives span 2.50 nats."),
    ],
)
def test_how_far_starts_are_apart_unless_by_round_off(gap: float, kind: str, words: str, runs: Any) -> None:
    result = ibp.open_result(runs["labelled"]).load()
    restarts = result["restarts"].to_dataset()
    restarts["objective"] = "restart", np.array([-61250.0, -61250.0 + gap])
    result["restarts"] = type(result)(restarts)
    found = Page(page(Facts(runs["labelled"], result)))
    told = {of: [text for text in said(found, of) if "starts" in text] for of in ("fact", "open")}
    assert [of for of in told if told[of]] == [kind]
    assert words in told[kind][0]


def test_remarks_are_those_of_show(pages: Any, truths: Any) -> None:
    from ibpdist.report.diagnosis import remarks, used_up

    for kind in ("images", "labelled", "short"):
        result = truths[kind].result
        weighted, most = "w" in result["rows"], int(result.attrs["truncation"])
        expected = [text for text in remarks(result["diagnosis"], most, weighted) if text != used_up(most)]
        shown = [one.text for one in pages[kind].all("li") if "data-remark" in one.attributes]
        assert shown == expected


@pytest.mark.parametrize("gap", [0.0, 5e5])
def test_a_curve_of_the_legend_is_in_the_frame(gap: float, runs: Any) -> None:
    """A bound far below the objective, both with a first step that is out of all proportion."""
    result = ibp.open_result(runs["images"]).load()
    steps = np.arange(1, 41)
    level = np.where(steps == 1, -1e9, -1000.0 + steps)
    trace = xr.Dataset({"objective": ("step", level), "bound": ("step", level - 1 - gap)}, {"step": steps})
    made = type(result).from_dict({"params": result["params"].to_dataset(), "trace": trace})
    made.attrs = result.attrs
    found = Page(page(Facts(runs["images"], made)))
    drawn = {
        one.attributes["data-variable"]: one.attributes["points"].split() for one in found.all("polyline")
    }
    assert {name: len(points) for name, points in drawn.items()} == {"trace/objective": 39, "trace/bound": 39}
    assert any("The first steps lie below the frame." in one.text for one in found.all("figcaption"))


def test_sections_that_have_nothing_to_say_are_left_out(runs: Any) -> None:
    facts = read(runs["images"])
    silent = Section("silent", "Silent", lambda _: None)
    loud = Section("loud", "Loud", lambda f: sentence("of ", f.path.name))
    found = Page(page(facts, (silent, loud)))
    assert [one.attributes["id"] for one in found.all("section")] == ["loud"]
    assert [one.text for one in found.all("h2")] == ["Loud"]
    assert len({one.name for one in SECTIONS}) == len(SECTIONS)


def test_many_features_are_cut_and_counted(runs: Any) -> None:
    result = ibp.open_result(runs["images"]).load()
    many = LISTED + 7
    params = result["params"].to_dataset()[["prevalence", "active", "mean"]].isel(feature=[0] * many)
    params["prevalence"] = "feature", np.linspace(0.9, 0.1, many)
    params["active"] = "feature", np.ones(many, bool)
    cut = type(result).from_dict({"params": params})
    cut.attrs = {**result.attrs, "truncation": many + 1}
    found = Page(page(Facts(runs["images"], cut)))
    assert len(found.all("article")) == LISTED
    said = "7 more features are not shown; the least frequent has prevalence 0.100."
    assert said in [one.text for one in found.all("p")]


def test_no_feature_at_all(runs: Any) -> None:
    result = ibp.open_result(runs["images"]).load()
    params = result["params"].to_dataset()
    params["active"] = params["active"] & False
    none = type(result).from_dict({"params": params, "trace": result["trace"].to_dataset()})
    none.attrs = result.attrs
    found = Page(page(Facts(runs["images"], none)))
    assert found.all("h1")[0].text == "0 features: nothing but noise was found"
    assert found.all("article") == []
    assert found.naked == []


def test_where_it_is_written(runs: Any, tmp_path: Path) -> None:
    assert report(runs["images"]) == runs["images"] / "report.html"
    other = tmp_path / "other.html"
    assert ibp.report(str(runs["images"]), str(other)) == other
    assert other.read_bytes() == (runs["images"] / "report.html").read_bytes()
    assert ibp.verify(runs["images"]) == []
    with pytest.raises(UsageError, match="is a directory"):
        report(runs["images"], tmp_path)
    with pytest.raises(StorageError, match="is not a run"):
        report(tmp_path)
    with pytest.raises(StorageError):
        report(runs["images"], tmp_path / "missing" / "page.html")


def test_the_size_of_images_can_be_given(runs: Any) -> None:
    assert read(runs["images"]).image == (6, 6)
    assert read(runs["images"], (4, 9)).image == (4, 9)
    assert read(runs["labelled"]).image is None
    assert read(runs["labelled"], (3, 4)).image == (3, 4)
    with pytest.raises(UsageError, match="5 x 5 pixels expected, but rows have 36 columns"):
        read(runs["images"], (5, 5))


def test_who_has_what_is_that_of_all_draws(pages: Any) -> None:
    """Of a sampler of factors only which occur together: draws of its weights are not kept."""
    for kind, sections in (("drawn", {"together", "rows"}), ("sampled", {"together"})):
        named = {one.attributes["data-variable"] for one in pages[kind].numbers}
        assert "members/z" in named
        assert "rows/z" not in named
        ids = {one.attributes.get("id") for one in pages[kind].all("section")}
        assert ids & {"together", "rows"} == sections
