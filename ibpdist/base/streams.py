"""Standard streams whose reader may go away: what only informs never stops the work.

In `ibpdist fit ... 2>&1 | head -n 1` nobody reads the second line, and the fit goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast


class ReaderGone(OSError):
    """Nobody reads the output that a command is for, so nothing is left to do."""


class _Stream:
    """A text stream; `guard` decides what becomes of the failure of a write."""

    def __init__(self, stream: TextIO, guard: Callable[[], AbstractContextManager[Any]]) -> None:
        self._stream, self._guard = stream, guard

    def write(self, text: str) -> int:
        with self._guard():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._guard():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def informing(stream: TextIO | None) -> TextIO:
    """The stream, on which nothing fails: what cannot be written is lost. None, which Python has for a
    stream that was closed from the beginning, takes everything."""
    return cast("TextIO", _Stream(stream or _nowhere("w"), lambda: suppress(OSError)))


def inform(line: object) -> None:
    """Print a line on standard output that says something about a result, which is kept elsewhere."""
    print(line, file=informing(sys.stdout), flush=True)


@contextmanager
def guarded() -> Iterator[None]:
    """Standard error informs; on standard output a reader that is gone is a `ReaderGone`.

    Streams that were closed from the beginning get their descriptors back: else the next file that is
    opened has one of them, and gets what others write there.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stdout = cast("TextIO", _Stream(sys.stdout or _nowhere("w"), _reader_gone))
    sys.stderr = informing(sys.stderr)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in filter(None, before[1:]):
            _settle(stream)


@contextmanager
def _reader_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone("nobody reads standard output") from None


def _settle(stream: TextIO) -> None:
    """Leave nothing to write when the process ends, which would fail again and change its exit code."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError), Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def _nowhere(mode: str) -> TextIO:
    return cast("TextIO", Path(os.devnull).open(mode))
