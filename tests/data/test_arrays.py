"""Arrays in memory as sources: the same chunks, bits and fingerprint as their store."""

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
import zarr

from ibpdist.base.errors import InputError, StorageError, UsageError
from ibpdist.data.arrays import ArrayData, as_source
from ibpdist.data.ingest import ingest
from ibpdist.data.store import open_dataset
from tests.support.matrices import labels, matrix, stored, values

KINDS = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype("float32"),
    "float16": lambda x: x.astype("float16"),
    "big-endian": lambda x: x.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "lists": lambda x: x.tolist(),
    "DataFrame": pd.DataFrame,
    "DataArray": lambda x: xr.DataArray(x, dims=["cell", "gene"]),
    "dask": lambda x: dask.array.from_array(x, chunks=(13, 3)),
    "DataArray over dask": lambda x: xr.DataArray(dask.array.from_array(x, chunks=(13, 3)), dims=["a", "b"]),
}


@pytest.mark.parametrize("missing", [0, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_an_array_is_its_store(tmp_path, kind, missing):
    thing = KINDS[kind](matrix(40, missing=missing))
    data = ArrayData(thing, 16)
    ingest(thing, tmp_path / "a.zarr", chunk_rows=16)
    store = open_dataset(tmp_path / "a.zarr")
    assert (data.rows, data.columns, data.dtype, data.chunks) == (40, 7, store.dtype, 3)
    assert data.fingerprint == store.fingerprint
    assert data.missing == store.missing == missing
    for index in range(3):
        mine, theirs = data.read(index), store.read(index)
        assert data.bounds(index) == store.bounds(index)
        assert mine.x.tobytes() == theirs.x.tobytes()
        assert mine.x.flags.c_contiguous
        assert mine.x.flags.writeable
        assert (mine.observed is None) == (theirs.observed is None)
        np.testing.assert_array_equal(mine.observed, theirs.observed)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64"])
def test_integers_and_truth_values(tmp_path, dtype):
    x = (np.abs(matrix()) * 3).astype(dtype)
    data = ArrayData(x, 16)
    assert data.dtype == ("float64" if dtype in ("int32", "int64") else "float32")
    assert values(data).tolist() == x.tolist()
    ingest(x, tmp_path / "a.zarr", chunk_rows=16)
    assert open_dataset(tmp_path / "a.zarr").fingerprint == data.fingerprint


def test_a_chunk_is_a_view_where_it_can_be():
    x = matrix(40)
    assert np.shares_memory(ArrayData(x, 16).read(1).x, x)
    x[3, 3] = np.nan
    data = ArrayData(x, 16)
    data.read(0).x[:] = 99
    assert np.isnan(x[3, 3])
    assert np.nanmax(x) < 99


def test_read_only_maps_are_accepted_and_never_written(tmp_path):
    x = matrix(40)
    np.save(tmp_path / "x.npy", x)
    data = ArrayData(np.load(tmp_path / "x.npy", mmap_mode="r"), 16)
    data.read(0).x[:] = 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    assert data.fingerprint == ArrayData(x, 16).fingerprint
    assert as_source(tmp_path / "x.npy").rows == 40


def test_sparse_and_masked_arrays():
    x = np.where(matrix(40) > 1, matrix(40), 0)
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_matrix):
        assert ArrayData(kind(x), 16).fingerprint == ArrayData(x, 16).fingerprint
    masked = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    data = ArrayData(masked)
    np.testing.assert_array_equal(values(data), [[1, np.nan], [3, 4]])
    assert data.missing == 1


def test_labels_of_frames():
    frame = pd.DataFrame(matrix(20, 3), index=[f"c{i}" for i in range(20)], columns=["u", "v", "w"])
    data = ArrayData(frame, 8)
    assert labels(data, "row") == frame.index.tolist()
    assert data.column_coords()["column"].tolist() == ["u", "v", "w"]
    plain = ArrayData(pd.DataFrame(matrix(20, 3)), 8)
    assert plain.row_coords(0) == {}
    assert plain.column_coords() == {}


def test_labels_of_data_arrays():
    array = xr.DataArray(
        matrix(20, 3),
        dims=["cell", "gene"],
        coords={
            "cell": [f"c{i}" for i in range(20)],
            "batch": ("cell", np.arange(20) % 2),
            "gene": list("uvw"),
            "day": ("cell", np.arange("2020-01-01", "2020-01-21", dtype="datetime64[D]").astype("M8[ns]")),
            "scalar": 3,
        },
    )
    data = ArrayData(array, 8)
    assert set(data.row_coords(0)) == {"row", "batch", "day"}
    assert labels(data, "row")[19] == "c19"
    assert data.row_coords(1)["batch"].tolist() == [0, 1] * 4
    assert data.row_coords(0)["day"][0] == np.datetime64("2020-01-01")
    assert data.column_coords()["column"].tolist() == ["u", "v", "w"]


def test_rows_come_first_whatever_the_order_of_named_dims():
    array = xr.DataArray(matrix(20, 3), dims=["row", "column"])
    assert ArrayData(array.T).fingerprint == ArrayData(array).fingerprint
    assert ArrayData(array.to_dataset(name="x")).fingerprint == ArrayData(array).fingerprint
    with pytest.raises(InputError, match=r"without a variable x \(it has y\): choose one with key"):
        ArrayData(array.to_dataset(name="y"))


def test_nullable_columns_of_pandas():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [0.5, 1, 2]})
    data = ArrayData(frame)
    np.testing.assert_array_equal(values(data), [[1, 0.5], [np.nan, 1], [3, 2]])


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "column b: holds"),
        (pd.DataFrame({"a": [1, 2], "d": pd.to_datetime(["2020", "2021"])}), "column d: holds dates"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column a: occurs twice"),
        (pd.DataFrame(), "has no rows"),
        ([["a", "b"]], "holds text"),
        ([[1, 2], [3]], "is not a matrix"),
        ([1, 2, 3], "has 1 dimensions"),
        (np.zeros((2, 2, 2)), "has 3 dimensions"),
        (np.zeros((0, 3)), "has no rows"),
        (np.zeros((3, 0)), "has no columns"),
        ({"a": 1}, "holds Python objects"),
        (np.array([[1 + 2j]]), "holds complex numbers"),
        (np.array([[1.0, np.inf]]), "row 0, column 1: 'inf': is infinite"),
        (xr.DataArray([1.0, 2.0], dims=["a"]), "has 1 dimensions"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(thing, said):
    with pytest.raises(InputError, match=said) as caught:
        ArrayData(thing)
    assert caught.value.code == 3


def test_a_dask_array_of_unknown_length_is_refused_with_a_way_out(tmp_path):
    x = dask.array.from_array(matrix(20), chunks=(7, 4))
    unknown = x[x[:, 0] > 0]
    for thing in (unknown, xr.DataArray(unknown, dims=["row", "column"])):
        for judge in (ArrayData, lambda it: ingest(it, tmp_path / "a.zarr")):
            with pytest.raises(
                InputError, match=r"has an unknown number of rows: call compute_chunk_sizes\(\)"
            ):
                judge(thing)
    with pytest.raises(InputError, match="has an unknown number of columns"):
        ingest(unknown, tmp_path / "a.zarr", rows_in="columns")
    assert ArrayData(unknown.compute_chunk_sizes()).columns == 7


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60) - 1])
def test_integers_that_no_float_holds_are_refused_in_masked_arrays(value):
    held = np.array([[1, 2], [3, value]])
    with pytest.raises(
        InputError, match=rf"row 1, column 1: '{value}': is an integer beyond 2\^53"
    ) as caught:
        ArrayData(np.ma.masked_array(held, [[True, False], [False, False]]))
    assert caught.value.code == 3
    hidden = ArrayData(np.ma.masked_array(held, [[False, False], [False, True]]))
    np.testing.assert_array_equal(values(hidden), [[1, 2], [3, np.nan]])


def test_the_whole_array_is_checked_when_it_is_made():
    x = matrix(40)
    x[39, 6] = np.inf
    with pytest.raises(InputError, match="row 39, column 6"):
        ArrayData(x, 16)


def test_small_shapes():
    for shape in ((1, 1), (1, 5), (5, 1)):
        data = ArrayData(np.ones(shape))
        assert (data.rows, data.columns, data.chunks) == (*shape, 1)
        assert data.read(0).x.shape == shape


def test_as_source_takes_anything(tmp_path):
    x = matrix(20)
    store = stored(tmp_path / "a.zarr", x, chunk_rows=None)
    np.save(tmp_path / "x.npy", x)
    zarr.save_array(tmp_path / "other.zarr", x)
    zarr.save_array(tmp_path / "old.zarr", x, zarr_format=2)
    for thing in (x, store, store.path, str(store.path), tmp_path / "x.npy", xr.open_zarr(store.path)):
        assert as_source(thing).fingerprint == store.fingerprint
    for name in ("other.zarr", "old.zarr"):
        assert as_source(tmp_path / name).fingerprint == store.fingerprint
    assert as_source(store) is store
    with pytest.raises(StorageError, match="does not exist"):
        as_source(tmp_path / "absent.zarr")
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(UsageError, match=r"make one with `ibpdist ingest x\.csv NAME\.zarr`"):
        as_source(tmp_path / "x.csv")
