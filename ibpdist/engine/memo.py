"""What a process keeps: data chunks that came first, the newest row state of each chunk.

Losing any of it costs time, never a result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ibpdist.algorithms._base import Local
from ibpdist.data._base import Chunk, Source
from ibpdist.errors import StorageError
from ibpdist.runs import records


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
        size = chunk.x.nbytes + (0 if chunk.observed is None else chunk.observed.nbytes)
        if self.held + size <= self.limit:
            self._pinned[index] = chunk
            self.held += size
        return chunk


class Memo(Protocol):
    """The newest row state of each chunk, with its step."""

    def get(self, chunk: int) -> tuple[int, Local] | None: ...

    def put(self, chunk: int, step: int, state: Local) -> None: ...


class InMemory:
    """Row states in memory."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[int, Local]] = {}

    def get(self, chunk: int) -> tuple[int, Local] | None:
        return self._states.get(chunk)

    def put(self, chunk: int, step: int, state: Local) -> None:
        self._states[chunk] = (step, state)


class InFiles:
    """Row states in local files, for when memory is short; a file that is not whole is a miss."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._steps: dict[int, int] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, chunk: int) -> tuple[int, Local] | None:
        if chunk not in self._steps:
            return None
        try:
            held = records.read(self._file(chunk), f"{chunk}@{self._steps[chunk]}")
        except StorageError:
            return None
        return self._steps[chunk], held

    def put(self, chunk: int, step: int, state: Local) -> None:
        self._steps.pop(chunk, None)
        records.write(self._file(chunk), {f"{chunk}@{step}": state}, durable=False)
        self._steps[chunk] = step

    def _file(self, chunk: int) -> Path:
        return self._folder / f"{chunk}.rec"
