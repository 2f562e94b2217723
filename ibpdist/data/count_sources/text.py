"""The numbers of a text file of counts, plain or gzipped, some megabytes at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.count_sources._base import refuse_line
from ibpdist.kernels import whole_numbers as found

BLOCK = 4 << 20
"""Bytes that are read at once."""
WRONG = {
    found.NO_NUMBER: "is no whole number",
    found.NEGATIVE: "is negative: counts and numbers of rows and words are not",
    found.FRACTION: "is no whole number: counts are whole",
    found.TOO_LARGE: "is too large",
}


class Numbers(NamedTuple):
    """Numbers of whole lines, and the line of each, counted from one."""

    values: NDArray[np.int64]
    lines: NDArray[np.int64]


@dataclass(frozen=True)
class TextFile:
    """A file of lines of whole numbers."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def first(self, count: int) -> list[str]:
        """At most `count` lines from the start."""
        with self._open() as file:
            lines = [file.readline(1 << 16) for _ in range(count)]
        return [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines if line]

    def numbers(self, skip: int = 0) -> Iterator[Numbers]:
        """All numbers behind the first `skip` lines."""
        line = skip + 1
        for text in self._texts(skip):
            bytes_ = np.frombuffer(text, np.uint8)
            values, lines = np.empty((2, bytes_.size // 2 + 1), np.int64)
            size, wrong, at = found.read_numbers(bytes_, values, lines)
            if wrong != found.FINE:
                number = line + text.count(b"\n", 0, at)
                raise refuse_line(self.name, number, WRONG[wrong], _word(text, at))
            yield Numbers(values[:size], lines[:size] + line)
            line += text.count(b"\n")

    def _texts(self, skip: int) -> Iterator[bytes]:
        """Parts of the file that end with a line."""
        try:
            with self._open() as file:
                for _ in range(skip):
                    file.readline()
                rest = b""
                while block := file.read(BLOCK):
                    end = block.rfind(b"\n") + 1
                    if end:
                        yield rest + block[:end]
                        rest = block[end:]
                    else:
                        rest += block
                if rest:
                    yield rest + b"\n"
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"is damaged or cut short: {error}", file=self.name, kind="format") from None

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self.path.name.endswith(".gz"):
            with gzip.open(self.path, "rb") as packed:
                yield cast("BinaryIO", packed)
        else:
            with self.path.open("rb") as plain:
                yield plain


def _word(text: bytes, at: int) -> str:
    """The word of a text that begins at a place."""
    return text[at : at + 80].split()[0].decode("utf-8", "replace") if text[at : at + 80].split() else ""
