"""Text tables: CSV and TSV, plain or gzipped, read strictly and in bounded memory.

Blocks of lines go through NumPy's parser. A block it refuses, or that holds anything unusual
(words, huge integers), is read again cell by cell, which finds what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.labels import Labels
from ibpdist.data.sources import cells
from ibpdist.data.sources._base import Block
from ibpdist.data.sources.head import Head, read_head
from ibpdist.data.sources.lines import Lines, split

_BLOCK_CELLS = 1 << 18
_BLOCK_LINES = 1 << 14
_LABEL_LENGTH = 1000


class CsvTable:
    """A text table; its number of rows is known only after reading it."""

    rows = None
    dtype = np.dtype(np.float64)

    def __init__(
        self,
        path: Path,
        *,
        delimiter: str | None = None,
        header: bool | None = None,
        label_column: str | int | None = None,
        covariates: Sequence[str] = (),
    ) -> None:
        self._lines = Lines(path)
        self.name = self._lines.name
        self._head: Head = read_head(self._lines, delimiter, header, label_column, tuple(covariates))
        self._numeric: dict[str, bool] = {}

    @property
    def columns(self) -> int:
        return len(self._head.values)

    @property
    def notes(self) -> list[str]:
        return list(self._head.notes)

    def column_coords(self) -> dict[str, Labels]:
        names = self._head.names
        return {"column": np.array([names[at] for at in self._head.values])} if names else {}

    def blocks(self, rows: int) -> Iterator[Block]:
        step = max(1, min(rows, _BLOCK_LINES, _BLOCK_CELLS // self.columns))
        row, seen_last = 0, False
        for lines in self._groups(step):
            block = self._block(lines, row)
            seen_last = seen_last or not np.isnan(block.x[:, -1]).all()
            yield block
            row += len(lines)
        if not row:
            raise InputError("has no rows, only a header", file=self.name, kind="empty")
        if not seen_last and self.columns > 1 and not self._head.names:
            raise InputError(
                "every line ends with a delimiter, which makes an empty last column: remove it",
                file=self.name,
                column=self.columns - 1,
                kind="ragged",
            )

    def _groups(self, size: int) -> Iterator[list[str]]:
        """Groups of lines after the header, without the empty lines at the end of the file."""
        row, blank = 0, False
        for lines in self._lines.groups(size, skip=1 if self._head.names else 0):
            if blank and any(not line.isspace() for line in lines):
                raise self._where(row).error("is an empty line: remove it", kind="ragged")
            while self._head.width > 1 and lines and lines[-1].isspace():
                lines.pop()
                blank = True
            if lines:
                yield lines
            row += len(lines)

    def _block(self, lines: list[str], row: int) -> Block:
        head = self._head
        extra = (*head.labels, *head.covariates)
        x, delimiters = None, head.width - 1
        if all('"' not in line and line.count(head.delimiter) == delimiters for line in lines):
            x = cells.numbers(lines, head.delimiter, head.values)
        if x is not None:
            cut = max(extra, default=-1) + 1
            short = [line.rstrip("\r\n").split(head.delimiter, cut) for line in lines] if extra else []
            return Block(x, self._coords(short, row))
        table = [self._fields(line, row + i) for i, line in enumerate(lines)]
        bare = [head.delimiter.join(fields[at] for at in head.values) for fields in table]
        x = cells.numbers(bare, head.delimiter, None)
        whole = x is not None and x.shape[1] == self.columns  # not so when quotes hid a delimiter
        return Block(x if x is not None and whole else self._exact(table, row), self._coords(table, row))

    def _fields(self, line: str, row: int) -> list[str]:
        fields = split(line, self._head.delimiter, self._where(row))
        if len(fields) != self._head.width:
            raise self._where(row).error(
                f"has {len(fields)} cells, expected {self._head.width}", kind="ragged"
            )
        return fields

    def _exact(self, table: list[list[str]], row: int) -> NDArray[np.float64]:
        """Values cell by cell; the first bad one is an error that counts the others of the block."""
        x = np.empty((len(table), self.columns))
        bad: list[tuple[int, int, str, str]] = []
        for i, fields in enumerate(table):
            for j, at in enumerate(self._head.values):
                x[i, j], problem = cells.parse(fields[at], self._head.delimiter)
                if problem:
                    bad.append((i, at, fields[at], problem))
        if bad:
            i, at, text, problem = bad[0]
            more = f" (and {len(bad) - 1} more in this block of rows)" if len(bad) > 1 else ""
            column = self._head.names[at] if self._head.names else at
            raise self._where(row + i).error(problem + more, column=column, value=text[:80], kind="cell")
        return x

    def _coords(self, table: list[list[str]], row: int) -> dict[str, Labels]:
        head, names = self._head, self._head.names
        coords: dict[str, Labels] = {}
        for at in head.labels:
            coords["row"] = self._texts([fields[at] for fields in table], row)
        for at in head.covariates:
            texts = [fields[at] for fields in table]
            coords[names[at]] = self._covariate(names[at], texts, row)
        return coords

    def _covariate(self, name: str, texts: list[str], row: int) -> Labels:
        """Numbers when the first block has only numbers and missing cells, text otherwise."""
        parsed = [cells.parse(text, self._head.delimiter) for text in texts]
        clean = not any(problem for _, problem in parsed)
        if not self._numeric.setdefault(name, clean):
            return self._texts(texts, row)
        for i, (_, problem) in enumerate(parsed):
            if problem:
                raise self._where(row + i).error(problem, column=name, value=texts[i][:80], kind="cell")
        return np.array([value for value, _ in parsed])

    def _texts(self, texts: list[str], row: int) -> Labels:
        """Labels of bounded length: NumPy gives each the space of the longest."""
        for i, text in enumerate(texts):
            if len(text) > _LABEL_LENGTH:
                reason = f"is a label of more than {_LABEL_LENGTH} characters: shorten it"
                raise self._where(row + i).error(reason, value=text[:40], kind="labels")
        return np.array(texts)

    def _where(self, row: int) -> cells.Where:
        return cells.Where(self.name, row, row + 1 + (1 if self._head.names else 0))
