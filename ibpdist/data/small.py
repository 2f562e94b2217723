"""Arrays written straight to files of Zarr version 3.

What xarray and Zarr would write, without the two milliseconds that they take for each array or chunk: the
results of a campaign are thousands of them. A group is small when xarray has nothing to add to it: numbers
only, each array one chunk, and no coordinates but those with the name of a dim.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.data.codec import encode, zarr_codecs

MOST = 1 << 20
"""Bytes of an array that is one chunk."""
CHUNKS = "c"
LITTER = ".partial"
"""Ends the names of chunks that are being written, which a process that is killed leaves behind."""


def is_small(group: xr.Dataset) -> bool:
    """Whether `write` can write it."""
    plain = all(values.dtype.kind in "biuf" and values.nbytes <= MOST for values in group.variables.values())
    indexes = all(name in group.dims for name in group.coords)
    return plain and indexes and _is_text(dict(group.attrs))


def write(folder: Path, group: xr.Dataset, exist_ok: bool = False) -> None:
    """A group with its arrays, in a folder that is new, or may be there and has none of them."""
    folder.mkdir(exist_ok=exist_ok)
    facts = {"attributes": dict(group.attrs), "zarr_format": 3, "node_type": "group"}
    _write_text(folder, json.dumps(facts, indent=2))
    for name, values in group.variables.items():
        _array(folder / str(name), np.asarray(values.values), values.dims)


def declare(
    folder: Path, shape: Sequence[int], chunk: Sequence[int], dtype: np.dtype[Any], dims: Sequence[Any]
) -> None:
    """An array without its chunks, which are NaN or zero until they come."""
    folder.mkdir(parents=True)
    _write_text(folder, _declaration(tuple(shape), tuple(chunk), dtype, tuple(map(str, dims))))


@lru_cache(maxsize=1000)
def _declaration(
    shape: tuple[int, ...], chunk: tuple[int, ...], dtype: np.dtype[Any], dims: tuple[str, ...]
) -> str:
    """The same for many an array of a result, and for all results of a campaign."""
    wide = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
    chain = [{"name": "bytes", **wide}, *(codec.to_dict() for codec in zarr_codecs(dtype.itemsize))]
    facts = {
        "shape": shape,
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": {"f": "NaN", "b": False}.get(dtype.kind, 0),
        "codecs": chain,
        "attributes": {},
        **({"dimension_names": dims} if dims else {}),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
    return json.dumps(facts, indent=2)


def put(folder: Path, at: int, values: np.ndarray[Any, Any], height: int) -> None:
    """Chunk `at` along the first dim, in one step; of the last one there may be less than `height`.

    The folder of the chunks must be there: who comes when the array has moved on must not make it again.
    """
    if values.size == 0:
        return
    empty = np.nan if values.dtype.kind == "f" else 0
    room = np.full((height, *values.shape[1:]), empty, values.dtype)
    room[: len(values)] = values
    place = folder / CHUNKS / str(at)
    for _ in values.shape[1:]:
        place.mkdir(exist_ok=True)
        place /= "0"
    staged = place.with_name(f"{place.name}.{secrets.token_hex(4)}{LITTER}")
    staged.write_bytes(encode(room))
    staged.replace(place)


def _array(folder: Path, values: np.ndarray[Any, Any], dims: Sequence[Any]) -> None:
    declare(folder, values.shape, [max(1, size) for size in values.shape], values.dtype, dims)
    if values.size:
        place = folder.joinpath(CHUNKS, *("0" for _ in values.shape))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encode(values))


def _is_text(attributes: dict[Any, Any]) -> bool:
    """Whether attributes are what JSON knows, as it is."""
    try:
        return bool(json.loads(json.dumps(attributes, allow_nan=False)) == attributes)
    except (TypeError, ValueError):
        return False


def _write_text(folder: Path, text: str) -> None:
    (folder / "zarr.json").write_text(text, "utf-8")
