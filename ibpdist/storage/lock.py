"""One writer for a run: a file that names its owner, held by a lock of the operating system.

The lock goes with the process that holds it, however it ends, so a file left behind by a dead
process is taken over without guessing whether that process is still alive.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.storage.records import storage_error


class Lock:
    """Held from construction until `release`; raises OutputInUse when another process holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = _acquire(path)
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps(_identity()).encode(), 0)
        except OSError as error:
            with suppress(OSError):
                self.release()
            raise storage_error(path, error) from error

    def release(self) -> None:
        """Remove the file while it is still locked, so that no process locks a file without a name."""
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        try:
            self.path.unlink(missing_ok=True)
        finally:
            os.close(handle)


def _acquire(path: Path) -> int:
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise storage_error(path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise in_use(path) from None
        except OSError as error:
            os.close(handle)
            raise StorageError(f"{path}: this file system has no locks: {error.strerror}") from error
        if _is_named(handle, path):
            return handle
        os.close(handle)  # its owner removed it between open and lock


def _is_named(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def is_held(path: Path) -> bool:
    """Whether a process holds the lock now."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def refuse_held(path: Path) -> None:
    """Say at once that a process holds the lock, before anything that takes long; it may still come to it."""
    if is_held(path):
        raise in_use(path)


def in_use(path: Path) -> OutputInUse:
    return OutputInUse(f"{path.parent}: in use by {owner(path)}; wait for it or choose another run")


def owner(path: Path) -> str:
    """The owner that a lock file names, in words."""
    try:
        named = json.loads(path.read_text())
        return f"process {named['pid']} on {named['host']} since {named['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _identity() -> dict[str, str | int]:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": f"{since} UTC"}
