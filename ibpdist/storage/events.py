"""The log of a run: one JSON line an event, numbered, only ever appended to.

Order is by number, never by time: clocks jump. Events of steps are flushed (they survive the
death of the process); all others wait until they are on disk, and the steps before them with them.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
import zlib
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from ibpdist.base.errors import StorageError
from ibpdist.storage.records import storage_error

Event = dict[str, Any]


class Events:
    """Append to a log; a line that a crash cut short is removed first.

    A signal may end `add` at any point and the log be used once more, to say so: then the file
    tells which number is next. Several threads may add.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = _mend(path)
        self._certain = True
        self._lock = threading.RLock()
        self._file: FileIO = path.open("ab", buffering=0)

    def add(self, kind: str, *, durable: bool = True, **facts: Any) -> None:
        with self._lock:
            self._add(kind, durable, facts)

    def _add(self, kind: str, durable: bool, facts: dict[str, Any]) -> None:
        if not self._certain:
            self._number = _mend(self._path)
        self._certain = False
        event = {"number": self._number, "event": kind, "time": round(time.time(), 3), **facts}
        line = _checked(event) + b"\n"
        try:
            written = self._file.write(line)
            if durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise storage_error(self._path, error) from error
        if written != len(line):
            raise storage_error(self._path, OSError(errno.ENOSPC, "the line was cut short"))
        self._number += 1
        self._certain = True

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> list[Event]:
    """All events; a last line without an end is ignored, anything else wrong is an error."""
    return list(_lines(path))


def trace(events: list[Event], last: int) -> dict[int, dict[str, float]]:
    """Terms by step up to `last`; a step made again after a resume counts once."""
    terms = {e["step"]: e["terms"] for e in events if e["event"] == "step" and e["step"] <= last}
    return dict(sorted(terms.items()))


def _lines(path: Path) -> Iterator[Event]:
    for number, line in enumerate(_whole(path)):
        try:
            event = json.loads(line)
            whole = _checked({name: value for name, value in event.items() if name != "crc"}) == line
        except (ValueError, AttributeError):
            whole = False
        if not whole:
            raise StorageError(f"{path}: line {number + 1} is damaged")
        if event["number"] != number:
            raise StorageError(
                f"{path}: line {number + 1} is not event {number}; lines are missing or swapped"
            )
        yield event


def _checked(event: Event) -> bytes:
    """An event as JSON, with a check sum of all the rest as its last entry."""
    text = json.dumps(event, allow_nan=True)
    return f'{text[:-1]}, "crc": {zlib.crc32(text.encode())}}}'.encode()


def _whole(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def _mend(path: Path) -> int:
    """Cut an unfinished last line; the number of the next event."""
    whole = _whole(path)
    size = sum(len(line) + 1 for line in whole)
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)
    return len(whole)
