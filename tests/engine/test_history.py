"""The record that row state is rebuilt from."""

import threading
import time

import numpy as np
import pytest

from ibpdist.base.errors import StorageError
from ibpdist.engine import history as module
from ibpdist.engine.history import RunHistory
from ibpdist.storage import records
from tests.support.toy import ToyLocal, ToyParams


def params(step):
    return ToyParams(np.full((3, 2), float(step)), np.ones(3))


@pytest.fixture
def history(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    (tmp_path / "params").mkdir()
    made = RunHistory(tmp_path)
    for step in range(13):
        made.publish(step, params(step))
    return made


def commit(history, step):
    history.checkpoints.begin(step)
    files = history.save(step, 0, [ToyLocal(np.full((2, 3), float(step)))])
    history.checkpoints.commit(step, params(step), files, 1)
    history.prune()


def steps(history):
    return sorted(int(p.stem) for p in history.file(0).parent.glob("*.rec"))


def test_parameters_come_back(history):
    for step in range(13):
        assert np.array_equal(history.params(step).centre, params(step).centre)


def test_the_newest_state_that_is_not_too_new(history):
    commit(history, 4)
    commit(history, 8)
    assert history.state(0, 3) is None
    for asked, found in ((4, 4), (7, 4), (8, 8), (12, 8)):
        step, state = history.state(0, asked)
        assert step == found
        assert np.array_equal(state.share, np.full((2, 3), float(found)))


def test_nothing_is_pruned_before_there_are_two(history):
    commit(history, 4)
    assert steps(history) == list(range(13))


def test_pruned_is_what_no_kept_checkpoint_needs(history):
    commit(history, 4)
    commit(history, 8)
    assert steps(history) == [0, *range(4, 13)]
    commit(history, 10)
    assert steps(history) == [0, *range(8, 13)]


def test_parameters_that_come_late_are_waited_for(history):
    file = history.file(5)
    held = file.read_bytes()
    file.unlink()

    def late():
        time.sleep(0.1)
        records.replace_file(file, [held])  # a file is whole or not there

    thread = threading.Thread(target=late)
    thread.start()
    assert np.array_equal(history.params(5).centre, params(5).centre)
    thread.join()


def test_parameters_that_never_come_are_named(history):
    with pytest.raises(StorageError, match=r"00000099\.rec: No such file"):
        history.params(99)


def test_damaged_parameters_are_named(history):
    file = history.file(5)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StorageError, match=r"00000005\.rec: damaged"):
        history.params(5)


def test_a_damaged_state_gives_way_to_an_older_one(history):
    commit(history, 4)
    commit(history, 8)
    (file,) = history.checkpoints.folder(8).glob("rows-*")
    file.write_bytes(b"rubbish")
    assert history.state(0, 12)[0] == 4
