"""The lines of a text file, plain or gzipped: UTF-8, any line ends, of bounded length."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from ibpdist.base.errors import InputError
from ibpdist.data.sources.cells import Where

LINE_LIMIT = 256 << 20
_QUOTES = "close each in its own line, take line breaks out of cells, and write a quote inside a cell twice"


class Lines:
    """A file that can be read from its start as often as needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.name

    def groups(self, size: int, *, skip: int = 0) -> Iterator[list[str]]:
        """Lists of at most `size` lines with their line ends, without the first `skip` lines."""
        with self._open() as binary:
            text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline=None)
            read = 0

            def each() -> Iterator[str]:
                nonlocal read
                while line := text.readline(LINE_LIMIT):
                    read += 1
                    yield line

            lines = each()
            try:
                for _ in islice(lines, skip):
                    pass
                while group := list(islice(lines, size)):
                    self._refuse_odd(group, read - len(group))
                    yield group
            except UnicodeDecodeError:
                raise self._undecodable() from None
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise InputError(
                    f"is damaged or cut short after line {read}: {error}", file=self.name, kind="format"
                ) from None

    def first(self, count: int) -> list[str]:
        """At most `count` lines from the start."""
        return next(self.groups(count), [])

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self._path.name.endswith(".gz"):
            with gzip.open(self._path, "rb") as packed:
                yield cast("BinaryIO", packed)
        else:
            with self._path.open("rb") as plain:
                yield plain

    def _refuse_odd(self, group: list[str], before: int) -> None:
        for i, line in enumerate(group):
            if "\0" in line:
                place = f"line {before + i + 1} holds a NUL byte: the file is damaged or not text"
                raise InputError(place, file=self.name, value=line.strip()[:80], kind="format")
            if len(line) >= LINE_LIMIT:
                raise InputError(
                    f"line {before + i + 1} is longer than {LINE_LIMIT >> 20} MB: not read",
                    file=self.name,
                    kind="format",
                )

    def _undecodable(self) -> InputError:
        with self._open() as binary:
            for number, line in enumerate(io.BufferedReader(cast("io.RawIOBase", binary)), 1):
                try:
                    line.decode("utf-8-sig")
                except UnicodeDecodeError as error:
                    undecoded = line[error.start : error.end]
                    return InputError(
                        f"line {number} is not UTF-8 text: save the file as UTF-8",
                        file=self.name,
                        value=undecoded.decode("ascii", "backslashreplace"),
                        kind="format",
                    )
        return InputError("is not UTF-8 text: save the file as UTF-8", file=self.name, kind="format")


def split(line: str, delimiter: str, where: Where) -> list[str]:
    """The cells of a line; quotes as in RFC 4180, without line breaks inside them."""
    bare = line.rstrip("\r\n")
    if '"' not in bare:
        return bare.split(delimiter)
    try:
        return next(csv.reader([bare], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise where.error(f"has quotes that do not match ({error}): {_QUOTES}", value=bare[:80]) from None
