"""The manifest: written and read back, and any change of it is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import StorageError
from ibpdist.data.manifest import NAME, ChunkEntry, Manifest, encode, load

MADE = Manifest(
    rows=40,
    columns=7,
    dtype="float32",
    chunk_rows=16,
    fingerprint="f" * 64,
    chunks=(ChunkEntry("a" * 64, 0), ChunkEntry("b" * 64, 3), ChunkEntry("c" * 64, 2)),
    files={"x/c/0/0": (100, "0011223344556677"), "zarr.json": (5, "00")},
)


def written(tmp_path, raw):
    (tmp_path / "x").mkdir(exist_ok=True)
    (tmp_path / NAME).write_bytes(raw)
    return tmp_path


def test_what_is_written_is_read(tmp_path):
    assert load(written(tmp_path, encode(MADE))) == MADE
    assert MADE.missing == 5


@given(at=st.integers(0, 8 * len(encode(MADE)) - 1))
def test_any_flipped_bit_is_noticed(tmp_path_factory, at):
    raw = bytearray(encode(MADE))
    raw[at // 8] ^= 1 << at % 8
    with pytest.raises(StorageError, match=r"manifest\.json is damaged"):
        load(written(tmp_path_factory.mktemp("m"), bytes(raw)))


@pytest.mark.parametrize("keep", [0, 1, 63, 64, 65, 200, -1])
def test_any_cut_is_noticed(tmp_path, keep):
    with pytest.raises(StorageError, match=r"manifest\.json is damaged"):
        load(written(tmp_path, encode(MADE)[:keep]))


def test_more_after_the_end_is_noticed(tmp_path):
    for tail in (b"\n", b"x", encode(MADE)):
        with pytest.raises(StorageError, match="is damaged"):
            load(written(tmp_path, encode(MADE) + tail))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(StorageError, match="is not a dataset of ibpdist"):
        load(tmp_path)
    (tmp_path / NAME).mkdir(parents=True)
    with pytest.raises(StorageError, match=r"manifest\.json cannot be read"):
        load(tmp_path)
    (tmp_path / "file").write_bytes(np.arange(3).tobytes())
    with pytest.raises(StorageError, match="is not a dataset of ibpdist"):
        load(tmp_path / "file")
