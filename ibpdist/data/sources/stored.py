"""A dataset of our own as a source, to give it other chunks, another type or a transform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ibpdist.data._base import Labels, Source
from ibpdist.data.sources._base import Block


class SourceTable:
    """Any `Source`, read chunk by chunk."""

    def __init__(self, source: Source, name: str) -> None:
        self._source, self.name = source, name
        self.notes: list[str] = []

    @property
    def attributes(self) -> dict[str, Any]:
        """What a copy of the dataset says as well: the shape of the images that rows are."""
        held = getattr(self._source, "attributes", {})
        return {"image": held["image"]} if "image" in held else {}

    @property
    def rows(self) -> int:
        return self._source.rows

    @property
    def columns(self) -> int:
        return self._source.columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._source.dtype

    def column_coords(self) -> dict[str, Labels]:
        return self._source.column_coords()

    def blocks(self, rows: int) -> Iterator[Block]:
        for index in range(self._source.chunks):
            chunk, coords = self._source.read(index), self._source.row_coords(index)
            x = chunk.x if chunk.observed is None else np.where(chunk.observed, chunk.x, np.nan)
            for start in range(0, chunk.rows, rows):
                part = {name: labels[start : start + rows] for name, labels in coords.items()}
                yield Block(x[start : start + rows], part)
