"""Campaigns with subsamples: their fits are those of `fit --stability`, whatever interrupts or fails."""

import shutil

import numpy as np
import pytest
import yaml

import ibpdist as ibp
from ibpdist.base.errors import StorageError, UsageError
from ibpdist.campaigns.directory import CampaignDirectory, Manifest, failure
from ibpdist.campaigns.estimate import estimate
from ibpdist.campaigns.progress import plan_of
from ibpdist.campaigns.run import spec_of
from ibpdist.campaigns.spec import CampaignSpec
from ibpdist.campaigns.verify import verify
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.report.campaign import summary
from ibpdist.report.page import page, read
from ibpdist.runs import combine, group
from tests.support.compare import assert_same_result
from tests.support.grids import alone, as_yaml, grid, steps_made
from tests.support.logs import events_of_kind, kinds_of_events
from tests.support.planted_rows import planted

IDS_BEFORE = ["55df41cfc886fc6e", "8be2a5ee74ced49f", "12ca256ff4492aed", "34cc64af7aa691f5"]
"""Of the grid of `grid("d.zarr")`, computed before campaigns had the key."""


def divided(store, **keys):
    """Two truncation levels with two subsamples each."""
    return grid(store, **({"restarts": 1, "stability": 2, "steps": 4} | keys))


@pytest.fixture(scope="module")
def swept(store, tmp_path_factory):
    """A campaign that was not interrupted, and what its progress told."""
    run, told = tmp_path_factory.mktemp("campaign") / "run", []
    return run, ibp.sweep(divided(store), run, progress=told.append), told


def test_each_fit_is_that_of_a_run_with_stability(swept, tmp_path):
    run, found, _ = swept
    assert found.failed == []
    for at, fit in enumerate(found.manifest.fits):
        kept = alone(fit, tmp_path / f"alone{at}", stability=2)
        assert_same_result(found.open(fit), kept)
        assert {"stability", "consensus"} <= kept.children.keys()
        for place in ("restarts/000", "subsamples/000", "subsamples/001"):
            assert_same_result(run / "fits" / fit.id / place, tmp_path / f"alone{at}" / place)
        assert set(kinds_of_events(run / "fits" / fit.id)) == set(kinds_of_events(tmp_path / f"alone{at}"))
    assert verify(run) == []


@pytest.mark.slow
def test_far_columns_and_held_out_cells_are_those_of_a_run(tmp_path):
    """The means that fits take off the data are those of all rows, also for subsamples."""
    np.save(tmp_path / "x.npy", planted(0, 120, 6, [0.5, 0.4], 0.3)[0] + 1000.0)
    store = tmp_path / "data.zarr"
    ibp.ingest(tmp_path / "x.npy", store, chunk_rows=50)
    keys = divided(store, truncation=3, holdout=0.3, subsample=0.8, restarts=2)
    found = ibp.sweep(keys, tmp_path / "run")
    for at, fit in enumerate(found.manifest.fits):
        kept = alone(fit, tmp_path / f"alone{at}", stability=2, subsample=0.8)
        assert_same_result(found.open(fit), kept)
    assert found.summary.heldout.notnull().all()
    assert len({fit.spec.seed for fit in found.manifest.fits}) == 2
    assert "center" in found.best()["transform"]


def test_progress_counts_the_parts(swept):
    _, _, told = swept
    assert {one.fits for one in told} == {6}
    assert [one.ended for one in told] == sorted(one.ended for one in told)
    assert (told[-1].ended, told[-1].failed) == (6, 0)
    names = {running.name for one in told for running in one.running}
    assert "lg-vi-infinite, K = 4, restart 0, subsample 2 of 2" in names
    assert "lg-vi-infinite, K = 3, restart 0, all rows" in names
    assert len(names) == 6
    assert any(one.left is not None for one in told)


def test_a_subsample_is_planned_as_less_work_without_a_score(store):
    (fit,) = Manifest.of(spec_of(divided(store, truncation=3, holdout=0.2, subsample=0.9)), "f").fits
    whole, part = plan_of(fit.parts[0]), plan_of(fit.parts[1])
    assert part.units == pytest.approx(0.9 * whole.units)
    assert (whole.scored, part.scored) == (True, False)


def test_the_summary_says_how_many_features_come_back(swept):
    run, found, _ = swept
    for fit in found.manifest.fits:
        stable = found.open(fit)["stability"]["stable"].values
        assert found.number(fit, "stable") == stable.sum()
        assert found.number(fit, "active") == stable.size
        seconds = [events_of_kind(run / "fits" / part.id, "ended")[0]["seconds"] for part in fit.parts]
        assert found.number(fit, "seconds") == pytest.approx(sum(seconds), abs=0.01)
    text = summary(found)
    assert " back in at least 2 of 2 subsamples" in text.splitlines()[1]


def test_the_report_tells_what_that_of_a_run_tells(swept):
    facts = read(swept[0])
    found = str(page(facts))
    assert 'id="subsamples"' in found
    assert 'id="stability"' not in found
    assert "comes back in" in found
    assert 'data-variable="summary/stable"' in found


def test_stability_is_that_of_the_best_fit(swept):
    _, found, _ = swept
    made = found.stability(truncation=4)
    kept = found.fit(truncation=4)["stability"].to_dataset()
    assert made.identical(kept.load())
    assert "returns" in made


def test_without_subsamples_restarts_are_compared(store, tmp_path):
    found = ibp.sweep(grid(store, truncation=3, steps=2), tmp_path / "run")
    assert np.isnan(found.summary["stable"]).all()
    assert "restart" in found.stability().dims
    assert "subsample" not in summary(found)


def test_nothing_is_made_again(swept, store, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(swept[0], run)
    before = steps_made(run)
    assert ibp.sweep(divided(store), run).failed == []
    assert steps_made(run) == before
    fit = swept[1].manifest.fits[0]
    (run / "fits" / fit.id / "result.json").unlink()
    found = ibp.sweep(divided(store), run)
    assert steps_made(run) == before, "its parts are there"
    assert_same_result(found.open(fit), swept[1].open(fit))


def test_a_larger_grid_computes_only_new_parts(swept, store, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(swept[0], run)
    made = {event["fit"] for event in events_of_kind(run, "fit")}
    ibp.sweep(divided(store, truncation=[3, 4, 2]), run)
    after = [event["fit"] for event in events_of_kind(run, "fit")]
    assert len(after) == len(set(after)) == len(made) + 4


def at_a_step(number):
    """Progress that interrupts a campaign at its first step of this number."""
    seen = []

    def interrupt(now):
        if now.running and now.running[0].step == number and not seen:
            seen.append(number)
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize("when", ["in a step", "after a result", "before a fit is completed"])
def test_an_interrupted_campaign_continues_to_the_same_bits(swept, store, tmp_path, monkeypatch, when):
    run, plain, made, write = tmp_path / "run", swept[1], [], group._write

    def stopping(*arguments):
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(arguments)
        write(*arguments)

    def refusing(*arguments, **facts):
        raise KeyboardInterrupt

    progress = at_a_step(2) if when == "in a step" else None
    with monkeypatch.context() as patched:
        if when == "after a result":
            patched.setattr(group, "_write", stopping)
        if when == "before a fit is completed":
            patched.setattr(combine, "complete", refusing)
        with pytest.raises(KeyboardInterrupt):
            ibp.sweep(divided(store), run, progress=progress)
    assert verify(run) == []
    before = steps_made(run)
    found = ibp.sweep(divided(store), run)
    assert (before, steps_made(run)) == ((2, 6) if progress else (4, 4)), "no checkpoint was made at step 2"
    for fit in found.manifest.fits:
        assert_same_result(found.open(fit), plain.open(fit))
    assert verify(run) == []


def test_a_part_that_fails_fails_its_fit_alone_and_is_tried_again(swept, store, tmp_path, monkeypatch):
    run, plain = tmp_path / "run", swept[1]
    bad = plain.one(truncation=4)
    true, calls = Coordinate.update, []

    def update(self, params, sums, draws):
        if self.features == 4 and draws.step == 2:
            calls.append(draws.seed)
            if len(calls) == 2:  # of all rows, then of the first subsample
                raise ZeroDivisionError("on purpose")
        return true(self, params, sums, draws)

    told = []
    monkeypatch.setattr(Coordinate, "update", update)
    found = ibp.sweep(divided(store), run, progress=told.append)
    ((fit, reason, code),) = found.failed
    assert (fit, code) == (bad, 1)
    assert reason == "subsample 1 of 2: ZeroDivisionError: on purpose; this is a bug"
    assert (told[-1].ended, told[-1].failed, list(told[-1].running)) == (6, 1, [])
    assert_same_result(found.open(found.one(truncation=3)), plain.open(plain.one(truncation=3)))
    with pytest.raises(StorageError, match=r"K = 4, restart 0: failed: subsample 1 of 2: ZeroDivision"):
        found.open(bad)
    made = {event["fit"] for event in events_of_kind(run, "fit")}
    assert f"{bad.id}/subsamples/001" in made, "its other parts are kept"
    again = ibp.sweep(divided(store), run)
    assert again.failed == []
    new = {event["fit"] for event in events_of_kind(run, "fit")} - made
    assert new == {bad.id, f"{bad.id}/subsamples/000"}
    assert_same_result(again.open(bad), plain.open(bad))
    assert verify(run) == []


def test_failures_of_parts_are_told_apart(store, tmp_path):
    directory = CampaignDirectory(tmp_path / "run")
    try:
        fit, other = directory.begin(spec_of(divided(store)), "f").fits
        first, second, third = fit.parts
        directory.fail(second, "no", 2)
        directory.fail(third, "never", 1)
        assert failure(directory.path, fit.id)["reason"] == "subsample 1 of 2: no"
        assert failure(directory.path, fit.id)["code"] == 2
        known = [failure(directory.path, part.id) is not None for part in (first, second, third)]
        assert known == [False, True, True]
        directory.forget_failure(fit)
        directory.fail(other, "bad settings", 2)
        assert all(failure(directory.path, part.id) for part in other.parts)
        assert failure(directory.path, fit.id) is None
    finally:
        directory.close()


def test_a_fit_whose_subsamples_are_too_small_fails_alone(store, tmp_path):
    found = ibp.sweep(divided(store, truncation=[3, 200]), tmp_path / "run")
    ((fit, reason, code),) = found.failed
    assert (fit.labels["truncation"], code) == (200, 2)
    assert reason.startswith("K is 200, but subsample 1 has 1")
    assert found.fit(truncation=3)["stability"].sizes["subsample"] == 2
    assert "but subsample 1 has" in estimate(divided(store, truncation=[3, 200]), tmp_path / "other")


def test_a_damaged_part_fails_its_fit_with_its_name(swept, store, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(swept[0], run)
    fit = swept[1].one(truncation=3)
    shutil.rmtree(run / "fits" / fit.id / "result.zarr")
    (run / "fits" / fit.id / "subsamples/001/result.json").write_text("{}")
    ((failed, reason, code),) = ibp.sweep(divided(store), run).failed
    assert (failed, code) == (fit, StorageError.code)
    assert "subsamples/001/result.json" in reason
    shutil.rmtree(run / "fits" / fit.id)
    again = ibp.sweep(divided(store), run)
    assert_same_result(again.open(fit), swept[1].open(fit))


def test_samplers_have_no_parts(store):
    keys = divided(store, system=["lg-vi-finite", "lg-gibbs-finite"], truncation=3, rtol=1e-6)
    del keys["start"], keys["set"]
    fits = Manifest.of(spec_of(keys), "f").fits
    assert [len(fit.parts) for fit in fits] == [3, 1]
    assert [fit.spec.stability for fit in fits] == [2, None]
    assert fits[1].parts == [fits[1]]


def test_the_estimate_counts_the_parts(store, tmp_path):
    lines = estimate(divided(store), tmp_path / "run").splitlines()
    assert lines[0] == "2 fits; 4 fits of subsamples beside them"
    assert lines[1] == "6 fits in 1 group, in this process"


def test_campaigns_without_the_key_are_what_they_were(store, tmp_path):
    """Their ids and files are those of versions that do not know it."""
    plain = CampaignSpec.make(**grid("d.zarr"))
    assert [cell.spec.id("f") for cell in plain.cells()] == IDS_BEFORE
    assert {"stability", "subsample"}.isdisjoint(yaml.safe_load(plain.dump()))
    manifest = Manifest.of(plain, "f")
    assert [fit.parts for fit in manifest.fits] == [[fit] for fit in manifest.fits]
    manifest.write(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    assert "stability" not in text
    assert "subsample" not in text
    assert Manifest.read(tmp_path) == manifest


def test_the_keys_are_written_and_read(store, tmp_path):
    manifest = Manifest.of(spec_of(divided(store, subsample=0.9)), "f")
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest
    assert manifest.matches_grid(tmp_path)
    assert {fit.spec.subsample for fit in manifest.fits} == {0.9}


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"stability": 1}, r"line \d+: stability: expected greater than or equal to 2, got 1$"),
        ({"stability": 2.5}, r"line \d+: stability: expected integer"),
        ({"stability": 2, "subsample": 1.0}, r"line \d+: subsample: expected less than 1"),
        (
            {"subsample": 0.9},
            r"line \d+: subsample: no subsamples are asked for: give stability, their number",
        ),
        (
            {"stability": 2, "system": "fa-gibbs-finite"},
            r"line \d+: stability: is for fits that look for an optimum, and every system is a sampler",
        ),
    ],
)
def test_bad_keys_are_refused_with_their_line(store, tmp_path, keys, match):
    file = tmp_path / "campaign.yaml"
    file.write_text(as_yaml({"data": str(store), "system": "lg-vi-finite", "truncation": 3} | keys))
    with pytest.raises(UsageError, match=match) as caught:
        ibp.sweep(file, tmp_path / "run")
    assert caught.value.code == 2
    assert not (tmp_path / "run").exists()
