"""Verification finds every damage to every file of a run, and nothing in a sound one."""

import shutil

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.campaigns.verify import verify
from ibpdist.engine.history import RunHistory
from ibpdist.runs.directory import RunDirectory
from ibpdist.storage import events
from ibpdist.storage.events import Events
from tests.support.toy import blobs, save_blobs, toy_fit, toy_spec


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    spec = toy_spec(save_blobs(folder / "x.npy", blobs(rows=60)), steps=4, checkpoint=2)
    return toy_fit(folder / "run", spec)


@pytest.fixture
def run(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "run")


@pytest.fixture
def halfway(tmp_path, monkeypatch):
    """A run with the parameters of all steps, as while it is under way."""
    monkeypatch.setattr(RunHistory, "prune_finished", lambda history: None)
    spec = toy_spec(save_blobs(tmp_path / "x.npy", blobs(rows=60)), steps=4, checkpoint=2)
    return toy_fit(tmp_path / "halfway", spec)


def files_of(sound):
    return sorted(p.relative_to(sound) for p in sound.rglob("*") if p.is_file())


def test_a_sound_run_has_no_problems(run):
    assert verify(run) == []
    assert verify(str(run)) == []


def test_a_run_under_way_has_none_either(run):
    half = run / "params" / "00000009.rec.ab.partial"
    held = RunDirectory.open(run)
    half.write_bytes(b"being written")
    assert verify(run) == []
    held.close()
    half.write_bytes(b"by a process that was killed")
    (problem,) = verify(run)
    assert "left by a process that was killed" in problem


def test_every_file_with_a_flipped_bit_is_named(sound, run):
    rng = np.random.default_rng(0)
    for name in files_of(sound):
        raw = (sound / name).read_bytes()
        for at in (*rng.integers(len(raw), size=3), len(raw) - 1):
            flipped = bytearray(raw)
            flipped[at] ^= 1 << int(rng.integers(8))
            (run / name).write_bytes(flipped)
            assert any(name.name in problem for problem in verify(run)), (name, at)
        (run / name).write_bytes(raw)
    assert verify(run) == []


def test_the_data_of_an_array_are_verified_with_the_run(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 5))
    x[3, 2] = np.nan
    run = tmp_path / "run"
    ibp.fit(x, system="lg-vi-finite", K=2, steps=3, run=run, restarts=2)
    assert verify(run) == []
    held = [path for path in (run / "data.zarr").rglob("*") if path.is_file()]
    for path in held:
        raw = path.read_bytes()
        flipped = bytearray(raw)
        flipped[len(raw) // 2] ^= 4
        path.write_bytes(flipped)
        named = f"data.zarr: {path.relative_to(run / 'data.zarr')}"
        assert any(named in problem for problem in verify(run)), path
        path.write_bytes(raw)
    shutil.rmtree(run / "data.zarr" / "x")
    assert any("data.zarr" in problem for problem in verify(run))


def test_a_log_that_ends_within_a_line(run):
    log = run / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-1])
    (problem,) = verify(run)
    assert problem.startswith(f"{log}: ends within a line")
    held = RunDirectory.open(run)
    assert verify(run) == [], "it is being written"
    held.close()
    assert verify(run) == []


def test_every_missing_file_is_named(sound, run):
    for name in files_of(sound):
        (run / name).unlink()
        problems = verify(run)
        assert any(name.name in problem for problem in problems), name
        if name.name == "manifest.json":
            assert not [p for p in problems if "rows-" in p], "it is then no checkpoint"
        shutil.copy(sound / name, run / name)


def test_a_foreign_file_in_the_result_is_named(run):
    (run / "result.zarr" / "rows" / "extra").write_text("x")
    assert verify(run) == [f"{run}/result.zarr/rows/extra: does not belong to the result"]


def test_swapped_chunks_are_found(run):
    one, other = (run / f"result.zarr/rows/z/c.{n}.0" for n in "01")
    a, b = one.read_bytes(), other.read_bytes()
    one.write_bytes(b)
    other.write_bytes(a)
    assert len(verify(run)) == 2


def rewrite(run, change):
    """The log with its events changed and numbered anew."""
    kept = change(events.read(run / "events.jsonl"))
    (run / "events.jsonl").unlink()
    log = Events(run / "events.jsonl")
    for event in kept:
        facts = {
            name: value for name, value in event.items() if name not in ("number", "time", "event", "crc")
        }
        log.add(event["event"], durable=False, **facts)
    log.close()


def test_a_step_that_is_missing_from_the_log(run):
    rewrite(run, lambda read: [e for e in read if e.get("step") != 2 or e["event"] != "step"])
    assert any("step 3 where 2 was due" in problem for problem in verify(run))


def test_a_step_twice_without_a_resume(run):
    rewrite(run, lambda read: [e for e in read for _ in range(1 + (e["event"] == "step"))])
    assert any("where" in problem for problem in verify(run))


def test_a_checkpoint_the_log_does_not_know(run):
    rewrite(
        run,
        lambda read: [e for e in read if e["event"] not in ("saving", "checkpoint") or e["step"] != 2],
    )
    assert verify(run) == [f"{run}/events.jsonl: does not know the checkpoint of step 2"]


def test_killed_between_commit_and_log_is_legal(halfway):
    run = halfway

    def cut(read):
        at = next(n for n, e in enumerate(read) if e["event"] == "checkpoint" and e["step"] == 4)
        return read[:at]

    rewrite(run, cut)
    shutil.rmtree(run / "result.zarr")
    assert verify(run) == []


def test_a_resume_begins_anew_in_the_log(halfway):
    run = halfway
    shutil.rmtree(run / "result.zarr")
    log = Events(run / "events.jsonl")
    log.add("begin", step=2)
    for step in (3, 4):
        log.add("step", step=step, terms={})
    log.close()
    assert verify(run) == []


def test_restarts_are_verified_too(run):
    shutil.copytree(run, run / "restarts" / "000", ignore=shutil.ignore_patterns("restarts"))
    assert verify(run) == []
    (run / "restarts" / "000" / "params" / "00000000.rec").write_bytes(b"")
    (problem,) = verify(run)
    assert "restarts/000/params/00000000.rec" in problem


def test_the_spec_is_part_of_the_run(run):
    (run / "spec.yaml").write_text("data: other\n")
    (problem,) = verify(run)
    assert "was changed after the run began" in problem


def test_nothing_there(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        verify(tmp_path / "none")


def test_neither_run_nor_dataset(tmp_path):
    with_problems = verify_or_error(tmp_path)
    assert "not a dataset" in with_problems


def verify_or_error(path):
    try:
        return " ".join(verify(path))
    except StorageError as error:
        return str(error)
