"""The page of a real campaign: its summary, the best of its fits, and what other starts find."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.errors import StorageError
from ibpdist.evaluate import consensus
from ibpdist.report.html.facts import Facts
from ibpdist.report.page import page, read, report
from tests.support import report_fits
from tests.support.report_page import Page, Truth, same, written_right


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
    own = expected["similarity"].sel(restart=best.labels["restart"]).values
    np.testing.assert_allclose(own, 1.0)


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
    assert any("Of 2,880 fits the first are listed" in one.text for one in found.all("p"))


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
    said = {one.attributes["class"]: one.text for one in found.all("li") if "2 of 2 features" in one.text}
    assert list(said) == [kind]
    words = "but fits with up to 4 are no better" if kind == "good" else "so there may be more"
    assert words in said[kind]
    truth = Truth(best, held.summary)
    assert all(same(float(one.attributes["data-value"]), truth.of(one)) for one in found.numbers)
