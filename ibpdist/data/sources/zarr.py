"""Existing Zarr arrays and groups, version 2 or 3, that other programs made."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ibpdist.base.errors import IbpError, InputError, StorageError, UsageError
from ibpdist.data.labels import Labels, as_labels
from ibpdist.data.sources._base import Block
from ibpdist.data.sources.array import ArrayTable
from ibpdist.data.sources.packed import DIMS, Packing, packing_of
from ibpdist.storage.zarr_groups import refuse_large_metadata

CHUNK_LIMIT = 1 << 30
_MARKERS = ("zarr.json", ".zarray", ".zgroup")


def is_zarr(path: Path) -> bool:
    return any((path / marker).is_file() for marker in _MARKERS)


def open_zarr(path: Path, *, key: str | None = None) -> ArrayTable:
    """The array at a path, or of a group the array `key`, or x, or the only two-dimensional one."""
    import zarr

    refuse_large_metadata(path)
    try:
        node: Any = zarr.open(path, mode="r")
        group = node if hasattr(node, "members") else None
        array = _alone(node, path, key) if group is None else _chosen(group, path, key)
    except IbpError:
        raise
    except Exception as error:
        raise StorageError(f"{path.name}: is not readable as Zarr: {error}") from error
    return ZarrTable(array, group, path)


class ZarrTable(ArrayTable):
    """A Zarr array; reads whole chunks of it where they fit, and as the numbers that are meant."""

    def __init__(self, array: Any, group: Any, path: Path) -> None:
        self._array, name = array, path.name
        _refuse_large_chunks(array, name)
        self._packing = packing_of(array, name)
        dims = _dims(array)
        super().__init__(
            self._read,
            array.shape,
            self._packing.dtype if array.dtype.kind != "T" else np.dtype(object),
            name=name,
            rows=_along(group, array, dims, 0, "row"),
            columns=_along(group, array, dims, 1, "column"),
            notes=[
                *(f"{name}: {note}" for note in self._packing.notes),
                *_absent(array, path, self._packing),
            ],
        )

    def blocks(self, rows: int) -> Iterator[Block]:
        own = int(self._array.chunks[0])
        return super().blocks(max(own, rows // own * own) if own <= rows else rows)

    def _read(self, start: int, stop: int) -> Any:
        try:
            stored = np.asarray(self._array[start:stop])
        except Exception as error:
            raise StorageError(
                f"{self.name}: rows {start} to {stop - 1} of array {self._array.path or 'x'}"
                f"{_first_damaged(self._array, start, stop)} are damaged or unreadable: {error}"
            ) from error
        return self._packing.unpack(stored, start=start, file=self.name)


def _alone(array: Any, path: Path, key: str | None) -> Any:
    if key is not None:
        raise UsageError(f"{path.name}: is one array and no group: leave key={key!r} out")
    return array


def _chosen(group: Any, path: Path, key: str | None) -> Any:
    arrays = {name: member for name, member in group.members() if hasattr(member, "chunks")}
    if key is not None:
        if key not in arrays:
            raise InputError(
                f"has no array {key!r}, only {', '.join(sorted(arrays))}", file=path.name, kind="key"
            )
        return arrays[key]
    if "x" in arrays:
        return arrays["x"]
    flat = [name for name, member in arrays.items() if len(member.shape) == 2]
    if len(flat) != 1:
        names = ", ".join(sorted(flat)) or "none"
        raise InputError(
            f"has no array x and not exactly one of two dimensions ({names}): choose one with --key",
            file=path.name,
            kind="key",
        )
    return arrays[flat[0]]


def _refuse_large_chunks(array: Any, name: str) -> None:
    size = math.prod(array.chunks) * max(1, array.dtype.itemsize)
    if size > CHUNK_LIMIT:
        raise StorageError(
            f"{name}: has chunks of {size >> 20} MB, at most {CHUNK_LIMIT >> 20} MB are read: rechunk it"
        )


def _grid(array: Any) -> tuple[int, ...]:
    """Shape of what lies in one file."""
    return tuple(getattr(array, "shards", None) or array.chunks)


def _first_damaged(array: Any, start: int, stop: int) -> str:
    """The chunk that cannot be read, in brackets; empty where each can by itself."""
    height, width = _grid(array)
    for i in range(start // height, -(-stop // height)):
        for j in range(-(-array.shape[1] // width)):
            try:
                array[i * height : (i + 1) * height, j * width : (j + 1) * width]
            except Exception:  # noqa: BLE001  (whatever its codecs raise)
                return f" (chunk {array.metadata.encode_chunk_key((i, j))})"
    return ""


def _dims(array: Any) -> tuple[str, ...]:
    named = getattr(array.metadata, "dimension_names", None) or array.attrs.get(DIMS) or ()
    return tuple(str(dim) for dim in named)


def _along(group: Any, array: Any, dims: tuple[str, ...], axis: int, role: str) -> dict[str, Labels]:
    """One-dimensional arrays of the group along the same dim; the one named like it becomes `role`."""
    if group is None or len(dims) != 2:
        return {}
    coords = {}
    for name, member in group.members():
        if getattr(member, "shape", None) == (array.shape[axis],) and _dims(member) == (dims[axis],):
            meant = packing_of(member, name).unpack(np.asarray(member[...]), file=name)
            coords[role if name == dims[axis] else name] = as_labels(meant)
    return coords


def _absent(array: Any, path: Path, packing: Packing) -> list[str]:
    """A note when chunks are not on disk; counted by their files, in constant memory."""
    expected = math.prod(-(-size // step) for size, step in zip(array.shape, _grid(array), strict=True))
    absent = sum(
        not name.startswith((".", "zarr.json"))
        for _, _, names in os.walk(path / str(array.path or ""))
        for name in names
    )
    if absent >= expected:
        return []
    stored = f"{path.name}: {expected - absent} of {expected} chunks are not on disk"
    fill = np.full(1, 0 if array.fill_value is None else array.fill_value, array.dtype)
    return [f"{stored} and are read as {packing.unpack(fill)[0]}, as Zarr defines it"]
