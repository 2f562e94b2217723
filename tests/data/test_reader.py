"""Both readers of a chunk: the same array, the same error, and never a fill value."""

import json

import numpy as np
import pytest
import zarr

from ibpdist.base.errors import StorageError
from ibpdist.data.manifest import encode, load
from ibpdist.data.reader import DirectReader, ZarrReader, reader_for
from ibpdist.data.store import open_dataset
from ibpdist.storage import codec
from tests.support.matrices import matrix, stored, values

READERS = [DirectReader, ZarrReader]


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(at: float):
    def flip(data: bytes) -> bytes:
        place = min(len(data) - 1, int(at * len(data)))
        return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]

    return flip


DAMAGE = {
    "empty": lambda data: b"",
    "half": truncated,
    "one byte short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "first byte": flipped(0),
    "middle": flipped(0.5),
    "trailer": flipped(1),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_array_is_what_was_written(tmp_path, reader, dtype):
    x = matrix(40, dtype=dtype, missing=5)
    data = stored(tmp_path / "a.zarr", x)
    made = reader(data.path, data.manifest.files)
    for index, start in enumerate(range(0, 40, 16)):
        out = np.zeros((16, 7), dtype=dtype)
        made.read(index, out)
        expected = np.full((16, 7), np.nan)
        expected[: len(x[start : start + 16])] = x[start : start + 16]
        np.testing.assert_array_equal(out, expected.astype(dtype))


def test_both_readers_give_the_same_bits(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix(40, missing=5))
    read = []
    for reader in READERS:
        out = np.empty((16, 7))
        reader(data.path, data.manifest.files).read(1, out)
        read.append(out.tobytes())
    assert read[0] == read[1]


@pytest.mark.parametrize("how", DAMAGE)
def test_both_readers_say_the_same_of_damage(tmp_path, how):
    data = stored(tmp_path / "a.zarr", matrix(40))
    file = data.path / "x/c/1/0"
    file.write_bytes(DAMAGE[how](file.read_bytes()))
    said = []
    for reader in READERS:
        with pytest.raises(StorageError) as caught:
            reader(data.path, data.manifest.files).read(1, np.empty((16, 7)))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert f"{data.path}: array x, chunk c/1/0: " in said[0]


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_chunk_is_an_error_and_its_neighbours_are_not(tmp_path, reader):
    x = matrix(40)
    data = stored(tmp_path / "a.zarr", x)
    (data.path / "x/c/1/0").unlink()
    out = np.empty((16, 7))
    made = reader(data.path, data.manifest.files)
    with pytest.raises(StorageError, match="array x, chunk c/1/0: is missing"):
        made.read(1, out)
    made.read(0, out)
    np.testing.assert_array_equal(out, x[:16])


@pytest.mark.parametrize("reader", READERS)
def test_swapped_chunks_are_found(tmp_path, reader):
    data = stored(tmp_path / "a.zarr", np.repeat([[3.0], [5.0]], 16, axis=0) * np.ones(7))
    one, two = (data.path / f"x/c/{i}/0" for i in (0, 1))
    first, second = one.read_bytes(), two.read_bytes()
    assert len(first) == len(second)  # otherwise the size would tell
    one.write_bytes(second)
    two.write_bytes(first)
    with pytest.raises(StorageError, match="not that of the manifest"):
        reader(data.path, data.manifest.files).read(0, np.empty((16, 7)))


def test_a_payload_of_another_size_is_refused_before_it_is_unpacked(tmp_path):
    payload = codec.encode(np.zeros((1000, 1000)))
    with pytest.raises(codec.Damaged):
        codec.decode(payload[:-4], payload[-4:], np.empty((2, 2)))
    assert codec.crc32c(b"123456789") == 0xE3069283  # RFC 3720, appendix B.4


def test_zarr_reads_our_bytes_and_we_read_those_of_zarr(tmp_path):
    x = matrix(16)
    data = stored(tmp_path / "a.zarr", x)
    np.testing.assert_array_equal(zarr.open_array(data.path / "x")[:], x)
    array = zarr.create_array(
        tmp_path / "b.zarr", shape=(16, 7), chunks=(16, 7), dtype="<f8", compressors=codec.zarr_codecs(8)
    )
    array[:] = x
    raw, out = (tmp_path / "b.zarr/c/0/0").read_bytes(), np.empty((16, 7))
    codec.decode(raw[:-4], raw[-4:], out)
    np.testing.assert_array_equal(out, x)


def test_another_codec_chain_goes_through_zarr(tmp_path):
    """A store whose chunks were rewritten with another chain, and its manifest with them."""
    x = matrix(40, missing=3)
    data = stored(tmp_path / "a.zarr", x)
    listed = load(data.path)
    (data.path / "x/zarr.json").unlink()
    array = zarr.create_array(
        data.path / "x",
        shape=(40, 7),
        chunks=(16, 7),
        dtype="<f8",
        compressors=[zarr.codecs.ZstdCodec(level=1), zarr.codecs.Crc32cCodec()],
        fill_value=np.nan,
        dimension_names=["row", "column"],
        overwrite=True,
    )
    array[:] = x
    _relist(data.path, listed)
    read = open_dataset(data.path)
    codecs = json.loads((data.path / "x/zarr.json").read_text())["codecs"]
    assert isinstance(reader_for(data.path, read.manifest.files, codecs), ZarrReader)
    np.testing.assert_array_equal(values(read), x)
    assert read.fingerprint == data.fingerprint
    assert read.verify() == []


def _relist(store, listed):
    from ibpdist.data.manifest import NAME, Manifest
    from ibpdist.storage.files import file_sum, stored_files

    raw = {name: (store / name).read_bytes() for name in stored_files(store) if name != NAME}
    sums = {name: (len(data), file_sum(data)) for name, data in raw.items()}
    (store / NAME).write_bytes(encode(Manifest(**{**vars(listed), "files": sums})))
