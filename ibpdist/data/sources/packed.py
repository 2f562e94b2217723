"""Packed arrays: missing values, scale and offset as the CF conventions have them and xarray writes them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.check import inexact, refuse_inexact

DIMS = "_ARRAY_DIMENSIONS"
"""The attribute by which arrays of version 2 name their dims, in files that are made for xarray."""
_OTHER = {"true": "u", "false": "i"}
_SCALING = {"scale_factor": 1.0, "add_offset": 0.0}


@dataclass(frozen=True)
class Packing:
    """Numbers of type `stored`, of which those in `missing` are missing cells, times scale plus offset."""

    stored: np.dtype[Any]
    missing: tuple[float, ...] = ()
    scale: float = 1.0
    offset: float = 0.0
    zero_is_missing: bool = False
    """Only because zero fills the array, which is what arrays have whose maker said nothing."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the numbers that are meant."""
        if self._is_scaled:
            return np.result_type(self.stored, np.float32 if self.stored.kind == "f" else np.float64)
        return np.result_type(self.stored, np.float16) if self.missing else self.stored

    @property
    def notes(self) -> list[str]:
        return ["cells that hold 0 are taken as missing, as xarray does"] if self.zero_is_missing else []

    def unpack(self, x: NDArray[Any], *, start: int = 0, file: str | None = None) -> NDArray[Any]:
        """The numbers that are meant, of any shape; missing cells are NaN."""
        if not (self.missing or self._is_scaled or self.stored.kind != x.dtype.kind):
            return x
        hidden = np.zeros(x.shape, np.bool_)
        for value in self.missing:
            hidden |= x == value
        given = x.view(self.stored.newbyteorder(x.dtype.byteorder))
        if self.dtype.kind == "f" and (lost := inexact(given) & ~hidden).any():
            matrix = (len(given), -1)
            refuse_inexact(given.reshape(matrix), lost.reshape(matrix), start=start, file=file)
        values = given.astype(self.dtype)
        if self.missing:
            values[hidden] = np.nan
        return (
            values * values.dtype.type(self.scale) + values.dtype.type(self.offset)
            if self._is_scaled
            else values
        )

    @property
    def _is_scaled(self) -> bool:
        return (self.scale, self.offset) != (1.0, 0.0)


def packing_of(array: Any, file: str) -> Packing:
    """How a Zarr array is packed: by its attributes, and by its fill value where version 2 has it there."""
    attrs, dtype = dict(array.attrs), np.dtype(array.dtype)
    if dtype.kind not in "iuf":
        return Packing(dtype)
    filled = array.metadata.zarr_format == 2 and DIMS in attrs and "_FillValue" not in attrs
    fill = None if not filled or array.fill_value is None else array.fill_value.item()
    told = [number for name in ("_FillValue", "missing_value") for number in _numbers(attrs, name, file)]
    missing = {number for number in [*told, *([] if fill is None else [fill])] if number == number}  # not NaN
    scale, offset = (next(_numbers(attrs, name, file), by) for name, by in _SCALING.items())
    kind = _OTHER.get(str(attrs.get("_Unsigned")).lower(), dtype.kind) if dtype.kind != "f" else "f"
    stored = np.dtype(f"{kind}{dtype.itemsize}")
    return Packing(stored, tuple(sorted(missing)), scale, offset, fill == 0 and 0 not in told)


def _numbers(attrs: dict[str, Any], name: str, file: str) -> Iterator[float]:
    """The numbers of an attribute; xarray writes those of floats as text of their bytes."""
    held = attrs.get(name)
    for value in held if isinstance(held, list) else [] if held is None else [held]:
        try:
            yield value if isinstance(value, int | float) else _decoded(str(value))
        except ValueError:
            raise InputError(
                f"attribute {name} is {value!r}: expected a number", file=file, kind="format"
            ) from None


def _decoded(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raw = base64.b64decode(text, validate=True)
        if len(raw) != struct.calcsize("<d"):
            raise
        return float(struct.unpack("<d", raw)[0])
