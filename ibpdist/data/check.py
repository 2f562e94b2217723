"""The one place where values are judged: what becomes a float, what is refused, with row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError

EXACT = 2**53
# Squares of larger values overflow in float32 inside a product; in float64 their fourth powers do,
# which a fit meets as squares of sums of products.
LIMITS = {"float32": 1e18, "float64": 1e60}
_INEXACT = "is an integer beyond 2^53, which no float holds exactly: rescale it"
_SMALL = frozenset(
    np.dtype(name) for name in ("bool", "int8", "uint8", "int16", "uint16", "float16", "float32")
)
_REFUSED = {
    "c": "complex numbers",
    "O": "Python objects",
    "M": "dates",
    "m": "time differences",
    "S": "bytes",
    "U": "text",
    "T": "text",
    "V": "records",
}


def result_dtype(source: np.dtype[Any], wanted: str = "auto") -> np.dtype[Any]:
    """float32 for sources that fit it without loss, float64 otherwise, or what is asked for."""
    if wanted == "auto":
        small = source.newbyteorder("=") in _SMALL
        return np.dtype(np.float32 if small else np.float64)
    if wanted not in LIMITS:
        raise UsageError(f"dtype is {wanted!r}: expected auto, float32 or float64")
    return np.dtype(wanted)


def refuse_kind(dtype: np.dtype[Any], *, file: str | None, column: str | int | None = None) -> None:
    """InputError unless the type holds real numbers."""
    if dtype.kind in _REFUSED:
        raise InputError(
            f"holds {_REFUSED[dtype.kind]} (dtype {dtype}): expected real numbers, convert it first",
            file=file,
            column=column,
            kind="dtype",
        )


def refuse_shape(shape: Sequence[int], *, file: str | None) -> None:
    """InputError unless there are rows and columns."""
    if len(shape) != 2:
        raise InputError(
            f"has {len(shape)} dimensions (shape {tuple(shape)}): expected a matrix of rows and columns",
            file=file,
            kind="shape",
        )
    for size, name in zip(shape, ("rows", "columns"), strict=True):
        if np.isnan(size):
            raise InputError(
                f"has an unknown number of {name}: call compute_chunk_sizes() of the Dask array first",
                file=file,
                kind="shape",
            )
        if size == 0:
            raise InputError(f"has no {name}", file=file, kind="empty")


def checked(
    x: NDArray[Any],
    dtype: np.dtype[Any],
    *,
    start: int = 0,
    file: str | None = None,
    columns: Sequence[object] | None = None,
) -> NDArray[Any]:
    """x (row, column) as `dtype` in C order, missing cells as NaN; refuses what cannot be computed with.

    The result is x itself when there is nothing to change.
    """
    refuse_kind(x.dtype, file=file)
    place = _Place(x, start, file, columns)
    if x.dtype.kind in "iu":
        place.refuse(inexact(x), _INEXACT, "precision")
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(x, dtype=dtype)
    low, high = values.min(initial=0), values.max(initial=0)
    if np.isnan(low) or np.isnan(high):
        missing = np.isnan(values)
        values = np.where(missing, dtype.type(np.nan), values)
        low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    limit = LIMITS[dtype.name]
    if low <= -limit or high >= limit:
        _refuse_large(place, values, limit)
    return values


def inexact(x: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values, of any shape, are integers that no float holds."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize < 8:
        return np.zeros(x.shape, np.bool_)
    beyond: NDArray[np.bool_] = x > EXACT
    return beyond | (x < -EXACT) if x.dtype.kind == "i" else beyond


def refuse_inexact(
    x: NDArray[Any],
    which: NDArray[np.bool_],
    *,
    start: int = 0,
    file: str | None = None,
    columns: Sequence[object] | None = None,
) -> None:
    """InputError when there are any of `which` (row, column) among values on their way to floats."""
    _Place(x, start, file, columns).refuse(which, _INEXACT, "precision")


def _refuse_large(place: _Place, values: NDArray[Any], limit: float) -> None:
    with np.errstate(invalid="ignore"):
        infinite = np.isinf(place.x) if place.x.dtype.kind == "f" else np.zeros(place.x.shape, bool)
        large = np.abs(values) >= limit
    place.refuse(infinite, "is infinite: remove it or leave the cell empty", "infinite")
    reason = f"is so large that products of it overflow in {values.dtype}: rescale the data"
    if values.dtype == np.float32:
        reason += " or store them as float64"
    place.refuse(large, reason, "overflow")


class _Place:
    """Where the offenders of a block are."""

    def __init__(
        self, x: NDArray[Any], start: int, file: str | None, columns: Sequence[object] | None
    ) -> None:
        self.x, self.start, self.file, self.columns = x, start, file, columns

    def refuse(self, offending: NDArray[np.bool_], reason: str, kind: str) -> None:
        total = int(np.count_nonzero(offending))
        if not total:
            return
        row, column = divmod(int(np.argmax(offending)), self.x.shape[1])
        more = f" (and {total - 1} more in this block of rows)" if total > 1 else ""
        raise InputError(
            reason + more,
            file=self.file,
            row=self.start + row,
            column=column if self.columns is None else str(self.columns[column]),
            value=str(self.x[row, column]),
            kind=kind,
        )
