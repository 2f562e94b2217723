"""Labels: types that are kept, names that are safe."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import InputError
from ibpdist.data.append import append
from ibpdist.data.arrays import ArrayData
from ibpdist.data.ingest import ingest
from ibpdist.data.labels import RESERVED, as_labels, safe_names
from ibpdist.data.store import create, open_dataset
from ibpdist.data.verify import verify_dataset
from tests.support.matrices import labels, matrix, stored


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ([True, False], "b"),
        (np.array([1, 2], "int8"), "i"),
        (np.array([1, 2], "uint16"), "u"),
        (np.array([1, 2], ">f4"), "f"),
        (["a", "é"], "U"),
        (np.array(["a", None], dtype=object), "U"),
        (np.array(["a", "b"], dtype=np.dtypes.StringDType()), "U"),
        (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), "M"),
        (pd.Categorical(["a", "b"]), "U"),
        (range(2), "i"),
    ],
)
def test_labels_become_one_of_five_types_and_survive_the_store(tmp_path, given, kind):
    made = as_labels(given)
    assert made.dtype.kind == kind
    assert made.dtype.isnative
    data = stored(tmp_path / "a.zarr", matrix(2), chunk_rows=1, row_coords={"row": given})
    assert labels(data, "row") == made.tolist()
    assert data.row_coords(0)["row"].dtype.kind == kind


def test_labels_are_one_for_each_row():
    with pytest.raises(InputError, match="labels have 2 dimensions"):
        as_labels(np.zeros((2, 2)))


@given(st.lists(st.text(max_size=120), unique=True, max_size=8))
def test_safe_names_are_safe_and_different(names):
    made = safe_names(names, ["column"])
    assert list(made) == names
    assert len(set(made.values())) == len(names)
    assert not set(made.values()) & (RESERVED | {"column"})
    for safe in made.values():
        assert 0 < len(safe) < 120
        assert not set(safe) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
        assert not safe.startswith(".")
    assert safe_names(made.values(), ["column"]) == {safe: safe for safe in made.values()}


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5))
def test_any_text_is_a_label(tmp_path_factory, texts):
    if any("\0" in text or not text.isprintable() for text in texts):
        return
    path = tmp_path_factory.mktemp("labels") / "a.zarr"
    data = stored(path, matrix(len(texts)), chunk_rows=2, row_coords={"row": texts})
    assert labels(data, "row") == texts


TIMES = {
    "days": np.array(["2026-11-19", "NaT", "1815-12-10"], "datetime64[D]"),
    "nanoseconds": np.array(["2026-11-19T01:02:03.000000004", "1970-01-01", "NaT"], "datetime64[ns]"),
    "months": np.array(["2026-11", "1970-01", "1969-12"], "datetime64[M]"),
    "spans": np.array([3, -1, 86400], "timedelta64[s]"),
}


@pytest.mark.parametrize("name", TIMES)
def test_dates_are_whole_numbers_with_a_unit(tmp_path, name):
    """They come back as dates, in the package and in xarray, and are sorted as dates."""
    given = TIMES[name]
    with create(tmp_path / "a.zarr", columns=2, chunk_rows=2) as writer:
        writer.append(np.ones((3, 2)), row_coords={"time": given})
    data = open_dataset(tmp_path / "a.zarr")
    found = np.concatenate([data.row_coords(index)["time"] for index in range(2)])
    np.testing.assert_array_equal(found, given)
    assert found.dtype.kind == given.dtype.kind
    stored = zarr.open_array(tmp_path / "a.zarr", path="time", mode="r")
    assert stored.dtype == np.int64
    with xr.open_zarr(tmp_path / "a.zarr", decode_timedelta=True) as opened:
        np.testing.assert_array_equal(opened["time"].values.astype(given.dtype), given)


def test_dates_of_another_unit_are_appended_and_numbers_are_not(tmp_path):
    with create(tmp_path / "a.zarr", columns=2) as writer:
        writer.append(np.ones((1, 2)), row_coords={"time": np.array(["2001-02-03"], "datetime64[s]")})
    append(
        tmp_path / "a.zarr", np.ones((1, 2)), row_coords={"time": np.array(["2001-02-04"], "datetime64[D]")}
    )
    found = open_dataset(tmp_path / "a.zarr").row_coords(0)["time"]
    assert found.astype("datetime64[D]").astype(str).tolist() == ["2001-02-03", "2001-02-04"]
    with pytest.raises(InputError, match=r"'time' changes from datetime64\[s\] to int64: use one type"):
        append(tmp_path / "a.zarr", np.ones((1, 2)), row_coords={"time": [5]})


LABELS = {
    "text": np.array(["a", "b", "c"]),
    "numbers": np.array([1.5, 2.5, 3.5]),
    "dates": np.array(["2001-01-01", "2001-01-02", "2001-01-03"], "datetime64[ns]"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_rows_are_part_of_what_a_dataset_is(tmp_path, name):
    """The same values with their labels reversed are other data; an array and its store are the same."""
    values = np.arange(6.0).reshape(3, 2)
    there = xr.DataArray(values, dims=("time", "column"), coords={"time": LABELS[name]})
    back = there.assign_coords(time=LABELS[name][::-1])
    one, other, bare = (ArrayData(data, chunk_rows=2).fingerprint for data in (there, back, values))
    assert len({one, other, bare}) == 3
    ingest(there, tmp_path / "a.zarr", chunk_rows=2)
    assert open_dataset(tmp_path / "a.zarr").fingerprint == one
    assert verify_dataset(tmp_path / "a.zarr") == []


def test_an_appended_store_is_the_store_made_at_once(tmp_path):
    values, names = np.arange(10.0).reshape(5, 2), np.array(list("abcde"))
    for rows, path in ((5, "whole.zarr"), (3, "part.zarr")):
        with create(tmp_path / path, columns=2, chunk_rows=2, dtype="float64") as writer:
            writer.append(values[:rows], row_coords={"row": names[:rows]})
    append(tmp_path / "part.zarr", values[3:], row_coords={"row": names[3:]})
    whole, part = open_dataset(tmp_path / "whole.zarr"), open_dataset(tmp_path / "part.zarr")
    assert whole.fingerprint == part.fingerprint
