"""Documents as LDA-C has them: a line for each, `number word:count word:count ...`, words from zero."""

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
class LdaC:
    """A file of documents, with its vocabulary, a word a line, if there is one; without it the file is read
    once to know the number of words."""

    path: Path
    words: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)
    rows: int | None = None

    def __post_init__(self) -> None:
        self._file = TextFile(self.path)
        self.columns = len(self.words) if self.words is not None else self._largest() + 1
        if not self.columns:
            raise InputError("has no words", file=self.name, kind="empty")

    @property
    def name(self) -> str:
        return self.path.name

    def column_coords(self) -> dict[str, NDArray[Any]]:
        return {} if self.words is None else {"column": self.words}

    def count_blocks(self) -> Iterator[CountBlock]:
        return blocks_of(self._parts())

    def _parts(self) -> Iterator[Entries | None]:
        builder, begun = RowBuilder(self.name, self.columns), 0
        for numbers in self._file.numbers():
            rows, columns, counts, documents = self._read(numbers)
            wrong = np.flatnonzero(columns >= self.columns)
            if wrong.size:
                at = int(wrong[0])
                line = int(np.unique(numbers.lines)[rows[at]])
                way = f"words are counted from 0 to {self.columns - 1:,}"
                raise refuse_line(self.name, line, f"there is no such word: {way}", str(columns[at]))
            builder.rows = begun + documents
            yield builder.add(rows + begun, columns, counts)
            begun += documents
        yield builder.finish()
        self.notes = builder.note()

    def _read(self, numbers: Numbers) -> tuple[Whole, Whole, Whole, int]:
        """Row, column and count of each entry of whole lines, and how many lines there are."""
        values, lines = numbers
        known, first, sizes = np.unique(lines, return_index=True, return_counts=True)
        wrong = np.flatnonzero(sizes != 2 * values[first] + 1)
        if wrong.size:
            at = int(wrong[0])
            held = (sizes[at] - 1) // 2
            reason = f"promises {values[first[at]]} words and has {held}"
            raise refuse_line(self.name, int(known[at]), reason)
        pairs = np.delete(values, first).reshape(-1, 2)
        return np.repeat(np.arange(len(known)), values[first]), pairs[:, 0], pairs[:, 1], len(known)

    def _largest(self) -> int:
        """The largest number of a word."""
        found = -1
        for numbers in self._file.numbers():
            _, columns, _, _ = self._read(numbers)
            found = max(found, int(columns.max(initial=-1)))
        return found
