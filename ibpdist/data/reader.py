"""Reading one chunk of `x`: straight from file to buffer where we can, through Zarr elsewhere.

Both readers give the same array and the same error: a missing or damaged chunk is a StorageError
that names store, array and chunk, never a fill value.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import StorageError
from ibpdist.storage import codec


class ChunkReader(Protocol):
    """Full stored chunks (chunk row, column) by index, NaN where cells are missing."""

    def read(self, index: int, out: NDArray[Any]) -> None: ...


def damaged(store: Path, name: str, how: str) -> StorageError:
    """The error for a stored file that is missing or not what was written."""
    array, _, key = name.rpartition("/c/")
    where = f"array {array}, chunk c/{key}" if array else name
    return StorageError(f"{store}: {where}: {how}: restore the store or ingest again")


class DirectReader:
    """pread, check sum, blosc into the caller's buffer (engine.md 8)."""

    def __init__(self, store: Path, files: dict[str, tuple[int, str]]) -> None:
        self._store, self._files = store, files

    def read(self, index: int, out: NDArray[Any]) -> None:
        name = f"x/c/{index}/0"
        size, total = self._files[name]
        payload, trailer = load_file(self._store, name, size)
        if trailer.hex() != total[-2 * codec.TRAILER :]:
            raise damaged(self._store, name, "the check sum is not that of the manifest")
        try:
            codec.decode(payload, trailer, out)
        except codec.Damaged as error:
            raise damaged(self._store, name, str(error)) from None


class ZarrReader:
    """The same through Zarr, whatever the codecs; the file is checked against the manifest first."""

    def __init__(self, store: Path, files: dict[str, tuple[int, str]]) -> None:
        import zarr

        self._store, self._files = store, files
        self._array: Any = zarr.open_array(store / "x", mode="r", zarr_format=3)

    def read(self, index: int, out: NDArray[Any]) -> None:
        name = f"x/c/{index}/0"
        size, total = self._files[name]
        payload, trailer = load_file(self._store, name, size)
        if trailer.hex() != total[-2 * codec.TRAILER :]:
            raise damaged(self._store, name, "the check sum is not that of the manifest")
        if f"{codec.crc32c(payload):08x}" != total[: 2 * codec.TRAILER]:
            raise damaged(self._store, name, "the check sum does not match")
        start = index * len(out)
        try:
            values = self._array[start : start + len(out)]
        except Exception as error:
            raise damaged(self._store, name, str(error)) from error
        out[: len(values)], out[len(values) :] = values, np.nan


def reader_for(store: Path, files: dict[str, tuple[int, str]], codecs: list[Any]) -> ChunkReader:
    """The direct reader when the codec chain (as in zarr.json) is exactly ours."""
    return DirectReader(store, files) if _is_ours(codecs) else ZarrReader(store, files)


def _is_ours(codecs: list[Any]) -> bool:
    names = [entry.get("name") for entry in codecs]
    little = names == ["bytes", "blosc", "crc32c"] and codecs[0]["configuration"] == {"endian": "little"}
    return little and np.little_endian


def load_file(store: Path, name: str, size: int) -> tuple[bytes, bytes]:
    """Payload and trailer of a stored file, which must have exactly `size` bytes."""
    try:
        handle = os.open(store / name, os.O_RDONLY)
    except FileNotFoundError:
        raise damaged(store, name, "is missing") from None
    except OSError as error:
        raise damaged(store, name, f"cannot be read ({error.strerror})") from error
    try:
        found = os.fstat(handle).st_size
        if found != size:
            raise damaged(store, name, f"has {found} bytes instead of {size}")
        cut = max(0, size - codec.TRAILER)
        return _pread(handle, cut, 0), _pread(handle, size - cut, cut)
    except OSError as error:
        raise damaged(store, name, f"cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)


def _pread(handle: int, size: int, offset: int) -> bytes:
    data = os.pread(handle, size, offset)
    while len(data) < size:  # one call reads at most 2 GB, and may be interrupted
        more = os.pread(handle, size - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data
