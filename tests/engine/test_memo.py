"""What a process keeps may be lost at any time; it may never be wrong."""

import numpy as np
import pytest

from ibpdist.base.errors import StorageError
from ibpdist.engine.memo import InFiles, InMemory, PinnedData
from ibpdist.model.observations._base import RowState
from tests.support.toy import ToyLocal, blobs


class Counting:
    """A source that counts its reads."""

    def __init__(self, source):
        self._source, self.reads = source, []

    def __getattr__(self, name):
        return getattr(self._source, name)

    def read(self, index):
        self.reads.append(index)
        return self._source.read(index)


def chunk_bytes(source):
    return source.read(0).x.nbytes


def test_a_cyclic_scan_hits_what_came_first():
    source = Counting(blobs(rows=100, width=10))
    data = PinnedData(source, 4 * chunk_bytes(source))
    source.reads.clear()
    for _ in range(3):
        for index in range(10):
            data.read(index)
    assert source.reads == [*range(10), *range(4, 10), *range(4, 10)]
    assert data.held <= data.limit


def test_without_a_limit_nothing_is_kept():
    source = Counting(blobs())
    data = PinnedData(source)
    data.read(0)
    data.read(0)
    assert source.reads == [0, 0]
    assert data.held == 0


def test_masks_count():
    source = blobs(rows=20, width=10)
    chunk = source.read(0)
    masked = type(chunk)(0, 0, chunk.x, np.ones(chunk.x.shape, bool))
    data = PinnedData(type("Masked", (), {"read": lambda _, i: masked})(), chunk.x.nbytes)
    data.read(0)
    assert data.held == 0, "the chunk fits, the chunk with its mask does not"


def state(value):
    return ToyLocal(np.full((4, 3), value))


@pytest.fixture(params=["memory", "files"])
def memo(request, tmp_path):
    return InMemory() if request.param == "memory" else InFiles(tmp_path / "state")


def test_newest_state_of_each_chunk(memo):
    memo.put(0, 1, state(1.0))
    memo.put(0, 2, state(2.0))
    memo.put(5, 1, state(5.0))
    assert memo.get(0)[0] == 2
    assert np.array_equal(memo.get(0)[1].share, state(2.0).share)
    assert memo.get(5)[0] == 1
    assert memo.get(1) is None


DAMAGE = {
    "a flipped bit at the end": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
    "a flipped bit in the middle": lambda raw: raw[:40] + bytes([raw[40] ^ 128]) + raw[41:],
    "two values exchanged": lambda raw: raw[8:16] + raw[:8] + raw[16:],
    "cut short": lambda raw: raw[:-16],
    "too long": lambda raw: raw + bytes(1),
    "empty": lambda raw: b"",
    "zeros, as after a loss of power": lambda raw: bytes(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_a_miss(tmp_path, damage):
    memo = InFiles(tmp_path)
    memo.put(0, 1, ToyLocal(np.random.default_rng(1).random((4, 3))))
    path = tmp_path / "0.state"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert memo.get(0) is None


def test_a_deleted_file_is_a_miss_until_it_is_written_again(tmp_path):
    memo = InFiles(tmp_path)
    memo.put(0, 1, state(1.0))
    (tmp_path / "0.state").unlink()
    assert memo.get(0) is None
    memo.put(0, 2, state(2.0))
    assert memo.get(0)[0] == 2


def test_a_record_of_several_arrays_of_any_shape(tmp_path):
    """Odd sizes, none at all, several types: the same values, each array where the processor likes it."""
    memo, rng = InFiles(tmp_path), np.random.default_rng(2)
    for rows, width, dtype in [(5, 0, np.float32), (7, 3, np.float64), (0, 0, np.float32)]:
        z, w = rng.random((3, rows)).astype(dtype), rng.random((width, rows)).astype(dtype)
        memo.put(0, rows, RowState(ids=np.arange(3), z=z, w=w))
        step, held = memo.get(0)
        assert step == rows
        for found, given in ((held.ids, np.arange(3)), (held.z, z), (held.w, w)):
            assert found.dtype == given.dtype
            assert found.flags.aligned
            np.testing.assert_array_equal(found, given)


def test_a_shorter_state_replaces_a_longer_one(tmp_path):
    memo = InFiles(tmp_path)
    memo.put(0, 1, ToyLocal(np.ones((40, 3))))
    memo.put(0, 2, ToyLocal(np.zeros((2, 3))))
    assert memo.get(0)[1].share.shape == (2, 3)


def test_what_cannot_be_written_names_the_file_and_is_forgotten(tmp_path):
    memo = InFiles(tmp_path)
    memo.put(0, 1, state(1.0))
    (tmp_path / "0.state").unlink()
    (tmp_path / "0.state").mkdir()
    with pytest.raises(StorageError, match=r"0\.state: Is a directory"):
        memo.put(0, 2, state(2.0))
    assert memo.get(0) is None


def test_the_file_of_another_step_is_a_miss(tmp_path):
    memo = InFiles(tmp_path)
    memo.put(0, 1, state(1.0))
    other = InFiles(tmp_path)
    other.put(0, 2, state(2.0))
    assert memo.get(0) is None


def test_files_are_not_shared_between_starts(tmp_path):
    InFiles(tmp_path).put(0, 1, state(1.0))
    assert InFiles(tmp_path).get(0) is None, "a new process does not know what wrote the file"
