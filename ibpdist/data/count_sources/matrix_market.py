"""Matrix Market files of coordinates, plain or gzipped: integer, or pattern, where every entry is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.count_sources._base import CountBlock, RowBuilder, Whole, blocks_of, refuse_line
from ibpdist.data.count_sources.docword import refuse_fall, triples_of
from ibpdist.data.count_sources.text import TextFile
from ibpdist.data.entries import Entries

COMMENTS = 10_000
"""Most lines of comments at the start."""


@dataclass
class MatrixMarket:
    """A file of entries; with `turned` its columns are rows."""

    path: Path
    words: NDArray[Any] | None = None
    turned: bool = False
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._file = TextFile(self.path)
        self._pattern = self._read_banner(self._file.first(1))
        head = self._file.first(COMMENTS)
        self._skip = next((at for at, line in enumerate(head) if at and not _comment(line)), len(head) - 1)
        sizes = head[self._skip].split()
        if len(sizes) != 3 or not all(size.isdigit() for size in sizes):
            raise refuse_line(self.name, self._skip + 1, "expected the numbers of rows, columns and entries")
        self._shape = int(sizes[0]), int(sizes[1])
        self._entries = int(sizes[2])
        if self.words is not None and len(self.words) != self.columns:
            raise InputError(
                f"has {self.columns:,} columns, the vocabulary {len(self.words):,} words", file=self.name
            )

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def rows(self) -> int:
        return self._shape[self.turned]

    @property
    def columns(self) -> int:
        return self._shape[not self.turned]

    def column_coords(self) -> dict[str, NDArray[Any]]:
        return {} if self.words is None else {"column": self.words}

    def count_blocks(self) -> Iterator[CountBlock]:
        return blocks_of(self._parts())

    def _read_banner(self, first: list[str]) -> bool:
        """Whether entries have no count; refuses what is no matrix of counts."""
        words = first[0].lower().split() if first else []
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise refuse_line(self.name, 1, "expected %%MatrixMarket matrix coordinate integer general")
        shape, kind, symmetry = words[2:]
        if shape != "coordinate":
            raise refuse_line(
                self.name, 1, f"is {shape}: expected coordinate; a dense matrix goes in as .npy"
            )
        if kind not in ("integer", "pattern", "real"):
            raise refuse_line(self.name, 1, f"holds {kind} numbers, which are no counts")
        if symmetry != "general":
            raise refuse_line(self.name, 1, f"is {symmetry}: expected general, rows and columns of their own")
        return kind == "pattern"

    def _parts(self) -> Iterator[Entries | None]:
        width, what = (2 if self._pattern else 3), "column" if self.turned else "row"
        builder, before, entries = RowBuilder(self.name, self.columns, self.rows), 0, 0
        for numbers in self._file.numbers(skip=self._skip + 1):
            table, lines = triples_of(self.name, numbers, width)
            entries += len(table)
            self._refuse_outside(table, lines)
            rows, columns = table[:, int(self.turned)], table[:, int(not self.turned)]
            refuse_fall(self.name, rows, before, lines, what)
            before = int(rows[-1]) if rows.size else before
            counts = np.ones(len(table), np.int64) if self._pattern else table[:, 2]
            yield builder.add(rows - 1, columns - 1, counts)
        if entries != self._entries:
            raise InputError(
                f"has {entries:,} entries, line {self._skip + 1} promises {self._entries:,}: the file is cut "
                "short, or the line is wrong",
                file=self.name,
                kind="format",
            )
        yield builder.finish()
        self.notes = builder.note()

    def _refuse_outside(self, table: Whole, lines: Whole) -> None:
        for place, what in ((0, "row"), (1, "column")):
            wrong = np.flatnonzero((table[:, place] < 1) | (table[:, place] > self._shape[place]))
            if wrong.size:
                at, most = int(wrong[0]), self._shape[place]
                reason = f"there is no such {what}: {what}s are counted from 1 to {most:,}"
                raise refuse_line(self.name, int(lines[at]), reason, str(table[at, place]))


def _comment(line: str) -> bool:
    return line.startswith("%") or not line.strip()
