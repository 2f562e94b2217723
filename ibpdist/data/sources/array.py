"""Arrays in memory or lazy ones: numpy, pandas, xarray, Dask, sparse, told apart by what they can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.check import refuse_kind, refuse_shape
from ibpdist.data.labels import Labels, as_labels
from ibpdist.data.sources._base import Block
from ibpdist.errors import InputError

Coords = dict[str, Labels]


class ArrayTable:
    """A two-dimensional array with its labels; rows can be read in any order."""

    def __init__(
        self,
        take: Callable[[int, int], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        name: str = "array",
        rows: Coords | None = None,
        columns: Coords | None = None,
        notes: list[str] | None = None,
    ) -> None:
        refuse_kind(dtype, file=name)
        refuse_shape(shape, file=name)
        self._take, self._shape, self.dtype, self.name = take, shape, dtype, name
        self._row_coords, self._column_coords = rows or {}, columns or {}
        self.notes = [*(notes or []), *_narrowed(dtype, name)]

    @property
    def rows(self) -> int:
        return self._shape[0]

    @property
    def columns(self) -> int:
        return self._shape[1]

    def column_coords(self) -> Coords:
        return dict(self._column_coords)

    def row_coords(self, start: int, stop: int) -> Coords:
        return {name: labels[start:stop] for name, labels in self._row_coords.items()}

    def block(self, start: int, stop: int) -> NDArray[Any]:
        """Rows start to stop (row, column), as they are."""
        return self._take(start, stop)

    def blocks(self, rows: int) -> Iterator[Block]:
        for start in range(0, self.rows, rows):
            stop = min(self.rows, start + rows)
            yield Block(self.block(start, stop), self.row_coords(start, stop))


def _narrowed(dtype: np.dtype[Any], name: str) -> list[str]:
    wide = dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize
    return [f"{name}: {dtype} is rounded to float64"] if wide else []


def table_of(thing: Any, name: str = "array", *, rows_in: str = "rows") -> ArrayTable:
    """The table of any array-like; `rows_in="columns"` reads its columns as rows."""
    thing = _first(thing)
    if rows_in == "columns":
        thing = thing.T if hasattr(thing, "T") else _array_of(thing, name).T
    if hasattr(thing, "iloc") and hasattr(thing, "columns"):
        return _frame(thing, name)
    if hasattr(thing, "coords") and hasattr(thing, "dims"):
        return _labelled(thing, name)
    if not (hasattr(thing, "shape") and hasattr(thing, "dtype")):
        thing = _array_of(thing, name)
    if hasattr(thing, "tocsr"):
        csr = thing.tocsr()
        return ArrayTable(lambda a, b: csr[a:b].toarray(), csr.shape, csr.dtype, name=name)
    if isinstance(thing, np.ma.MaskedArray):
        return _masked(thing, name)
    return ArrayTable(lambda a, b: np.asarray(thing[a:b]), thing.shape, thing.dtype, name=name)


def _first(thing: Any) -> Any:
    """The array itself; of an xarray Dataset its variable x, rows first."""
    if hasattr(thing, "data_vars"):
        if "x" not in thing.data_vars:
            raise InputError("is a Dataset without a variable x: pass the variable itself", kind="shape")
        thing = thing["x"]
    if getattr(thing, "dims", None) == ("column", "row"):
        return thing.transpose("row", "column")
    return thing


def _masked(array: np.ma.MaskedArray[Any, Any], name: str) -> ArrayTable:
    refuse_kind(array.dtype, file=name)
    kind = np.result_type(array.dtype, np.float16)

    def take(start: int, stop: int) -> NDArray[Any]:
        return np.where(np.ma.getmaskarray(array[start:stop]), kind.type(np.nan), array.data[start:stop])

    return ArrayTable(take, array.shape, kind, name=name)


def _array_of(thing: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(thing)
    except ValueError as error:
        raise InputError(f"is not a matrix: {error}", file=name, kind="shape") from None


def _frame(frame: Any, name: str) -> ArrayTable:
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in frame.dtypes]
    for column, kind in zip(frame.columns, kinds, strict=True):
        numeric = np.dtype(object) if not isinstance(kind, np.dtype) else kind
        refuse_kind(numeric, file=name, column=str(column))
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(
            "occurs twice: rename one of the columns", file=name, column=str(twice), kind="labels"
        )
    dtype = np.result_type(*kinds) if kinds else np.dtype(float)
    nullable = any(kind is not own for kind, own in zip(kinds, frame.dtypes, strict=True))
    taken = np.result_type(dtype, np.float32) if nullable else dtype

    def take(start: int, stop: int) -> NDArray[Any]:
        part = frame.iloc[start:stop]
        return np.asarray(part.to_numpy(dtype=taken, na_value=np.nan) if nullable else part.to_numpy(taken))

    rows = {} if _is_default(frame.index) else {"row": as_labels(frame.index)}
    columns = {} if _is_default(frame.columns) else {"column": as_labels(frame.columns)}
    return ArrayTable(take, frame.shape, taken, name=name, rows=rows, columns=columns)


def _is_default(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _labelled(array: Any, name: str) -> ArrayTable:
    refuse_shape(array.shape, file=name)
    row, column = array.dims
    data = array.data
    return ArrayTable(
        lambda a, b: np.asarray(data[a:b]),
        array.shape,
        array.dtype,
        name=name,
        rows=_along(array, row, "row"),
        columns=_along(array, column, "column"),
    )


def _along(array: Any, dim: str, role: str) -> Coords:
    """One-dimensional coordinates along a dim; the one named like it becomes `role`."""
    found = {str(key): coord for key, coord in array.coords.items() if coord.dims == (dim,)}
    return {role if key == str(dim) else key: as_labels(coord.values) for key, coord in found.items()}
