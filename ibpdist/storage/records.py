"""Named records (structs) in one file that checks itself; never pickle.

    8 bytes   name and version of the format
    32 bytes  sha256 of the header
    8 bytes   length of the header, little endian
    header    JSON: for each record its outline, and for each array dtype, shape, codec, place, sha256
    buffers   arrays in C order, blosc-lz4 with shuffle when that is shorter

The hash of the header covers every buffer, so it stands for the whole file in a manifest. One
record is read without reading the others.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numcodecs import blosc

from ibpdist.base.errors import StorageError
from ibpdist.base.structs import Array, UnreadableRecord, pack, unpack

MAGIC = b"ibprec1\n"
PREAMBLE = len(MAGIC) + 32 + 8
SMALL = 1 << 12
LARGEST_HEADER = 1 << 28


def write(path: Path, held: Mapping[str, Any], *, durable: bool = True) -> str:
    """Write a file beside its final name and rename it; returns the hash that stands for it.

    `durable` waits until the content is on disk (a memo need not).
    """
    parts = _parts(held)
    replace_file(path, parts, durable=durable)
    return parts[1].hex()


def to_bytes(held: Mapping[str, Any]) -> bytes:
    """What `write` puts into a file."""
    return b"".join(_parts(held))


def read(path: Path, name: str) -> Any:
    """The record `name` of a file; a StorageError names the file when it is damaged."""
    with _open(path) as file:
        return _named(path, file, name)


def from_bytes(content: bytes, name: str, where: Path) -> Any:
    """The record `name` in what `to_bytes` made; errors say `where` it was."""
    return _named(where, BytesIO(content), name)


def _named(path: Path, file: BinaryIO, name: str) -> Any:
    header, _ = _header(path, file)
    if name not in header:
        raise StorageError(f"{path}: holds no record {name!r}")
    return _decode(path, file, header[name])


def read_all(path: Path) -> Iterator[tuple[str, Any]]:
    """Every record of a file with its name, one after the other."""
    with _open(path) as file:
        header, _ = _header(path, file)
        for name, entry in header.items():
            yield name, _decode(path, file, entry)


def check(path: Path) -> str:
    """Read all of a file; returns its hash, or raises a StorageError that says what is wrong."""
    with _open(path) as file:
        header, digest = _header(path, file)
        places = [place for entry in header.values() for place in entry["arrays"].values()]
        end = max((place["at"] + place["bytes"] for place in places), default=file.tell())
        for entry in header.values():
            _decode(path, file, entry)
        if os.fstat(file.fileno()).st_size != end:
            raise StorageError(f"{path}: damaged: its length is not the one it was written with")
    return digest


def names(path: Path) -> list[str]:
    with _open(path) as file:
        return list(_header(path, file)[0])


def replace_file(path: Path, parts: list[bytes], *, durable: bool = True) -> None:
    """Put a file in place in one step: old or new content after a crash, never a mixture."""
    staged = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with staged.open("xb") as file:
            file.writelines(parts)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        staged.replace(path)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_error(path, error) from error
        raise


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power loss."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """What the operating system says of files becomes a StorageError; `path` stands in for a nameless one."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise storage_error(Path(error.filename or path), error) from error


def storage_error(path: Path, error: OSError) -> StorageError:
    advice = {
        errno.ENOSPC: "; free some space and resume",
        errno.EROFS: "; choose a place that can be written",
        errno.EACCES: "; choose a place that can be written",
    }
    return StorageError(f"{path}: {os.strerror(error.errno or 0)}{advice.get(error.errno or 0, '')}")


def _parts(held: Mapping[str, Any]) -> list[bytes]:
    """Name of the format, hash and length of the header, the header, and the buffers."""
    header, buffers = _encode(held)
    return [MAGIC, hashlib.sha256(header).digest(), len(header).to_bytes(8, "little"), header, *buffers]


def _encode(held: Mapping[str, Any]) -> tuple[bytes, list[bytes]]:
    """The header of a file of records, and the buffers that follow it."""
    buffers: list[bytes] = []
    entries: dict[str, Any] = {}
    at = 0  # from the end of the header; a reader adds its length
    for name, record in held.items():
        outline, arrays = pack(record)
        places = {}
        for field, array in arrays.items():
            places[field], buffer = _encode_array(array)
            places[field]["at"] = at
            at += len(buffer)
            buffers.append(buffer)
        entries[name] = {"outline": outline, "arrays": places}
    return json.dumps(entries, separators=(",", ":")).encode(), buffers


def _encode_array(array: Array) -> tuple[dict[str, Any], bytes]:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a record holds numbers and flags, not {array.dtype}")
    plain = np.ascontiguousarray(array)
    buffer, codec = b"", "raw"
    if plain.nbytes > SMALL:
        buffer, codec = blosc.compress(plain, b"lz4", 5, blosc.SHUFFLE), "blosc"
    if codec == "raw" or len(buffer) >= plain.nbytes:
        buffer, codec = plain.tobytes(), "raw"
    digest = hashlib.sha256(buffer).hexdigest()
    place = {"dtype": array.dtype.str, "shape": list(array.shape), "codec": codec}
    return place | {"bytes": len(buffer), "sha256": digest}, buffer


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise storage_error(path, error) from error


def _header(path: Path, file: BinaryIO) -> tuple[dict[str, Any], str]:
    preamble = file.read(PREAMBLE)
    size = int.from_bytes(preamble[-8:], "little")
    if len(preamble) < PREAMBLE or not preamble.startswith(MAGIC) or size > LARGEST_HEADER:
        raise StorageError(f"{path}: damaged: not a file of records of this version")
    text = file.read(size)
    digest = hashlib.sha256(text)
    if len(text) != size or digest.digest() != preamble[len(MAGIC) : -8]:
        raise StorageError(f"{path}: damaged: the header does not match its hash")
    entries: dict[str, Any] = json.loads(text)
    for entry in entries.values():
        for place in entry["arrays"].values():
            place["at"] += PREAMBLE + size
    return entries, digest.hexdigest()


def _decode(path: Path, file: BinaryIO, entry: Mapping[str, Any]) -> Any:
    arrays = {field: _decode_array(path, file, field, place) for field, place in entry["arrays"].items()}
    try:
        return unpack(entry["outline"], arrays)
    except UnreadableRecord as error:
        raise StorageError(f"{path}: {error}") from error


def _decode_array(path: Path, file: BinaryIO, field: str, place: Mapping[str, Any]) -> Array:
    file.seek(place["at"])
    buffer = file.read(place["bytes"])
    if len(buffer) != place["bytes"] or hashlib.sha256(buffer).hexdigest() != place["sha256"]:
        raise StorageError(f"{path}: damaged: {field} does not match its hash")
    array = np.empty(place["shape"], place["dtype"])
    if place["codec"] == "blosc":
        blosc.decompress(buffer, array)
    elif array.size:
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(buffer, np.uint8)
    return array
