"""Packed arrays of Zarr are the numbers that are meant: what xarray makes of them."""

import numpy as np
import pytest
import xarray as xr
import zarr

from ibpdist.base.errors import InputError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.ingest import ingest
from ibpdist.data.sources.zarr import open_zarr
from ibpdist.data.store import open_dataset
from tests.support.matrices import labels, matrix, values

WHOLE = np.arange(28).reshape(7, 4)
ENCODINGS = {
    # name: (values, encoding)
    "packed": (
        matrix(7, 4, missing=3),
        {"dtype": "i2", "scale_factor": 0.01, "add_offset": 1.0, "_FillValue": -9999},
    ),
    "scaled": (WHOLE * 0.5, {"dtype": "u1", "scale_factor": 0.5}),
    "shifted": (WHOLE + 300, {"dtype": "u1", "add_offset": 300}),
    "scaled floats": (WHOLE * 0.5, {"dtype": "f4", "scale_factor": 0.5}),
    "integers with a fill": (matrix(7, 4, missing=3).round(), {"dtype": "i4", "_FillValue": -1000}),
    "floats with a fill": (matrix(7, 4, missing=3), {"_FillValue": -1e20}),
    "single floats with a fill": (matrix(7, 4, dtype="f4", missing=3), {"_FillValue": np.float32(-9999.9)}),
    "missing_value": (matrix(7, 4, missing=3), {"missing_value": -1e20, "_FillValue": -1e20}),
    "not a number": (matrix(7, 4, missing=3), {"_FillValue": np.nan}),
    "wide integers": (matrix(7, 4, missing=3).round(), {"dtype": "i8", "_FillValue": -(2**63)}),
    "unsigned": (WHOLE * 8.0, {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}),
    "plain": (WHOLE, {}),
}


def packed(path, x, version, **encoding):
    held = xr.Dataset({"x": (("row", "column"), x)})
    held.to_zarr(path, zarr_format=version, encoding={"x": encoding}, consolidated=False)
    return path


@pytest.mark.filterwarnings("ignore:variable .x. has _Unsigned", "ignore:saving variable")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("case", ENCODINGS)
def test_a_packed_array_is_what_xarray_makes_of_it(tmp_path, case, version):
    x, encoding = ENCODINGS[case]
    path = packed(tmp_path / "x.zarr", x, version, **encoding)
    meant = xr.open_zarr(path, consolidated=False)["x"].values
    report = ingest(path, tmp_path / "out.zarr")
    np.testing.assert_allclose(values(open_dataset(tmp_path / "out.zarr")), meant, rtol=1e-6)
    np.testing.assert_allclose(values(ArrayData(open_zarr(path))), meant, rtol=1e-6)
    assert report.missing == np.isnan(meant).sum() == np.isnan(x).sum()
    assert report.warnings == ()


def test_every_chunk_is_unpacked_also_when_turned(tmp_path):
    x = matrix(50, missing=6).round(2)
    path = packed(tmp_path / "x.zarr", x, 3, dtype="i4", scale_factor=0.01, _FillValue=-9999, chunks=(11, 3))
    ingest(path, tmp_path / "a.zarr", chunk_rows=8)
    np.testing.assert_allclose(values(open_dataset(tmp_path / "a.zarr")), x, atol=1e-12)
    ingest(path, tmp_path / "b.zarr", chunk_rows=3, rows_in="columns")
    np.testing.assert_allclose(values(open_dataset(tmp_path / "b.zarr")), x.T, atol=1e-12)


@pytest.mark.parametrize("version", [2, 3])
def test_covariates_are_unpacked_too(tmp_path, version):
    held = xr.Dataset({"x": (("row", "column"), matrix(4, 3)), "dose": ("row", [0.5, np.nan, 1.5, 2.0])})
    how = {"dose": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}}
    held.to_zarr(tmp_path / "x.zarr", zarr_format=version, encoding=how, consolidated=False)
    ingest(tmp_path / "x.zarr", tmp_path / "a.zarr")
    np.testing.assert_array_equal(labels(open_dataset(tmp_path / "a.zarr"), "dose"), [0.5, np.nan, 1.5, 2.0])


def test_a_fill_value_of_version_2_hides_cells_only_in_files_for_xarray_and_zero_with_a_word(tmp_path):
    array = zarr.create_array(tmp_path / "x.zarr", data=WHOLE, zarr_format=2, fill_value=0)
    assert ingest(tmp_path / "x.zarr", tmp_path / "a.zarr").missing == 0
    array.attrs["_ARRAY_DIMENSIONS"] = ["row", "column"]
    report = ingest(tmp_path / "x.zarr", tmp_path / "b.zarr")
    assert (report.missing, report.dtype) == (1, "float64")
    assert report.warnings == ("x.zarr: cells that hold 0 are taken as missing, as xarray does",)


def test_integers_that_no_float_holds_are_refused_unless_they_are_missing(tmp_path):
    array = zarr.create_array(
        tmp_path / "x.zarr", data=WHOLE, chunks=(2, 4), attributes={"_FillValue": 2**62}
    )
    array[3, 1] = 2**62
    assert ingest(tmp_path / "x.zarr", tmp_path / "a.zarr").missing == 1
    array[5, 2] = 2**60 + 1
    with pytest.raises(InputError, match=r"x\.zarr: row 5, column 2: '1152921504606846977': .*beyond 2\^53"):
        ingest(tmp_path / "x.zarr", tmp_path / "b.zarr", chunk_rows=2)


@pytest.mark.parametrize("name", ["_FillValue", "missing_value", "scale_factor", "add_offset"])
@pytest.mark.parametrize("value", ["a word", [1, "AAAA"], {"a": 1}])
def test_attributes_that_are_no_numbers_are_refused(tmp_path, name, value):
    if name in ("scale_factor", "add_offset") and isinstance(value, list):
        value = value[1:]
    zarr.create_array(tmp_path / "x.zarr", data=WHOLE, attributes={name: value})
    with pytest.raises(InputError, match=rf"x\.zarr: attribute {name} is .*: expected a number"):
        ingest(tmp_path / "x.zarr", tmp_path / "out.zarr")


def test_absent_chunks_are_told_as_what_they_are_read_as(tmp_path):
    attributes = {"_FillValue": -1, "scale_factor": 0.5}
    array = zarr.create_array(
        tmp_path / "x.zarr", shape=(8, 4), chunks=(2, 4), dtype="i2", fill_value=-1, attributes=attributes
    )
    array[:2] = 3
    report = ingest(tmp_path / "x.zarr", tmp_path / "a.zarr")
    assert any("3 of 4 chunks are not on disk and are read as nan" in word for word in report.warnings)
    assert report.missing == 24


def test_a_damaged_chunk_is_named(tmp_path):
    from ibpdist.base.errors import StorageError

    for version, key in ((2, "2.1"), (3, "c/2/1")):
        path = tmp_path / f"{version}.zarr"
        zarr.create_array(path, data=matrix(40), chunks=(10, 4), zarr_format=version)
        (path / key).write_bytes(b"junk")
        with pytest.raises(StorageError, match=rf"rows 0 to 39 of array x \(chunk {key}\) are damaged"):
            ingest(path, tmp_path / "out.zarr")
