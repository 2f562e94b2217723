"""A run directory is made whole or not at all, and has one owner."""

import errno
import os

import pytest

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.runs.directory import RunDirectory, identity, is_run
from ibpdist.storage import sealed

FACTS = {"fingerprint": "abc", "rows": 3}


def create(path, spec="data: x\n", prepare=lambda: FACTS, **options):
    return RunDirectory.create(path, spec, prepare, **options)


@pytest.fixture
def run(tmp_path):
    made = create(tmp_path / "run")
    made.close()
    return tmp_path / "run"


def test_holds_spec_facts_and_a_number_used_once(tmp_path):
    one, other = create(tmp_path / "one"), create(tmp_path / "other")
    assert (one.path / "spec.yaml").read_text() == "data: x\n"
    assert one.identity["fingerprint"] == "abc"
    assert one.identity["schema"] == 1
    assert one.nonce != other.nonce
    one.close()
    other.close()


def test_the_lock_goes_with_close(run):
    again = RunDirectory.open(run)
    with pytest.raises(OutputInUse, match="in use by process"):
        RunDirectory.open(run)
    again.close()
    RunDirectory.open(run).close()
    assert not (run / "lock").exists()


def test_an_existing_run_is_refused(run):
    before = sorted(p.name for p in run.iterdir())
    with pytest.raises(OutputInUse, match="exists already: resume it, choose another place or pass --ov"):
        create(run)
    assert sorted(p.name for p in run.iterdir()) == before


def test_overwrite_begins_anew(run):
    (run / "result.zarr").mkdir()
    (run / "params" / "00000001.rec").write_bytes(b"old")
    nonce = identity(run)["nonce"]
    made = create(run, "data: y\n", overwrite=True)
    assert made.nonce != nonce
    assert not (run / "result.zarr").exists()
    assert list((run / "params").iterdir()) == []
    made.close()


def test_a_run_in_use_is_not_overwritten(run):
    held = RunDirectory.open(run)
    with pytest.raises(OutputInUse, match="in use by process"):
        create(run, overwrite=True)
    held.close()
    assert is_run(run)


def test_a_folder_that_is_no_run_is_never_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(OutputInUse, match="exists and is not a run; choose another place"):
            create(tmp_path, overwrite=overwrite)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_fine(tmp_path):
    (tmp_path / "run").mkdir()
    create(tmp_path / "run").close()
    assert is_run(tmp_path / "run")


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(OutputInUse, match="run: exists and is a file; choose another place"):
        create(tmp_path / "run")
    assert (tmp_path / "run").read_text() == ""
    with pytest.raises(StorageError, match="Not a directory"):
        create(tmp_path / "run" / "run")


def test_no_room_for_its_lock(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    (tmp_path / "there").mkdir()
    for name in ("run", "there"):
        with pytest.raises(StorageError, match=f"{name}/lock: No space left on device; free some space"):
            create(tmp_path / name)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_what_fails_while_it_is_made_leaves_nothing(tmp_path):
    def fail():
        raise StorageError("disk full")

    with pytest.raises(StorageError, match="disk full"):
        create(tmp_path / "deep" / "run", prepare=fail)
    assert not (tmp_path / "deep" / "run").exists()


def test_what_was_killed_while_it_was_made_is_made_again(tmp_path):
    path = tmp_path / "run"
    for name in ("params", "checkpoints"):
        (path / name).mkdir(parents=True)
    (path / "spec.yaml").write_text("data: o")
    (path / "lock").write_text("{}")
    (path / "run.json.abcd.partial").write_text("{")
    create(path).close()
    assert (path / "spec.yaml").read_text() == "data: x\n"
    assert not list(path.glob("*.partial"))


def leave_half_written(run):
    (run / "result.zarr.partial").mkdir()
    (run / "result.zarr.partial" / "x").write_text("half")
    (run / "params" / "1.rec.ab.partial").write_text("half")
    (run / "checkpoints" / "00000004").mkdir()
    (run / "checkpoints" / "00000004" / "rows.rec.ab.partial").write_text("half")


def test_opening_cleans_up_after_a_kill(run):
    leave_half_written(run)
    opened = RunDirectory.open(run)
    assert not list(run.rglob("*.partial"))
    opened.close()


def test_closing_cleans_up_after_a_signal(run):
    opened = RunDirectory.open(run)
    leave_half_written(run)
    opened.close()
    assert not list(run.rglob("*.partial"))


def test_a_changed_spec_is_refused(run):
    (run / "spec.yaml").write_text("data: z\n")
    with pytest.raises(StorageError, match=r"spec\.yaml: was changed after the run began"):
        RunDirectory.open(run)
    assert not (run / "lock").exists()


def test_a_newer_schema_is_refused(run):
    sealed.write(run / "run.json", sealed.read(run / "run.json") | {"schema": 99})
    with pytest.raises(StorageError, match=r"newer version \(schema 99\)"):
        RunDirectory.open(run)


@pytest.mark.parametrize("body", [[], {}, {"schema": 1}, None])
def test_a_foreign_identity(run, body):
    sealed.write(run / "run.json", body)
    with pytest.raises(StorageError, match=r"run\.json: damaged"):
        identity(run)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"sha256": 1, "body": {}}'])
def test_damaged_identity(run, text):
    (run / "run.json").write_text(text)
    with pytest.raises(StorageError, match=r"run\.json: damaged"):
        identity(run)


def test_what_is_no_run_is_said_to_be_none(tmp_path):
    with pytest.raises(StorageError, match="is not a run"):
        RunDirectory.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_has_steps_looks_into_restarts(run):
    made = RunDirectory.open(run)
    assert not made.has_steps()
    child = create(run / "restarts" / "000")
    child.events.add("step", step=1, terms={})
    child.close()
    assert made.has_steps()
    made.close()


def test_tell_is_kept_in_the_log_and_said(run, caplog):
    made = RunDirectory.open(run)
    made.tell("worker a is gone")
    made.close()
    assert '"text": "worker a is gone"' in (run / "events.jsonl").read_text()
    assert "worker a is gone" in caplog.text
