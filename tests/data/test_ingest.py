"""Ingest: the same matrix from any format makes the same dataset, in one pass, or nothing at all."""

import dask.array
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from ibpdist.base.errors import InputError, OutputInUse, StorageError, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.ingest import ingest
from ibpdist.data.sources.array import table_of
from ibpdist.data.store import open_dataset
from ibpdist.data.transform import transform_of
from tests.support.matrices import labels, listing, matrix, named, stored, values, write_csv

NAMES = list("abcdefg")


def as_npy(path, x):
    np.save(path / "x.npy", x)
    return path / "x.npy"


def as_fortran(path, x):
    np.save(path / "f.npy", np.asfortranarray(x))
    return path / "f.npy"


def as_npz(path, x):
    np.savez(path / "x.npz", x)
    return path / "x.npz"


def as_packed(path, x):
    np.savez_compressed(path / "c.npz", values=np.asfortranarray(x))
    return path / "c.npz"


def as_zarr(version, chunks):
    def save(path, x):
        zarr.create_array(path / "z.zarr", data=x, zarr_format=version, chunks=chunks)
        return path / "z.zarr"

    return save


def as_group(path, x):
    group = zarr.open_group(path / "g.zarr", mode="w")
    group.create_array("other", data=np.ones((3, 3)))
    group.create_array("x", data=x)
    return path / "g.zarr"


FORMATS = {
    "npy": as_npy,
    "npy in Fortran order": as_fortran,
    "npz": as_npz,
    "npz compressed": as_packed,
    "csv": lambda path, x: write_csv(path / "x.csv", x),
    "csv with header": lambda path, x: write_csv(path / "x.csv", x, header=NAMES),
    "csv with empty cells": lambda path, x: write_csv(path / "x.csv", x, missing=""),
    "csv.gz": lambda path, x: write_csv(path / "x.csv.gz", x, header=NAMES, missing="NaN"),
    "tsv, CRLF": lambda path, x: write_csv(path / "x.tsv", x, delimiter="\t", end="\r\n"),
    "zarr 3": as_zarr(3, (11, 7)),
    "zarr 2": as_zarr(2, (50, 2)),
    "zarr group": as_group,
    "own store": lambda path, x: stored(path / "own.zarr", x, chunk_rows=11).path,
    "array": lambda path, x: x,
    "frame": lambda path, x: pd.DataFrame(x),
    "DataArray": lambda path, x: xr.DataArray(x, dims=["row", "column"]),
    "dask": lambda path, x: dask.array.from_array(x, chunks=(20, 4)),
    "source": lambda path, x: ArrayData(x, 13),
}


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_makes_the_same_dataset(tmp_path, format):
    x = matrix(50, missing=6)
    report = ingest(FORMATS[format](tmp_path, x), tmp_path / "out.zarr", chunk_rows=16)
    data = open_dataset(tmp_path / "out.zarr")
    assert report.fingerprint == data.fingerprint == ArrayData(x, 16).fingerprint
    assert (report.rows, report.columns, report.missing, report.dtype) == (50, 7, 6, "float64")
    np.testing.assert_array_equal(values(data), x)
    assert data.verify() == []
    assert not [name for name in listing(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_can_be_turned(tmp_path, format):
    x = matrix(50, missing=6)
    report = ingest(FORMATS[format](tmp_path, x), tmp_path / "out.zarr", chunk_rows=3, rows_in="columns")
    assert (report.rows, report.columns) == (7, 50)
    np.testing.assert_array_equal(values(open_dataset(tmp_path / "out.zarr")), x.T)


def test_labels_of_a_table_are_kept_to_the_end(tmp_path):
    x, rows = matrix(20, missing=2), [f"cell {i}" for i in range(20)]
    write_csv(tmp_path / "x.csv", x, header=["", *NAMES], rows=rows)
    ingest(tmp_path / "x.csv", tmp_path / "a.zarr", chunk_rows=8)
    data = open_dataset(tmp_path / "a.zarr")
    assert labels(data, "row") == rows
    assert data.column_coords()["column"].tolist() == NAMES
    assert data.attributes["source"] == "x.csv"  # never a path


def test_labels_of_a_turned_table_change_sides(tmp_path):
    x, genes = matrix(20), [f"gene {i}" for i in range(20)]
    write_csv(tmp_path / "x.tsv", x, delimiter="\t", header=["", *NAMES], rows=genes)
    ingest(tmp_path / "x.tsv", tmp_path / "a.zarr", rows_in="columns")
    data = open_dataset(tmp_path / "a.zarr")
    assert labels(data, "row") == NAMES
    assert data.column_coords()["column"].tolist() == genes


def test_covariates_lie_beside_the_rows(tmp_path):
    lines = ["id,batch,a,dose,b", *(f"c{i},{'xy'[i % 2]},{i},{i / 4},{-i}" for i in range(20))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    ingest(
        tmp_path / "x.csv", tmp_path / "a.zarr", label_column="id", covariates=["batch", "dose"], chunk_rows=8
    )
    data = open_dataset(tmp_path / "a.zarr")
    assert data.columns == 2
    assert data.column_coords()["column"].tolist() == ["a", "b"]
    assert labels(data, "batch") == list("xy" * 10)
    assert labels(data, "dose") == [i / 4 for i in range(20)]
    assert labels(data, "row")[3] == "c3"
    np.testing.assert_array_equal(values(data)[:, 1], -np.arange(20.0))


def test_covariates_of_a_turned_table_lie_beside_the_columns(tmp_path):
    (tmp_path / "x.csv").write_text("gene,chromosome,s1,s2\nA,1,0.5,1\nB,2,2,3\n")
    ingest(
        tmp_path / "x.csv",
        tmp_path / "a.zarr",
        rows_in="columns",
        label_column="gene",
        covariates=["chromosome"],
    )
    data = open_dataset(tmp_path / "a.zarr")
    assert data.column_coords()["chromosome"].tolist() == [1, 2]
    assert data.column_coords()["column"].tolist() == ["A", "B"]
    np.testing.assert_array_equal(values(data), [[0.5, 2], [1, 3]])


@pytest.mark.filterwarnings("ignore:The data type")  # xarray's own text type
def test_labels_of_a_zarr_group_and_of_xarray_are_kept(tmp_path):
    x = xr.Dataset(
        {"x": (("cell", "gene"), matrix(20, 3)), "size": ("cell", np.arange(20))},
        coords={"cell": [f"c{i}" for i in range(20)], "gene": list("uvw"), "length": ("gene", [3, 1, 2])},
    )
    for version in (2, 3):
        x.to_zarr(tmp_path / f"{version}.zarr", zarr_format=version, consolidated=False)
        ingest(tmp_path / f"{version}.zarr", tmp_path / "a.zarr", overwrite=True)
        data = open_dataset(tmp_path / "a.zarr")
        assert labels(data, "row") == x["cell"].values.tolist()
        assert labels(data, "size") == list(range(20))
        assert data.column_coords()["length"].tolist() == [3, 1, 2]
        assert data.column_coords()["column"].tolist() == list("uvw")


def test_the_dtype_is_that_of_the_source_or_the_one_asked_for(tmp_path):
    for made, x, wanted in [
        ("float32", np.ones((2, 2), "uint8"), "auto"),
        ("float32", np.ones((2, 2), "float16"), "auto"),
        ("float64", np.ones((2, 2), "int32"), "auto"),
        ("float64", np.ones((2, 2), "float32"), "float64"),
        ("float32", np.ones((2, 2)), "float32"),
    ]:
        assert ingest(x, tmp_path / "a.zarr", dtype=wanted, overwrite=True).dtype == made


@pytest.mark.parametrize("dtype", ["auto", "float32"])
@pytest.mark.parametrize("steps", ["center", "center scale", "scale", "log1p", "log1p center scale"])
def test_transforms_are_done_recorded_and_undone(tmp_path, steps, dtype):
    asked = dict.fromkeys(steps.split(), True)
    x = np.abs(matrix(40, missing=5)) * 10
    x[:, 3] = 2.0  # constant: centred, not scaled
    ingest(x, tmp_path / "a.zarr", chunk_rows=16, dtype=dtype, **asked)
    data = open_dataset(tmp_path / "a.zarr")
    expected = np.log1p(x) if "log1p" in asked else x
    mean, sd = np.nanmean(expected, axis=0), np.nanstd(expected, axis=0)
    expected = expected - mean if "center" in asked else expected
    expected = expected / np.where(sd > 1e-12, sd, 1) if "scale" in asked else expected
    loose = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(values(data), expected, rtol=loose, atol=loose)
    assert data.attributes["transform"] == {name: name in asked for name in ("log1p", "center", "scale")}
    np.testing.assert_allclose(transform_of(data).undo(values(data)), x, rtol=10 * loose, atol=10 * loose)


def test_nothing_is_transformed_unasked(tmp_path):
    ingest(matrix() * 5 + 100, tmp_path / "a.zarr")
    data = open_dataset(tmp_path / "a.zarr")
    assert "transform" not in data.attributes
    assert transform_of(data).is_identity


def test_log1p_is_for_counts(tmp_path):
    x = np.ones((20, 3))
    x[17, 2] = -0.5
    with pytest.raises(InputError, match=r"row 17, column 2: '-0\.5': is negative: log1p is for counts"):
        ingest(x, tmp_path / "a.zarr", log1p=True, chunk_rows=8)
    assert listing(tmp_path) == set()


@pytest.mark.parametrize("asked", [{}, {"scale": True}, {"center": True}, {"log1p": True}])
def test_a_bad_cell_is_named_by_its_column_whatever_is_asked(tmp_path, asked):
    frame = pd.DataFrame(np.abs(matrix(20)), columns=NAMES)
    with pytest.raises(InputError, match="row 17, column b: 'inf': is infinite"):
        ingest(frame.assign(b=[1.0] * 17 + [np.inf] * 3), tmp_path / "a.zarr", **asked)


@pytest.mark.parametrize("asked", [{}, {"scale": True}])
def test_a_negative_cell_is_named_by_its_column(tmp_path, asked):
    frame = pd.DataFrame(-np.abs(matrix(20)), columns=NAMES)
    with pytest.raises(InputError, match=r"row 0, column a: .* is negative"):
        ingest(frame, tmp_path / "a.zarr", log1p=True, **asked)


def test_progress_counts_rows(tmp_path):
    told = []
    ingest(matrix(50), tmp_path / "a.zarr", chunk_rows=16, progress=lambda *at: told.append(at))
    assert told == [(16, 50), (32, 50), (48, 50), (50, 50)]
    told.clear()
    write_csv(tmp_path / "x.csv", matrix(50))
    ingest(tmp_path / "x.csv", tmp_path / "b.zarr", chunk_rows=16, progress=lambda *at: told.append(at))
    assert told[-1] == (50, None)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_columns_that_say_little_are_accepted_with_a_word(tmp_path):
    x = matrix(40)
    x[:, 0], x[:, 1], x[:, 2], x[:, 3], x[:, 4] = 0, 7, np.nan, x[:, 3] + 1e7, x[:, 4] * 1e12
    report = ingest(pd.DataFrame(x, columns=NAMES), tmp_path / "a.zarr")
    said = "\n".join(report.warnings)
    for sentence in (
        "column a: all zero",
        "column b: constant",
        "column c: never observed",
        "column d: far from zero compared with its spread (consider ingest --center)",
        "column e: more than 1e8 times larger than the median column (consider ingest --scale)",
    ):
        assert sentence in said
    assert len(report.warnings) == 5
    assert ingest(matrix(40), tmp_path / "b.zarr").warnings == ()


def test_warnings_do_not_list_a_thousand_columns(tmp_path):
    report = ingest(np.zeros((3, 1000)), tmp_path / "a.zarr")
    assert report.warnings == ("columns 0, 1, 2, 3, 4 and 995 more: all zero",)


@pytest.mark.parametrize("rows_in", ["rows", "columns"])
@pytest.mark.parametrize("chunks", [(25, 7), (17, 3), (50, 7), (3, 7), ((1, 30, 19), 7)])
def test_each_chunk_of_a_dask_array_is_computed_once(tmp_path, chunks, rows_in):
    x, seen = matrix(50, missing=3), []

    def counted(block, block_info=None):
        seen.append(block_info[None]["chunk-location"])
        return block

    lazy = dask.array.from_array(x, chunks=chunks).map_blocks(counted, dtype=x.dtype, meta=np.empty((0, 0)))
    given = lazy if rows_in == "rows" else lazy.T
    for source in (given, xr.DataArray(given, dims=["cell", "gene"])):
        seen.clear()
        ingest(source, tmp_path / "a.zarr", chunk_rows=8, rows_in=rows_in, overwrite=True)
        assert len(seen) == len(set(seen)) == lazy.npartitions
        np.testing.assert_array_equal(values(open_dataset(tmp_path / "a.zarr")), x)
    seen.clear()
    ingest(given, tmp_path / "a.zarr", chunk_rows=8, rows_in=rows_in, center=True, overwrite=True)
    assert len(seen) == 2 * lazy.npartitions


def test_chunks_of_a_dask_array_that_do_not_fit_memory_are_taken_in_parts(monkeypatch):
    lazy = dask.array.from_array(matrix(50), chunks=(25, 7))
    assert [len(block.x) for block in table_of(lazy).blocks(10)] == [25, 25]
    assert [len(block.x) for block in table_of(lazy).blocks(60)] == [50]
    monkeypatch.setattr("ibpdist.data.sources.array.PIECE_LIMIT", 24 * 7 * 8)
    assert [len(block.x) for block in table_of(lazy).blocks(10)] == [10] * 5


def test_an_output_that_exists_is_found_before_anything_is_read(tmp_path):
    stored(tmp_path / "a.zarr", matrix())
    before = open_dataset(tmp_path / "a.zarr").fingerprint
    with pytest.raises(OutputInUse, match="exists already"):
        ingest(tmp_path / "does not even exist.csv", tmp_path / "a.zarr")
    ingest(matrix(seed=3), tmp_path / "a.zarr", overwrite=True)
    assert open_dataset(tmp_path / "a.zarr").fingerprint != before


def test_an_output_inside_the_input_is_refused(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix())
    inside = r"lies inside the input a\.zarr"
    for target, why in ((data.path, "is the input itself"), (data.path / "b.zarr", inside)):
        with pytest.raises(UsageError, match=why) as caught:
            ingest(data.path, target, overwrite=True)
        assert caught.value.code == 2
    assert data.verify() == []


def test_a_store_can_be_given_other_chunks(tmp_path):
    x = matrix(50, missing=3)
    coords = {"row": [str(i) for i in range(50)]}
    data = stored(tmp_path / "a.zarr", x, row_coords=coords, column_coords={"column": NAMES})
    report = ingest(data.path, tmp_path / "b.zarr", chunk_rows=7)
    assert report.fingerprint == ArrayData(named(x, coords["row"]), 7).fingerprint
    assert labels(open_dataset(tmp_path / "b.zarr"), "row") == coords["row"]


def test_a_damaged_store_as_input_is_a_storage_error(tmp_path):
    data = stored(tmp_path / "a.zarr", matrix(50))
    (data.path / "x/c/2/0").unlink()
    with pytest.raises(StorageError, match="array x, chunk c/2/0: is missing"):
        ingest(data.path, tmp_path / "b.zarr")
    assert listing(tmp_path) == {"a.zarr"}


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 2)])
@pytest.mark.parametrize("rows_in", ["rows", "columns"])
def test_small_shapes(tmp_path, shape, rows_in):
    x = matrix(*shape)
    np.save(tmp_path / "x.npy", x)
    write_csv(tmp_path / "x.csv", x)
    expected = x.T if rows_in == "columns" else x
    for name in ("x.npy", "x.csv"):
        ingest(tmp_path / name, tmp_path / "a.zarr", rows_in=rows_in, overwrite=True)
        np.testing.assert_array_equal(values(open_dataset(tmp_path / "a.zarr")), expected)


def test_long_doubles_are_rounded_with_a_word(tmp_path):
    report = ingest(np.array([[1, 2], [3, 4.5]], dtype=np.longdouble), tmp_path / "a.zarr")
    assert report.dtype == "float64"
    wide = np.dtype(np.longdouble).itemsize > 8
    assert any("is rounded to float64" in word for word in report.warnings) == wide


def test_a_transform_needs_two_passes_and_gives_what_numpy_gives_in_any_format(tmp_path):
    x = matrix(50, missing=6) + 5
    made = []
    for name, source in (("a", x), ("b", write_csv(tmp_path / "x.csv.gz", x)), ("c", as_npz(tmp_path, x))):
        made.append(
            ingest(source, tmp_path / f"{name}.zarr", center=True, scale=True, chunk_rows=50).fingerprint
        )
    assert made[0] == made[2]
    expected = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
    for name in "abc":
        np.testing.assert_allclose(values(open_dataset(tmp_path / f"{name}.zarr")), expected, atol=1e-12)


def test_duplicate_and_constant_rows_are_accepted(tmp_path):
    report = ingest(np.ones((5, 3)), tmp_path / "a.zarr")
    assert report.warnings == ("columns 0, 1, 2: constant",)
    assert report.rows == 5
