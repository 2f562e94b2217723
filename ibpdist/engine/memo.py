"""What a process keeps: data chunks that came first, the newest row state of each chunk.

Losing any of it costs time, never a result.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Array, pack, unpack
from ibpdist.data._base import Chunk, Source
from ibpdist.inference._base import Local
from ibpdist.storage import records
from ibpdist.storage.codec import crc32c

ALIGNED = 16
Bytes = NDArray[np.uint8]


class PinnedData:
    """Chunks of a source; the first `limit` bytes read stay in memory.

    A scan that comes round again and again never hits a cache of the most recent chunks.
    """

    def __init__(self, source: Source, limit: int = 0) -> None:
        self.source, self.limit, self.held = source, limit, 0
        self._pinned: dict[int, Chunk] = {}

    def read(self, index: int) -> Chunk:
        if index in self._pinned:
            return self._pinned[index]
        chunk = self.source.read(index)
        if self.held + chunk.nbytes <= self.limit:
            self._pinned[index] = chunk
            self.held += chunk.nbytes
        return chunk


class Memo(Protocol[Local]):
    """The newest row state of each chunk, with its step."""

    def get(self, chunk: int) -> tuple[int, Local] | None: ...

    def put(self, chunk: int, step: int, state: Local) -> None: ...


class InMemory(Generic[Local]):
    """Row states in memory."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[int, Local]] = {}

    def get(self, chunk: int) -> tuple[int, Local] | None:
        return self._states.get(chunk)

    def put(self, chunk: int, step: int, state: Local) -> None:
        self._states[chunk] = (step, state)


@dataclass(frozen=True)
class Spilled:
    """What a process remembers of a row state that is in a file."""

    step: int
    outline: Mapping[str, Any]
    arrays: Mapping[str, tuple[str, tuple[int, ...]]]
    """dtype and shape of the arrays of the record, in the order in which they lie in the file."""
    size: int
    total: int

    def unpack(self, content: bytes) -> Any:
        """The record; its arrays are read-only views of the content."""
        arrays, at = {}, 0
        for name, (dtype, shape) in self.arrays.items():
            count = math.prod(shape)
            arrays[name] = np.frombuffer(content, dtype, count, at).reshape(shape)
            at += arrays[name].nbytes + _gap(arrays[name])
        return unpack(self.outline, arrays)


class InFiles(Generic[Local]):
    """Row states in local files, for when memory is short; a file that is not whole is a miss.

    A file holds the bare bytes of the arrays and is overwritten in place, so that it stays in the pages
    of the system. What they mean and their check sum are known to this process only, like the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[int, Spilled] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, chunk: int) -> tuple[int, Local] | None:
        held = self._held.get(chunk)
        if held is None:
            return None
        try:
            with self._file(chunk).open("rb", buffering=0) as file:
                content = file.read(held.size + 1)
        except OSError:
            return None
        if len(content) != held.size or crc32c(content) != held.total:
            return None
        return held.step, held.unpack(content)

    def put(self, chunk: int, step: int, state: Local) -> None:
        self._held.pop(chunk, None)
        outline, arrays = pack(state)
        parts = [
            part for array in arrays.values() for part in (_bytes(array), np.zeros(_gap(array), np.uint8))
        ]
        size, total = sum(map(len, parts)), 0
        for part in parts:
            total = crc32c(part, total)
        with records.storage_errors(self._file(chunk)):
            _overwrite(self._file(chunk), parts, size)
        known = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
        self._held[chunk] = Spilled(step, outline, known, size, total)

    def _file(self, chunk: int) -> Path:
        return self._folder / f"{chunk}.state"


def _gap(array: Array) -> int:
    """Bytes behind an array that let the next one begin where the processor likes it."""
    return -array.nbytes % ALIGNED


def _bytes(array: Array) -> Bytes:
    """The bytes of an array where they are; the check sum does not take a memoryview of them."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _overwrite(path: Path, parts: Sequence[Bytes], size: int) -> None:
    """Give a file the content that the parts add up to, keeping its pages."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        done = os.writev(handle, [part.data for part in parts])
        left = memoryview(b"" if done == size else b"".join(part.tobytes() for part in parts))[done:]
        while left:
            left = left[os.write(handle, left) :]
        os.ftruncate(handle, size)
    finally:
        os.close(handle)
