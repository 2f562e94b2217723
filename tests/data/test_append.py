"""Appending: the same store as if all rows had been there, or the old one."""

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import InputError, OutputInUse, StorageError
from ibpdist.data.append import append, appending
from ibpdist.data.arrays import ArrayData
from ibpdist.data.ingest import ingest
from ibpdist.data.store import create, open_dataset
from ibpdist.data.transform import transform_of
from tests.support.matrices import labels, listing, matrix, named, stored, values


@pytest.mark.parametrize(
    ("before", "after"), [(5, 3), (16, 1), (15, 1), (20, 30), (32, 16), (40, 100), (1, 1)]
)
def test_rows_are_added_as_if_they_had_been_there(tmp_path, before, after):
    x = matrix(before + after, missing=2)
    names = [f"r{i}" for i in range(len(x))]
    stored(
        tmp_path / "a.zarr",
        x[:before],
        row_coords={"row": names[:before]},
        column_coords={"column": list("abcdefg")},
    )
    data = append(tmp_path / "a.zarr", x[before:], {"row": names[before:]})
    np.testing.assert_array_equal(values(data), x)
    assert data.fingerprint == ArrayData(named(x, names), 16).fingerprint
    assert labels(data, "row") == names
    assert data.column_coords()["column"].tolist() == list("abcdefg")
    assert data.missing == 2
    assert data.verify() == []
    assert listing(tmp_path) == {"a.zarr"}
    np.testing.assert_array_equal(xr.open_zarr(data.path)["x"].values, x)


def test_summaries_count_every_row_once(tmp_path):
    x = matrix(61, missing=5)
    stored(tmp_path / "a.zarr", x[:20])
    append(tmp_path / "a.zarr", x[20:25])
    summary = append(tmp_path / "a.zarr", x[25:]).column_summary()
    np.testing.assert_array_equal(summary["count"], (~np.isnan(x)).sum(axis=0))
    np.testing.assert_allclose(summary["mean"], np.nanmean(x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(summary["sd"], np.nanstd(x, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(summary["max"], np.nanmax(x, axis=0))


def test_full_chunks_are_shared_not_copied(tmp_path):
    x = matrix(40)
    data = stored(tmp_path / "a.zarr", x[:35])
    kept = [(data.path / f"x/c/{i}/0").stat().st_ino for i in (0, 1)]
    append(data.path, x[35:])
    assert [(data.path / f"x/c/{i}/0").stat().st_ino for i in (0, 1)] == kept


def test_it_works_where_hard_links_do_not(tmp_path, monkeypatch):
    link = os.link

    def refuse(origin, made):
        if "/x/c/" in str(made):
            raise OSError(1, "Operation not permitted")
        link(origin, made)  # Zarr needs it for its own files

    x = matrix(40)
    stored(tmp_path / "a.zarr", x[:35])
    monkeypatch.setattr(os, "link", refuse)
    data = append(tmp_path / "a.zarr", x[35:])
    np.testing.assert_array_equal(values(data), x)
    assert data.verify() == []


def test_a_reader_of_the_old_store_keeps_reading_the_same_rows(tmp_path):
    x = matrix(40)
    old = stored(tmp_path / "a.zarr", x[:35])
    append(old.path, x[35:])
    np.testing.assert_array_equal(old.read(0).x, x[:16])
    with pytest.raises(StorageError, match="the data changed, from 35 rows to 40"):
        old.read(2)


def test_extras_and_attributes_stay(tmp_path):
    with create(
        tmp_path / "a.zarr", columns=7, dtype="float64", attributes={"seed": 3}, source="s.csv"
    ) as writer:
        writer.append(matrix(20))
        writer.put("dictionary", ["feature", "column"], np.ones((2, 7)))
    data = append(tmp_path / "a.zarr", matrix(3))
    assert data.attributes["seed"] == 3
    assert data.attributes["source"] == "s.csv"
    np.testing.assert_array_equal(data.extra("dictionary"), np.ones((2, 7)))


def test_what_was_done_to_the_store_is_done_to_new_rows(tmp_path):
    x = np.abs(matrix(40)) * 100
    ingest(x[:30], tmp_path / "a.zarr", center=True, scale=True, log1p=True)
    data = append(tmp_path / "a.zarr", x[30:])
    logs = np.log1p(x)
    expected = (logs - logs[:30].mean(axis=0)) / logs[:30].std(axis=0)
    np.testing.assert_allclose(values(data), expected, rtol=1e-10, atol=1e-12)


def frame(x, names="abcdefg", first=0):
    return pd.DataFrame(x, columns=list(names), index=[f"r{first + i}" for i in range(len(x))])


@pytest.mark.parametrize("asked", [{}, {"center": True, "scale": True}])
def test_a_frame_brings_its_labels(tmp_path, asked):
    x = matrix(50, missing=3)
    ingest(frame(x[:20]), tmp_path / "a.zarr", chunk_rows=8, **asked)
    data = append(tmp_path / "a.zarr", frame(x[20:], first=20))
    assert labels(data, "row") == [f"r{i}" for i in range(50)]
    np.testing.assert_allclose(transform_of(data).undo(values(data)), x, rtol=1e-12)
    assert data.verify() == []


def test_a_data_array_brings_the_coordinates_that_the_dataset_has(tmp_path):
    x = xr.DataArray(matrix(30), dims=["cell", "gene"], coords={"batch": ("cell", np.arange(30) % 3)})
    ingest(x[:20], tmp_path / "a.zarr")
    data = append(tmp_path / "a.zarr", x[20:].assign_coords(age=("cell", np.ones(10))).chunk(cell=4))
    assert labels(data, "batch") == [i % 3 for i in range(30)]
    np.testing.assert_array_equal(values(data), x.values)


def test_labels_that_are_given_come_before_those_of_the_frame(tmp_path):
    ingest(frame(matrix(20)), tmp_path / "a.zarr")
    data = append(tmp_path / "a.zarr", frame(matrix(2)), {"row": ["new", "newer"]})
    assert labels(data, "row")[-3:] == ["r19", "new", "newer"]
    plain = stored(tmp_path / "b.zarr", matrix(20))
    assert append(plain.path, frame(matrix(2))).rows == 22  # without labels, as it was


@pytest.mark.parametrize("asked", [{}, {"center": True}])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            lambda: frame(matrix(4), "gfedcba"),
            "rows: column 0: is g, in the dataset a: give the columns in the order",
        ),
        (lambda: frame(matrix(4), "abcdefx"), "rows: column 6: is x, in the dataset g"),
        (lambda: frame(matrix(4, 3), "abc"), "rows: has 3 columns, the dataset has 7$"),
        (lambda: np.zeros((4, 8)), "rows: has 8 columns, the dataset has 7$"),
        (lambda: np.zeros(7), "rows: has 1 dimensions"),
        (lambda: np.zeros((0, 7)), "rows: has no rows"),
        (lambda: frame(np.full((4, 7), np.inf)), "rows: row 0, column a: 'inf': is infinite"),
        (
            lambda: frame(np.full((4, 7), 2**60 + 1)),
            r"rows: row 0, column a: '1152921504606846977': .*beyond 2\^53",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_a_sentence(tmp_path, asked, rows, said):
    ingest(frame(matrix(20)), tmp_path / "a.zarr", **asked)
    with pytest.raises(InputError, match=said):
        append(tmp_path / "a.zarr", rows())
    assert open_dataset(tmp_path / "a.zarr").rows == 20
    assert listing(tmp_path) == {"a.zarr"}


def test_as_many_labels_as_rows(tmp_path):
    stored(tmp_path / "a.zarr", matrix(20), row_coords={"row": np.arange(20)})
    with pytest.raises(InputError, match="3 labels 'row' for 2 rows"):
        append(tmp_path / "a.zarr", matrix(2), {"row": [1, 2, 3]})


def test_it_is_a_name_of_the_package(tmp_path):
    assert ibp.append is append


@pytest.mark.parametrize("bad", [np.full((2, 7), np.inf), np.zeros((2, 6)), np.array([["a"] * 7])])
def test_bad_rows_leave_the_old_store(tmp_path, bad):
    first = stored(tmp_path / "a.zarr", matrix(20)).fingerprint
    with pytest.raises(InputError):
        append(tmp_path / "a.zarr", bad)
    assert open_dataset(tmp_path / "a.zarr").fingerprint == first
    assert open_dataset(tmp_path / "a.zarr").verify() == []
    assert listing(tmp_path) == {"a.zarr"}


def test_one_writer_at_a_time(tmp_path):
    stored(tmp_path / "a.zarr", matrix(20))
    with appending(tmp_path / "a.zarr") as writer:
        writer.append(matrix(5))
        with pytest.raises(OutputInUse, match="another process is writing it"):
            append(tmp_path / "a.zarr", matrix(5))
    assert open_dataset(tmp_path / "a.zarr").rows == 25


def test_labels_must_go_on(tmp_path):
    stored(tmp_path / "a.zarr", matrix(20), row_coords={"row": [str(i) for i in range(20)]})
    with pytest.raises(InputError, match=r"its rows have labels, .* row_coords={'row': ...}"):
        append(tmp_path / "a.zarr", matrix(2))
    with pytest.raises(StorageError, match="does not exist"):
        append(tmp_path / "b.zarr", matrix(2))
    assert listing(tmp_path) == {"a.zarr"}


def people(rows, seed):
    """A DataFrame with labels, numbers and two covariates, one of them in words."""
    rng = np.random.default_rng(seed)
    names = [f"p{seed}-{i}" for i in range(rows)]
    held = {"a": rng.normal(size=rows), "pop": rng.choice(list("XY"), rows), "b": rng.normal(size=rows)}
    return pd.DataFrame(held | {"age": rng.integers(9, 99, rows)}, index=names)


def test_covariates_of_a_frame_come_along(tmp_path):
    first, more = people(6, 1), people(4, 2)
    ingest(first, tmp_path / "a.zarr", covariates=("pop", "age"))
    data = append(tmp_path / "a.zarr", more)
    np.testing.assert_array_equal(values(data), np.concatenate([f[["a", "b"]] for f in (first, more)]))
    assert labels(data, "row") == [*first.index, *more.index]
    for name in ("pop", "age"):
        assert [str(value) for value in labels(data, name)] == [
            str(v) for f in (first, more) for v in f[name]
        ]


def test_covariates_that_are_lacking_are_named(tmp_path):
    ingest(people(6, 1), tmp_path / "a.zarr", covariates=("pop", "age"))
    with pytest.raises(InputError, match=r"a\.zarr: its rows have age, .*, or row_coords={'age': ...}"):
        append(tmp_path / "a.zarr", people(4, 2).drop(columns="age"))
    data = append(tmp_path / "a.zarr", people(4, 2).drop(columns="age"), {"age": [1, 2, 3, 4]})
    assert labels(data, "age")[-4:] == [1, 2, 3, 4]
