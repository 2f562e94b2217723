"""A checkpoint counts when it is whole, and only then."""

import json
import shutil

import numpy as np
import pytest

from ibpdist.base.errors import StorageError
from ibpdist.engine.checkpoint import Checkpoints
from ibpdist.storage import records, sealed
from tests.support.toy import ToyLocal, ToyParams

CHUNKS = 6


def state(chunk, step):
    return ToyLocal(np.full((4, 3), chunk + 100.0 * step))


def params(step):
    return ToyParams(np.full((3, 2), float(step)), np.ones(3))


def save(made, step, width=4, upto=CHUNKS):
    made.begin(step)
    files = {}
    for first in range(0, upto, width):
        last = min(first + width, upto)
        files |= made.save(step, first, [state(chunk, step) for chunk in range(first, last)])
    return files


def commit(made, step, **options):
    made.commit(step, params(step), save(made, step, **options), CHUNKS)


@pytest.fixture
def made(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    return Checkpoints(tmp_path)


def test_round_trip(made):
    commit(made, 10)
    assert made.steps() == [10]
    assert made.problems(10) == []
    for chunk in range(CHUNKS):
        assert np.array_equal(made.state(10, chunk).share, state(chunk, 10).share)
    step, found = made.newest_whole()
    assert step == 10
    assert np.array_equal(found.centre, params(10).centre)


def test_what_is_not_committed_does_not_count(made):
    save(made, 10)
    assert made.steps() == []
    assert made.newest_whole() is None


def test_what_a_killed_worker_left_is_not_kept(made):
    files = save(made, 10)
    (made.folder(10) / "rows-000000-000003.rec.0123abcd.partial").write_bytes(b"half")
    made.commit(10, params(10), files, CHUNKS)
    assert sorted(path.name for path in made.folder(10).iterdir()) == sorted(
        [*files, "params.rec", "manifest.json"]
    )
    assert made.problems(10) == []


def test_two_are_kept(made):
    for step in (10, 20, 30, 40):
        commit(made, step)
    assert made.steps() == [40, 30]
    assert sorted(p.name for p in made.path.iterdir()) == ["00000030", "00000040"]


def test_incomplete_rows_are_a_bug(made):
    files = save(made, 10, upto=4)
    with pytest.raises(ValueError, match="4 chunks of 6"):
        made.commit(10, params(10), files, CHUNKS)
    assert made.steps() == []


def test_the_width_of_groups_does_not_matter_to_a_reader(made):
    commit(made, 10, width=1)
    commit(made, 20, width=6)
    for chunk in range(CHUNKS):
        assert np.array_equal(made.state(10, chunk).share, state(chunk, 10).share)
        assert np.array_equal(made.state(20, chunk).share, state(chunk, 20).share)


def test_a_chunk_that_is_not_there_is_refused(made):
    commit(made, 10)
    with pytest.raises(StorageError, match="has no rows of chunk 6"):
        made.state(10, 6)


def files_of(made, step):
    return sorted(made.folder(step).iterdir())


@pytest.mark.parametrize("which", range(4))
def test_any_damaged_file_makes_the_older_one_the_newest(made, which):
    commit(made, 10)
    commit(made, 20)
    file = files_of(made, 20)[which]
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 16
    file.write_bytes(raw)
    (problem,) = made.problems(20)
    assert file.name in problem
    assert made.newest_whole()[0] == 10


@pytest.mark.parametrize("which", range(3))
def test_any_missing_file_too(made, which):
    commit(made, 10)
    commit(made, 20)
    names = [f for f in files_of(made, 20) if f.name != "manifest.json"]
    names[which].unlink()
    assert names[which].name in made.problems(20)[0]
    assert made.newest_whole()[0] == 10


def test_a_file_of_another_step_is_found(made):
    commit(made, 10)
    commit(made, 20)
    name = "rows-000000-000003.rec"
    shutil.copy(made.folder(10) / name, made.folder(20) / name)
    assert made.problems(20) == [f"{made.folder(20) / name}: is not the file that was committed"]


def test_a_manifest_of_another_step_is_found(made):
    commit(made, 10)
    shutil.copytree(made.folder(10), made.folder(20))
    assert made.newest_whole()[0] == 10
    assert "is the manifest of step 10" in made.problems(20)[0]


def test_a_manifest_that_was_edited_is_found(made):
    commit(made, 10)
    path = made.folder(10) / "manifest.json"
    text = json.loads(path.read_text())
    text["body"]["chunks"] = 5
    path.write_text(json.dumps(text))
    assert made.newest_whole() is None


def test_names_in_a_manifest_cannot_lead_elsewhere(made):
    commit(made, 10)
    path = made.folder(10) / "manifest.json"
    body = json.loads(path.read_text())["body"]
    body["files"] = {"../../../rows-000000-000005.rec": "0" * 64}
    sealed.write(path, body)
    with pytest.raises(StorageError, match="not the name of a file of rows"):
        made.state(10, 0)


def test_clean_removes_what_does_not_count(made):
    commit(made, 10)
    commit(made, 20)
    save(made, 30)
    made.clean(10)
    assert [p.name for p in made.path.iterdir()] == ["00000010"]


def test_begin_again_after_a_crash(made):
    save(made, 10)
    (made.folder(10) / "rows-000000-000003.rec.abcd.partial").write_bytes(b"half")
    commit(made, 10)
    assert made.problems(10) == []
    assert not list(made.folder(10).glob("*.partial"))


class Crash(BaseException):
    """The end of the process, at a point of its choosing."""


def crash_points(monkeypatch, action):
    """Run `action` again and again, crashing before its first, second, ... file operation."""
    names = [(records, "replace_file"), (records, "sync_folder"), (Checkpoints, "drop")]
    for at in range(1, 100):
        seen = 0

        def counted(plain, at=at):
            def operation(*args, **options):
                nonlocal seen
                seen += 1
                if seen == at:
                    raise Crash
                return plain(*args, **options)

            return operation

        with monkeypatch.context() as patch:
            for home, name in names:
                patch.setattr(home, name, counted(getattr(home, name)))
            try:
                action()
            except Crash:
                yield at
                continue
        return
    raise AssertionError("never succeeded")


def test_a_crash_at_any_operation_leaves_old_or_new(tmp_path, monkeypatch):
    made = Checkpoints(tmp_path)
    for step in (10, 20):
        commit(made, step)
    points = 0
    for _ in crash_points(monkeypatch, lambda: commit(made, 30)):
        points += 1
        step, found = made.newest_whole()
        assert step in (20, 30)
        assert np.array_equal(found.centre, params(step).centre)
        assert all(np.array_equal(made.state(step, c).share, state(c, step).share) for c in range(CHUNKS))
        made.clean(20)
        if made.steps()[0] == 20 and len(made.steps()) == 1:
            commit(made, 10)
    assert points >= 8
    assert made.newest_whole()[0] == 30


@pytest.mark.parametrize("code", [28, 5, 13])
def test_a_disk_that_fails_is_a_storage_error(made, monkeypatch, code):
    commit(made, 10)

    def fail(self, target):
        raise OSError(code, "no")

    monkeypatch.setattr(records.Path, "replace", fail)
    with pytest.raises(StorageError):
        commit(made, 20)
    monkeypatch.undo()
    assert made.newest_whole()[0] == 10
