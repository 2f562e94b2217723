"""Labels: types that are kept, names that are safe."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.data.labels import RESERVED, as_labels, safe_names
from ibpdist.errors import InputError
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
        (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), "U"),
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
