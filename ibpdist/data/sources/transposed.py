"""A table whose columns are the rows: turned through a temporary file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.labels import Labels
from ibpdist.data.sources._base import Block, Table
from ibpdist.storage.files import storage_errors

_BLOCK_BYTES = 16 << 20


class Transposed:
    """Reads a table once and writes each block, turned, as a segment; a row is a piece of each segment."""

    def __init__(self, table: Table, scratch: Path) -> None:
        self.name, self.dtype, self.notes = table.name, table.dtype, table.notes
        self.rows: int = table.columns
        self._file = scratch / "turned.bin"
        self._widths: list[int] = []
        self._labels = {
            "row" if name == "column" else name: labels for name, labels in table.column_coords().items()
        }
        self._column_coords = self._spool(table)

    @property
    def columns(self) -> int:
        return sum(self._widths)

    def column_coords(self) -> dict[str, Labels]:
        return dict(self._column_coords)

    def blocks(self, rows: int) -> Iterator[Block]:
        for start in range(0, self.rows, rows):
            stop = min(self.rows, start + rows)
            labels = {name: values[start:stop] for name, values in self._labels.items()}
            yield Block(self._rows(start, stop), labels)

    def _spool(self, table: Table) -> dict[str, Labels]:
        """Write the segments; the row coordinates of the table, which are those of our columns."""
        coords: dict[str, list[Labels]] = {}
        step = max(1, _BLOCK_BYTES // (self.rows * self.dtype.itemsize))
        with storage_errors(self._file):
            file = self._file.open("wb")
        with file:
            for block in table.blocks(step):
                self._widths.append(len(block.x))
                with storage_errors(self._file):
                    file.write(np.ascontiguousarray(block.x.T, dtype=self.dtype).data)
                for name, labels in block.row_coords.items():
                    coords.setdefault("column" if name == "row" else name, []).append(labels)
        return {name: np.concatenate(parts) for name, parts in coords.items()}

    def _rows(self, start: int, stop: int) -> NDArray[Any]:
        out = np.empty((stop - start, self.columns), dtype=self.dtype)
        item, left = self.dtype.itemsize, 0
        for width in self._widths:
            at = (self.rows * left + start * width) * item
            part = np.fromfile(self._file, dtype=self.dtype, count=(stop - start) * width, offset=at)
            out[:, left : left + width] = part.reshape(stop - start, width)
            left += width
        return out
