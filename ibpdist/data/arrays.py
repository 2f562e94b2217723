"""Arrays in memory as a `Source`: judged and cut as a store would be, so that a fit has the same bits."""

from __future__ import annotations

import multiprocessing
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.data import layout
from ibpdist.data._base import Chunk, Labels, Source
from ibpdist.data.check import checked, result_dtype
from ibpdist.data.column_warnings import far_warnings, warnings_of
from ibpdist.data.dense_rows import DenseRows, by_entries
from ibpdist.data.labels import stored_names
from ibpdist.data.sources.array import ArrayTable, table_of
from ibpdist.data.sparse_array import SparseArray, is_sparse
from ibpdist.data.summary import empty_summary
from ibpdist.data.urls import refuse_urls


class ArrayData:
    """A numpy array, DataFrame, DataArray, Dask or sparse array in row chunks; NaN cells are missing.

    Every value is checked once, when this is made. Chunks are views of the array where they can be.
    """

    def __init__(
        self, array: Any, chunk_rows: int | None = None, *, dtype: str = "auto", name: str = "array"
    ) -> None:
        self._table = array if isinstance(array, ArrayTable) else table_of(array, name)
        self.dtype: np.dtype[Any] = result_dtype(self._table.dtype, dtype)
        self.chunk_rows = layout.checked_chunk_rows(chunk_rows, self.columns, self.dtype)
        self._missing: list[int] = []
        self._summary = empty_summary(self.columns)
        for index in range(self.chunks):
            values = self._values(index)
            self._missing.append(int(np.count_nonzero(np.isnan(values))))
            self._summary = self._summary.add(values)
        self.notes = list(self._table.notes)
        """What was assumed about the format."""
        self.oddities = [
            f"{self._table.name}: {warning}"
            for warning in warnings_of(self._summary, self._names, self.dtype)
        ]
        """What is odd about the columns."""

    @property
    def rows(self) -> int:
        return self._table.rows

    @property
    def columns(self) -> int:
        return self._table.columns

    @property
    def chunks(self) -> int:
        return layout.chunk_count(self.rows, self.chunk_rows)

    @property
    def missing(self) -> int:
        """Number of missing cells."""
        return sum(self._missing)

    def column_summary(self) -> dict[str, NDArray[np.float64]]:
        """count, mean, sd, min and max of the observed cells of each column."""
        return self._summary.table()

    @cached_property
    def fingerprint(self) -> str:
        hashes = [layout.content_hash(self._values(index)) for index in range(self.chunks)]
        labels = [layout.labels_hash(stored_names(self.row_coords(index))) for index in range(self.chunks)]
        return layout.dataset_fingerprint(
            self.rows, self.columns, self.dtype, self.chunk_rows, hashes, labels
        )

    def bounds(self, index: int) -> tuple[int, int]:
        return layout.chunk_bounds(index, self.rows, self.chunk_rows)

    def read(self, index: int) -> Chunk:
        start, _ = self.bounds(index)
        if self._missing[index]:
            x = self._values(index)
            observed = ~np.isnan(x)
            return Chunk(index, start, np.where(observed, x, self.dtype.type(0)), observed)
        x = np.ascontiguousarray(self._raw(index), dtype=self.dtype)
        return Chunk(index, start, x if x.flags.writeable else x.copy())

    def row_coords(self, index: int) -> dict[str, Labels]:
        return self._table.row_coords(*self.bounds(index))

    def column_coords(self) -> dict[str, Labels]:
        return self._table.column_coords()

    def _raw(self, index: int) -> NDArray[Any]:
        return self._table.block(*self.bounds(index))

    def _values(self, index: int) -> NDArray[Any]:
        start, _ = self.bounds(index)
        return checked(self._raw(index), self.dtype, start=start, file=self._table.name, columns=self._names)

    @cached_property
    def _names(self) -> list[object] | None:
        labels = self.column_coords().get("column")
        return None if labels is None else list(labels)


def as_source(thing: Any, *, judged: bool = True, counts: bool = False, level: int = 2) -> Source:
    """A `Source` of whatever holds a matrix: a source, a store, a .npy file or Zarr by path, an array. Rows
    may come as entries where `counts` are wanted, and are made dense otherwise.

    Warns of what `ingest` would warn of; of odd columns only when `judged`, for in a few new rows they are
    nothing odd. Of a store, which was judged when it was made, only of what a fit does about its columns. The
    warnings are those of the caller at `level`.
    """
    if counts and is_sparse(thing):
        return SparseArray(thing)
    by_hand = hasattr(thing, "read") and hasattr(thing, "fingerprint")
    made: Source = thing if by_hand else _opened(thing)
    # A process that works for another one opens the same data again and has nothing new to say.
    if multiprocessing.parent_process() is None:
        for note in _of_source(made, judged) if by_hand else _of_opened(made, judged):
            warnings.warn(note, stacklevel=level + 1)
    return made if counts or not by_entries(made) else DenseRows(made)


def _of_opened(made: Source, judged: bool) -> list[str]:
    """What to say of data that were opened."""
    if not isinstance(made, ArrayData):
        return _of_source(made, judged)
    return [*made.notes, *(made.oddities if judged else [])]


def _of_source(made: Any, judged: bool) -> list[str]:
    """What to say of data that were judged when they were made: only what a fit does about them."""
    if not judged or not hasattr(made, "column_summary"):
        return []
    held = made.column_coords().get("column")
    name = getattr(made, "path", Path("array")).name
    said = far_warnings(made.column_summary(), None if held is None else list(held))
    return [f"{name}: {sentence}" for sentence in said]


def _opened(thing: Any) -> Source:
    refuse_urls(thing)
    return _of_path(Path(thing)) if isinstance(thing, str | Path) else ArrayData(thing)


def _of_path(path: Path) -> Source:
    from ibpdist.data import manifest
    from ibpdist.data.sources.npy import open_npy
    from ibpdist.data.sources.zarr import is_zarr, open_zarr
    from ibpdist.data.store import open_dataset

    if path.is_file() and path.suffix == ".npy":
        return ArrayData(open_npy(path))
    if path.is_file():
        raise UsageError(f"{path}: is not a dataset: make one with `ibpdist ingest {path.name} NAME.zarr`")
    if is_zarr(path) and not manifest.is_ours(path):
        return ArrayData(open_zarr(path))
    return open_dataset(path)
