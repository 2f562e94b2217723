"""Chunks: sizes, bounds, and what identifies a dataset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.layout import (
    LIMIT_BYTES,
    TARGET_BYTES,
    checked_chunk_rows,
    chunk_bounds,
    chunk_count,
    content_hash,
    dataset_fingerprint,
    default_chunk_rows,
)

F32, F64 = np.dtype("float32"), np.dtype("float64")


@given(st.integers(1, 2**21), st.sampled_from([F32, F64]))
def test_chunks_take_8_to_16_megabytes(columns, dtype):
    rows = default_chunk_rows(columns, dtype)
    size = rows * columns * dtype.itemsize
    assert size <= TARGET_BYTES
    assert size * 2 > TARGET_BYTES
    assert rows & (rows - 1) == 0


def test_wide_rows_make_chunks_of_one_row_until_they_do_not_fit():
    widest = LIMIT_BYTES // 8
    assert default_chunk_rows(widest, F64) == 1
    with pytest.raises(
        InputError, match=f"one row of {widest + 1} columns takes 64 MB, a chunk at most 64 MB"
    ):
        default_chunk_rows(widest + 1, F64)


def test_the_chunk_size_asked_for_is_checked():
    assert checked_chunk_rows(None, 256, F32) == 16384
    assert checked_chunk_rows(1000, 256, F32) == 1000
    with pytest.raises(UsageError, match="chunk_rows is 0: expected 1 or more"):
        checked_chunk_rows(0, 256, F32)
    with pytest.raises(UsageError, match="at most 64 MB are allowed: use 16384"):
        checked_chunk_rows(70000, 256, F32)


@given(st.integers(1, 1000), st.integers(1, 300))
def test_bounds_cover_every_row_once(rows, chunk_rows):
    bounds = [chunk_bounds(index, rows, chunk_rows) for index in range(chunk_count(rows, chunk_rows))]
    assert [row for start, stop in bounds for row in range(start, stop)] == list(range(rows))
    for outside in (-1, len(bounds)):
        with pytest.raises(IndexError):
            chunk_bounds(outside, rows, chunk_rows)


def test_hashes_are_of_values_not_of_memory():
    x = np.arange(12.0).reshape(3, 4)
    assert content_hash(x) == content_hash(np.asfortranarray(x)) == content_hash(x.astype(">f8"))
    assert content_hash(x) != content_hash(x.T)
    assert content_hash(np.array([[0.0]])) != content_hash(np.array([[-0.0]]))


def test_fingerprints_differ_in_everything_that_changes_a_fit():
    made = {
        dataset_fingerprint(*shape, hashes)
        for shape, hashes in [
            ((8, 3, F32, 4), ["a", "b"]),
            ((8, 3, F64, 4), ["a", "b"]),
            ((8, 3, F32, 5), ["a", "b"]),
            ((7, 3, F32, 4), ["a", "b"]),
            ((8, 4, F32, 4), ["a", "b"]),
            ((8, 3, F32, 4), ["b", "a"]),
        ]
    }
    assert len(made) == 6
    assert dataset_fingerprint(3, 3, F32, 4, ["a"]) == dataset_fingerprint(3, 3, F32, 99, ["a"])
