"""The disk fails, or the process ends, at any operation: old or new is left, and the run goes on."""

import errno
import os
import shutil
import subprocess

import pytest

from ibpdist.base.errors import IbpError, StorageError
from ibpdist.campaigns.verify import verify
from tests.support.compare import assert_same_result
from tests.support.failing import OPERATIONS, Crash, Failing
from tests.support.logs import objectives
from tests.support.toy import blobs, save_blobs, toy_fit, toy_spec

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600), pytest.mark.usefixtures("save_whenever_due")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    spec = toy_spec(save_blobs(folder / "x.npy", blobs(rows=20)), steps=4, checkpoint=1)
    return spec, toy_fit(folder / "run", spec)


def assert_same(one, other):
    assert objectives(one) == objectives(other)
    assert_same_result(one, other)
    assert verify(other) == []
    assert not list(other.rglob("*.partial"))


def failures(path, spec, failure, monkeypatch, stride):
    """Outcome of runs that fail at operation 1, 2, 3, ..., later at every few, until one does not."""
    for at in [*range(1, 30), *range(30, 600, stride)]:
        shutil.rmtree(path, ignore_errors=True)
        failing = Failing(at, failure)
        with monkeypatch.context() as patch:
            for home, name in OPERATIONS:
                patch.setattr(home, name, failing.wrap(getattr(home, name)))
            try:
                toy_fit(path, spec)
            except (IbpError, OSError, Crash) as error:
                yield at, error
                continue
        if failing.seen < at:
            return
        yield at, None
    raise AssertionError("never succeeded")


def test_a_crash_at_every_operation(plain, tmp_path, monkeypatch):
    spec, truth = plain
    crashes = 0
    for at, error in failures(tmp_path / "run", spec, Crash, monkeypatch, 3):
        assert isinstance(error, Crash), at
        crashes += 1
        toy_fit(tmp_path / "run", spec)
        assert_same(truth, tmp_path / "run")
    assert crashes > 35


def full():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_error_of_the_disk_at_every_operation(plain, tmp_path, monkeypatch):
    spec, truth = plain
    errors = 0
    for at, error in failures(tmp_path / "run", spec, full, monkeypatch, 7):
        assert error is None or isinstance(error, StorageError), (at, error)
        errors += error is not None
        if error is not None:
            toy_fit(tmp_path / "run", spec)
        assert_same(truth, tmp_path / "run")
    assert errors > 30


def test_a_full_disk(plain, tmp_path):
    """A file system of 200 kB in memory, if this machine allows one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True
    )
    if made.returncode:
        pytest.skip("mount: not allowed to mount a tmpfs here")
    try:
        spec, truth = plain
        filler = disk / "filler"
        filler.write_bytes(b"x" * 120_000)
        with pytest.raises(StorageError, match="No space left on device"):
            toy_fit(disk / "run", spec)
        filler.unlink()
        subprocess.run(["mount", "-o", "remount,size=10M", str(disk)], check=True)
        toy_fit(disk / "run", spec)
        assert_same(truth, disk / "run")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_cannot_be_written(plain, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    spec, _ = plain
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="Permission denied; choose a place that can be written"):
            toy_fit(tmp_path / "run", spec)
    finally:
        tmp_path.chmod(0o700)
