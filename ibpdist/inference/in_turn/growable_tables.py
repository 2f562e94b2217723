"""Tables whose slots are features, and which get more of them when features are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

SPARE = 8
"""Slots kept free for features to come."""


class GrowableTables:
    """Tables whose slots are features. `axes` says, by field, which axes count slots; the tables have at
    least z, ids and sizes, the first of which is the number of slots in use."""

    axes: ClassVar[Mapping[str, tuple[int, ...]]]
    tables: Any

    @property
    def z(self) -> NDArray[np.int8]:
        made: NDArray[np.int8] = self.tables.z
        return made

    @property
    def ids(self) -> NDArray[np.int64]:
        made: NDArray[np.int64] = self.tables.ids
        return made

    @property
    def features(self) -> int:
        return int(self.tables.sizes[0])

    def grow(self) -> None:
        """Add half as many slots again, and SPARE."""
        more = self.ids.size // 2 + SPARE
        wider = {name: widened(getattr(self.tables, name), axes, more) for name, axes in self.axes.items()}
        self.tables = self.tables._replace(**wider)


def widened(table: NDArray[Any], axes: tuple[int, ...], more: int) -> NDArray[Any]:
    """A table in C order with `more` zeros after it along some axes; the order decides what is compiled."""
    wider = np.pad(table, [(0, more if axis in axes else 0) for axis in range(table.ndim)])
    return np.ascontiguousarray(wider)
