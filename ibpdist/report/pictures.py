"""A feature as a small image for a page: PNG in two colours over whatever the page is painted in.

Zero is clear, the largest magnitude opaque, so that the same image suits a light and a dark page.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

ABOVE, BELOW = (196, 74, 52), (45, 112, 186)
"""Red and blue of values above and below zero."""
LARGEST = 96
"""Pixels along a side; larger images are averaged over blocks."""


def data_uri(values: ArrayLike, shape: tuple[int, int], limit: float) -> str:
    """The address that holds the image of `values` (height x width); `limit` is opaque."""
    image = shrunk(np.asarray(values, np.float64).reshape(shape))
    return "data:image/png;base64," + base64.b64encode(png(painted(image, limit))).decode()


def painted(image: NDArray[np.float64], limit: float) -> NDArray[np.uint8]:
    """(height, width) as (height, width, 4): red, green, blue, opacity."""
    share = np.clip(np.abs(np.nan_to_num(image)) / (limit or 1.0), 0.0, 1.0)
    pixels = np.empty((*image.shape, 4), np.uint8)
    pixels[..., :3] = np.where(image[..., None] > 0, np.array(ABOVE), np.array(BELOW))
    pixels[..., 3] = np.rint(255 * share)
    return pixels


def shrunk(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most LARGEST pixels along each side, the edges filled up with themselves."""
    by = -(-max(image.shape) // LARGEST)
    if by <= 1:
        return image
    full = np.pad(image, [(0, -size % by) for size in image.shape], mode="edge")
    high, wide = (size // by for size in full.shape)
    blocks: NDArray[np.float64] = full.reshape(high, by, wide, by).mean(axis=(1, 3))
    return blocks


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of (height, width, 4); lines are stored as they are, without a filter."""
    high, wide, _ = pixels.shape
    lines = np.concatenate([np.zeros((high, 1), np.uint8), pixels.reshape(high, -1)], axis=1)
    head = struct.pack(">IIBBBBB", wide, high, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, body) for kind, body in parts)


def _part(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
