"""Labels and covariates as Zarr coordinates: names that are safe in a path, types that are safe to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.storage.codec import zarr_codecs

Labels = NDArray[Any]
_WIDE = {"b": np.dtype(bool), "i": np.dtype("<i8"), "u": np.dtype("<u8"), "f": np.dtype("<f8")}
_TIMES = "mM"
_UNITS = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds",
    "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
}  # fmt: skip
"""Units of dates and spans by numpy's name, as the CF conventions call them."""
_SINCE = " since 1970-01-01"
RESERVED = frozenset({"x", "column_count", "column_mean", "column_sd", "column_min", "column_max"})


def as_labels(values: Any) -> Labels:
    """Labels (row) as bool, int64, uint64, float64, dates, spans of time or text; all else becomes text."""
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise InputError(f"labels have {labels.ndim} dimensions: expected one", kind="labels")
    if labels.dtype.kind in _WIDE:
        return labels.astype(_WIDE[labels.dtype.kind].newbyteorder("="), copy=False)
    if labels.dtype.kind in _TIMES:
        return labels.astype(f"{labels.dtype.kind}8[{_unit(labels.dtype)}]", copy=False)
    if labels.dtype.kind in "OT":
        return np.array(["" if value is None else str(value) for value in labels], dtype=np.str_)
    return labels.astype(np.str_)


def safe_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A name of letters, digits, `_`, `.` and `-` for each name, all different, none reserved or taken."""
    made: dict[str, str] = {}
    used = {*RESERVED, *taken}
    for name in names:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", str(name))[:100].lstrip(".") or "_"
        while safe in used:
            safe += "_"
        used.add(safe)
        made[name] = safe
    return made


def stored_names(coords: Mapping[str, Labels]) -> dict[str, Labels]:
    """Row coordinates under the names that they have in a store."""
    names = safe_names(coords, ["column"])
    return {names[name]: values for name, values in coords.items()}


def _unit(dtype: np.dtype[Any]) -> str:
    """The unit of dates; years, months and weeks are counted in days, what is finer in nanoseconds."""
    unit = np.datetime_data(dtype)[0]
    return unit if unit in _UNITS else "D" if unit in "YMW" else "ns"


def _time_attributes(dtype: np.dtype[Any]) -> dict[str, str]:
    """What says that whole numbers are dates or spans, as the CF conventions do."""
    unit = _UNITS[_unit(dtype)]
    if dtype.kind == "m":
        return {"units": unit}
    return {"units": f"{unit}{_SINCE}", "calendar": "proleptic_gregorian"}


def _time_dtype(attributes: Mapping[str, Any]) -> np.dtype[Any] | None:
    """The type of dates or spans that whole numbers stand for; None where they are numbers."""
    units = str(attributes.get("units", ""))
    kind, word = ("M", units.removesuffix(_SINCE)) if units.endswith(_SINCE) else ("m", units)
    short = {name: unit for unit, name in _UNITS.items()}.get(word)
    return None if short is None else np.dtype(f"{kind}8[{short}]")


def create_labels(group: Any, name: str, like: Labels, dim: str, chunk: int, *, long_name: str = "") -> Any:
    """An empty Zarr array along `dim` for labels of the type of `like`."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    text, times = like.dtype.kind == "U", like.dtype.kind in _TIMES
    compressors = [ZstdCodec(level=3), Crc32cCodec()] if text else zarr_codecs(like.dtype.itemsize)
    named = {"long_name": long_name} if long_name and long_name != name else {}
    return group.create_array(
        name,
        shape=(0,),
        chunks=(max(1, chunk),),
        dtype="string" if text else np.dtype("<i8") if times else like.dtype,
        compressors=compressors,
        fill_value=np.nan if like.dtype.kind == "f" else ("" if text else 0),
        dimension_names=[dim],
        attributes=named | (_time_attributes(like.dtype) if times else {}),
        config={"write_empty_chunks": True},
    )


def extend(array: Any, labels: Labels, start: int) -> None:
    """Put labels at `start`, which is the end of the array or the start of its last chunk."""
    array.resize((start + len(labels),))
    array[start:] = labels.view(np.int64) if labels.dtype.kind in _TIMES else labels


def read_labels(array: Any, start: int, stop: int) -> Labels:
    values, times = np.asarray(array[start:stop]), _time_dtype(array.attrs)
    if times is not None and values.dtype == np.int64:
        return values.view(times)
    return np.array(values.tolist(), dtype=np.str_) if values.dtype.kind in "TOU" else values


def joined(name: str, parts: Sequence[Labels]) -> Labels:
    """Labels of adjoining rows; dates go with dates only."""
    first = parts[0].dtype
    for part in parts:
        if part.dtype.kind != first.kind and {part.dtype.kind, first.kind} & set(_TIMES):
            _refuse_change(name, first, part.dtype)
    return np.concatenate(parts)


def _refuse_change(name: str, before: np.dtype[Any], now: np.dtype[Any]) -> NoReturn:
    raise InputError(f"row coordinate {name!r} changes from {before} to {now}: use one type", kind="labels")


class RowLabels:
    """The row coordinates of a store under construction, one Zarr chunk for each data chunk."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self._arrays: dict[str, Any] = {}
        self._names: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """Names as given."""
        return list(self._names)

    @property
    def stored(self) -> list[str]:
        """Names in the store."""
        return list(self._names.values())

    def write(self, start: int, coords: Mapping[str, Labels], chunk_rows: int) -> dict[str, Labels]:
        """The coordinates of the chunk that starts at row `start`, and what will be read of them."""
        if not self._arrays and start == 0:
            self._names = safe_names(coords, ["column"])
            self._arrays = {
                name: create_labels(
                    self._group, self._names[name], labels, "row", chunk_rows, long_name=str(name)
                )
                for name, labels in coords.items()
            }
        fitting = {name: self._fitting(name, array, coords[name]) for name, array in self._arrays.items()}
        for name, labels in fitting.items():
            extend(self._arrays[name], labels, start)
        return {self._names[name]: labels for name, labels in fitting.items()}

    def _fitting(self, name: str, array: Any, labels: Labels) -> Labels:
        if array.dtype.kind not in _WIDE:
            return labels.astype(np.str_)
        times = _time_dtype(array.attrs)
        if times is not None and labels.dtype.kind == times.kind:
            return labels.astype(times)
        if times is not None or not np.can_cast(labels.dtype, array.dtype, "same_kind"):
            _refuse_change(name, times or array.dtype, labels.dtype)
        return labels.astype(array.dtype, copy=False)
