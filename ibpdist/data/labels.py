"""Labels and covariates as Zarr coordinates: names that are safe in a path, types that are safe to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.codec import zarr_codecs
from ibpdist.errors import InputError

Labels = NDArray[Any]
_WIDE = {"b": np.dtype(bool), "i": np.dtype("<i8"), "u": np.dtype("<u8"), "f": np.dtype("<f8")}
RESERVED = frozenset({"x", "column_count", "column_mean", "column_sd", "column_min", "column_max"})


def as_labels(values: Any) -> Labels:
    """Labels (row) as bool, int64, uint64, float64 or text; dates and anything else become text."""
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise InputError(f"labels have {labels.ndim} dimensions: expected one", kind="labels")
    if labels.dtype.kind in _WIDE:
        return labels.astype(_WIDE[labels.dtype.kind].newbyteorder("="), copy=False)
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


def create_labels(group: Any, name: str, like: Labels, dim: str, chunk: int, *, long_name: str = "") -> Any:
    """An empty Zarr array along `dim` for labels of the type of `like`."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    text = like.dtype.kind == "U"
    compressors = [ZstdCodec(level=3), Crc32cCodec()] if text else zarr_codecs(like.dtype.itemsize)
    return group.create_array(
        name,
        shape=(0,),
        chunks=(max(1, chunk),),
        dtype="string" if text else like.dtype,
        compressors=compressors,
        fill_value=np.nan if like.dtype.kind == "f" else ("" if text else 0),
        dimension_names=[dim],
        attributes={"long_name": long_name} if long_name and long_name != name else {},
        config={"write_empty_chunks": True},
    )


def extend(array: Any, labels: Labels, start: int) -> None:
    """Put labels at `start`, which is the end of the array or the start of its last chunk."""
    array.resize((start + len(labels),))
    array[start:] = labels


def read_labels(array: Any, start: int, stop: int) -> Labels:
    values = np.asarray(array[start:stop])
    return np.array(values.tolist(), dtype=np.str_) if values.dtype.kind in "TOU" else values


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

    def write(self, start: int, coords: Mapping[str, Labels], chunk_rows: int) -> None:
        """The coordinates of the chunk that starts at row `start`."""
        if not self._arrays and start == 0:
            self._names = safe_names(coords, ["column"])
            self._arrays = {
                name: create_labels(
                    self._group, self._names[name], labels, "row", chunk_rows, long_name=str(name)
                )
                for name, labels in coords.items()
            }
        for name, array in self._arrays.items():
            extend(array, self._fitting(name, array, coords[name]), start)

    def _fitting(self, name: str, array: Any, labels: Labels) -> Labels:
        text = array.dtype.kind not in _WIDE
        if text:
            return labels.astype(np.str_)
        if not np.can_cast(labels.dtype, array.dtype, "same_kind"):
            raise InputError(
                f"row coordinate {name!r} changes from {array.dtype} to {labels.dtype}: use one type",
                kind="labels",
            )
        return labels
