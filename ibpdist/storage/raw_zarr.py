"""Groups of arrays written straight to files of Zarr version 3.

The bytes are those of xarray and Zarr, without the two milliseconds that they take for each array or chunk:
the results of a campaign are thousands of them. Chunk keys are flat (`c.0.0`), so an array is one folder with
one file for each chunk beside its `zarr.json`. Every chunk ends in its check sum.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numcodecs import zstd

from ibpdist.storage.codec import TRAILER, crc32c, encode, zarr_codecs

LARGEST = 16 << 20
"""Bytes of a chunk of an array that is written whole, which holds at least one entry of the first dim."""
LITTER = ".partial"
"""Ends the names of chunks that are being written, which a process that is killed leaves behind."""
_TEXT, _DATES = "OUT", "mM"
_ZSTD_LEVEL = 3


def write(folder: Path, group: xr.Dataset, *, exist_ok: bool = False) -> None:
    """A group with its arrays, in a folder that is new, or with `exist_ok` holds other arrays."""
    folder.mkdir(parents=True, exist_ok=exist_ok)
    labels = " ".join(str(name) for name in group.coords if name not in group.dims)
    attributes = dict(group.attrs) | ({"coordinates": labels} if labels else {})
    facts = {"attributes": attributes, "zarr_format": 3, "node_type": "group"}
    _write_text(folder, json.dumps(facts, indent=2, default=_plain))
    for name, values in group.variables.items():
        _array(folder / str(name), values)


def declare(
    folder: Path,
    shape: Sequence[int],
    chunk: Sequence[int],
    dtype: np.dtype[Any],
    dims: Sequence[Any],
    attributes: Mapping[Any, Any] | None = None,
) -> None:
    """An array without its chunks, which are NaN, zero or empty until they come."""
    folder.mkdir(parents=True)
    content = json.dumps(dict(attributes or {}), default=_plain)
    _write_text(folder, _declaration(tuple(shape), tuple(chunk), dtype, tuple(map(str, dims)), content))


@lru_cache(maxsize=1000)
def _declaration(
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    dtype: np.dtype[Any],
    dims: tuple[str, ...],
    attributes: str,
) -> str:
    """Many arrays of a result, and those of the results of a campaign, have the same declaration."""
    text = dtype.kind in _TEXT
    facts = {
        "shape": shape,
        "data_type": "string" if text else dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": {"f": "NaN", "b": False}.get(dtype.kind, "" if text else 0),
        "codecs": _text_codecs() if text else _number_codecs(dtype),
        "attributes": json.loads(attributes),
        **({"dimension_names": dims} if dims else {}),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
    return json.dumps(facts, indent=2)


def put(folder: Path, at: int, values: np.ndarray[Any, Any], height: int) -> None:
    """Chunk `at` along the first dim, in one step; of the last one there may be less than `height`.

    The folder of the array must be there: a late writer must not make it again when it has moved on.
    """
    if values.size == 0:
        return
    empty = np.nan if values.dtype.kind == "f" else 0
    room = np.full((height, *values.shape[1:]), empty, values.dtype)
    room[: len(values)] = values
    place = _chunk(folder, at, values.ndim)
    staged = place.with_name(f"{place.name}.{secrets.token_hex(4)}{LITTER}")
    staged.write_bytes(encode(room))
    staged.replace(place)


def _array(folder: Path, given: xr.Variable) -> None:
    """A whole array in chunks of a bounded size along its first dim; text is one chunk."""
    held = xr.conventions.encode_cf_variable(given) if given.dtype.kind in _DATES else given
    values = np.asarray(held.values)
    if values.dtype.kind in _TEXT:
        values = values.astype(object)
    height = _height(values)
    chunk = [height, *(max(1, size) for size in values.shape[1:])] if values.ndim else []
    declare(folder, values.shape, chunk, values.dtype, held.dims, held.attrs)
    if not values.size:
        return
    if values.dtype.kind in _TEXT:
        _chunk(folder, 0, values.ndim).write_bytes(_encode_text(values))
    elif not values.ndim:
        (folder / "c").write_bytes(encode(values))
    else:
        for at, first in enumerate(range(0, len(values), height)):
            put(folder, at, values[first : first + height], height)


def _height(values: np.ndarray[Any, Any]) -> int:
    """Entries of the first dim in a chunk."""
    if values.ndim == 0 or values.dtype.kind in _TEXT:
        return max(1, len(values)) if values.ndim else 1
    each = values.itemsize * int(np.prod(values.shape[1:]))
    return max(1, min(len(values), LARGEST // max(each, 1)))


def _chunk(folder: Path, at: int, ndim: int) -> Path:
    """The file of a chunk: `c` for a number, else `c.AT.0.0`."""
    return folder / ".".join(["c", *([str(at)] if ndim else []), *["0"] * (ndim - 1)])


def _encode_text(values: np.ndarray[Any, Any]) -> bytes:
    """Number of texts, then length and UTF-8 of each, as Zarr's `vlen-utf8`; compressed, with a check sum."""
    held = [str(value).encode() for value in values.ravel()]
    plain = b"".join([_length(held), *(part for text in held for part in (_length(text), text))])
    payload = bytes(zstd.compress(plain, _ZSTD_LEVEL))
    return payload + crc32c(payload).to_bytes(TRAILER, "little")


def _length(of: Sequence[Any]) -> bytes:
    return len(of).to_bytes(4, "little")


def _number_codecs(dtype: np.dtype[Any]) -> list[Any]:
    wide = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
    return [{"name": "bytes", **wide}, *(codec.to_dict() for codec in zarr_codecs(dtype.itemsize))]


def _text_codecs() -> list[Any]:
    packed = {"name": "zstd", "configuration": {"level": _ZSTD_LEVEL, "checksum": False}}
    return [{"name": "vlen-utf8"}, packed, {"name": "crc32c"}]


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"an attribute is of the type {type(value).__name__}, which JSON does not know")


def _write_text(folder: Path, text: str) -> None:
    (folder / "zarr.json").write_text(text, "utf-8")
