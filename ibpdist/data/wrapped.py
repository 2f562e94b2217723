"""Sources that wrap another source."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibpdist.data._base import Chunk, Labels, Source


class Wrapped:
    """A `Source` over another one, `source`, whose members it forwards; a subclass overrides what differs.

    The fingerprint differs wherever the values, the rows or the chunks do.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    @property
    def rows(self) -> int:
        return self.source.rows

    @property
    def columns(self) -> int:
        return self.source.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def chunks(self) -> int:
        return self.source.chunks

    @property
    def fingerprint(self) -> str:
        return self.source.fingerprint

    def bounds(self, index: int) -> tuple[int, int]:
        return self.source.bounds(index)

    def read(self, index: int) -> Chunk:
        return self.source.read(index)

    def row_coords(self, index: int) -> dict[str, Labels]:
        return self.source.row_coords(index)

    def column_coords(self) -> dict[str, Labels]:
        return self.source.column_coords()


def innermost(source: Source) -> Source:
    """The source below all that wrap it."""
    while isinstance(source, Wrapped):
        source = source.source
    return source
