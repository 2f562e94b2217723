"""Sweeps: only what is new is computed, one failed fit fails alone, and no fit depends on the others."""

import itertools
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import ClusterLost, IbpError, OutputInUse, StorageError, UsageError
from ibpdist.campaigns import run as campaigns
from ibpdist.campaigns.campaign import run_of
from ibpdist.campaigns.directory import CampaignDirectory, Manifest
from ibpdist.campaigns.estimate import estimate
from ibpdist.campaigns.run import spec_of
from ibpdist.campaigns.spec import in_words
from ibpdist.campaigns.verify import verify
from ibpdist.data.arrays import as_source
from ibpdist.engine.place import Place
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.batch import Batch
from ibpdist.report.campaign import summary
from ibpdist.runs import group
from ibpdist.runs.planning import LARGEST, grouped, planned_for
from ibpdist.storage import events, sealed
from tests.support.compare import assert_same_result
from tests.support.grids import alone, as_yaml, grid, small_store, steps_made
from tests.support.logs import events_of_kind


def finished(run):
    return [event["fit"] for event in events_of_kind(run, "fit")]


def test_a_grid_is_swept(store, tmp_path):
    run = tmp_path / "run"
    found = ibp.sweep(grid(store), run)
    assert dict(found.summary.sizes) == {"system": 1, "truncation": 2, "restart": 2}
    assert (found.summary.status == "finished").all()
    assert (found.summary.steps == 6).all()
    assert len(list((run / "groups").iterdir())) == 1, "all fits advance together"
    assert steps_made(run) == 6
    assert verify(run) == []
    assert not (run / "lock").exists()


def test_each_fit_has_the_bits_it_has_alone(store, tmp_path):
    systems = ["lg-vi-infinite", "fa-vi-finite"]
    keys = {"system": systems, "truncation": 3, "steps": [4, 7], "restarts": 1, "holdout": 0.3}
    found = ibp.sweep(grid(store, **keys), tmp_path / "run")
    for at, fit in enumerate(found.manifest.fits):
        assert_same_result(found.open(fit), alone(fit, tmp_path / f"alone{at}"))


@pytest.mark.slow
def test_starts_that_ask_and_moves_have_the_bits_they_have_alone(store, tmp_path):
    keys = {"system": ["lg-vi-infinite", "lg-vi-finite"], "truncation": 4, "steps": 25, "rtol": 1e-4}
    plain = {name: value for name, value in grid(store, **keys).items() if name not in ("set", "start")}
    found = ibp.sweep(plain, tmp_path / "run")
    steps = {int(found.number(fit, "steps")) for fit in found.manifest.fits}
    assert len(steps) > 1, "they end at different steps"
    for at, fit in enumerate(found.manifest.fits):
        assert_same_result(found.open(fit), alone(fit, tmp_path / f"alone{at}"))


def test_adding_to_the_grid_computes_only_what_is_new(store, tmp_path):
    run = tmp_path / "run"
    ibp.sweep(grid(store), run)
    before = finished(run)
    assert len(before) == 4
    ibp.sweep(grid(store), run)
    assert finished(run) == before
    found = ibp.sweep(grid(store, truncation=[3, 4, 5], restarts=3), run)
    assert len(finished(run)) == len(set(finished(run))) == 9
    assert found.summary.sizes["truncation"] == found.summary.sizes["restart"] == 3
    assert (found.summary.status == "finished").all()
    assert [event["new"] for event in events_of_kind(run, "manifest")] == [4, 5]


def test_a_smaller_grid_shows_less_and_loses_nothing(store, tmp_path):
    run = tmp_path / "run"
    ibp.sweep(grid(store), run)
    found = ibp.sweep(grid(store, truncation=4), run)
    assert found.summary.sizes["truncation"] == 1
    assert len(list((run / "fits").iterdir())) == 4
    ibp.sweep(grid(store), run)
    assert len(finished(run)) == 4


TINY = 1e-100
"""A noise that no file can refuse, and these data do."""


def test_a_fit_with_bad_settings_fails_alone(store, tmp_path):
    bad = ibp.sweep(grid(store, set={"moves": False, "noise": ["one", TINY]}), tmp_path / "bad")
    good = ibp.sweep(grid(store, set={"moves": False, "noise": ["one"]}), tmp_path / "good")
    assert [(fit.labels["noise"], code) for fit, _, code in bad.failed] == [(TINY, 2)] * 4
    assert all("noise is 1e-100" in reason for _, reason, _ in bad.failed)
    failed = bad.summary.sel(noise=str(TINY))
    assert (failed.status == "failed").all()
    assert np.isnan(failed.objective).all()
    assert "or noise=one to learn it" in failed.stop.values.flat[0]
    for fit in good.manifest.fits:
        assert_same_result(good.open(fit), bad.open(bad.one(**fit.labels, noise="one")))
    with pytest.raises(StorageError, match=r"noise 1e-100, restart 0: failed: noise is"):
        bad.fit(truncation=3, restart=0, noise=TINY)


def test_a_hold_out_that_the_data_do_not_have_fails_alone(store, tmp_path):
    """Nearly all rows: none is left to train on, which only the data can tell."""
    found = ibp.sweep(
        grid(store, truncation=3, holdout=["rows:share=0.999999", 0.25], restarts=1), tmp_path / "run"
    )
    ((fit, reason, code),) = found.failed
    assert (fit.labels["holdout"], code) == ("rows:share=0.999999", 2)
    assert reason == "no row of 240 is left to train on: choose another share or seed"
    assert np.isfinite(found.summary.heldout.sel(holdout="0.25")).all()


@pytest.mark.parametrize("broken", [ZeroDivisionError("on purpose"), FloatingPointError("on purpose")])
def test_a_score_that_breaks_fails_its_fit_alone_and_is_tried_again(store, tmp_path, monkeypatch, broken):
    from ibpdist.evaluate import heldout

    run, keys, true = tmp_path / "run", grid(store, holdout=0.25), heldout.evaluate
    scored = []

    def breaking(folder, *rest, **more):
        scored.append(folder.name)
        if len(scored) == 2:
            raise broken
        return true(folder, *rest, **more)

    monkeypatch.setattr(heldout, "evaluate", breaking)
    found = ibp.sweep(keys, run)
    ((fit, reason, code),) = found.failed
    assert fit.id == scored[1]
    assert code == 1
    assert reason == f"has no held-out score: {type(broken).__name__}: on purpose; this is a bug"
    assert len(scored) == 4, "the others are scored"
    assert (found.number(fit, "status"), found.number(fit, "stop")) == ("failed", reason)
    assert np.isfinite(found.number(fit, "objective"))
    assert int(found.summary.heldout.notnull().sum()) == 3
    again = ibp.sweep(keys, run)
    assert again.failed == []
    assert again.summary.heldout.notnull().all()
    assert scored[4:] == [fit.id], "only what has no score is scored"
    assert len(finished(run)) == 4


def test_a_score_on_other_data_does_not_stand_for_its_own(store, tmp_path, monkeypatch):
    run, keys = tmp_path / "run", grid(store, truncation=3, restarts=1, holdout=0.25)
    new = small_store(tmp_path, rows=80)
    with monkeypatch.context() as patched:
        patched.setattr(campaigns.CampaignRunner, "_score", lambda *args: None)
        (fit,) = ibp.sweep(keys, run).manifest.fits
    ibp.evaluate(run / "fits" / fit.id, new)
    assert ibp.sweep(keys, run).is_scored


def test_data_that_cannot_be_read_leave_nothing_behind(tmp_path):
    with pytest.raises(IbpError):
        ibp.sweep(grid(tmp_path / "data.zarr"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_fit_that_breaks_in_a_step_fails_alone_and_is_tried_again(store, tmp_path, monkeypatch):
    run, plain = tmp_path / "run", ibp.sweep(grid(store), tmp_path / "plain")
    update = Coordinate.update

    def breaking(self, params, sums, draws):
        if (self.features, draws.seed, draws.step) == (3, 0, 4):
            raise ZeroDivisionError("on purpose")
        return update(self, params, sums, draws)

    monkeypatch.setattr(Coordinate, "update", breaking)
    found = ibp.sweep(grid(store), run)
    ((fit, reason, code),) = found.failed
    assert dict(fit.labels) == {"system": "lg-vi-infinite", "truncation": 3, "restart": 0}
    assert (reason, code) == ("ZeroDivisionError: on purpose; this is a bug", 1)
    for other in found.manifest.fits:
        if other != fit:
            assert_same_result(found.open(other), plain.open(other))
    monkeypatch.setattr(Coordinate, "update", update)
    again = ibp.sweep(grid(store), run)
    assert again.failed == []
    assert len(finished(run)) == 4, "the others were not made again"
    assert_same_result(again.open(fit), plain.open(fit))


@pytest.mark.slow
def test_what_breaks_a_whole_group_is_found_by_halves(store, tmp_path, monkeypatch):
    plain = ibp.sweep(grid(store), tmp_path / "plain")
    local = Batch.local

    def breaking(self, chunk, state, params, draws):
        if any(member.seed == 0 and member.algorithm.features == 4 for member in self.members):
            raise ValueError("a chunk that one fit cannot take")
        return local(self, chunk, state, params, draws)

    monkeypatch.setattr(Batch, "local", breaking)
    found = ibp.sweep(grid(store), tmp_path / "run")
    ((fit, reason, code),) = found.failed
    assert (fit.labels["truncation"], fit.labels["restart"], code) == (4, 0, 1)
    assert reason == "ValueError: a chunk that one fit cannot take; this is a bug"
    for other in found.manifest.fits:
        if other != fit:
            assert_same_result(found.open(other), plain.open(other))
    assert verify(tmp_path / "run") == []


def test_an_interrupted_sweep_goes_on_where_it_was(store, tmp_path):
    run, keys = tmp_path / "run", grid(store, checkpoint=1, steps=12)
    plain = ibp.sweep(keys, tmp_path / "plain")

    def stop(now):
        if now.running and now.running[0].step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ibp.sweep(keys, run, progress=stop)
    assert events_of_kind(run, "interrupted")
    assert not (run / "lock").exists()
    found = ibp.sweep(keys, run)
    assert steps_made(run) < 2 * 12 - 4, "it went on from a checkpoint"
    for fit in plain.manifest.fits:
        assert_same_result(found.open(fit), plain.open(fit))


def test_results_that_were_written_are_not_written_again(store, tmp_path, monkeypatch):
    run, write = tmp_path / "run", group._write
    made = []

    def stopping(folder, *rest):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(folder.name)
        write(folder, *rest)

    monkeypatch.setattr(group, "_write", stopping)
    with pytest.raises(KeyboardInterrupt):
        ibp.sweep(grid(store), run)
    first = {fit: (run / "fits" / fit / "result.json").stat().st_mtime_ns for fit in made}
    monkeypatch.setattr(group, "_write", write)
    found = ibp.sweep(grid(store), run)
    assert (found.summary.status == "finished").all()
    assert begins(run) == [0, 6], "the group goes on from its last checkpoint"
    assert steps_made(run) == 6
    assert {fit: (run / "fits" / fit / "result.json").stat().st_mtime_ns for fit in made} == first
    plain = ibp.sweep(grid(store), tmp_path / "plain")
    for fit in plain.manifest.fits:
        assert_same_result(found.open(fit), plain.open(fit))


def begins(run):
    """Steps from which the one group of a campaign went on."""
    (log,) = run.glob("groups/*/events.jsonl")
    return [event["step"] for event in events.read(log) if event["event"] == "begin"]


def stop_at(step):
    def stop(now):
        if now.running and now.running[0].step == step:
            raise KeyboardInterrupt

    return stop


def test_a_smaller_grid_goes_on_with_the_group_that_is_under_way(store, tmp_path):
    run, keys = tmp_path / "run", grid(store, checkpoint=1, steps=12)
    plain = ibp.sweep(keys, tmp_path / "plain")
    with pytest.raises(KeyboardInterrupt):
        ibp.sweep(keys, run, progress=stop_at(8))
    before, seen = steps_made(run), []
    found = ibp.sweep(keys | {"truncation": 4}, run, progress=seen.append)
    first, again = begins(run)
    assert (first, again > 0) == (0, True)
    assert steps_made(run) == before + 12 - again, "none that was committed is made again"
    assert {one.fits for one in seen} == {2}
    assert max(one.ended for one in seen) == max(len(one.running) for one in seen) == 2
    for fit in found.manifest.fits:
        assert_same_result(found.open(fit), plain.open(fit))
    assert verify(run) == []
    made = steps_made(run)
    whole = ibp.sweep(keys, run)
    assert steps_made(run) == made, "the others were finished with them"
    for fit in plain.manifest.fits:
        assert_same_result(whole.open(fit), plain.open(fit))


def test_a_failed_fit_does_not_end_the_group_of_the_others(store, tmp_path, monkeypatch):
    """It failed in a group that was then killed while it wrote the results of the others."""
    run, update, write = tmp_path / "run", Coordinate.update, group._write

    def breaking(self, params, sums, draws):
        if (self.features, draws.seed, draws.step) == (3, 0, 4):
            raise ZeroDivisionError("on purpose")
        return update(self, params, sums, draws)

    def stopping(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Coordinate, "update", breaking)
        patched.setattr(group, "_write", stopping)
        with pytest.raises(KeyboardInterrupt):
            ibp.sweep(grid(store), run)
    found = ibp.sweep(grid(store), run)
    assert (begins(run), steps_made(run), len(found.failed)) == ([0, 6], 6, 1)
    assert ibp.sweep(grid(store), run).failed == []


def test_only_what_is_not_there_is_made_again_after_a_group_broke(store, tmp_path, monkeypatch):
    run, write, seen = tmp_path / "run", group._write, []
    sizes = []

    def breaking(folder, job, engine, end, ended):
        sizes.append(len(engine.engine.bench.algorithm.members))
        if (end.at, sizes[-1]) == (1, 4):
            raise ValueError("this group breaks")
        write(folder, job, engine, end, ended)

    monkeypatch.setattr(group, "_write", breaking)
    found = ibp.sweep(grid(store), run, progress=seen.append)
    assert found.failed == []
    assert len(finished(run)) == len(set(finished(run))) == 4
    assert sizes == [4, 4, 1, 2, 2]
    assert all(one.ended + len(one.running) <= one.fits for one in seen)


def test_fits_are_scored_on_what_was_held_out_from_them(store, tmp_path):
    found = ibp.sweep(grid(store, holdout=[0.0, 0.25, "rows:share=0.2"]), tmp_path / "run")
    assert found.is_scored
    held = found.summary.heldout
    assert list(held.holdout.values) == ["0.0", "0.25", "rows:share=0.2"]
    assert np.isnan(held.sel(holdout="0.0")).all()
    assert np.isfinite(held.sel(holdout=["0.25", "rows:share=0.2"])).all()
    assert len(list((tmp_path / "run" / "groups").iterdir())) == 3, "a group for each hold-out"
    best = found.best(holdout=0.25)
    level = float(best["heldout"].score.sel(estimate="variance").isel(evaluation=0))
    assert level == float(held.sel(holdout="0.25").max())
    again = float(ibp.evaluate(best).score.sel(estimate="variance"))
    assert again == level


def test_a_score_that_cannot_be_made_fails_its_fit(store, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise UsageError("not this one")

    monkeypatch.setattr("ibpdist.evaluate.heldout.evaluate", refuse)
    found = ibp.sweep(grid(store, truncation=3, restarts=1, holdout=0.25), tmp_path / "run")
    assert (found.summary.status == "failed").all()
    ((_, reason, code),) = found.failed
    assert (reason, code) == ("has no held-out score: not this one", 2)
    assert events_of_kind(tmp_path / "run", "scored") == []
    monkeypatch.undo()
    assert ibp.sweep(grid(store, truncation=3, restarts=1, holdout=0.25), tmp_path / "run").is_scored


def test_a_score_that_cannot_be_kept_fails_its_fit(store, tmp_path, monkeypatch):
    run, keys, write = tmp_path / "run", grid(store, truncation=3, holdout=0.25), sealed.write
    fit = ibp.sweep(keys, run).manifest.fits[1]
    (run / "fits" / fit.id / "heldout.json").unlink()

    def full(path, body):
        if path.name == "heldout.json":
            raise StorageError(f"{path}: No space left on device")
        write(path, body)

    with monkeypatch.context() as patched:
        patched.setattr(sealed, "write", full)
        found = ibp.sweep(keys, run)
    ((failed, reason, code),) = found.failed
    assert (failed, code) == (fit, StorageError.code)
    assert reason.endswith("heldout.json: No space left on device")
    assert (found.number(fit, "status"), found.number(fit, "stop")) == ("failed", reason)
    assert len(events_of_kind(run, "scored")) == 2, "of the first sweep"
    assert ibp.sweep(keys, run).failed == []
    assert len(events_of_kind(run, "scored")) == 3


def test_a_lost_log_fails_its_fit_alone(store, tmp_path):
    run, keys = tmp_path / "run", grid(store, holdout=0.25)
    plain = ibp.sweep(keys, tmp_path / "plain")
    fit = ibp.sweep(keys, run).best_fit()
    (run / "fits" / fit.id / "events.jsonl").unlink()
    for found in (ibp.open_campaign(run), ibp.sweep(keys, run), ibp.open_campaign(run)):
        ((failed, reason, code),) = found.failed
        assert (failed, code) == (fit, StorageError.code)
        assert reason.startswith(str(run / "fits" / fit.id / "events.jsonl"))
        assert found.best_fit() != fit
        assert f"- {in_words(fit.labels)}: {reason}" in summary(found)
    shutil.rmtree(run / "fits" / fit.id)
    again = ibp.sweep(keys, run)
    assert again.failed == []
    assert_same_result(again.open(fit), plain.open(fit))


def test_damaged_scores_are_made_again(store, tmp_path):
    run, keys = tmp_path / "run", grid(store, holdout=0.25)
    fit = ibp.sweep(keys, run).best_fit()
    file = run / "fits" / fit.id / "heldout.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    found = ibp.open_campaign(run)
    ((failed, reason, code),) = found.failed
    assert (failed, code) == (fit, StorageError.code)
    assert reason.endswith("; remove it, and evaluate or sweep makes scores again")
    assert f"- {in_words(fit.labels)}: {reason}" in summary(found)
    ibp.evaluate(run_of(run), store)
    again = ibp.sweep(keys, run)
    assert again.failed == []
    assert file.read_bytes() == whole
    assert again.best_fit() == fit
    assert len(events_of_kind(run, "scored")) == 5
    assert verify(run) == []


def test_a_damaged_summary_is_written_again(store, tmp_path):
    run = tmp_path / "run"
    ibp.sweep(grid(store), run)
    shutil.rmtree(run / "summary" / "objective")
    assert verify(run) != []
    ibp.sweep(grid(store), run)
    assert verify(run) == []


def test_the_grid_in_the_campaign_is_the_one_that_is_sealed(store, tmp_path):
    run = tmp_path / "run"
    fits = ibp.sweep(grid(store), run).manifest.fits
    file = run / "campaign.yaml"
    text, refused = file.read_text(), r"campaign\.yaml: is not the grid that manifest\.json seals; remove it"
    for broken in (text.replace("restarts: 2", "restarts: 3"), "#", ""):
        file.write_text(broken)
        with pytest.raises(StorageError, match=refused):
            ibp.sweep(file, run)
        with pytest.raises(StorageError, match=refused):
            estimate(file, run)
    file.unlink()
    assert ibp.sweep(file, run).manifest.fits == fits
    assert file.read_text() == text, "it is written again"
    file.write_text("#")
    ibp.sweep(grid(store), run)
    assert file.read_text() == text, "also by the grid from elsewhere"
    assert finished(run) == [fit.id for fit in fits]
    assert len(events_of_kind(run, "manifest")) == 1


def test_other_data_are_refused(store, tmp_path):
    ibp.sweep(grid(store, truncation=3), tmp_path / "run")
    other = small_store(tmp_path, rows=200)
    with pytest.raises(StorageError, match=r"has changed since .* began; choose another place"):
        ibp.sweep(grid(other, truncation=3), tmp_path / "run")


def test_a_folder_of_something_else_is_refused(store, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputInUse, match="exists and is not a campaign"):
        ibp.sweep(grid(store), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    ibp.fit(store, run=tmp_path / "fit", system="lg-vi-finite", K=3, steps=2, start="random", moves=False)
    with pytest.raises(OutputInUse, match="is not a campaign"):
        ibp.sweep(grid(store), tmp_path / "fit")


def test_two_sweeps_on_one_run(store, tmp_path):
    held = CampaignDirectory(tmp_path / "run")
    try:
        with pytest.raises(OutputInUse, match="in use by process"):
            ibp.sweep(grid(store), tmp_path / "run")
    finally:
        held.close()
    assert ibp.sweep(grid(store), tmp_path / "run").failed == []


def test_a_path_in_a_file_is_relative_to_the_file(store, tmp_path):
    file = store.parent / "campaign.yaml"
    file.write_text(as_yaml(grid(Path("data.zarr"))))
    assert spec_of(file).data == str(store)
    assert spec_of(grid(store)).data == str(store)
    found = ibp.sweep(file, tmp_path / "run")
    assert found.spec == spec_of(tmp_path / "run" / "campaign.yaml")


def test_progress_has_a_line_for_each_fit_that_runs(store, tmp_path):
    seen = []
    ibp.sweep(grid(store, steps=[3, 6]), tmp_path / "run", progress=seen.append)
    assert [(one.ended, one.fits) for one in (seen[0], seen[-1])] == [(0, 8), (8, 8)]
    running = [one for one in seen if one.running]
    assert {len(one.running) for one in running} == {8, 4}
    assert [one.ended for one in running] == sorted(one.ended for one in running)
    first = running[0].running[0]
    assert (first.name, first.step, first.limit) == (
        "lg-vi-infinite, K = 3, step_limit 3, restart 0",
        1,
        3,
    )
    assert running[0].left is None
    assert all(0 <= one.left.about <= one.left.most for one in running[1:])


def test_a_fit_that_failed_does_not_run(store, tmp_path, monkeypatch):
    """What was last told of a group that broke is not what runs."""
    update = Batch.update

    def breaking(self, params, sums, draws):
        if draws.step == 3:
            raise ValueError("on purpose")
        return update(self, params, sums, draws)

    monkeypatch.setattr(Batch, "update", breaking)
    seen = []
    found = ibp.sweep(grid(store), tmp_path / "run", progress=seen.append)
    assert len(found.failed) == 4
    assert all(one.ended + len(one.running) <= one.fits for one in seen)
    assert all(one.left is None or one.left.about >= 0 for one in seen)
    assert [(one.ended, one.failed, list(one.running)) for one in seen][-1] == (4, 4, [])


def test_progress_counts_the_scores(store, tmp_path):
    seen = []
    ibp.sweep(grid(store, steps=3, holdout=[0.0, 0.25]), tmp_path / "run", progress=seen.append)
    scoring = [one.scoring for one in seen if one.scoring]
    assert list(dict.fromkeys(scoring)) == [(number, 4) for number in range(1, 5)]
    assert (seen[-1].ended, seen[-1].scoring) == (8, None)
    assert all(one.ended == one.fits and one.left.about >= 0 for one in seen if one.scoring)
    seen.clear()
    ibp.sweep(grid(store, steps=3), tmp_path / "other", progress=seen.append)
    assert not any(one.scoring for one in seen)


def crowded(fits, source, place):
    try:
        return planned_for(fits, source, place).spill
    except UsageError:
        return True


def test_groups_are_as_few_as_fit_into_memory(store):
    manifest = Manifest.of(spec_of(grid(store, truncation=[10, 20, 30], restarts=20)), "f")
    source = as_source(store)
    assert [len(some) for some in grouped(manifest.fits, source, Place(memory=1 << 30), None)] == [60]
    tight = Place(memory=int((256 << 20) / 0.6) + (1 << 20))
    made = grouped(manifest.fits, source, tight, None)
    assert len(made) > 2
    assert [fit for some in made for fit in some] == list(manifest.fits)
    for some, after in itertools.pairwise(made):
        assert not planned_for(some, source, tight).spill
        assert crowded([*some, after[0]], source, tight), "one more would not have fitted"
    most = grouped(manifest.fits * 10, source, Place(memory=8 << 30), None)
    assert max(len(some) for some in most) <= LARGEST


def test_a_fit_that_fits_nowhere_fails_alone(store, tmp_path):
    tight = int((256 << 20) / 0.6) + (1 << 17)
    found = ibp.sweep(grid(store, truncation=[3, 4000], restarts=1), tmp_path / "run", memory=tight)
    ((fit, reason, code),) = found.failed
    assert fit.labels["truncation"] == 4000
    assert reason.startswith("a process needs")
    assert code == 2
    assert found.fit(truncation=3).attrs["steps"] == 6


def test_a_lost_cluster_says_how_the_campaign_goes_on(store, tmp_path, monkeypatch):
    def lost(*args):
        raise ClusterLost("no workers; nothing that was saved is lost, continue with: ibpdist resume there")

    monkeypatch.setattr(group, "to_end", lost)
    run = tmp_path / "a run"
    with pytest.raises(ClusterLost) as caught:
        ibp.sweep(grid(store), run)
    way = f"ibpdist sweep '{run / 'campaign.yaml'}' '{run}'"
    assert str(caught.value) == f"no workers; no fit that was finished is lost, continue with: {way}"
    monkeypatch.undo()
    assert ibp.sweep(run / "campaign.yaml", run).failed == []


def test_the_summary_is_on_disk(store, tmp_path):
    found = ibp.sweep(grid(store), tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored = xr.open_zarr(tmp_path / "run" / "summary").load()
    for name in found.summary.data_vars:
        np.testing.assert_array_equal(stored[name].values, found.summary[name].values, err_msg=name)
    assert stored.attrs == found.summary.attrs
