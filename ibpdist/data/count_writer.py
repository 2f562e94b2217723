"""Writing counts: rows by their cells that are not zero, in any portions; memory for a chunk of them.

column_of_entry, counts    (entry) the columns of a row in rising order, and its counts
entries_of_row             (row) how many cells of a row are not zero
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data import layout
from ibpdist.data.entries import Entries
from ibpdist.data.finalise import Outline, complete
from ibpdist.data.flat import FlatWriter
from ibpdist.data.labels import Labels, RowLabels, as_labels
from ibpdist.data.manifest import ChunkEntry, Manifest
from ibpdist.data.summary import ColumnSummary
from ibpdist.storage import files, zarr_groups

COLUMNS, COUNTS, LENGTHS = "column_of_entry", "counts", "entries_of_row"
LABELLED = 1 << 13
"""Rows of a chunk of labels."""
MOST = 2**31 - 1
"""The largest count that is stored."""


@dataclass
class CountSummary:
    """Sums over rows of counts, each (column)."""

    columns: int
    rows: int = 0
    total: NDArray[np.float64] = field(init=False)
    squares: NDArray[np.float64] = field(init=False)
    some: NDArray[np.int64] = field(init=False)
    """Rows whose count is not zero."""
    low: NDArray[np.float64] = field(init=False)
    high: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.total, self.squares, self.high = np.zeros((3, self.columns))
        self.some, self.low = np.zeros(self.columns, np.int64), np.full(self.columns, np.inf)

    def add(self, entries: Entries) -> None:
        counts = entries.counts.astype(np.float64)
        self.rows += entries.rows
        self.total += np.bincount(entries.columns, counts, self.columns)
        self.squares += np.bincount(entries.columns, counts**2, self.columns)
        self.some += np.bincount(entries.columns, minlength=self.columns)
        np.minimum.at(self.low, entries.columns, counts)
        np.maximum.at(self.high, entries.columns, counts)

    def of_columns(self) -> ColumnSummary:
        """As dense data have it."""
        rows = np.full(self.columns, float(self.rows))
        mean = self.total / np.maximum(rows, 1.0)
        low = np.where(self.some < self.rows, 0.0, self.low)
        return ColumnSummary(rows, mean, np.maximum(self.squares - rows * mean**2, 0.0), low, self.high)


class CountWriter:
    """Collects rows of counts into chunks that take about equal work (layout.py)."""

    layout: ClassVar[str] = "counts"

    def __init__(self, staging: Path, target: Path, outline: Outline) -> None:
        self.outline = outline
        self.fingerprint = ""
        self.chunks: list[ChunkEntry] = []
        self.row_stops: list[int] = []
        self.entry_stops: list[int] = []
        self.extras: dict[str, tuple[Sequence[str], NDArray[Any]]] = {}
        self._summary = CountSummary(outline.columns)
        self._staging, self._target = staging, target
        with files.storage_errors(target):
            self._group = zarr_groups.new_group(staging)
        self.labels = RowLabels(self._group)
        kind, self._most = np.dtype("<i4"), layout.most_entries(outline.columns)
        self._columns = FlatWriter(staging, COLUMNS, self._most, kind)
        self._counts = FlatWriter(staging, COUNTS, self._most, kind)
        self._lengths = FlatWriter(staging, LENGTHS, self._most, kind)
        self._waiting: list[tuple[Entries, Mapping[str, Labels]]] = []
        self._used = self._rows = 0
        self._before: ColumnSummary | None = None

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def summary(self) -> ColumnSummary:
        own = self._summary.of_columns()
        return own if self._before is None else self._before.joined(own)

    @property
    def sums(self) -> dict[str, tuple[int, str]]:
        return self._columns.sums | self._counts.sums | self._lengths.sums

    def append(self, entries: Entries, row_coords: Mapping[str, Any] | None = None) -> None:
        """Add rows; columns of a row rise, and counts are at least one."""
        if entries.counts.size and int(entries.counts.max()) > MOST:
            raise InputError(f"holds a count above {MOST:,}: not stored", file=self.outline.source or None)
        coords = {str(name): as_labels(values) for name, values in (row_coords or {}).items()}
        self._summary.add(entries)
        self._rows += entries.rows
        start = 0
        for stop in layout.chunk_stops(np.diff(entries.starts), self._most, self._used):
            if start or stop == 0:
                self._flush()
            self._hold(
                entries.between(start, stop), {name: values[start:stop] for name, values in coords.items()}
            )
            start = stop

    def adopt(self, data: Any, chunks: int) -> None:
        """Take over the first chunks of a store of counts, whose full files are linked."""
        known = data.manifest
        rows = known.row_stops[chunks - 1] if chunks else 0
        cells = known.entry_stops[chunks - 1] if chunks else 0
        for writer, size in ((self._columns, cells), (self._counts, cells), (self._lengths, rows)):
            writer.resume(data.path, known.files, data.reader(writer.name), size)
        for index in range(chunks):
            start, _ = data.bounds(index)
            self.labels.write(start, data.row_coords(index), LABELLED)
        self.chunks = list(known.chunks[:chunks])
        self.row_stops, self.entry_stops = list(known.row_stops[:chunks]), list(known.entry_stops[:chunks])
        self._rows = rows

    def resume_summary(self, summary: ColumnSummary, rows: int) -> None:
        """Start from a summary that has counted the first `rows` rows."""
        self._before, self._summary, self._rows = summary, CountSummary(self.outline.columns), rows

    def put(self, name: str, dims: Sequence[str], values: Any) -> None:
        """Store a small array beside the data."""
        if name in (COLUMNS, COUNTS, LENGTHS) or name in self.labels.stored or name in ("row", "column"):
            raise UsageError(f"an array {name!r} is part of every dataset: choose another name")
        self.extras[name] = (tuple(dims), np.asarray(values))

    def finish(self) -> None:
        """Write the rest, the metadata and the manifest."""
        if not self.rows:
            raise InputError("has no rows", file=self.outline.source or None, kind="empty")
        if self._waiting:
            self._flush()
        with files.storage_errors(self._target):
            self.fingerprint = complete(self._staging, self._group, self)

    def manifest(self) -> Manifest:
        """Shape and chunks."""
        hashes, labels = [chunk.hash for chunk in self.chunks], [chunk.labels for chunk in self.chunks]
        sizes = np.diff([0, *self.row_stops])
        return Manifest(
            rows=self.rows,
            columns=self.outline.columns,
            dtype=self.outline.dtype.name,
            chunk_rows=int(sizes.max()),
            fingerprint=layout.counts_fingerprint(
                self.rows, self.outline.columns, self.row_stops, hashes, labels
            ),
            chunks=tuple(self.chunks),
            row_stops=tuple(self.row_stops),
            entry_stops=tuple(self.entry_stops),
        )

    def put_values(self, group: Any, coordinates: list[str]) -> None:
        """The rest of the values, and what Zarr is told of them."""
        for writer, dim in ((self._columns, "entry"), (self._counts, "entry"), (self._lengths, "row")):
            writer.finish(group, dim)

    def _hold(self, entries: Entries, coords: Mapping[str, Labels]) -> None:
        if entries.rows:
            self._waiting.append((entries, coords))
            self._used += int(layout.room_of(np.diff(entries.starts)).sum())

    def _flush(self) -> None:
        parts = [entries for entries, _ in self._waiting]
        lengths = np.concatenate([np.diff(part.starts) for part in parts])
        columns = np.concatenate([part.columns for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        start = self.row_stops[-1] if self.row_stops else 0
        names = list(self._waiting[0][1])
        coords = {name: np.concatenate([held[name] for _, held in self._waiting]) for name in names}
        with files.storage_errors(self._target):
            stored = self.labels.write(start, coords, LABELLED)
            self._columns.append(columns)
            self._counts.append(counts)
            self._lengths.append(lengths)
        hashed = layout.counts_hash(lengths, columns, counts)
        self.chunks.append(ChunkEntry(hashed, 0, layout.labels_hash(stored)))
        self.row_stops.append(start + len(lengths))
        self.entry_stops.append((self.entry_stops[-1] if self.entry_stops else 0) + len(counts))
        self._waiting, self._used = [], 0
