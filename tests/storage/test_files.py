"""The staging directory: one writer, complete or nothing, and no trace of the dead."""

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.data.append import append
from ibpdist.data.store import create, open_dataset
from ibpdist.storage.files import (
    file_sum,
    publish,
    refuse_existing,
    restore_retired,
    staged,
    stored_files,
    write_durably,
)
from tests.support.matrices import listing, matrix, stored, values


def test_the_staging_directory_is_hidden_and_goes_away(tmp_path):
    target = tmp_path / "a"
    with staged(target) as staging:
        assert staging.name.startswith(".")
        assert staging.parent == tmp_path
        write_durably(staging / "deep/file", b"text")
    assert listing(tmp_path) == set()


def test_publishing_gives_it_the_name(tmp_path):
    with staged(tmp_path / "a") as staging:
        write_durably(staging / "deep/file", b"text")
        publish(staging, tmp_path / "a", overwrite=False)
    assert (tmp_path / "a/deep/file").read_bytes() == b"text"
    assert list(stored_files(tmp_path / "a")) == ["deep/file"]
    assert listing(tmp_path) == {"a"}


def test_what_appeared_in_the_meantime_is_not_replaced(tmp_path):
    with staged(tmp_path / "a") as staging:
        write_durably(staging / "file", b"new")
        write_durably(tmp_path / "a/file", b"old")
        with pytest.raises(OutputInUse, match="in the meantime"):
            publish(staging, tmp_path / "a", overwrite=False)
    assert (tmp_path / "a/file").read_bytes() == b"old"
    assert listing(tmp_path) == {"a"}


def test_a_dataset_in_the_place_of_something_else_is_not_called_none(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix())
    with pytest.raises(OutputInUse) as caught:
        refuse_existing(data.path, True, "z/zarr.json")
    assert "is not a dataset" not in str(caught.value)
    assert "is not of the kind that replaces it (z/zarr.json is missing)" in str(caught.value)
    refuse_existing(data.path, True, "x/manifest.json")


def test_a_second_writer_is_told(tmp_path):
    with staged(tmp_path / "a"):
        with (
            pytest.raises(OutputInUse, match="another process is writing it") as caught,
            staged(tmp_path / "a"),
        ):
            pass
        assert caught.value.code == 6
    with staged(tmp_path / "a"):
        pass


def test_an_interrupted_replacement_is_put_back(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix())
    data.path.rename(tmp_path / ".a.zarr.old")
    assert open_dataset(data.path).fingerprint == data.fingerprint
    assert listing(tmp_path) == {"a.zarr"}


def test_a_replacement_that_fails_puts_the_old_one_back(tmp_path, monkeypatch):
    data, rename = stored(tmp_path / "a.zarr", matrix()), Path.rename

    def failing(self, target):
        if self.name.endswith(".partial"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(StorageError, match="Input/output error"):
        stored(data.path, matrix(seed=1), overwrite=True)
    assert open_dataset(data.path).fingerprint == data.fingerprint
    assert listing(tmp_path) == {"a.zarr"}


def test_what_a_finished_replacement_left_is_removed_by_the_next(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix())
    shutil.copytree(data.path, tmp_path / ".a.zarr.old")
    assert append(data.path, matrix(3)).rows == 53
    assert listing(tmp_path) == {"a.zarr"}


def _append_for_ever(target, started):
    while True:
        rows = open_dataset(target).rows
        append(target, matrix(5, seed=rows))
        started.set()


@pytest.mark.slow
def test_an_appending_process_killed_at_any_time_leaves_all_rows_or_those_before(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix(5, seed=0), chunk_rows=8)
    context, rng = multiprocessing.get_context("spawn"), np.random.default_rng(0)
    for _ in range(6):
        started = context.Event()
        process = context.Process(target=_append_for_ever, args=(data.path, started))
        process.start()
        assert started.wait(60)
        time.sleep(rng.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
        now = open_dataset(data.path)
        assert now.verify() == []
        assert now.rows % 5 == 0
    expected = np.concatenate([matrix(5, seed=seed) for seed in range(0, now.rows, 5)])
    np.testing.assert_array_equal(values(now), expected)
    append(data.path, matrix(1))
    assert listing(tmp_path) == {"a.zarr"}


def test_nothing_is_put_back_over_something(tmp_path):
    write_durably(tmp_path / "a/file", b"here")
    write_durably(tmp_path / ".a.old/file", b"old")
    restore_retired(tmp_path / "a")
    assert (tmp_path / "a/file").read_bytes() == b"here"


def test_sums_tell_files_apart_that_end_in_their_own_crc(tmp_path):
    from ibpdist.storage.codec import crc32c, encode

    one, two = encode(np.zeros((4, 4))), encode(np.ones((4, 4)))
    assert crc32c(one) == crc32c(two)  # the trap
    assert file_sum(one) != file_sum(two)
    assert len({file_sum(b""), file_sum(b"a"), file_sum(b"abcd"), file_sum(b"abce"), file_sum(b"xabcd")}) == 5


def test_a_place_without_a_directory(tmp_path):
    with pytest.raises(StorageError, match="does not exist: create it first"), staged(tmp_path / "no/a"):
        pass


def _race(target, seed, ready, won):
    ready.wait(60)
    try:
        stored(target, matrix(30, seed=seed))
    except OutputInUse:
        return
    won.put(seed)


def test_of_racing_writers_one_wins(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, won = context.Barrier(3), context.Queue()
    writers = [context.Process(target=_race, args=(tmp_path / "a.zarr", s, ready, won)) for s in range(3)]
    for writer in writers:
        writer.start()
    winner = won.get(timeout=60)
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert won.empty()
    data = open_dataset(tmp_path / "a.zarr")
    assert data.verify() == []
    np.testing.assert_array_equal(values(data), matrix(30, seed=winner))
    assert listing(tmp_path) == {"a.zarr"}


def _write_slowly(target, started):
    with create(target, columns=7, dtype="float64", chunk_rows=4) as writer:
        for seed in range(1000):
            writer.append(matrix(4, seed=seed))
            started.set()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_killed_writer_leaves_no_store_and_blocks_nobody(tmp_path, name):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    writer = context.Process(target=_write_slowly, args=(tmp_path / "a.zarr", started))
    writer.start()
    assert started.wait(60)
    os.kill(writer.pid, getattr(signal, name))
    writer.join(60)
    assert not (tmp_path / "a.zarr").exists()
    with pytest.raises(StorageError, match="does not exist"):
        open_dataset(tmp_path / "a.zarr")
    data = stored(tmp_path / "a.zarr", matrix(10, seed=99))
    assert data.verify() == []
    assert listing(tmp_path) == {"a.zarr"}
