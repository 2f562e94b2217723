"""What every format of counts gives to `ingest`: rows by their cells that are not zero, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.base.words import counted
from ibpdist.data.entries import Entries

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class CountBlock:
    """Some rows, and their coordinates by name."""

    entries: Entries
    row_coords: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@runtime_checkable
class CountTable(Protocol):
    """A source of counts that can be read from the start as often as needed."""

    @property
    def name(self) -> str:
        """What errors and the store call it: a base name, never a path."""
        ...

    @property
    def rows(self) -> int | None:
        """Number of rows, None when only reading tells."""
        ...

    @property
    def columns(self) -> int: ...

    @property
    def notes(self) -> list[str]:
        """What was assumed or done, and should be told to the user; complete when all has been read."""
        ...

    def column_coords(self) -> dict[str, NDArray[Any]]: ...

    def count_blocks(self) -> Iterator[CountBlock]:
        """All rows in order."""
        ...


@dataclass
class RowBuilder:
    """Makes rows of entries that come with the number of their row, in rising order of rows.

    Entries of one cell are added, and counted in `repeated`; those of zero tokens are left out. `rows` is how
    many rows there are in all, None when the last entry tells.
    """

    name: str
    columns: int
    rows: int | None = None
    repeated: int = 0
    _next: int = 0
    """The first row that is not given out yet."""
    _left: tuple[Whole, Whole, Whole] | None = None

    def add(self, rows: Whole, columns: Whole, counts: Whole) -> Entries | None:
        """The rows that are complete with these entries, if there are some."""
        if self._left is not None:
            rows, columns, counts = (
                np.concatenate([old, new])
                for old, new in zip(self._left, (rows, columns, counts), strict=True)
            )
        if not rows.size:
            return None
        last = rows[-1]
        complete = int(np.searchsorted(rows, last))
        self._left = rows[complete:], columns[complete:], counts[complete:]
        return self._made(rows[:complete], columns[:complete], counts[:complete], int(last))

    def finish(self) -> Entries | None:
        """The rest, with rows without entries at the end."""
        none = np.zeros(0, np.int64)
        rows, columns, counts = self._left or (none, none, none)
        self._left = None
        end = int(rows[-1]) + 1 if rows.size else self._next
        return self._made(rows, columns, counts, max(end, self.rows or 0))

    def note(self) -> list[str]:
        """What was done to entries of the same cell."""
        if not self.repeated:
            return []
        return [f"{counted(self.repeated, 'entry')} of a cell that had one before: their counts are added"]

    def _made(self, rows: Whole, columns: Whole, counts: Whole, stop: int) -> Entries | None:
        """Rows from the next one up to `stop`."""
        first, self._next = self._next, stop
        if stop == first:
            return None
        keys = (rows - first) * self.columns + columns
        if keys.size and not (np.diff(keys) > 0).all():
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
            new = np.concatenate([[True], np.diff(keys) > 0])
            self.repeated += int((~new).sum())
            counts = np.add.reduceat(counts, np.flatnonzero(new))
            keys = keys[new]
        some = counts > 0
        keys, counts = keys[some], counts[some]
        lengths = np.bincount(keys // self.columns, minlength=stop - first)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return Entries(starts, (keys % self.columns).astype(np.int32), counts)


def blocks_of(parts: Iterator[Entries | None]) -> Iterator[CountBlock]:
    """Blocks of the parts that have rows."""
    return (CountBlock(part) for part in parts if part is not None and part.rows)


def refuse_line(name: str, line: int, reason: str, value: str = "") -> InputError:
    """The error of a line of a text file, counted from one."""
    return InputError(f"line {line}: {reason}", file=name, value=value or None, kind="format")
