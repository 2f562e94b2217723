"""The page of a real campaign: its summary, the best of its fits, and what other starts find."""

import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.evaluate import consensus
from ibpdist.report.campaign import summary
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.sections.campaign import drawn
from ibpdist.report.page import page, read, report
from tests.support import report_fits
from tests.support.report_page import Element, Page, Truth, same, written_right


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("campaign")
    ibp.synthesise("images", made / "data.zarr", rows=160, noise=0.2, seed=3)
    spec: dict[str, Any] = {
        "data": str(made / "data.zarr"),
        "system": ["lg-vi-infinite"],
        "truncation": [2, 6],
        "restarts": 3,
        "seed": 4,
        "steps": 60,
        "holdout": 0.2,
        "set": {"noise": ["one", "column"], "start": "random"},
    }
    ibp.sweep(spec, made / "run", serial=True)
    return made / "run"


def lines_of(found: Page, caption: str) -> list[Element]:
    """The lines of the table with this caption."""
    (table,) = (one for one in found.all("table") if one.children[0].text.startswith(caption))
    return [line for line in table.children[-1].children if line.tag == "tr"]


def number_of(line: Element, variable: str) -> float | None:
    """The number of a variable in a line of a table, if it is there."""
    cells = [one for cell in line.children for one in cell.children]
    told = [one for one in cells if one.attributes.get("data-variable") == variable]
    return float(told[0].attributes["data-value"]) if told else None


@pytest.fixture(scope="module")
def found(folder: Path) -> Page:
    return Page(report(folder).read_text("utf-8"))


def test_every_number_is_that_of_the_summary_or_of_the_best_fit(folder: Path, found: Page) -> None:
    campaign = ibp.open_campaign(folder)
    facts = read(folder)
    truth = Truth(campaign.best(), campaign.summary, facts.stability, facts.logs)
    assert len(found.numbers) > 200
    wrong = [
        one.attributes
        for one in found.numbers
        if not same(float(one.attributes["data-value"]), truth.of(one))
    ]
    assert wrong == []
    assert [one.text for one in found.numbers if one.tag == "span" and not written_right(one)] == []
    assert found.naked == []
    assert found.faults == []


def test_every_fit_is_in_the_table(folder: Path, found: Page) -> None:
    summary = ibp.open_campaign(folder).summary
    listed = next(one for one in found.all("table") if one.children[0].text.startswith("Every fit"))
    lines = [one for one in listed.children[-1].children if one.tag == "tr"]
    assert len(lines) == summary["objective"].size == 12
    shown = {
        one.attributes["data-index"]: one.text for one in found.texts if "summary/seed" in str(one.attributes)
    }
    assert sorted(shown.values()) == sorted(map(str, summary["seed"].values.ravel()))


def test_points_of_the_charts_are_all_fits(folder: Path, found: Page) -> None:
    summary = ibp.open_campaign(folder).summary
    for name in ("objective", "heldout", "active", "seconds"):
        marks = [one for one in found.all("circle") if one.attributes["data-variable"] == f"summary/{name}"]
        values = sorted(float(one.attributes["data-value"]) for one in marks)
        np.testing.assert_allclose(values, np.sort(summary[name].values.ravel()))


def test_stability_is_of_the_features_that_are_shown(folder: Path) -> None:
    """The reference is the best fit by held-out score, which need not have the best objective."""
    campaign = ibp.open_campaign(folder)
    facts, best = read(folder), campaign.best_fit()
    assert (
        facts.stability["feature"].values.tolist()
        == np.flatnonzero(campaign.best()["params"]["active"].values).tolist()
    )
    restarts = {fit.labels["restart"]: campaign.open(fit) for fit in campaign.restarts()}
    expected = consensus.stability(consensus.aligned(restarts, best.labels["restart"]))
    np.testing.assert_array_equal(facts.stability["stability"].values, expected["stability"].values)
    assert best.labels["restart"] not in expected["restart"].values


def test_the_page_the_words_and_the_library_agree_on_what_is_stable(folder: Path, found: Page) -> None:
    campaign = ibp.open_campaign(folder)
    stability, of = campaign.stability(), len(campaign.restarts()) - 1
    again = [one for one in found.numbers if one.attributes["data-variable"] == "stability/stable"]
    assert {float(one.attributes["data-value"]) for one in again} == {float(stability.stable.sum())}
    line = next(line for line in summary(campaign).splitlines() if "found again" in line)
    stable, features = int(stability.stable.sum()), stability.sizes["feature"]
    assert line.startswith(
        f"{stable} of {features} feature{'s' * (features > 1)} found again in at least 75% "
    )
    assert f"75% of {of} other restart" in line
    section = next(one for one in found.all("section") if one.attributes.get("id") == "stability")
    assert "below 0.3 feature standard deviations" in section.text
    cells = [one for one in found.numbers if one.attributes["data-variable"] == "stability/similarity"]
    shaded = [one for one in cells if one.parent.attributes["class"] == "cell"]
    assert len(cells) == stability.present.size
    assert len(shaded) == int(stability.present.sum())


def test_the_score_of_the_answer_is_that_of_the_best_fit(folder: Path) -> None:
    campaign, facts = ibp.open_campaign(folder), read(folder)
    best = campaign.summary["heldout"].isel(facts.best_at).item()
    assert best == np.nanmax(campaign.summary["heldout"].values)
    assert float(campaign.best()["heldout"]["score"].sel(estimate="variance").values.ravel()[-1]) == best


def test_one_restart_says_nothing_about_stability(folder: Path) -> None:
    best = ibp.open_campaign(folder).best()
    held = report_fits.campaign(best, restarts=1)
    found = Page(page(Facts(folder, best, held)))
    assert "stability" not in [one.attributes["id"] for one in found.all("section")]
    assert any("One start was made" in one.text for one in found.all("li"))
    assert found.naked == []


def test_what_failed_is_told(folder: Path) -> None:
    best = ibp.open_campaign(folder).best()
    held = report_fits.campaign(best)
    found = Page(page(Facts(folder, best, held, stability=held.stability())))
    doubts = [one.text for one in found.all("li") if one.attributes.get("class") == "doubt"]
    assert any("1 fit has no result; the table of all fits says why." in text for text in doubts)
    told = [one.text for one in found.texts if one.attributes["data-variable"] == "summary/stop"]
    assert "x.npy: </table><script>window.broken=1</script>" in told
    assert len(told) == held.summary["objective"].size


@pytest.mark.parametrize("full", [False, True])
def test_the_largest_truncation_is_a_doubt_only_when_it_is_used_up(folder: Path, full: bool) -> None:
    best = ibp.open_campaign(folder).best().load()
    best["diagnosis"]["used_up"] = full
    held = report_fits.campaign(best)
    held.summary = held.summary.assign_coords(truncation=[2, 4, best.attrs["truncation"]])
    facts = Facts(folder, best, held)
    facts.__dict__["best_at"] = {"system": 0, "truncation": 2, "noise": 0, "restart": 0}
    text = page(facts)
    assert ("so there may be more: try a larger K" in text) is full
    assert "largest K that was tried" not in text


def test_a_campaign_without_any_result_is_refused(tmp_path: Path, folder: Path) -> None:
    """Its manifest alone."""
    (tmp_path / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    with pytest.raises(StorageError, match="no fit has"):
        report(tmp_path)


def test_a_large_campaign_stays_readable(folder: Path) -> None:
    """24 settings, 10 levels, 12 restarts: the best settings are drawn, tables and size are bounded."""
    best = ibp.open_campaign(folder).best()
    draw = np.random.default_rng(1)
    dims, shape = ("system", "truncation", "mass", "restart"), (2, 10, 12, 12)
    held = report_fits.campaign(best)
    heldout = draw.normal(size=shape)
    heldout[1, 3, 7, 2] = 9.0
    names = ("objective", "active", "seconds", "steps")
    numbers = {name: (dims, 100 * draw.random(shape)) for name in names}
    for at in (0, 5, 11):
        numbers["objective"][1][0, 0, at, 0] = heldout[0, 0, at, 0] = np.nan
    words = {name: (dims, np.full(shape, "said " * 20, object)) for name in ("status", "stop", "seed", "fit")}
    coords = {"system": ["a", "b"], "truncation": range(10), "mass": range(12), "restart": range(12)}
    held.summary = xr.Dataset({**numbers, **words, "heldout": (dims, heldout)}, coords)
    text = page(Facts(folder, best, held))
    found = Page(text)
    assert len(text.encode()) < 5_000_000
    truth = Truth(best, held.summary)
    assert [
        one.attributes
        for one in found.numbers
        if not same(float(one.attributes["data-value"]), truth.of(one))
    ] == []
    assert found.naked == []
    assert any("Drawn are the 6 best of 24 settings." in one.text for one in found.all("p"))
    legend = next(one for one in found.all("ul") if one.attributes.get("class") == "legend")
    assert len(legend.children) == 6
    assert "b, mass 7" in legend.text
    assert max(len(table.children[-1].children) for table in found.all("table")) == 400
    said = "Of 2,880 fits, 400 are listed, those without a result among them; all are in the summary."
    assert said in [one.text for one in found.all("p")]
    listed = lines_of(found, "Every fit")
    assert "mass 7" in listed[0].text
    assert "best" in listed[0].text
    levels = [number_of(line, "summary/heldout") for line in listed[:-3]]
    assert levels == sorted(heldout[np.isfinite(heldout)], reverse=True)[:397]
    assert [number_of(line, "summary/objective") for line in listed[-3:]] == [None] * 3
    kinds = lines_of(found, "Restarts of the same settings together, the best first")
    assert len(kinds) == 240
    assert "mass 7" in kinds[0].text
    for one in found.all("table"):
        if len(one.children[-1].children) > 24:
            assert one.parent is not None
            assert one.parent.parent is not None
            assert one.parent.parent.tag == "details", "long tables are folded away"


@pytest.mark.parametrize(
    ("levels", "kind"), [([1, 2, 4], "good"), ([1, 2, 4], "doubt"), ([1, 2, 2], "doubt")]
)
def test_larger_truncations_that_are_no_better_leave_no_doubt(
    levels: list[int], kind: str, folder: Path
) -> None:
    """The best fit uses all of its two features."""
    campaign = ibp.open_campaign(folder)
    best = campaign.fit(truncation=2, restart=0, noise="one")
    assert bool(best["diagnosis"]["used_up"])
    held = report_fits.campaign(best)
    numbers = {name: held.summary[name].values.copy() for name in ("heldout", "objective")}
    numbers["heldout"][0, 1, 0, 0] = 3.0
    if kind == "doubt":
        numbers["objective"][:, 2] = np.nan
    dims = held.summary["objective"].dims
    held.summary = held.summary.assign({name: (dims, values) for name, values in numbers.items()})
    held.summary = held.summary.assign_coords(truncation=levels)
    found = Page(page(Facts(folder, best, held)))
    said = {
        one.attributes["class"]: one.text
        for one in found.all("li")
        if "2 of 2 available features" in one.text
    }
    assert list(said) == [kind]
    words = "but fits with up to 4 are no better" if kind == "good" else "so there may be more"
    assert words in said[kind]
    truth = Truth(best, held.summary)
    assert all(same(float(one.attributes["data-value"]), truth.of(one)) for one in found.numbers)


def test_a_later_score_of_other_rows_is_a_fact_of_its_own(folder: Path, tmp_path: Path) -> None:
    """It does not take the place of the score that fits are ranked by."""
    run = shutil.copytree(folder, tmp_path / "run")
    campaign = ibp.open_campaign(run)
    fit = run / "fits" / campaign.best_fit().id
    before = Page(report(run).read_text("utf-8"))
    ibp.synthesise("images", tmp_path / "new <b>.zarr", rows=40, noise=0.8, seed=9)
    ibp.evaluate(fit, tmp_path / "new <b>.zarr")
    after = Page(report(run).read_text("utf-8"))
    own = float(campaign.summary["heldout"].max())
    for one in (before, after):
        (glance,) = (e for e in one.all("div") if e.text.startswith("held-out score"))
        assert number_of(glance, "heldout/score") == own
    said = [one.text for one in after.all("li") if "On new rows of new <b>.zarr" in one.text]
    assert len(said) == 1
    assert said[0].endswith("(even columns visible, the others hidden).")
    facts = read(run)
    truth = Truth(campaign.open(campaign.best_fit()), campaign.summary, facts.stability, facts.logs)
    assert [
        one for one in after.numbers if not same(float(one.attributes["data-value"]), truth.of(one))
    ] == []
    assert after.naked == []


def test_new_rows_alone_are_no_score_of_the_campaign(tmp_path: Path) -> None:
    ibp.synthesise("images", tmp_path / "data.zarr", rows=60, noise=0.2, seed=3)
    spec = {"data": str(tmp_path / "data.zarr"), "system": "lg-vi-infinite", "truncation": 4, "steps": 10}
    campaign = ibp.sweep(spec, tmp_path / "run", serial=True)
    ibp.evaluate(tmp_path / "run" / "fits" / campaign.best_fit().id, tmp_path / "data.zarr")
    found = Page(report(tmp_path / "run").read_text("utf-8"))
    assert not any(one.text.startswith("held-out score") for one in found.all("div"))
    assert any("by objective, is shown" in one.text for one in found.all("p"))
    assert any("On its own rows it scores" in one.text for one in found.all("li"))
    assert not any("held-out" in one.text for one in found.all("th")), "no column of dashes"
    assert not any("held-out" in one.text for one in found.all("caption"))


def test_hold_outs_are_not_ranked_against_each_other(folder: Path) -> None:
    best = ibp.open_campaign(folder).best()
    held = report_fits.campaign(best)
    held.summary = held.summary.rename(noise="holdout").assign_coords(holdout=["0.1", "0.6"])
    heldout = held.summary["heldout"].values.copy()
    heldout[..., 1, :] += 5.0
    held.summary["heldout"] = held.summary["heldout"].dims, heldout
    facts = Facts(folder, best, held)
    found = Page(page(facts))
    assert [at["holdout"] for at in facts.bests] == [0, 1]
    assert facts.best_at == facts.bests[0], "the first, although numbers of the other are higher"
    for at, place in enumerate(facts.bests):
        assert heldout[tuple(place[str(d)] for d in held.summary["heldout"].dims)] == np.nanmax(
            heldout[:, :, at]
        )
    said = found.all("p")
    assert any(
        "Shown is the best of the 18 fits with hold-out 0.1, by held-out score." in p.text for p in said
    )
    assert any("Fits with different hold-outs cannot be compared: they saw" in one.text for one in said)
    assert len(lines_of(found, "The best fit of each hold-out")) == 2
    listed = lines_of(found, "Every fit, the best first within each hold-out")
    assert ["holdout 0.1" in line.text for line in listed] == [True] * 17 + [False] * 18 + [True]
    assert ["best" in line.children[0].text for line in listed].count(True) == 2
    truth = Truth(best, held.summary)
    assert [
        one for one in found.numbers if not same(float(one.attributes["data-value"]), truth.of(one))
    ] == []
    assert found.naked == []


def test_what_failed_leaves_no_half_lines(folder: Path) -> None:
    best = ibp.open_campaign(folder).best()
    held = report_fits.campaign(best)
    for name in ("objective", "heldout", "active", "seconds"):
        values = held.summary[name].values.copy()
        values[1, 2] = np.nan
        held.summary[name] = held.summary[name].dims, values
    held.summary["objective"][1, :, 1] = np.nan
    held.summary["heldout"][1, :, 1] = np.nan
    facts = Facts(folder, best, held)
    found = Page(page(facts))
    assert not any("– to –" in one.text for one in found.all("td"))
    assert len(drawn(facts)) == 3, "of a setting without any result nothing is drawn"
    assert lines_of(found, "Restarts of")[0].children[0].text == "lg-vi-infinite, K 2, noise one"


def test_a_fit_that_could_not_be_scored_is_told(folder: Path) -> None:
    best = ibp.open_campaign(folder).best()
    held = report_fits.campaign(best)
    status = held.summary["status"].values.copy()
    status[0, 0, 0, 1] = "failed"
    held.summary["status"] = held.summary["status"].dims, status
    found = Page(page(Facts(folder, best, held)))
    assert any("1 fit could not be scored; the table of all" in one.text for one in found.all("li"))
    truth = Truth(best, held.summary)
    assert [
        one for one in found.numbers if not same(float(one.attributes["data-value"]), truth.of(one))
    ] == []


def test_the_machine_is_told_in_words(found: Page) -> None:
    (said,) = (one for one in found.elements if one.attributes.get("data-label") == "blas")
    assert "{" not in said.text
    assert re.match(r"\w+ [\d.]+ for \w+", said.text)


def test_settings_with_as_many_features_do_not_hide_each_other(folder: Path) -> None:
    held = report_fits.campaign(ibp.open_campaign(folder).best())
    dims, shape = held.summary["active"].dims, held.summary["active"].shape
    held.summary["active"] = dims, np.full(shape, 4.0)
    found = Page(page(Facts(folder, ibp.open_campaign(folder).best(), held)))
    marks = [one for one in found.all("circle") if one.attributes["data-variable"] == "summary/active"]
    spans: dict[tuple[str, str], list[float]] = {}
    for one in marks:
        place = re.search(r"truncation=(\d+)", one.attributes["data-index"])
        assert place is not None
        spans.setdefault((place[1], one.attributes["class"]), []).append(float(one.attributes["cx"]))
    assert len(marks) == 36
    assert len(spans) == 3 * 4
    ends = sorted((int(place), min(xs), max(xs)) for (place, _), xs in spans.items())
    assert all(a[2] < b[1] for a, b in pairwise(ends)), "each setting of each truncation has room of its own"
    (caption,) = (one.text for one in found.all("figcaption") if one.text.startswith("Active features, "))
    assert caption == "Active features, settings side by side."
    assert any("the line joins the best restart at each K" in one.text for one in found.all("p"))


def test_how_a_fit_of_a_campaign_goes_on(folder: Path) -> None:
    best = ibp.open_campaign(folder).best()
    best.attrs |= {"stop": "limit", "stopped": "stopped at the limit of 60 steps"}
    held = report_fits.campaign(best)
    advice = {True: "more steps (steps: in the campaign file).", False: "more steps (--steps)."}
    for many, words in advice.items():
        found = Page(page(Facts(folder, best, held if many else None)))
        (said,) = (one.text for one in found.all("li") if "has not converged" in one.text)
        assert said.endswith(words)
