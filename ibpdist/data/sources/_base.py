"""What every format gives to `ingest`: blocks of rows in order, with the labels that belong to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Block:
    """Some rows (row, column) of any real type, missing cells as NaN, and their coordinates by name."""

    x: NDArray[Any]
    row_coords: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Table(Protocol):
    """A source that can be read from the start as often as needed."""

    @property
    def name(self) -> str:
        """What errors and the store call it: a base name, never a path."""
        ...

    @property
    def rows(self) -> int | None:
        """Number of rows, None when only reading tells."""
        ...

    @property
    def columns(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def notes(self) -> list[str]:
        """What was assumed about the format and should be told to the user."""
        ...

    def column_coords(self) -> dict[str, NDArray[Any]]: ...

    def blocks(self, rows: int) -> Iterator[Block]:
        """All rows in order, at most `rows` at a time, or all that the source makes at once."""
        ...
