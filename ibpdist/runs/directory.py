"""A run on disk: RUN/ is the truth, whatever happens to the processes that work on it.

run.json       schema, a number used once, hash of the spec, what the data and versions were
spec.yaml      the fit in full
lock           names the process that writes, while it does
events.jsonl   what happened, numbered
params/        parameters after each step
checkpoints/   row states and parameters after every few steps
result.zarr    the result, complete from the moment it has this name; result.json its hashes
heldout.json   held-out scores, once there are any
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.base.words import OVERWRITE
from ibpdist.engine.checkpoint import Checkpoints
from ibpdist.engine.history import RunHistory
from ibpdist.storage import events, records, sealed
from ibpdist.storage.events import Events
from ibpdist.storage.lock import Lock
from ibpdist.storage.partial_files import clean

log = logging.getLogger("ibpdist")
SCHEMA = 1
_BEGINNINGS = {"lock", "spec.yaml", "params", "checkpoints", "data.zarr"}
"""What a run that was killed while it was made may hold; it is made again."""
Prepare = Callable[[], dict[str, Any]]


class RunDirectory:
    """A run that this process writes and `close` unlocks."""

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path, self._lock = path, lock
        self.history = RunHistory(path)
        self.checkpoints = Checkpoints(path)
        self.identity = identity(path)
        self.events = Events(path / "events.jsonl")

    @classmethod
    def create(cls, path: Path, spec: str, prepare: Prepare, *, overwrite: bool = False) -> RunDirectory:
        """Make a run; `spec` is its YAML. An existing one is refused unless `overwrite`.

        `prepare` puts into the folder what the run needs and gives facts for `run.json`, which is
        written last: without it a folder is not a run.
        """
        new = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise OutputInUse(f"{path}: exists and is a file; choose another place") from None
        except OSError as error:
            raise records.storage_error(path, error) from error
        lock = _locked(path, new)
        try:
            with records.storage_errors(path):
                _make_room(path, overwrite)
                _found(path, spec, prepare)
                return cls(path, lock)
        except BaseException:
            lock.release()
            if new:
                shutil.rmtree(path, ignore_errors=True)
            raise

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open an existing run to continue it."""
        identity(path)
        lock = Lock(path / "lock")
        try:
            clean(path)
            return cls(path, lock)
        except BaseException:
            lock.release()
            raise

    @property
    def nonce(self) -> str:
        return str(self.identity["nonce"])

    def tell(self, sentence: str) -> None:
        """Add a notice to the log of the run, and print it."""
        self.events.add("notice", text=sentence)
        log.warning(sentence)

    def has_steps(self) -> bool:
        """Whether any work was done in this run or in one of its restarts."""
        logs = [self.path / "events.jsonl", *self.path.glob("restarts/*/events.jsonl")]
        return any(event["event"] == "step" for log in logs for event in events.read(log))

    def close(self) -> None:
        """Unlock the run; removes partially written files after a signal or an error."""
        self.events.close()
        clean(self.path)
        self._lock.release()

    def remove(self) -> None:
        """Remove the run."""
        self.events.close()
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def identity(path: Path) -> dict[str, Any]:
    """The content of `run.json`; refuses a folder that is not a run, a newer schema, and a changed spec."""
    if not is_run(path):
        raise StorageError(f"{path}: is not a run (run.json is missing); name the directory that fit wrote")
    try:
        content: dict[str, Any] = sealed.read(path / "run.json")
        schema, digest, _ = content["schema"], content["spec"], content["nonce"]
    except (KeyError, TypeError):
        raise StorageError(f"{path / 'run.json'}: damaged: it is not that of a run") from None
    if schema > SCHEMA:
        raise StorageError(
            f"{path}: was written by a newer version (schema {schema}); this one reads {SCHEMA}"
        )
    if digest != _digest(path / "spec.yaml"):
        raise StorageError(f"{path / 'spec.yaml'}: was changed after the run began; fit again instead")
    return content


def _locked(path: Path, new: bool) -> Lock:
    """The lock of a folder; a new folder is removed when the disk has no room for the lock."""
    try:
        return Lock(path / "lock")
    except StorageError:
        if new:
            with suppress(OSError):
                path.rmdir()
        raise


def _make_room(path: Path, overwrite: bool) -> None:
    present = {entry.name for entry in path.iterdir() if entry.suffix != ".partial"}
    if present - _BEGINNINGS and not is_run(path):
        raise OutputInUse(f"{path}: exists and is not a run; choose another place")
    if is_run(path) and not overwrite:
        raise OutputInUse(f"{path}: exists already: resume it, choose another place or {OVERWRITE}")
    (path / "run.json").unlink(missing_ok=True)  # first: what is left is then no run
    for entry in path.iterdir():
        if entry.name == "lock":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _found(path: Path, spec: str, prepare: Prepare) -> None:
    (path / "params").mkdir()
    (path / "checkpoints").mkdir()
    records.replace_file(path / "spec.yaml", [spec.encode()])
    body = {"schema": SCHEMA, "nonce": secrets.token_hex(8), "spec": _digest(path / "spec.yaml"), **prepare()}
    sealed.write(path / "run.json", body)
    records.sync_folder(path)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise records.storage_error(path, error) from error
