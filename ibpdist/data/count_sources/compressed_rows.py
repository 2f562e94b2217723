"""Compressed sparse rows, read part by part: npz files of scipy, and what else is stored so."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.count_sources._base import CountBlock, RowBuilder, blocks_of
from ibpdist.data.entries import Entries

PART, ROWS = 1 << 19, 1 << 16
"""Entries, and starts of rows, that are read at once."""
RowColumn = Callable[[int, int], NDArray[Any]]
"""Reads the values of some adjoining rows."""


class Stream(Protocol):
    """An array that is read from front to back."""

    def take(self, count: int) -> NDArray[Any]:
        """The next values, fewer at the end."""
        ...


@dataclass
class CompressedRows:
    """Rows of entries: `starts`, `columns_of`, `counts_of` open the arrays from their start."""

    name: str
    rows: int
    columns: int
    open_parts: Any
    """() -> (starts, columns, counts) as streams."""
    words: NDArray[Any] | None = None
    beside: Mapping[str, RowColumn] = field(default_factory=dict)
    """Labels and covariates of rows by name."""
    notes: list[str] = field(default_factory=list)

    def column_coords(self) -> dict[str, NDArray[Any]]:
        return {} if self.words is None else {"column": self.words}

    def count_blocks(self) -> Iterator[CountBlock]:
        done = 0
        for block in blocks_of(self._parts()):
            stop = done + block.entries.rows
            yield CountBlock(block.entries, {name: read(done, stop) for name, read in self.beside.items()})
            done = stop

    def _parts(self) -> Iterator[Entries | None]:
        builder = RowBuilder(self.name, self.columns, self.rows)
        starts, columns, counts = self.open_parts()
        last, row = int(starts.take(1).sum()), 0
        sound = last == 0
        while sound and (ends := _whole(starts.take(ROWS))).size:
            lengths = np.diff(ends, prepend=last)
            sound = bool((lengths >= 0).all())
            if sound:
                yield from self._rows(builder, row, lengths, columns, counts)
            last, row = int(ends[-1]), row + ends.size
        if not sound or row != self.rows or columns.take(1).size:
            raise self._damaged("its starts do not fit its entries")
        yield builder.finish()
        self.notes = builder.note()

    def _rows(
        self, builder: RowBuilder, first: int, lengths: NDArray[np.int64], columns: Stream, counts: Stream
    ) -> Iterator[Entries | None]:
        """Rows from `first` on with `lengths` (row) entries."""
        ends, done = np.cumsum(lengths), 0
        while done < ends[-1]:
            given = columns.take(min(PART, int(ends[-1]) - done))
            values = counts.take(given.size)
            if not given.size:
                raise self._damaged("its starts do not fit its entries")
            rows = first + np.searchsorted(ends, np.arange(done, done + given.size), side="right")
            self._refuse(given, values, rows)
            yield builder.add(rows, _whole(given), _whole(values))
            done += given.size

    def _damaged(self, reason: str) -> InputError:
        return InputError(f"is damaged: {reason}", file=self.name, kind="format")

    def _refuse(self, columns: NDArray[Any], counts: NDArray[Any], rows: NDArray[np.int64]) -> None:
        if columns.size != counts.size:
            raise self._damaged("more columns than counts")
        outside = (columns < 0) | (columns >= self.columns)
        with np.errstate(invalid="ignore"):
            wrong = ~(counts >= 0) | (counts != np.floor(counts)) | ~np.isfinite(counts)
        reasons = (
            (outside, "there is no such column"),
            (wrong, "is no count: expected a whole number of at least 0"),
        )
        for which, reason in reasons:
            if which.any():
                at = int(np.flatnonzero(which)[0])
                shown = f"{(columns if which is outside else counts)[at]:g}"
                place = int(rows[at]), int(columns[at])
                raise InputError(reason, file=self.name, row=place[0], column=place[1], value=shown)


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    return values.astype(np.int64)


@dataclass
class Member:
    """An array in an npz file."""

    file: BinaryIO
    dtype: np.dtype[Any]
    left: int

    @classmethod
    def of(cls, path: Path, name: str) -> Member:
        held = zipfile.ZipFile(path)
        file = cast("BinaryIO", held.open(f"{name}.npy"))
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
        return cls(file, dtype, int(np.prod(shape)))

    def take(self, count: int) -> NDArray[Any]:
        size = min(count, self.left)
        self.left -= size
        data = self.file.read(size * self.dtype.itemsize)
        return np.frombuffer(data, self.dtype, len(data) // self.dtype.itemsize)


def is_sparse_npz(path: Path) -> bool:
    """Whether an npz file is one of scipy's."""
    try:
        with zipfile.ZipFile(path) as held:
            return {"indptr.npy", "format.npy", "shape.npy"} <= set(held.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def sparse_npz(path: Path, words: NDArray[Any] | None = None) -> CompressedRows:
    """A matrix that `scipy.sparse.save_npz` wrote."""
    kind = bytes(Member.of(path, "format").take(1)[0]).decode()
    if kind != "csr":
        raise UsageError(f"{path.name}: is in the format {kind}: save it as csr, matrix.tocsr()")
    rows, columns = (int(size) for size in Member.of(path, "shape").take(2))

    def parts() -> tuple[Stream, Stream, Stream]:
        return Member.of(path, "indptr"), Member.of(path, "indices"), Member.of(path, "data")

    return CompressedRows(path.name, rows, columns, parts, words)
