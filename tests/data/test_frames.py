"""Data frames: numbers of mixed types without loss, labels and covariates from columns."""

import numpy as np
import pandas as pd
import pytest

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.ingest import ingest
from ibpdist.data.store import open_dataset
from tests.support.matrices import labels, listing, matrix, values

LARGE = 2**60 + 1
ROUNDED = {
    "beside floats": {"a": [1, LARGE], "b": [1.0, 2.0]},
    "nullable": {"a": pd.array([1, LARGE], dtype="Int64")},
    "nullable with a gap": {"b": [1, 2], "a": pd.array([None, -LARGE], dtype="Int64")},
    "unsigned": {"a": np.array([1, LARGE], "u8"), "b": pd.array([1, None], dtype="Float32")},
    "signs that differ": {"a": np.array([1, LARGE], "u8"), "b": np.array([-1, 1])},
    "plain": {"a": [1, LARGE]},
}


@pytest.mark.parametrize("case", ROUNDED)
def test_integers_that_no_float_holds_are_refused(tmp_path, case):
    frame = pd.DataFrame(ROUNDED[case], index=["r", "s"])
    for judge in (ArrayData, lambda it: ingest(it, tmp_path / "out.zarr")):
        with pytest.raises(
            InputError, match=r"row 1, column a: '-?1152921504606846977': .*beyond 2\^53"
        ) as caught:
            judge(frame)
        assert caught.value.code == 3
    with pytest.raises(InputError, match=r"row \d, column s: '-?1152921504606846977': .*beyond 2\^53"):
        ingest(frame, tmp_path / "out.zarr", rows_in="columns")
    assert listing(tmp_path) == set()


def test_integers_that_floats_hold_are_kept_among_floats():
    frame = pd.DataFrame(
        {"a": pd.array([2**53, None], dtype="Int64"), "b": [-(2**53), 1], "c": [0.5, np.nan]}
    )
    np.testing.assert_array_equal(values(ArrayData(frame)), [[2.0**53, -(2.0**53), 0.5], [np.nan, 1, np.nan]])


def people():
    x = pd.DataFrame(matrix(10, 3), columns=list("abc"), index=[f"i{i}" for i in range(10)])
    return x.assign(name=[f"r{i}" for i in range(10)], age=np.arange(10), sex=["m", None] * 5)


def test_labels_and_covariates_come_from_columns(tmp_path):
    frame = people()
    asked = {"label_column": "name", "covariates": ["sex", "age"]}
    report = ingest(frame, tmp_path / "a.zarr", chunk_rows=4, **asked)
    data = open_dataset(tmp_path / "a.zarr")
    assert (report.columns, data.column_coords()["column"].tolist()) == (3, ["a", "b", "c"])
    assert labels(data, "row") == frame["name"].tolist()
    assert labels(data, "age") == list(range(10))
    assert labels(data, "sex") == ["m", ""] * 5
    np.testing.assert_array_equal(values(data), frame[["a", "b", "c"]].to_numpy())


def test_without_a_label_column_the_index_labels_the_rows(tmp_path):
    ingest(people(), tmp_path / "a.zarr", covariates=["name", "sex", "age"])
    assert labels(open_dataset(tmp_path / "a.zarr"), "row") == people().index.tolist()


def test_covariates_of_a_turned_frame_lie_beside_the_columns(tmp_path):
    frame = people().drop(columns="sex")
    ingest(frame, tmp_path / "a.zarr", rows_in="columns", label_column="name", covariates=["age"])
    data = open_dataset(tmp_path / "a.zarr")
    assert labels(data, "row") == ["a", "b", "c"]
    assert data.column_coords()["column"].tolist() == frame["name"].tolist()
    assert data.column_coords()["age"].tolist() == list(range(10))
    np.testing.assert_array_equal(values(data), frame[["a", "b", "c"]].to_numpy().T)


@pytest.mark.parametrize(
    ("column", "made"),
    [
        ([1, 2], [1, 2]),
        ([True, False], [True, False]),
        ([0.5, np.nan], [0.5, np.nan]),
        (pd.array([1, None], dtype="Int64"), [1, np.nan]),
        (pd.Categorical(["u", None]), ["u", ""]),
        (["u", None], ["u", ""]),
        (
            np.array(["2020-01-01", "2021-01-01"], "M8[s]"),
            np.array(["2020-01-01", "2021-01-01"], "M8[s]").tolist(),
        ),
    ],
)
def test_covariates_keep_their_types(tmp_path, column, made):
    ingest(pd.DataFrame({"a": [1.0, 2.0], "c": column}), tmp_path / "a.zarr", covariates=["c"])
    np.testing.assert_array_equal(labels(open_dataset(tmp_path / "a.zarr"), "c"), made)


@pytest.mark.parametrize("asked", [{"label_column": "z"}, {"covariates": ["z"]}, {"label_column": 9}])
def test_a_column_that_is_not_there_is_a_usage_error(tmp_path, asked):
    with pytest.raises(UsageError, match=r"array: has no column ('z'|9), the frame has a, b, c, name, age"):
        ingest(people(), tmp_path / "a.zarr", **asked)
    assert listing(tmp_path) == set()


def test_a_column_may_be_given_by_its_place(tmp_path):
    ingest(people(), tmp_path / "a.zarr", label_column=3, covariates=["age", "sex"])
    assert labels(open_dataset(tmp_path / "a.zarr"), "row") == people()["name"].tolist()


def test_a_frame_of_covariates_only_has_no_columns(tmp_path):
    with pytest.raises(InputError, match="has no columns"):
        ingest(pd.DataFrame({"a": [1.0, 2.0]}), tmp_path / "a.zarr", covariates=["a"])
