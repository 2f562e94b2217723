"""Data frames of pandas: columns of numbers, and on request labels and covariates beside the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.check import inexact, refuse_inexact, refuse_kind, refuse_shape
from ibpdist.data.labels import Labels, as_labels
from ibpdist.data.sources.array import ArrayTable, Coords


def is_frame(thing: Any) -> bool:
    return hasattr(thing, "iloc") and hasattr(thing, "columns")


def frame_table(
    frame: Any,
    name: str = "array",
    *,
    rows_in: str = "rows",
    label_column: str | int | None = None,
    covariates: Sequence[str] = (),
) -> ArrayTable:
    """The table of a frame without its columns of labels and covariates, which lie beside the rows."""
    _refuse_twice(frame, name)
    body, rows = _apart(frame, name, label_column, covariates)
    refuse_shape(body.shape, file=name)
    kinds = _kinds(body, name)
    columns = {} if _is_default(body.columns) else {"column": as_labels(body.columns)}
    numbers = _Numbers(body, kinds)
    if rows_in == "columns":
        sides = _renamed(columns, "column", "row"), _renamed(rows, "row", "column")
        return numbers.table(name, body.shape[::-1], *sides, turned=True)
    return numbers.table(name, body.shape, rows, columns, turned=False)


class _Numbers:
    """The values of a frame in the one type that holds those of all of its columns."""

    def __init__(self, body: Any, kinds: list[np.dtype[Any]]) -> None:
        self._body, self._kinds = body, kinds
        # Columns that can be missing have types of their own.
        self._nullable = any(kind is not own for kind, own in zip(kinds, body.dtypes, strict=True))
        common = np.result_type(*kinds)
        self.dtype = np.result_type(common, np.float32) if self._nullable else common
        wide = any(kind.kind in "iu" and kind.itemsize == 8 for kind in kinds)
        self._rounded = wide and self.dtype.kind == "f"

    def table(
        self, name: str, shape: tuple[int, ...], rows: Coords, columns: Coords, *, turned: bool
    ) -> ArrayTable:
        labels = list(columns["column"]) if "column" in columns else None

        def take(start: int, stop: int) -> NDArray[Any]:
            at = slice(start, stop)
            part = self._body.iloc[:, at] if turned else self._body.iloc[at]
            if self._rounded:
                lost = _lost(part, self._kinds[at] if turned else self._kinds)
                if lost.any():
                    given = part.to_numpy(object), lost
                    there = (side.T if turned else side for side in given)
                    refuse_inexact(*there, start=start, file=name, columns=labels)
            values = self._values(part)
            return values.T if turned else values

        return ArrayTable(take, shape, self.dtype, name=name, rows=rows, columns=columns)

    def _values(self, part: Any) -> NDArray[Any]:
        missing = {"na_value": np.nan} if self._nullable else {}
        return np.asarray(part.to_numpy(dtype=self.dtype, **missing))


def _lost(part: Any, kinds: list[np.dtype[Any]]) -> NDArray[np.bool_]:
    """Which cells (row, column) are integers that no float holds."""
    lost = np.zeros(part.shape, np.bool_)
    for at, kind in enumerate(kinds):
        if kind.kind in "iu":
            lost[:, at] = inexact(part.iloc[:, at].to_numpy(dtype=kind, na_value=0))
    return lost


def _kinds(body: Any, name: str) -> list[np.dtype[Any]]:
    """The types of the columns as NumPy knows them; refuses all but numbers."""
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in body.dtypes]
    for column, kind in zip(body.columns, kinds, strict=True):
        numeric = kind if isinstance(kind, np.dtype) else np.dtype(object)
        refuse_kind(numeric, file=name, column=str(column))
    return kinds


def _refuse_twice(frame: Any, name: str) -> None:
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(
            "occurs twice: rename one of the columns", file=name, column=str(twice), kind="labels"
        )


def _apart(
    frame: Any, name: str, label_column: str | int | None, covariates: Sequence[str]
) -> tuple[Any, Coords]:
    """The columns of values, and what lies beside the rows by name."""
    beside = [_at(frame, name, wanted) for wanted in covariates]
    coords = {str(frame.columns[at]): _labels(frame.iloc[:, at]) for at in beside}
    if label_column is not None:
        beside.append(_at(frame, name, label_column))
        coords["row"] = _labels(frame.iloc[:, beside[-1]])
    elif not _is_default(frame.index):
        coords["row"] = as_labels(frame.index)
    kept = [at for at in range(frame.shape[1]) if at not in beside]
    return frame.iloc[:, kept] if beside else frame, coords


def _at(frame: Any, name: str, wanted: str | int) -> int:
    if wanted in frame.columns:
        return int(frame.columns.get_loc(wanted))
    if str(wanted).isdecimal() and int(wanted) < frame.shape[1]:
        return int(wanted)
    known = ", ".join(str(column) for column in frame.columns[:5])
    raise UsageError(f"{name}: has no column {wanted!r}, the frame has {known}")


def _labels(column: Any) -> Labels:
    """Labels of a column: missing ones are NaN among numbers and empty among texts."""
    kind = getattr(column.dtype, "numpy_dtype", column.dtype)
    if not isinstance(kind, np.dtype) or kind.kind == "O":
        return as_labels(column.astype(object).where(column.notna(), None))
    if kind.kind in "biu" and column.isna().any():
        kind = np.dtype(np.float64)
    missing = {"na_value": np.nan} if kind.kind == "f" else {}
    return as_labels(column.to_numpy(dtype=kind, **missing))


def _renamed(coords: Coords, old: str, new: str) -> Coords:
    return {new if name == old else name: labels for name, labels in coords.items()}


def _is_default(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
