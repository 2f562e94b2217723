"""Files of a store: durable writes, check sums, and the staging directory an output is built in."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.base.words import OVERWRITE
from ibpdist.storage.codec import TRAILER, crc32c


def file_sum(data: bytes) -> str:
    """Check sum of a file: crc32c of all but the last four bytes, then these four bytes.

    Files that end in their own crc32c all have the same crc32c over everything, so that sum
    would not tell two chunks apart.
    """
    return f"{crc32c(data[:-TRAILER]):08x}{data[-TRAILER:].hex()}"


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fsync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stored_files(store: Path) -> Iterator[str]:
    """Names of all files below a store, relative to it, in a fixed order."""
    for folder, folders, names in os.walk(store):
        folders.sort()
        for name in sorted(names):
            yield (Path(folder) / name).relative_to(store).as_posix()


@contextmanager
def storage_errors(what: Path) -> Iterator[None]:
    """Turn failures of the operating system into a StorageError that names the output."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: cannot be written: {error.strerror or error}") from error


def link(origin: Path, copy: Path) -> None:
    """The same file under another name, or a copy of it."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(origin, copy)
    except OSError:  # file systems without hard links
        shutil.copyfile(origin, copy)


def refuse_existing(target: Path, overwrite: bool, marker: str) -> None:
    """OutputInUse when the target exists; only something that holds `marker` may be overwritten."""
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise OutputInUse(f"{target}: exists already: choose another name or {OVERWRITE}")
    if not (target / marker).exists():
        raise OutputInUse(
            f"{target}: is not of the kind that replaces it ({marker} is missing) and is not overwritten:"
            " choose another name or remove it first"
        )


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A hidden directory next to `target` for one writer at a time; nothing is left of it afterwards.

    The directory itself is the lock (flock): a writer that dies releases it, and the next one
    clears what it left.
    """
    staging = target.with_name(f".{target.name}.partial")
    with storage_errors(target):
        if not target.parent.is_dir():
            raise StorageError(f"{target}: the directory {target.parent} does not exist: create it first")
        handle = _own(staging, target)
    try:
        with storage_errors(target):
            shutil.rmtree(_emptied(staging), ignore_errors=True)
        yield staging
    finally:
        try:
            if _is(staging, handle):
                shutil.rmtree(staging, ignore_errors=True)
        finally:
            os.close(handle)


def publish(staging: Path, target: Path, overwrite: bool) -> None:
    """Give a complete staging directory its name; what had the name before is removed."""
    for folder, _, _ in os.walk(staging):
        fsync_path(Path(folder))
    retired = _retired(target)
    try:
        if overwrite and target.exists():
            shutil.rmtree(retired, ignore_errors=True)
            target.rename(retired)
        staging.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and target.exists():
            raise OutputInUse(f"{target}: was made by another process in the meantime") from error
        restore_retired(target)
        raise
    fsync_path(target.parent)
    shutil.rmtree(retired, ignore_errors=True)


def restore_retired(target: Path) -> None:
    """Put back a store whose replacement was killed between two renames; remove it after the second.

    Only for the owner of the staging directory.
    """
    retired = _retired(target)
    if not retired.is_dir():
        return
    if os.path.lexists(target):
        shutil.rmtree(retired, ignore_errors=True)
    else:
        retired.rename(target)


def _retired(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _own(staging: Path, target: Path) -> int:
    """Handle of the locked staging directory."""
    while True:
        staging.mkdir(exist_ok=True)
        handle = os.open(staging, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise OutputInUse(f"{target}: another process is writing it: wait for it to end") from None
        if _is(staging, handle):
            return handle
        os.close(handle)  # renamed by its owner between our open and our lock


def _is(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _emptied(staging: Path) -> Path:
    """Move left-over contents of a dead writer into one folder, which is returned for removal."""
    rubbish = staging / ".rubbish"
    rubbish.mkdir(exist_ok=True)
    for entry in list(staging.iterdir()):
        if entry != rubbish:
            entry.rename(rubbish / entry.name)
    return rubbish
