"""The codec chain of `x`: little-endian values, blosc lz4 with byte shuffle, crc32c last.

The same bytes that Zarr writes and reads; written out here because going straight from file to
buffer is nearly twice as fast (engine.md 8).
"""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np
from numcodecs import blosc
from numpy.typing import NDArray

TRAILER = 4
_LEVEL = 5


class Damaged(Exception):
    """The bytes of a chunk are not what was written; the text says how."""


def crc32c(data: bytes | NDArray[np.uint8], before: int = 0) -> int:
    """The check sum of bytes, or of those that gave `before` and then these."""
    return int(google_crc32c.extend(before, data))


def encode(x: NDArray[Any]) -> bytes:
    """Stored bytes of a full chunk (chunk row, column)."""
    little = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<"))
    payload = bytes(blosc.compress(little, b"lz4", _LEVEL, blosc.SHUFFLE))
    return payload + crc32c(payload).to_bytes(TRAILER, "little")


def decode(payload: bytes, trailer: bytes, out: NDArray[Any]) -> None:
    """Check the sum of a payload and unpack it into `out`, whose size it must have exactly."""
    if len(trailer) != TRAILER or crc32c(payload) != int.from_bytes(trailer, "little"):
        raise Damaged("the check sum does not match")
    try:
        blosc.decompress(payload, out)
    except (ValueError, RuntimeError) as error:
        raise Damaged(str(error)) from error


def zarr_codecs(itemsize: int) -> list[Any]:
    """The same chain in Zarr's words."""
    from zarr.codecs import BloscCodec, BloscShuffle, Crc32cCodec

    packed = BloscCodec(typesize=itemsize, cname="lz4", clevel=_LEVEL, shuffle=BloscShuffle.shuffle)
    return [packed, Crc32cCodec()]
