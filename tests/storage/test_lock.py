"""One writer at a time, whatever happens to the others."""

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.storage.lock import Lock, is_held, owner

HOLD = """
import sys
from pathlib import Path
from ibpdist.storage.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
RACE = """
import sys
from pathlib import Path
from ibpdist.base.errors import OutputInUse
from ibpdist.storage.lock import Lock
sys.stdin.readline()
try:
    lock = Lock(Path(sys.argv[1]))
    print("won", flush=True)
    sys.stdin.readline()
    lock.release()
except OutputInUse:
    print("lost", flush=True)
"""


def start(code, path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, str(path)], **pipes)


def test_names_its_owner(tmp_path):
    lock = Lock(tmp_path / "lock")
    named = json.loads((tmp_path / "lock").read_text())
    assert named["pid"] == os.getpid()
    assert named["host"] == socket.gethostname()
    assert is_held(tmp_path / "lock")
    lock.release()


def test_is_removed_when_released(tmp_path):
    lock = Lock(tmp_path / "lock")
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path / "lock").release()


def test_the_same_process_cannot_take_it_twice(tmp_path):
    lock = Lock(tmp_path / "lock")
    with pytest.raises(OutputInUse, match=f"in use by process {os.getpid()} on"):
        Lock(tmp_path / "lock")
    lock.release()


def test_another_process_is_named(tmp_path):
    holder = start(HOLD, tmp_path / "lock")
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OutputInUse, match=f"process {holder.pid} on") as caught:
        Lock(tmp_path / "lock")
    assert caught.value.code == 6
    holder.communicate("")


@pytest.mark.parametrize("left", ["nothing", "another file"])
def test_a_file_that_loses_its_name_before_it_is_locked_is_not_the_lock(tmp_path, monkeypatch, left):
    """Its owner releases it between open and lock: whoever locks it then holds a file that nobody finds."""
    path, flock, calls = tmp_path / "lock", fcntl.flock, []

    def late(handle, how):
        if not calls:
            path.unlink()
            if left == "another file":
                path.touch()
        calls.append(handle)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    lock = Lock(path)
    assert len(calls) == 2, "the first file was given up"
    assert is_held(path)
    with pytest.raises(OutputInUse, match=f"process {os.getpid()} on"):
        Lock(path)
    lock.release()
    assert not path.exists()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_dead_owner_is_taken_over(tmp_path, end):
    holder = start(HOLD, tmp_path / "lock")
    holder.stdout.readline()
    holder.send_signal(end)
    holder.wait(10)
    assert (tmp_path / "lock").exists(), "it had no chance to clean up"
    assert not is_held(tmp_path / "lock")
    lock = Lock(tmp_path / "lock")
    assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
    lock.release()


def test_a_file_left_by_nobody_or_full_of_rubbish_is_no_obstacle(tmp_path):
    (tmp_path / "lock").write_bytes(b"\x00\xff" * 5000)
    lock = Lock(tmp_path / "lock")
    assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
    lock.release()


def test_an_owner_that_cannot_be_read_is_another_process(tmp_path):
    assert owner(tmp_path / "none") == "another process"
    (tmp_path / "lock").write_text("[1]")
    assert owner(tmp_path / "lock") == "another process"


@pytest.mark.slow
def test_of_many_at_once_one_wins(tmp_path):
    for race in range(5):
        (tmp_path / "lock").write_text("left by a dead process")
        racers = [start(RACE, tmp_path / "lock") for _ in range(6)]
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        outcomes = [racer.stdout.readline().strip() for racer in racers]
        for racer in racers:
            racer.communicate("done\n")
        assert sorted(outcomes) == ["lost"] * 5 + ["won"], race


@pytest.mark.parametrize("call", ["ftruncate", "pwrite"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_without_room_for_a_name(tmp_path, monkeypatch, call, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StorageError, match=f"lock: {os.strerror(number)}"):
            Lock(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []
    Lock(tmp_path / "lock").release()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        Lock(tmp_path / "none" / "lock")
