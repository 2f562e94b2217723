"""From anywhere to the result, with a log and checkpoints on the way."""

import shutil

import numpy as np
import pytest

from ibpdist.base.errors import IbpError, StorageError
from ibpdist.engine.provenance import facts
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.work import Workbench
from ibpdist.inference._base import Info
from ibpdist.inference.stopping import Snapshot
from ibpdist.runs import loop as module
from ibpdist.runs.job import Job
from ibpdist.runs.layout import state_of
from ibpdist.runs.loop import drive, in_memory
from ibpdist.runs.result import is_complete, open_result
from ibpdist.storage import events
from tests.support.compare import assert_same_result
from tests.support.logs import kinds_of_events, objectives
from tests.support.toy import Toy, blobs, save_blobs, serial_engine, toy_fit, toy_job, toy_run, toy_spec

pytestmark = pytest.mark.usefixtures("save_whenever_due")
GROUPS = ("params", "rows", "trace", "internals")


class Enough(Exception):
    """A driver that ends in the middle."""


@pytest.fixture
def spec(tmp_path):
    return toy_spec(save_blobs(tmp_path / "x.npy", blobs()))


def go(tmp_path, spec, name="run", stop_at=None):
    """Drive a run from where it is; `stop_at` ends the driver after that step."""

    def progress(now):
        if now.step == stop_at:
            raise Enough

    return toy_fit(tmp_path / name, spec, progress)


def assert_same(one, other):
    assert objectives(one) == objectives(other)
    assert_same_result(one, other)


def test_log_and_checkpoints(tmp_path, spec):
    path = go(tmp_path, spec)
    read = events.read(path / "events.jsonl")
    assert [e["step"] for e in read if e["event"] == "step"] == list(range(1, 13))
    assert [e["step"] for e in read if e["event"] == "checkpoint"] == [3, 6, 9, 12]
    assert kinds_of_events(path)[0] == "begin"
    assert kinds_of_events(path)[-1] == "finished"
    assert is_complete(path)


@pytest.mark.parametrize("stop_at", range(1, 13))
def test_resumed_after_any_step(tmp_path, spec, stop_at):
    plain = go(tmp_path, spec, "plain")
    with pytest.raises(Enough):
        go(tmp_path, spec, stop_at=stop_at)
    begun = go(tmp_path, spec)
    assert_same(plain, begun)
    begins = [e["step"] for e in events.read(begun / "events.jsonl") if e["event"] == "begin"]
    assert begins == [0, 3 * ((stop_at - 1) // 3)], "the last checkpoint before"


def test_resumed_again_and_again(tmp_path, spec):
    plain = go(tmp_path, spec, "plain")
    for stop_at in (2, 5, 4, 8, 11):
        with pytest.raises(Enough):
            go(tmp_path, spec, stop_at=stop_at)
    assert_same(plain, go(tmp_path, spec))


def test_stopped_before_the_result_was_written(tmp_path, spec, monkeypatch):
    plain = go(tmp_path, spec, "plain")
    with monkeypatch.context() as patch:
        patch.setattr(module.result, "write", lambda *a: (_ for _ in ()).throw(Enough()))
        with pytest.raises(Enough):
            go(tmp_path, spec)
    steps = kinds_of_events(tmp_path / "run").count("step")
    path = go(tmp_path, spec)
    assert kinds_of_events(path).count("step") == steps, "no step is made again or beyond"
    assert_same(plain, path)


def test_convergence_is_seen_again_after_a_resume(tmp_path, spec, monkeypatch):
    monkeypatch.setattr(Toy, "monotone", lambda self: True)
    spec = spec.model_copy(update={"steps": 100, "rtol": 1e-4})
    plain = go(tmp_path, spec, "plain")
    last = max(objectives(plain))
    assert open_result(plain).attrs["stop"] == "converged"
    assert 4 < last < 100
    for stop_at in (last - 1, last):
        with pytest.raises(Enough):
            go(tmp_path, spec, f"run{stop_at}", stop_at=stop_at)
        assert_same(plain, go(tmp_path, spec, f"run{stop_at}"))


def test_damaged_checkpoints_cost_time_only(tmp_path, spec):
    plain = go(tmp_path, spec, "plain")
    with pytest.raises(Enough):
        go(tmp_path, spec, stop_at=8)
    folder = tmp_path / "run" / "checkpoints"
    damage(folder / "00000006" / "rows-000000-000015.rec")
    path = go(tmp_path, spec)
    assert_same(plain, path)
    (said,) = [e for e in events.read(path / "events.jsonl") if e["event"] == "damaged"]
    assert said["checkpoints"] == [6]


def test_all_checkpoints_damaged_begins_anew(tmp_path, spec):
    plain = go(tmp_path, spec, "plain")
    with pytest.raises(Enough):
        go(tmp_path, spec, stop_at=8)
    for step in ("00000003", "00000006"):
        damage(tmp_path / "run" / "checkpoints" / step / "manifest.json")
    assert_same(plain, go(tmp_path, spec))


def test_damaged_first_parameters_are_made_again(tmp_path, spec):
    plain = go(tmp_path, spec, "plain")
    with pytest.raises(Enough):
        go(tmp_path, spec, stop_at=2)
    damage(tmp_path / "run" / "params" / "00000000.rec")
    assert_same(plain, go(tmp_path, spec))


def stop(now):
    raise Enough


def damage(file):
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 2
    file.write_bytes(raw)


def test_a_log_that_lost_steps_is_refused(tmp_path, spec):
    with pytest.raises(Enough):
        go(tmp_path, spec, stop_at=8)
    log = tmp_path / "run" / "events.jsonl"
    log.write_bytes(b"")
    with pytest.raises(StorageError, match="the log has no step 1, but a checkpoint has step 6") as caught:
        go(tmp_path, spec)
    way = f"take the log from a copy, or remove {tmp_path / 'run'} and begin again"
    assert str(caught.value).startswith(f"{log}: ")
    assert str(caught.value).endswith(f"; {way}")


@pytest.mark.parametrize("stop_at", [2, 8])
def test_parameters_that_are_lost_are_those_of_the_checkpoint(tmp_path, spec, stop_at):
    plain = go(tmp_path, spec, "plain")
    with pytest.raises(Enough):
        go(tmp_path, spec, stop_at=stop_at)
    shutil.rmtree(tmp_path / "run" / "params")
    assert_same(plain, go(tmp_path, spec))
    begins = [e["step"] for e in events.read(tmp_path / "run" / "events.jsonl") if e["event"] == "begin"]
    assert begins == [0, 0 if stop_at == 2 else 6]


def test_parameters_are_lost_before_the_result_was_written(tmp_path, spec, monkeypatch):
    plain = go(tmp_path, spec, "plain")
    with monkeypatch.context() as patch:
        patch.setattr(module.result, "write", lambda *a: (_ for _ in ()).throw(Enough()))
        with pytest.raises(Enough):
            go(tmp_path, spec)
    shutil.rmtree(tmp_path / "run" / "params")
    path = go(tmp_path, spec)
    assert kinds_of_events(path).count("step") == 12, "no step is made again"
    assert_same(plain, path)


def test_beginning_with_given_parameters(tmp_path, spec):
    first = go(tmp_path, spec, "first")
    run, job = toy_run(tmp_path / "warm", spec)
    warm = state_of(open_result(first))
    drive(run, job, serial_engine(run.path, job), first=warm)
    run.close()
    assert objectives(run.path)[1] > objectives(first)[1]
    run, job = toy_run(tmp_path / "again", spec)
    with pytest.raises(Enough):
        drive(run, job, serial_engine(run.path, job), stop, first=warm)
    run.close()
    assert objectives(go(tmp_path, spec, "again")) == objectives(tmp_path / "warm"), "also after a resume"


def test_in_memory_is_the_same(tmp_path, spec):
    path = go(tmp_path, spec)
    job = toy_job(spec)
    bench = Workbench(job.algorithm, job.source, MemoryHistory(), spec.seed)
    found = in_memory(job, Serial(bench), facts(job.source))
    for group in GROUPS:
        assert found[group].to_dataset().identical(open_result(path)[group].to_dataset().compute()), group
    assert found.attrs["stopped"] == "stopped at the limit of 12 steps"


def test_progress_sees_every_step(tmp_path, spec):
    seen = []
    job = toy_job(spec)
    bench = Workbench(job.algorithm, job.source, MemoryHistory(), spec.seed)
    in_memory(job, Serial(bench), facts(job.source), seen.append)
    assert [now.step for now in seen] == list(range(1, 13))
    assert all(isinstance(now, Snapshot) and now.trace["bound"] for now in seen)


def test_a_bug_in_the_mathematics_stops_the_fit(tmp_path, spec, monkeypatch):
    plain = Toy.update

    def broken(self, params, sums, draws):
        params, info = plain(self, params, sums, draws)
        wrong = {"objective": np.nan} if draws.step == 5 else {}
        return params, Info({**info.terms, **wrong})

    monkeypatch.setattr(Toy, "update", broken)
    with pytest.raises(IbpError, match="step 5: objective = nan is not a finite number"):
        go(tmp_path, spec)
    assert max(objectives(tmp_path / "run")) == 4, "what is wrong is not logged as a step"


def test_checkpoints_do_not_take_most_of_the_time(tmp_path, spec, monkeypatch):
    monkeypatch.setattr(module, "SHARE", 1e9)
    path = go(tmp_path, spec)
    saved = [e["step"] for e in events.read(path / "events.jsonl") if e["event"] == "checkpoint"]
    assert saved == [3, 12], "the first, then none until it pays, and the last"


def test_rules_of_a_sampler():
    spec = toy_spec("memory")
    names = [type(rule).__name__ for rule in Job(spec, Toy(), blobs()).rules()]
    assert names == ["Rising", "Steady", "StepLimit"], "an objective that falls does not converge in a step"
