"""NumPy files: .npy mapped into memory, .npz unpacked one member at a time."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ibpdist.data.sources.array import ArrayTable, table_of
from ibpdist.errors import InputError

_RATIO = 200


def open_npy(path: Path, *, name: str = "", rows_in: str = "rows") -> ArrayTable:
    """A .npy file, read through a memory map; arrays of objects are refused, never unpickled."""
    name = name or path.name
    if path.stat().st_size == 0:
        raise InputError("is empty", file=name, kind="empty")
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        if "object" in str(error).lower():
            raise InputError(
                "holds Python objects: expected real numbers, convert it first", file=name, kind="dtype"
            ) from None
        if "mmap" in str(error) or "reshape" in str(error):
            array = _empty_or_short(path, name)
        else:
            raise InputError(f"is not a readable .npy file: {error}", file=name, kind="format") from None
    return table_of(array, name, rows_in=rows_in)


def open_npz(path: Path, scratch: Path, *, key: str | None = None, rows_in: str = "rows") -> ArrayTable:
    """One array of a .npz file, unpacked to a file in `scratch` and mapped from there."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = _member(archive, path.name, key)
            if member.file_size > _RATIO * max(member.compress_size, 1 << 16):
                raise InputError(
                    f"array {member.filename!r} unpacks to more than {_RATIO} times its size: not unpacked",
                    file=path.name,
                    kind="format",
                )
            unpacked = scratch / "member.npy"
            with archive.open(member) as packed, unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
    except (zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"is not a readable .npz file: {error}", file=path.name, kind="format") from None
    return open_npy(unpacked, name=path.name, rows_in=rows_in)


def _member(archive: zipfile.ZipFile, file: str, key: str | None) -> zipfile.ZipInfo:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    names = ", ".join(sorted(members))
    if key is None:
        if len(members) != 1:
            raise InputError(
                f"holds {len(members)} arrays ({names}): choose one with --key", file=file, kind="key"
            )
        return next(iter(members.values()))
    if key not in members:
        raise InputError(f"has no array {key!r}, only {names}", file=file, kind="key")
    return members[key]


def _empty_or_short(path: Path, name: str) -> Any:
    """Files that cannot be mapped: arrays without cells are given as they are, short files refused."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"is cut short: {error}", file=name, kind="format") from None
