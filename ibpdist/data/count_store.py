"""Counts on disk: `NAME.zarr`, Zarr v3, rows by their cells that are not zero; opens with xarray.open_zarr.

A chunk is a run of rows that is about as much work as the others (layout.py). The arrays
(count_writer.py) have equal chunks of their own, of which rows of a chunk touch two at most.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import StorageError
from ibpdist.data import layout
from ibpdist.data._base import Chunk, CountChunk
from ibpdist.data.count_writer import COLUMNS, COUNTS, LABELLED, LENGTHS
from ibpdist.data.entries import Entries
from ibpdist.data.flat import FlatReader
from ibpdist.data.labels import Labels, read_labels
from ibpdist.data.store import Dataset, check_file


class CountDataset(Dataset):
    """A store of counts that is read chunk by chunk; a `Source`."""

    def _open(self) -> None:
        self._arrays = {name: self._array(name) for name in (COLUMNS, COUNTS, LENGTHS)}
        known = self.manifest
        sound = len(known.chunks) == len(known.row_stops) == len(known.entry_stops)
        if not sound or known.row_stops[-1] != known.rows or min(np.diff((0, *known.row_stops))) < 1:
            raise StorageError(f"{self.path}: the manifest does not fit its chunks: ingest again")

    def _array(self, name: str) -> FlatReader:
        check_file(self.path, "zarr.json", self.manifest)
        check_file(self.path, f"{name}/zarr.json", self.manifest)
        content = json.loads((self.path / name / "zarr.json").read_bytes())
        size = self.manifest.rows if name == LENGTHS else self.manifest.entry_stops[-1]
        (length,) = content["chunk_grid"]["configuration"]["chunk_shape"]
        if content["shape"] != [size] or length > layout.MOST_ENTRIES:
            raise StorageError(f"{self.path}: {name}/zarr.json and the manifest tell different shapes")
        return FlatReader(self.path, name, length, np.dtype(content["data_type"]), self.manifest.files)

    @property
    def chunk_rows(self) -> int:
        """The most rows of a chunk."""
        return self.manifest.chunk_rows

    @property
    def all_entries(self) -> int:
        """Cells that are not zero."""
        return self.manifest.entry_stops[-1]

    @property
    def largest_chunk(self) -> int:
        """The most entries of a chunk."""
        return int(max(np.diff((0, *self.manifest.entry_stops))))

    def bounds(self, index: int) -> tuple[int, int]:
        return _bounds(self.manifest.row_stops, index)

    def read(self, index: int) -> Chunk:
        return CountChunk(index, self.bounds(index)[0], self.entries(index), self.columns, self.dtype)

    def read_into(self, index: int, buffer: NDArray[Any]) -> Chunk:
        """Rows of counts need no buffer."""
        return self.read(index)

    def reader(self, name: str) -> FlatReader:
        """What reads one of the arrays."""
        return self._arrays[name]

    def entries(self, index: int) -> Entries:
        """The cells of a chunk that are not zero."""
        rows, cells = self.bounds(index), _bounds(self.manifest.entry_stops, index)
        with self._unchanged():
            lengths = self._arrays[LENGTHS].read(*rows)
            columns, counts = (self._arrays[name].read(*cells) for name in (COLUMNS, COUNTS))
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return Entries(starts, columns.astype(np.int32), counts.astype(np.int64))

    def row_coords(self, index: int) -> dict[str, Labels]:
        start, stop = self.bounds(index)
        names = self.attributes["row_coords"]
        with self._unchanged():
            for name in names:
                for part in range(start // LABELLED, -(-stop // LABELLED)):
                    check_file(self.path, f"{name}/c/{part}", self.manifest)
        return {name: read_labels(self._group[name], start, stop) for name in names}

    def content_hash(self, index: int) -> str:
        entries = self.entries(index)
        return layout.counts_hash(np.diff(entries.starts), entries.columns, entries.counts)

    def chunk_file(self, index: int) -> str:
        return f"{COUNTS}, chunk {index}"

    def fingerprint_of(self, hashes: Sequence[str], labels: Sequence[str]) -> str:
        return layout.counts_fingerprint(self.rows, self.columns, self.manifest.row_stops, hashes, labels)


def _bounds(stops: Sequence[int], index: int) -> tuple[int, int]:
    """Where a chunk begins and ends."""
    if not 0 <= index < len(stops):
        raise IndexError(f"chunk {index} of {len(stops)}")
    return (stops[index - 1] if index else 0), stops[index]
