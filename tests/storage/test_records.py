"""Records come back bit for bit, or not at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ibpdist.base.errors import StorageError
from ibpdist.base.structs import Array, dims, struct
from ibpdist.storage import records


@struct("test-kept", since=1)
class Kept:
    value: Array = dims("feature")


@struct("test-outer", since=1)
class Outer:
    inner: Kept
    table: Array = dims("row column")
    flag: Array = dims("row")
    number: Array = dims("")


@struct("test-vacant", since=1)
class Vacant:
    """No arrays at all."""


def example(rows=50, dtype=np.float64):
    rng = np.random.default_rng(rows)
    table = rng.normal(size=(rows, 7)).astype(dtype)
    return Outer(Kept(np.arange(3)), table, table[:, 0] > 0, np.float64(rows))


def equal(one, other):
    fields = ("table", "flag", "number")
    same = all(np.array_equal(getattr(one, f), getattr(other, f), equal_nan=True) for f in fields)
    kinds = all(getattr(one, f).dtype == getattr(other, f).dtype for f in fields)
    return same and kinds and np.array_equal(one.inner.value, other.inner.value)


@pytest.mark.parametrize("rows", [0, 1, 50, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(tmp_path, rows, dtype):
    path, record = tmp_path / "a.rec", example(rows, dtype)
    digest = records.write(path, {"one": record})
    assert equal(records.read(path, "one"), record)
    assert records.check(path) == digest


def test_several_records_are_read_one_by_one(tmp_path):
    path = tmp_path / "a.rec"
    held = {str(n): example(n) for n in (10, 2000, 3)}
    records.write(path, held)
    assert records.names(path) == list(held)
    for name, record in held.items():
        assert equal(records.read(path, name), record)
    with pytest.raises(StorageError, match="holds no record '7'"):
        records.read(path, "7")


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_]),
        hnp.array_shapes(min_dims=1, max_dims=1, min_side=0, max_side=3000),
    )
)
def test_every_array_comes_back(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("records") / "a.rec"
    records.write(path, {"x": Kept(values)}, durable=False)
    found = records.read(path, "x").value
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes(), "NaN and -0.0 keep their bits"


def test_same_content_same_bytes(tmp_path):
    one = records.write(tmp_path / "a.rec", {"x": example(3000)})
    other = records.write(tmp_path / "b.rec", {"x": example(3000)})
    assert one == other
    assert (tmp_path / "a.rec").read_bytes() == (tmp_path / "b.rec").read_bytes()
    assert one != records.write(tmp_path / "c.rec", {"x": example(3001)})


def test_layout_in_memory_does_not_matter(tmp_path):
    plain = example(400)
    turned = Outer(plain.inner, np.asfortranarray(plain.table), plain.flag[::-1][::-1], plain.number)
    assert records.write(tmp_path / "a", {"x": plain}) == records.write(tmp_path / "b", {"x": turned})


def test_what_is_read_can_be_written_to(tmp_path):
    records.write(tmp_path / "a.rec", {"x": example(3000)})
    found = records.read(tmp_path / "a.rec", "x").table
    assert found.flags.writeable
    assert found.flags.c_contiguous


def test_a_record_without_arrays(tmp_path):
    records.write(tmp_path / "a.rec", {"x": Vacant()})
    assert type(records.read(tmp_path / "a.rec", "x")) is Vacant


def test_compressible_arrays_are_compressed(tmp_path):
    records.write(tmp_path / "a.rec", {"x": Kept(np.zeros(1 << 16))})
    assert (tmp_path / "a.rec").stat().st_size < 1 << 14


def test_text_and_objects_are_refused(tmp_path):
    with pytest.raises(TypeError, match="numbers and flags"):
        records.write(tmp_path / "a.rec", {"x": Kept(np.array(["a"]))})
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_is_found(tmp_path):
    path = tmp_path / "a.rec"
    records.write(path, {"one": example(40), "two": example(900)})
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in np.unique(np.concatenate([np.arange(60), rng.integers(len(raw), size=300)])):
        flipped = bytearray(raw)
        flipped[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with pytest.raises(StorageError, match=r"a\.rec: "):
            records.check(path)


@pytest.mark.parametrize("length", [0, 1, 7, 47, 48, 200, -1])
def test_every_truncation_is_found(tmp_path, length):
    path = tmp_path / "a.rec"
    records.write(path, {"one": example(900)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StorageError, match="damaged"):
        records.check(path)
    with pytest.raises(StorageError, match="damaged"):
        records.read(path, "one")


def test_appended_bytes_are_found(tmp_path):
    path = tmp_path / "a.rec"
    records.write(path, {"one": example(9)})
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(StorageError, match="length"):
        records.check(path)


def test_damage_to_one_record_leaves_the_others_readable(tmp_path):
    path = tmp_path / "a.rec"
    records.write(path, {"one": example(900), "two": example(800)})
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert equal(records.read(path, "one"), example(900))
    with pytest.raises(StorageError):
        records.read(path, "two")


def test_a_record_of_an_unknown_kind_is_refused_in_words(tmp_path):
    path = tmp_path / "a.rec"

    @struct("test-passing", since=1)
    class Passing:
        value: Array = dims("row")

    records.write(path, {"one": Passing(np.zeros(3))})
    from ibpdist.base import structs

    del structs._KINDS["test-passing"]
    with pytest.raises(StorageError, match="kind 'test-passing', which this version does not know"):
        records.read(path, "one")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(StorageError, match=r"none\.rec: No such file"):
        records.read(tmp_path / "none.rec", "one")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.rec"
    records.write(path, {"one": example(5)})

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records.Path, "replace", full)
    with pytest.raises(StorageError, match="No space left on device; free some space"):
        records.write(path, {"one": example(6)})
    assert equal(records.read(path, "one"), example(5))
    assert [p.name for p in tmp_path.iterdir()] == ["a.rec"]


def test_a_write_that_a_signal_ends_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.rec"
    records.write(path, {"one": example(5)})

    def stopped(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(records.os, "fsync", stopped)
    with pytest.raises(KeyboardInterrupt):
        records.write(path, {"one": example(6)})
    assert equal(records.read(path, "one"), example(5))
    assert [p.name for p in tmp_path.iterdir()] == ["a.rec"]
