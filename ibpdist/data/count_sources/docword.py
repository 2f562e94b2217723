"""Bags of words as the UCI repository has them: three sizes, then lines `document word count`, from one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.count_sources._base import CountBlock, RowBuilder, Whole, blocks_of, refuse_line
from ibpdist.data.count_sources.text import Numbers, TextFile
from ibpdist.data.entries import Entries


@dataclass
class Docword:
    """A file of documents, with its vocabulary, a word a line, if there is one."""

    path: Path
    words: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._file = TextFile(self.path)
        head = [line.split() for line in self._file.first(3)]
        if len(head) < 3 or not all(len(line) == 1 and line[0].isdigit() for line in head):
            raise refuse_line(
                self.name, 1, "expected three lines with the numbers of documents, words, entries"
            )
        self.rows, self.columns, self._entries = (int(line[0]) for line in head)
        if self.words is not None and len(self.words) != self.columns:
            raise InputError(
                f"has {self.columns:,} words, the vocabulary {len(self.words):,}: give that of this file",
                file=self.name,
                kind="shape",
            )

    @property
    def name(self) -> str:
        return self.path.name

    def column_coords(self) -> dict[str, NDArray[Any]]:
        return {} if self.words is None else {"column": self.words}

    def count_blocks(self) -> Iterator[CountBlock]:
        return blocks_of(self._parts())

    def _parts(self) -> Iterator[Entries | None]:
        builder, before, entries = RowBuilder(self.name, self.columns, self.rows), 0, 0
        for numbers in self._file.numbers(skip=3):
            triples, lines = triples_of(self.name, numbers, 3)
            entries += len(triples)
            rows, columns, counts = triples.T
            self._refuse_outside(rows, columns, lines)
            refuse_fall(self.name, rows, before, lines, "document")
            before = int(rows[-1]) if rows.size else before
            yield builder.add(rows - 1, columns - 1, counts)
        if entries != self._entries:
            promised = f"its third line promises {self._entries:,}"
            raise InputError(
                f"has {entries:,} entries, {promised}: the file is cut short, or the line is wrong",
                file=self.name,
                kind="format",
            )
        yield builder.finish()
        self.notes = builder.note()

    def _refuse_outside(self, rows: Whole, columns: Whole, lines: Whole) -> None:
        for values, most, what in ((rows, self.rows, "document"), (columns, self.columns, "word")):
            wrong = np.flatnonzero((values < 1) | (values > most))
            if wrong.size:
                at = int(wrong[0])
                way = f"{what}s are counted from 1 to {most:,}"
                raise refuse_line(
                    self.name, int(lines[at]), f"there is no such {what}: {way}", str(values[at])
                )


def triples_of(name: str, numbers: Numbers, width: int) -> tuple[Whole, Whole]:
    """(line, width) the numbers of lines that all have so many, and which lines these are."""
    values, lines = numbers
    if values.size % width == 0:
        table = lines.reshape(-1, width)
        apart = table[1:, 0] != table[:-1, 0]
        if (table == table[:, :1]).all() and apart.all():
            return values.reshape(-1, width), table[:, 0]
    sizes = np.bincount(lines - lines[0])
    wrong = int(np.flatnonzero((sizes != width) & (sizes != 0))[0])
    held = f"holds {sizes[wrong]} numbers"
    raise refuse_line(name, int(lines[0]) + wrong, f"{held}, expected {width}")


def refuse_fall(name: str, rows: Whole, before: int, lines: Whole, what: str) -> None:
    """Refuse rows that do not come in rising order."""
    falls = np.flatnonzero(np.diff(rows, prepend=before) < 0)
    if falls.size:
        at = int(falls[0])
        reason = f"{what} {rows[at]} comes after a later one: sort the lines by {what}"
        raise refuse_line(name, int(lines[at]), reason)
