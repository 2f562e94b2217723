"""What is accepted but told: by a fit of data in memory and of files as by ingest, once, in one line."""

import multiprocessing
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import ibpdist as ibp
from ibpdist.base.errors import IbpError, StorageError
from ibpdist.data.arrays import ArrayData, as_source
from ibpdist.data.ingest import ingest
from tests.support.matrices import matrix, stored, values

ODD = {
    # name: (values, what is said)
    "offset": (matrix(40) + 1e9, "columns 0, 1, 2, 3, 4 and 2 more: far from zero compared with its spread"),
    "zero": (np.zeros((20, 4)), "columns 0, 1, 2, 3: all zero"),
    "constant": (np.full((20, 4), 3.0), "columns 0, 1, 2, 3: constant"),
    "never observed": (np.full((5, 3), np.nan), "columns 0, 1, 2: never observed"),
    "large": (matrix(40, 3) * [1, 1, 1e12], "column 2: more than 1e8 times larger than the median column"),
    "small": (matrix(40, 3) * [1, 1e-200, 1], "column 1: so small that squares vanish in float64"),
    "single": (
        matrix(40, 2).astype("f4") * np.float32(1e-30),
        "columns 0, 1: so small that squares vanish in",
    ),
}


def full(path, x):
    """A foreign store with all of its chunks; Zarr leaves out those of zeros unless told."""
    zarr.create_array(path, data=x, config={"write_empty_chunks": True})
    return path


def said(thing, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_source(thing, **options)
    assert all(one.category is UserWarning for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("form", ["array", "npy", "zarr", "DataFrame", "dask"])
def test_odd_columns_are_told_whatever_holds_them(tmp_path, case, form):
    x, expected = ODD[case]
    thing = {
        "array": lambda: x,
        "npy": lambda: np.save(tmp_path / "a.npy", x) or tmp_path / "a.npy",
        "zarr": lambda: full(tmp_path / "a.zarr", x),
        "DataFrame": lambda: pd.DataFrame(x),
        "dask": lambda: xr.DataArray(x).chunk(13).data,
    }[form]()
    (line,) = said(thing)
    assert line.startswith(
        ("a.npy: " if form == "npy" else "a.zarr: " if form == "zarr" else "array: ") + expected
    )
    assert "\n" not in line
    assert said(thing, judged=False) == []
    assert any(expected in word for word in ingest(thing, tmp_path / "out.zarr").warnings)


def test_a_fit_says_so_where_it_is_called():
    with pytest.warns(UserWarning, match="array: columns .*: far from zero") as caught:
        ibp.fit(matrix(20) + 1e9, system="lg-vi-finite", K=2, steps=1)
    assert [one.filename for one in caught if one.category is UserWarning] == [__file__]


def test_columns_are_named_by_their_labels():
    assert said(pd.DataFrame(np.eye(3)[:, :2] * 0, columns=["u", "v"])) == ["array: columns u, v: all zero"]


def test_what_is_well_says_nothing_and_small_values_are_well_as_long_as_squares_are():
    assert said(matrix(40, missing=3)) == []
    assert said(matrix(40) * 1e-150) == []
    assert said(matrix(40, dtype="f4") * np.float32(1e-17)) == []
    assert said(ArrayData(np.zeros((3, 3)))) == []  # a source that was made by hand


def test_a_store_was_judged_when_it_was_made(tmp_path):
    assert said(stored(tmp_path / "a.zarr", np.zeros((5, 3))).path) == []


def _open(path, lines):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_source(path)
    lines.put([str(one.message) for one in caught])


def test_processes_that_work_for_another_one_say_nothing(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((5, 3)))
    context = multiprocessing.get_context("spawn")
    lines = context.Queue()
    process = context.Process(target=_open, args=(tmp_path / "a.npy", lines))
    process.start()
    assert lines.get(timeout=60) == []
    process.join(60)


def test_absent_chunks_are_told_by_a_fit(tmp_path):
    zarr.create_array(tmp_path / "z.zarr", data=matrix(40), chunks=(10, 7))
    (tmp_path / "z.zarr/c/2/0").unlink()
    with pytest.warns(UserWarning, match=r"z\.zarr: 1 of 4 chunks are not on disk and are read as 0\.0"):
        ibp.fit(tmp_path / "z.zarr", system="lg-vi-finite", K=2, steps=1)
    assert len(said(tmp_path / "z.zarr", judged=False)) == 1


@pytest.mark.parametrize("lost", ["x/manifest.json", "x"])
def test_a_dataset_that_lost_its_manifest_is_not_read_as_foreign(tmp_path, lost):
    data = stored(tmp_path / "a.zarr", matrix(50))
    (data.path / "x/c/2/0").unlink()
    shutil.rmtree(data.path / lost) if lost == "x" else (data.path / lost).unlink()
    for reader in (as_source, lambda path: ingest(path, tmp_path / "b.zarr"), ibp.open_dataset):
        with pytest.raises(StorageError, match=r"a\.zarr: x/manifest\.json is missing: restore the store or"):
            reader(data.path)


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_a_copy_that_xarray_made_of_a_dataset_is_foreign_and_readable(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix(50, missing=3))
    xr.open_zarr(data.path).isel(row=slice(32)).to_zarr(tmp_path / "copy.zarr")
    assert xr.open_zarr(tmp_path / "copy.zarr").attrs["schema"] == "ibpdist.dataset/2"
    np.testing.assert_array_equal(values(as_source(tmp_path / "copy.zarr")), values(data)[:32])


@pytest.mark.parametrize("text", ["{", "[1]", "null", '{"attributes": 3}', '{"attributes": null}', ""])
def test_odd_metadata_are_no_dataset_of_ours(tmp_path, text):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/zarr.json").write_text(text)
    with pytest.raises(IbpError, match=r"a\.zarr: (is not readable as Zarr|has no array x)"):
        as_source(tmp_path / "a.zarr")
