"""All rows of a source as one chunk, once for each of several chains: for samplers that take rows in turn."""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np

from ibpdist.data._base import Chunk, Labels, Source
from ibpdist.data.wrapped import Wrapped


class Whole(Wrapped):
    """Chunk i is the whole of `source` for chain i; one copy of it is held."""

    def __init__(self, source: Source, copies: int) -> None:
        super().__init__(source)
        self._copies = copies

    @property
    def chunks(self) -> int:
        return self._copies

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.source.fingerprint} x {self.chunks}".encode()).hexdigest()

    def bounds(self, index: int) -> tuple[int, int]:
        return 0, self.rows

    def read(self, index: int) -> Chunk:
        return Chunk(index, 0, self._all.x, self._all.observed)

    def row_coords(self, index: int) -> dict[str, Labels]:
        parts = [self.source.row_coords(i) for i in range(self.source.chunks)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @cached_property
    def _all(self) -> Chunk:
        parts = [self.source.read(i) for i in range(self.source.chunks)]
        x = np.ascontiguousarray(np.concatenate([part.x for part in parts]))
        if all(part.observed is None for part in parts):
            return Chunk(0, 0, x)
        observed = [np.ones(p.x.shape, np.bool_) if p.observed is None else p.observed for p in parts]
        return Chunk(0, 0, x, np.concatenate(observed))
