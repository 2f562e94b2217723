"""How a dataset is cut into chunks and what identifies it: the same rules in memory and on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError

SCHEMA = "ibpdist.dataset/2"
READ = ("ibpdist.dataset/1", SCHEMA)
"""Schemas that can be read. In the first the labels of rows were not part of what a dataset is."""
LEAST_ENTRIES, MOST_ENTRIES = 1 << 14, 1 << 20
"""Between these are the entries that a chunk of counts has at most, but for a row that has more."""
ROW_ENTRIES = 16
"""A row of counts takes as much room in a chunk as so many entries, or as its own if it has more."""
TARGET_BYTES = 16 << 20
LIMIT_BYTES = 64 << 20


def default_chunk_rows(columns: int, dtype: np.dtype[Any]) -> int:
    """Rows of a chunk: the largest power of two with at most 16 MB (engine.md 8)."""
    row = columns * dtype.itemsize
    if row > LIMIT_BYTES:
        raise InputError(
            f"one row of {columns} columns takes {row >> 20} MB, a chunk at most {LIMIT_BYTES >> 20} MB:"
            " split the columns into several datasets"
        )
    return 1 << max(0, (TARGET_BYTES // row).bit_length() - 1)


def checked_chunk_rows(chunk_rows: int | None, columns: int, dtype: np.dtype[Any]) -> int:
    """The chunk size asked for, or the default one; refuses chunks of no rows and of more than 64 MB."""
    fitting = default_chunk_rows(columns, dtype)
    if chunk_rows is None:
        return fitting
    if chunk_rows < 1:
        raise UsageError(f"chunk_rows is {chunk_rows}: expected 1 or more")
    size = chunk_rows * columns * dtype.itemsize
    if size > LIMIT_BYTES:
        raise UsageError(
            f"chunk_rows is {chunk_rows}, which makes chunks of {size >> 20} MB;"
            f" at most {LIMIT_BYTES >> 20} MB are allowed: use {fitting}"
        )
    return chunk_rows


def chunk_count(rows: int, chunk_rows: int) -> int:
    return -(-rows // chunk_rows)


def chunk_bounds(index: int, rows: int, chunk_rows: int) -> tuple[int, int]:
    """First row of a chunk and the row after its last."""
    if not 0 <= index < chunk_count(rows, chunk_rows):
        raise IndexError(f"chunk {index} of {chunk_count(rows, chunk_rows)}")
    return index * chunk_rows, min(rows, (index + 1) * chunk_rows)


def content_hash(x: NDArray[Any]) -> str:
    """Hash of the values of a chunk (rows, columns); missing cells are NaN of one kind."""
    little = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<"))
    return hashlib.sha256(little.data.cast("B")).hexdigest()


def labels_hash(coords: Mapping[str, NDArray[Any]]) -> str:
    """Hash of the labels and covariates of the rows of a chunk by name; empty where there are none."""
    if not coords:
        return ""
    held = [[name, values.dtype.kind, _plain(values)] for name, values in sorted(coords.items())]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()


def dataset_fingerprint(
    rows: int,
    columns: int,
    dtype: np.dtype[Any],
    chunk_rows: int,
    hashes: Sequence[str],
    labels: Sequence[str] = (),
) -> str:
    """Hash of shape, type, chunking, and the hashes of values and labels of each chunk.

    A store and the array it was made from share it.
    """
    outline = [rows, columns, dtype.name, min(rows, chunk_rows), list(hashes)]
    if any(labels):
        outline.append(list(labels))
    return hashlib.sha256(json.dumps(outline).encode()).hexdigest()


def counts_hash(lengths: NDArray[Any], columns: NDArray[Any], counts: NDArray[Any]) -> str:
    """Hash of the rows of a chunk of counts: how many cells of each are not zero, which, and their counts."""
    made = hashlib.sha256()
    for values in (lengths, columns, counts):
        made.update(np.ascontiguousarray(values, dtype="<i8").data.cast("B"))
    return made.hexdigest()


def counts_fingerprint(
    rows: int, columns: int, stops: Sequence[int], hashes: Sequence[str], labels: Sequence[str]
) -> str:
    """Hash of shape, chunking, and the hashes of values and labels of each chunk of counts."""
    outline = ["counts", rows, columns, list(stops), list(hashes)]
    if any(labels):
        outline.append(list(labels))
    return hashlib.sha256(json.dumps(outline).encode()).hexdigest()


def most_entries(columns: int) -> int:
    """Entries of a chunk of counts: about 16 for each column, so that a step adds up few sums of columns."""
    return min(MOST_ENTRIES, max(LEAST_ENTRIES, 1 << (16 * columns - 1).bit_length()))


def room_of(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """(row) the room that rows take in a chunk, from their numbers of entries (row)."""
    return np.asarray(np.maximum(lengths, ROW_ENTRIES), np.int64)


def chunk_stops(lengths: NDArray[Any], most: int, used: int = 0) -> list[int]:
    """Where chunks of rows end whose entries are `lengths` (row) in number: as late as `most` allows. The
    first chunk has rows already that take the room `used`, and may end before the first row."""
    total, stops = np.concatenate([[0], np.cumsum(room_of(lengths))]), [0]
    if used:
        stops.append(max(int(np.searchsorted(total, most - used, side="right")) - 1, 0))
    while stops[-1] < len(lengths):
        stop = int(np.searchsorted(total, total[stops[-1]] + most, side="right")) - 1
        stops.append(max(stop, stops[-1] + 1))
    return stops[1:]


def _plain(values: NDArray[Any]) -> list[Any]:
    """Text as it is, the bytes of numbers and dates."""
    if values.dtype.kind == "U":
        return list(values.tolist())
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return [little.tobytes().hex()]
