"""NumPy files: .npy mapped into memory, .npz unpacked one member at a time."""

from __future__ import annotations

import math
import shutil
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ibpdist.base.errors import InputError
from ibpdist.data.check import refuse_kind, refuse_shape
from ibpdist.data.sources.array import ArrayTable, table_of
from ibpdist.storage.files import storage_errors

_RATIO = 200
"""How many times its size a member of a .npz file may unpack to."""


def open_npy(path: Path, *, name: str = "", rows_in: str = "rows") -> ArrayTable:
    """A .npy file, read through a memory map; arrays of objects are refused, never unpickled."""
    name = name or path.name
    shape, dtype, offset = _header(path, name)
    refuse_kind(dtype, file=name)
    refuse_shape(shape, file=name)
    held, needed = path.stat().st_size - offset, math.prod(shape) * dtype.itemsize
    if held != needed:
        raise InputError(
            f"holds {held} bytes of values, its header promises {needed}: the file is damaged or cut short",
            file=name,
            kind="format",
        )
    return table_of(np.load(path, mmap_mode="r", allow_pickle=False), name, rows_in=rows_in)


def open_npz(path: Path, scratch: Path, *, key: str | None = None, rows_in: str = "rows") -> ArrayTable:
    """One array of a .npz file, unpacked to a file in `scratch` and mapped from there."""
    unpacked = scratch / "member.npy"
    try:
        with zipfile.ZipFile(path) as archive:
            member = _member(archive, path.name, key)
            with archive.open(member) as packed, storage_errors(unpacked), unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 16)
    except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
        raise InputError(f"is not a readable .npz file: {error}", file=path.name, kind="format") from None
    return open_npy(unpacked, name=path.name, rows_in=rows_in)


def _header(path: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, type and place of the values of a .npy file."""
    if path.stat().st_size == 0:
        raise InputError("is empty", file=name, kind="empty")
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
            read = read or np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            return shape, dtype, file.tell()
    except (ValueError, EOFError) as error:
        raise InputError(f"is not a readable .npy file: {error}", file=name, kind="format") from None


def _member(archive: zipfile.ZipFile, file: str, key: str | None) -> zipfile.ZipInfo:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    names = ", ".join(sorted(members)) or "none"
    if key is None and len(members) != 1:
        raise InputError(
            f"holds {len(members)} arrays ({names}): choose one with --key", file=file, kind="key"
        )
    if key is not None and key not in members:
        raise InputError(f"has no array {key!r}, only {names}", file=file, kind="key")
    member = next(iter(members.values())) if key is None else members[key]
    if member.file_size > _RATIO * max(member.compress_size, 1 << 16):
        raise InputError(
            f"array {member.filename!r} unpacks to more than {_RATIO} times its size: not unpacked",
            file=file,
            kind="format",
        )
    return member
