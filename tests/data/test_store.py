"""The store on disk: what is written is read, by us, by Zarr and by xarray."""

import warnings

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from ibpdist.base.errors import InputError, OutputInUse, StorageError, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.store import create, open_dataset
from tests.support.matrices import labels, listing, matrix, named, stored, values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 50])
def test_what_is_written_is_read(tmp_path, rows, dtype):
    x = matrix(rows, dtype=dtype)
    data = stored(tmp_path / "a.zarr", x)
    np.testing.assert_array_equal(values(data), x)
    assert (data.rows, data.columns, data.dtype) == (rows, 7, np.dtype(dtype))
    assert data.chunks == -(-rows // 16)
    assert data.missing == 0
    assert all(data.read(index).observed is None for index in range(data.chunks))


def test_chunks_are_where_bounds_say(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix(50))
    assert [data.bounds(index) for index in range(4)] == [(0, 16), (16, 32), (32, 48), (48, 50)]
    for index in range(4):
        chunk = data.read(index)
        assert (chunk.index, chunk.start, chunk.start + chunk.rows) == (index, *data.bounds(index))
        assert chunk.x.flags.c_contiguous
    for outside in (-1, 4):
        with pytest.raises(IndexError, match=f"chunk {outside} of 4"):
            data.read(outside)


@settings(max_examples=10)
@given(portions=st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(sum))
def test_portions_of_the_writer_do_not_matter(tmp_path_factory, portions):
    x, path = matrix(sum(portions), missing=3), tmp_path_factory.mktemp("p") / "a.zarr"
    names = np.array([f"r{i}" for i in range(len(x))])
    with create(path, columns=7, dtype="float64", chunk_rows=16) as writer:
        start = 0
        for size in portions:
            stop = start + size
            writer.append(x[start:stop], row_coords={"row": names[start:stop]})
            start = stop
    data = open_dataset(path)
    np.testing.assert_array_equal(values(data), x)
    assert labels(data, "row") == names.tolist()
    assert data.fingerprint == ArrayData(named(x, names), 16).fingerprint
    assert data.verify() == []


def test_missing_cells_are_zero_and_unobserved_when_read(tmp_path):
    x = matrix(40, missing=9)
    data = stored(tmp_path / "a.zarr", x)
    assert data.missing == 9
    np.testing.assert_array_equal(values(data), x)
    read = [data.read(index) for index in range(data.chunks)]
    for chunk in read:
        assert np.isfinite(chunk.x).all()
        if chunk.observed is not None:
            assert (chunk.x[~chunk.observed] == 0).all()
            assert not chunk.observed.all()


def test_a_mask_is_the_same_as_nan(tmp_path):
    x = matrix(40, missing=9)
    filled = np.where(np.isnan(x), np.inf, x)  # what is not observed is not looked at
    with create(tmp_path / "mask.zarr", columns=7, dtype="float64", chunk_rows=16) as writer:
        writer.append(filled, observed=~np.isnan(x))
    assert open_dataset(tmp_path / "mask.zarr").fingerprint == stored(tmp_path / "nan.zarr", x).fingerprint


def test_xarray_opens_it_without_a_word(tmp_path):
    x = matrix(40, missing=2)
    coords = {"row": [f"r{i}" for i in range(40)], "batch": np.arange(40) // 8}
    columns = {"column": list("abcdefg"), "length": np.arange(7.0)}
    stored(tmp_path / "a.zarr", x, row_coords=coords, column_coords=columns, source="a.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened = xr.open_zarr(tmp_path / "a.zarr")
        loaded = opened.load()
    assert loaded["x"].dims == ("row", "column")
    np.testing.assert_array_equal(loaded["x"].values, x)
    assert loaded.indexes["row"].tolist() == coords["row"]
    assert set(loaded.coords) == {"row", "column", "batch", "length"}
    assert loaded["x"].sel(row="r3", column="c") == x[3, 2] or np.isnan(x[3, 2])
    np.testing.assert_allclose(loaded["column_mean"], np.nanmean(x, axis=0))
    assert opened.attrs["source"] == "a.csv"
    assert opened.attrs["missing"] == 2


def test_the_codec_chain_is_what_the_design_says(tmp_path):
    stored(tmp_path / "a.zarr", matrix(40, dtype="float32"))
    array = zarr.open_array(tmp_path / "a.zarr/x", mode="r")
    told = array.metadata.to_dict()
    assert [codec["name"] for codec in told["codecs"]] == ["bytes", "blosc", "crc32c"]
    assert told["codecs"][1]["configuration"]["cname"] == "lz4"
    assert told["codecs"][1]["configuration"]["shuffle"] == "shuffle"
    assert np.isnan(array.fill_value)
    assert array.nchunks_initialized == array.nchunks == 3


def test_labels_and_summaries_are_kept(tmp_path):
    x = matrix(40, missing=5)
    coords = {"row": [f"é{i}" for i in range(40)], "dose": np.arange(40) / 4, "batch": np.arange(40)}
    data = stored(tmp_path / "a.zarr", x, row_coords=coords, column_coords={"column": list("abcdefg")})
    assert labels(data, "row") == coords["row"]
    assert labels(data, "dose") == coords["dose"].tolist()
    assert data.row_coords(2)["batch"].tolist() == list(range(32, 40))
    assert data.column_coords()["column"].tolist() == list("abcdefg")
    summary = data.column_summary()
    np.testing.assert_allclose(summary["mean"], np.nanmean(x, axis=0))
    np.testing.assert_allclose(summary["sd"], np.nanstd(x, axis=0))
    np.testing.assert_array_equal(summary["count"], (~np.isnan(x)).sum(axis=0))
    np.testing.assert_array_equal(summary["min"], np.nanmin(x, axis=0))
    np.testing.assert_array_equal(summary["max"], np.nanmax(x, axis=0))


def test_small_arrays_lie_beside_the_data(tmp_path):
    with create(tmp_path / "a.zarr", columns=3, dtype="float64") as writer:
        writer.append(matrix(5, 3))
        writer.put("dictionary", ["feature", "column"], np.eye(2, 3))
        with pytest.raises(UsageError, match="'column_mean' is part of every dataset"):
            writer.put("column_mean", ["column"], np.zeros(3))
    data = open_dataset(tmp_path / "a.zarr")
    np.testing.assert_array_equal(data.extra("dictionary"), np.eye(2, 3))
    assert data.extras == {"dictionary": ("feature", "column")}
    with pytest.raises(StorageError, match="has no array 'other'"):
        data.extra("other")


def test_attributes_are_kept_but_the_own_ones_win(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix(), attributes={"seed": 7, "schema": "mine"}, source="s")
    assert data.attributes["seed"] == 7
    assert data.attributes["schema"] == "ibpdist.dataset/2"
    assert data.attributes["fingerprint"] == data.fingerprint


def test_the_fingerprint_is_of_values_and_chunks_only(tmp_path):
    x = matrix(40)
    first = stored(tmp_path / "a.zarr", x).fingerprint
    assert stored(tmp_path / "b.zarr", x, source="elsewhere", attributes={"k": 1}).fingerprint == first
    assert stored(tmp_path / "c.zarr", x, chunk_rows=8).fingerprint != first
    changed = x.copy()
    changed[39, 6] = np.nextafter(changed[39, 6], 9)
    assert stored(tmp_path / "d.zarr", changed).fingerprint != first
    assert stored(tmp_path / "e.zarr", x[[1, 0, *range(2, 40)]]).fingerprint != first


def test_a_chunk_size_beyond_the_rows_is_no_difference(tmp_path):
    x = matrix(40)
    first, second = (stored(tmp_path / f"{n}.zarr", x, chunk_rows=n) for n in (64, 1000))
    assert first.fingerprint == second.fingerprint
    assert zarr.open_array(second.path / "x").chunks == (40, 7)


def test_reading_into_a_buffer_gives_a_view_of_it(tmp_path):
    x = matrix(20)
    data = stored(tmp_path / "a.zarr", x)
    buffer = np.empty((16, 7))
    chunk = data.read_into(1, buffer)
    assert np.shares_memory(chunk.x, buffer)
    np.testing.assert_array_equal(chunk.x, x[16:])


def test_nothing_is_left_when_the_block_raises(tmp_path):
    def interrupted():
        with create(tmp_path / "a.zarr", columns=7, chunk_rows=4) as writer:
            writer.append(matrix(10))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert listing(tmp_path) == set()


def test_a_store_without_rows_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no rows"), create(tmp_path / "a.zarr", columns=7):
        pass
    with pytest.raises(InputError, match="has no columns"), create(tmp_path / "a.zarr", columns=0):
        pass
    assert listing(tmp_path) == set()


def test_what_exists_is_not_overwritten_unasked(tmp_path):
    first = stored(tmp_path / "a.zarr", matrix(seed=1))
    with pytest.raises(OutputInUse, match="exists already") as caught:
        stored(tmp_path / "a.zarr", matrix(seed=2))
    assert caught.value.code == 6
    assert open_dataset(tmp_path / "a.zarr").fingerprint == first.fingerprint
    second = stored(tmp_path / "a.zarr", matrix(seed=2), overwrite=True)
    assert second.fingerprint != first.fingerprint
    assert listing(tmp_path) == {"a.zarr"}


def test_only_a_dataset_is_ever_overwritten(tmp_path):
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter").write_text("words")
    with pytest.raises(
        OutputInUse, match=r"is not of the kind that replaces it \(x/manifest\.json is missing\)"
    ):
        stored(precious, matrix(), overwrite=True)
    assert (precious / "chapter").read_text() == "words"


def test_a_failed_overwrite_leaves_the_old_store(tmp_path):
    first = stored(tmp_path / "a.zarr", matrix(seed=1))
    with pytest.raises(InputError):
        stored(tmp_path / "a.zarr", np.full((3, 7), np.inf), overwrite=True)
    assert open_dataset(tmp_path / "a.zarr").verify() == []
    assert open_dataset(tmp_path / "a.zarr").fingerprint == first.fingerprint


@pytest.mark.parametrize("where", ["absent/a.zarr", "file/a.zarr"])
def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path, where):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="does not exist") as caught:
        stored(tmp_path / where, matrix())
    assert caught.value.code == 4


def test_a_full_disk_is_a_storage_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ibpdist.storage.files.write_durably", full)
    with pytest.raises(StorageError, match=r"a\.zarr: cannot be written: No space left on device"):
        stored(tmp_path / "a.zarr", matrix())
    assert listing(tmp_path) == set()


@pytest.mark.parametrize("fail_at", range(1, 26, 3))
def test_failing_at_any_file_operation_leaves_nothing(tmp_path, monkeypatch, fail_at):
    """The n-th wait for the disk fails: old or new, never half."""
    from ibpdist.storage import files

    calls, fsync = [], files.os.fsync

    def failing(handle):
        calls.append(handle)
        if len(calls) == fail_at:
            raise OSError(5, "Input/output error")
        fsync(handle)

    monkeypatch.setattr(files.os, "fsync", failing)
    with pytest.raises(StorageError, match="Input/output error"):
        stored(tmp_path / "a.zarr", matrix(20))
    monkeypatch.undo()
    left = listing(tmp_path)
    assert left <= {"a.zarr"}
    assert not left or open_dataset(tmp_path / "a.zarr").verify() == []


@pytest.mark.parametrize(
    ("said", "appended"),
    [
        ("has 3 columns, the dataset has 7", [(np.zeros((2, 3)), {})]),
        ("has 1 dimensions", [(np.zeros(7), {})]),
        ("1 labels 'row' for 2 rows", [(np.zeros((2, 7)), {"row": ["a"]})]),
        ("labels have 2 dimensions", [(np.zeros((2, 7)), {"row": np.zeros((2, 2))})]),
        ("differ from", [(np.zeros((2, 7)), {"row": ["a", "b"]}), (np.zeros((2, 7)), {})]),
        ("differ from", [(np.zeros((1, 7)), {"row": ["a"]}), (np.zeros((1, 7)), {"name": ["b"]})]),
        (
            "changes from int64 to float64",
            [(np.zeros((2, 7)), {"n": [1, 2]}), (np.zeros((2, 7)), {"n": [0.5, 1]})],
        ),
    ],
)
def test_writers_refuse_rows_of_another_width_or_other_labels(tmp_path, said, appended):
    def write():
        with create(tmp_path / "a.zarr", columns=7, chunk_rows=2) as writer:
            for rows, coords in appended:
                writer.append(rows, row_coords=coords)

    with pytest.raises(InputError, match=said):
        write()
    assert listing(tmp_path) == set()


def test_labels_of_columns_must_be_as_many(tmp_path):
    columns = {"column": list("abc")}
    with pytest.raises(InputError, match="3 labels 'column' for 7 columns"):
        stored(tmp_path / "a.zarr", matrix(), column_coords=columns)


def test_errors_of_the_writer_count_rows_from_the_first(tmp_path):
    x = matrix(40)
    x[37, 2] = -np.inf
    with pytest.raises(InputError, match=r"a\.csv: row 37, column c: '-inf': is infinite") as caught:
        stored(tmp_path / "a.zarr", x, source="a.csv", column_coords={"column": list("abcdefg")})
    assert (caught.value.row, caught.value.column, caught.value.file) == (37, "c", "a.csv")


def test_opening_what_is_not_there_or_not_ours(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        open_dataset(tmp_path / "a.zarr")
    zarr.open_group(tmp_path / "b.zarr", mode="w")
    with pytest.raises(StorageError, match=r"b\.zarr: is not a dataset of ibpdist"):
        open_dataset(tmp_path / "b.zarr")
    assert listing(tmp_path) == {"b.zarr"}


def test_names_of_labels_become_safe(tmp_path):
    coords = {"cell type": list("ab"), "x": [1, 2], "../up": [3, 4], "column": [5, 6]}
    data = stored(tmp_path / "a.zarr", matrix(2), row_coords=coords, column_coords={"row": np.arange(7)})
    assert list(data.row_coords(0)) == ["cell_type", "x_", "_up", "column_"]
    assert list(data.column_coords()) == ["row_"]
    xr.open_zarr(tmp_path / "a.zarr").load()
