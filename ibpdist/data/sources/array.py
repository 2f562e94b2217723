"""Arrays in memory or lazy ones: numpy, xarray, Dask, sparse, told apart by what they can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.check import inexact, refuse_inexact, refuse_kind, refuse_shape
from ibpdist.data.labels import Labels, as_labels
from ibpdist.data.sources._base import Block

Coords = dict[str, Labels]
PIECE_LIMIT = 1 << 30
"""Bytes of a piece that is taken at once."""


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
        pieces: Sequence[int] = (),
    ) -> None:
        """`take` gives rows start to stop; `pieces` are the rows that it makes together, where it matters."""
        refuse_kind(dtype, file=name)
        refuse_shape(shape, file=name)
        self._take, self._shape, self.dtype, self.name = take, shape, dtype, name
        self._row_coords, self._column_coords = rows or {}, columns or {}
        self._pieces = _fitting(pieces, shape[1] * dtype.itemsize)
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
        start = 0
        for size in _steps(self.rows, self._pieces, rows):
            yield Block(self.block(start, start + size), self.row_coords(start, start + size))
            start += size


def _steps(rows: int, pieces: Sequence[int], most: int) -> Iterator[int]:
    """Rows of each block: at most `most` of them, or all of a piece that is larger."""
    if not pieces:
        yield from (min(most, rows - start) for start in range(0, rows, most))
        return
    held = 0
    for piece in pieces:
        if held and held + piece > most:
            yield held
            held = 0
        held += piece
    if held:
        yield held


def _pieces(array: Any) -> tuple[int, ...]:
    """Rows of the chunks of a Dask array, each of which is computed whole whatever is asked of it."""
    rows = (getattr(array, "chunks", None) or [None])[0]
    return tuple(rows) if isinstance(rows, tuple) else ()


def _fitting(pieces: Sequence[int], row: int) -> Sequence[int]:
    """The pieces, unless one of them takes too much memory; `row` is in bytes."""
    return pieces if max(pieces, default=0) * row <= PIECE_LIMIT else ()


def _narrowed(dtype: np.dtype[Any], name: str) -> list[str]:
    wide = dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize
    return [f"{name}: {dtype} is rounded to float64"] if wide else []


def table_of(thing: Any, name: str = "array", *, rows_in: str = "rows", key: str | None = None) -> ArrayTable:
    """The table of any array-like; `rows_in="columns"` reads its columns as rows.

    `key` is the variable of an xarray Dataset, which otherwise is x.
    """
    from ibpdist.data.sources.frame import frame_table, is_frame

    thing = _first(thing, key)
    if is_frame(thing):
        return frame_table(thing, name, rows_in=rows_in)
    if rows_in == "columns":
        thing = thing.T if hasattr(thing, "T") else _array_of(thing, name).T
    if hasattr(thing, "coords") and hasattr(thing, "dims"):
        return _labelled(thing, name)
    if not (hasattr(thing, "shape") and hasattr(thing, "dtype")):
        thing = _array_of(thing, name)
    if hasattr(thing, "tocsr"):
        csr = thing.tocsr()
        return ArrayTable(lambda a, b: csr[a:b].toarray(), csr.shape, csr.dtype, name=name)
    if isinstance(thing, np.ma.MaskedArray):
        return _masked(thing, name)
    pieces = _pieces(thing)
    return ArrayTable(lambda a, b: np.asarray(thing[a:b]), thing.shape, thing.dtype, name=name, pieces=pieces)


def _first(thing: Any, key: str | None) -> Any:
    """The array itself; of an xarray Dataset its variable `key`, or x, rows first."""
    if hasattr(thing, "data_vars"):
        wanted = "x" if key is None else key
        if wanted not in thing.data_vars:
            known = ", ".join(str(name) for name in thing.data_vars) or "none"
            raise InputError(
                f"is a Dataset without a variable {wanted} (it has {known}):"
                " choose one with key, or pass the variable itself",
                kind="key",
            )
        thing = thing[wanted]
    if getattr(thing, "dims", None) == ("column", "row"):
        return thing.transpose("row", "column")
    return thing


def _masked(array: np.ma.MaskedArray[Any, Any], name: str) -> ArrayTable:
    refuse_kind(array.dtype, file=name)
    kind = np.result_type(array.dtype, np.float16)

    def take(start: int, stop: int) -> NDArray[Any]:
        hidden, given = np.ma.getmaskarray(array[start:stop]), array.data[start:stop]
        refuse_inexact(given, inexact(given) & ~hidden, start=start, file=name)
        return np.where(hidden, kind.type(np.nan), given)

    return ArrayTable(take, array.shape, kind, name=name)


def _array_of(thing: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(thing)
    except ValueError as error:
        raise InputError(f"is not a matrix: {error}", file=name, kind="shape") from None


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
        pieces=_pieces(data),
    )


def _along(array: Any, dim: str, role: str) -> Coords:
    """One-dimensional coordinates along a dim; the one named like it becomes `role`."""
    coords = {str(key): coord for key, coord in array.coords.items() if coord.dims == (dim,)}
    return {role if key == str(dim) else key: as_labels(coord.values) for key, coord in coords.items()}
