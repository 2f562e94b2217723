"""Arrays of one dim in equal chunks, written and read from front to back: what rows of counts are stored in.

The bytes are those of Zarr version 3 (storage/codec.py); the last chunk is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.reader import damaged, load_file
from ibpdist.storage import codec, files

Array = NDArray[Any]
Listed = Mapping[str, tuple[int, str]]
"""Bytes and check sum of stored files by name."""


def chunk_name(array: str, index: int) -> str:
    """The file of a chunk, relative to the store."""
    return f"{array}/c/{index}"


@dataclass
class FlatWriter:
    """Collects the values of an array and writes each chunk of `length` when it is full."""

    store: Path
    name: str
    length: int
    dtype: np.dtype[Any]
    size: int = 0
    """Values so far."""
    sums: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Bytes and check sum of the files so far."""
    _waiting: list[Array] = field(default_factory=list)
    _held: int = 0

    def append(self, values: Array) -> None:
        taken = 0
        while taken < len(values):
            stop = min(len(values), taken + self.length - self._held)
            self._waiting.append(np.array(values[taken:stop], self.dtype))
            self._held += stop - taken
            self.size += stop - taken
            taken = stop
            if self._held == self.length:
                self._flush()

    def resume(self, store: Path, listed: Listed, reader: FlatReader, size: int) -> None:
        """Begin with the first `size` values of a stored array, whose full chunks are linked."""
        full = size // self.length
        for index in range(full):
            name = chunk_name(self.name, index)
            files.link(store / name, self.store / name)
            self.sums[name] = listed[name]
        self.size = full * self.length
        self.append(reader.read(self.size, size))

    def finish(self, group: Any, dim: str) -> None:
        """Write the rest, and what Zarr is told of the array."""
        if self._held:
            self._flush()
        group.create_array(
            self.name,
            shape=(self.size,),
            chunks=(self.length,),
            dtype=self.dtype,
            compressors=codec.zarr_codecs(self.dtype.itemsize),
            fill_value=0,
            dimension_names=[dim],
            config={"write_empty_chunks": True},
        )

    def _flush(self) -> None:
        full = np.zeros(self.length, self.dtype)
        full[: self._held] = np.concatenate(self._waiting)
        data, name = codec.encode(full), chunk_name(self.name, (self.size - 1) // self.length)
        files.write_durably(self.store / name, data)
        self.sums[name] = (len(data), files.file_sum(data))
        self._waiting, self._held = [], 0


@dataclass
class FlatReader:
    """Reads parts of an array; the chunk that was read last is kept, since parts adjoin."""

    store: Path
    name: str
    length: int
    dtype: np.dtype[Any]
    listed: Listed
    _last: tuple[int, Array] | None = None

    def read(self, start: int, stop: int) -> Array:
        found = list(self._parts(start, stop))
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, self.dtype), *found])

    def _parts(self, start: int, stop: int) -> Iterator[Array]:
        for index in range(start // self.length, -(-stop // self.length)):
            first = index * self.length
            yield self._chunk(index)[max(start - first, 0) : stop - first]

    def _chunk(self, index: int) -> Array:
        last = self._last
        if last is not None and last[0] == index:
            return last[1]
        name = chunk_name(self.name, index)
        size, total = self.listed[name]
        payload, trailer = load_file(self.store, name, size)
        if trailer.hex() != total[-2 * codec.TRAILER :]:
            raise damaged(self.store, name, "the check sum is not that of the manifest")
        values = np.empty(self.length, self.dtype)
        try:
            codec.decode(payload, trailer, values)
        except codec.Damaged as error:
            raise damaged(self.store, name, str(error)) from None
        self._last = index, values
        return values
