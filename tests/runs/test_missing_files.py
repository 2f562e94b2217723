"""What the log of a run tells of and nothing removes is missed when it is not there."""

import shutil

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.campaigns.verify import verify
from ibpdist.engine.history import RunHistory
from ibpdist.runs import missing_files as module_lost
from ibpdist.runs.missing_files import kept, lost
from ibpdist.storage.lock import Lock

pytestmark = pytest.mark.usefixtures("save_whenever_due")


def data():
    return np.random.default_rng(0).normal(size=(60, 5))


def fit(run, **options):
    return ibp.fit(data(), **{"system": "lg-vi-finite", "K": 3, "steps": 8, "rtol": 0.0} | options, run=run)


def every_loss_is_named(run, places):
    assert verify(run) == []
    files = sorted(file for place in places for file in run.glob(place) if not file.name.startswith("-"))
    assert files
    for file in files:
        raw = file.read_bytes()
        file.unlink()
        assert any(problem.startswith(f"{file}: ") for problem in verify(run)), file
        file.write_bytes(raw)
    assert verify(run) == []
    return [str(file.relative_to(run)) for file in files]


@pytest.fixture
def unpruned(monkeypatch):
    """Runs keep the parameters of their steps, as while they are under way."""
    monkeypatch.setattr(RunHistory, "prune_finished", lambda history: None)
    monkeypatch.setattr(module_lost, "_is_finished", lambda path, read: False)


def test_of_a_finished_fit(tmp_path):
    fit(tmp_path / "run", checkpoint=3)
    found = every_loss_is_named(tmp_path / "run", ["params/*", "checkpoints/*/*", "events.jsonl"])
    assert [name for name in found if name.startswith("params")] == ["params/00000000.rec"]


def test_of_a_fit(tmp_path, unpruned):
    fit(tmp_path / "run", checkpoint=3)
    found = every_loss_is_named(tmp_path / "run", ["params/*", "checkpoints/*/*", "events.jsonl"])
    assert [name for name in found if name.startswith("params")] == [
        f"params/{step:08d}.rec" for step in (0, 6, 7, 8)
    ]
    assert "checkpoints/00000006/manifest.json" in found


def test_of_a_fit_with_one_checkpoint(tmp_path, unpruned):
    fit(tmp_path / "run", checkpoint=100)
    found = every_loss_is_named(tmp_path / "run", ["params/*"])
    assert len(found) == 9


@pytest.mark.parametrize("system", ["lg-gibbs-infinite", "lg-collapsed-finite"])
def test_of_a_sampler(tmp_path, system):
    fit(tmp_path / "run", system=system, chains=2, checkpoint=2)
    every_loss_is_named(tmp_path / "run", ["params/*", "checkpoints/*/*", "events.jsonl"])


def test_of_restarts(tmp_path):
    run = tmp_path / "run"
    fit(run, restarts=2)
    every_loss_is_named(run, ["events.jsonl", "restarts/*/params/*", "restarts/*/checkpoints/*/*"])
    every_loss_is_named(run, ["restarts/*/events.jsonl"])
    (run / "events.jsonl").rename(tmp_path / "log")
    (run / "events.jsonl").touch()
    assert verify(run) == [f"{run}/events.jsonl: is missing or empty, so what the run did is not known"]
    (tmp_path / "log").replace(run / "events.jsonl")
    shutil.rmtree(run / "restarts" / "001")
    assert verify(run) == [f"{run}/restarts/001: is missing"]
    shutil.rmtree(run / "restarts")
    assert len(verify(run)) == 2


def test_a_run_that_was_interrupted_and_resumed_misses_nothing(tmp_path):
    run, at = tmp_path / "run", [4]

    def stop(now):
        if now.step in at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(run, checkpoint=3, progress=stop, steps=20)
    for step in (5, 11, 12):
        at[:] = [step]
        every_loss_is_named(run, ["params/*", "events.jsonl", "checkpoints/*/manifest.json"])
        with pytest.raises(KeyboardInterrupt):
            ibp.resume(run, progress=stop)
    ibp.resume(run)
    every_loss_is_named(run, ["params/*", "checkpoints/*/*"])


@pytest.mark.parametrize("damaged", [["00000006"], ["00000006", "00000008"]])
def test_a_run_that_lost_checkpoints_and_went_on(tmp_path, damaged):
    run = tmp_path / "run"
    fit(run, checkpoint=3)
    for name in ("result.zarr", "result.json"):
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for step in damaged:
        (run / "checkpoints" / step / "params.rec").write_bytes(b"")
    assert verify(run)

    def stop(now):
        if now.step == 4:
            raise KeyboardInterrupt

    if len(damaged) > 1:
        with pytest.raises(KeyboardInterrupt):
            ibp.resume(run, progress=stop)
        assert verify(run) == []
    ibp.resume(run)
    assert list(lost(run)) == []


def test_a_run_under_way_is_left_alone(tmp_path, unpruned):
    fit(tmp_path / "run")
    (tmp_path / "run" / "params" / "00000003.rec").unlink()
    held = Lock(tmp_path / "run" / "lock")
    assert verify(tmp_path / "run") == []
    held.release()
    assert len(verify(tmp_path / "run")) == 1


def log(*events):
    return [{"event": kind, **dict.fromkeys(("step", "checkpoints"), step)} for kind, step in events]


@pytest.mark.parametrize(
    ("events", "there", "expected"),
    [
        ([("begin", 0), ("saving", 3)], [], []),
        ([("begin", 0), ("saving", 3)], [3], [3]),
        ([("begin", 0), ("saving", 3), ("checkpoint", 3), ("saving", 6)], [3], [3]),
        ([("saving", 3), ("checkpoint", 3), ("saving", 6), ("checkpoint", 6), ("saving", 9)], [6, 9], [6, 9]),
        ([("saving", 3), ("checkpoint", 3), ("saving", 6), ("begin", 6)], [], [3, 6]),
        ([("saving", 3), ("checkpoint", 3), ("saving", 6), ("begin", 3)], [], [3]),
        ([("saving", 3), ("checkpoint", 3), ("begin", 3), ("saving", 3)], [], []),
        ([("saving", 3), ("checkpoint", 3), ("damaged", [3]), ("begin", 0)], [], []),
        ([("saving", 3), ("checkpoint", 3), ("damaged", [3])], [], []),
    ],
)
def test_which_checkpoints_a_log_leaves(events, there, expected):
    assert kept(log(*events), there) == expected


def test_a_log_that_cannot_be_read_is_told_once(tmp_path):
    fit(tmp_path / "run")
    (tmp_path / "run" / "events.jsonl").write_text("rubbish\n")
    assert list(lost(tmp_path / "run")) == []
    assert len(verify(tmp_path / "run")) == 1
