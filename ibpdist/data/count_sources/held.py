"""Rows of counts that are at hand: sparse matrices of scipy, and datasets that were stored as entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ibpdist.data.count_sources._base import CountBlock


@dataclass
class CountRows:
    """The rows of a source whose chunks are entries."""

    source: Any
    name: str
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return int(self.source.rows)

    @property
    def columns(self) -> int:
        return int(self.source.columns)

    def column_coords(self) -> dict[str, NDArray[Any]]:
        return dict(self.source.column_coords())

    def count_blocks(self) -> Iterator[CountBlock]:
        for index in range(self.source.chunks):
            yield CountBlock(self.source.read(index).entries, self.source.row_coords(index))
