"""A diagnosis in sentences."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from ibpdist.report.diagnosis import COMPARE, NAMED, listed, remarks, remarks_on_parameters, used_up


def diagnosis(features: int = 5, **marks: Any) -> xr.Dataset:
    """One in which nothing is odd but `marks`: features, or pairs with their value."""
    names, square = ("constant", "idle", "rare"), np.zeros((features, features))
    held: dict[str, Any] = {name: ("feature", np.zeros(features, bool)) for name in names}
    for name, how in (("same_rows", "correlation"), ("same_shape", "cosine")):
        alike, values = square.astype(bool), square.copy()
        for (k, j), value in marks.get(name, {}).items():
            alike[k, j], values[k, j] = True, value
        held |= {name: (("feature", "feature_"), alike), how: (("feature", "feature_"), values)}
    for name in names:
        held[name][1][marks.get(name, [])] = True
    return xr.Dataset(held | {"used_up": ((), marks.get("used_up", False))})


def said(weighted: bool = False, **marks: Any) -> list[str]:
    return list(remarks(diagnosis(**marks), 5, weighted))


def test_nothing_odd_is_nothing_said() -> None:
    assert said() == []


def test_a_constant() -> None:
    (line,) = said(constant=[0])
    assert line.startswith("feature 0 is in every row: a constant, which explains the mean")


def test_constants() -> None:
    (line,) = said(constant=[0, 1, 4])
    assert line.startswith("features 0, 1 and 4 are in every row: constants, which explain the mean of the ")


def test_features_that_are_barely_used() -> None:
    assert said(rare=[3])[0].startswith("feature 3 is barely used, in fewer than 1 % of the rows")
    assert said(rare=[2, 4])[0].startswith("features 2 and 4 are barely used")


def test_features_that_explain_nothing() -> None:
    assert said(idle=[1, 3]) == ["features 1 and 3 explain nothing: a smaller K does as well"]
    assert said(idle=[1])[0].startswith("feature 1 explains nothing")


def test_features_in_the_same_rows() -> None:
    (line,) = said(same_rows={(1, 3): 0.97})
    assert line == (
        "features 1 and 3 look like one: they are in the same rows (correlation 0.97); "
        "try other starts (--restarts 4)"
    )


@pytest.mark.parametrize(("value", "how"), [(0.98, "the same shape"), (-0.98, "opposite shapes")])
def test_features_of_the_same_shape_may_want_weights(value: float, how: str) -> None:
    (line,) = said(same_shape={(0, 2): value})
    assert f"{how} (cosine {value:.2f})" in line
    assert line.endswith("try a system with weights (fa-vi-infinite)")


def test_where_there_are_weights_other_starts_are_advised() -> None:
    (line,) = said(same_shape={(0, 2): 0.98}, weighted=True)
    assert "fa-vi-infinite" not in line
    assert line.endswith("try other starts (--restarts 4)")


def test_the_closest_pairs_come_first_and_not_all() -> None:
    pairs = {(0, j): 0.9 + j / 100 for j in range(1, 9)}
    lines = said(features=9, same_rows=pairs)
    assert [line.split()[3] for line in lines] == [str(j) for j in range(8, 8 - NAMED, -1)]


def test_a_truncation_that_is_used_up() -> None:
    assert said(used_up=True) == [used_up(5)]
    assert used_up(12) == ("all 12 available features are used, so there may be more: try a larger K (-K 24)")
    assert used_up(1).startswith("the one available feature is used")
    assert used_up(12, COMPARE).endswith("compare several K with ibpdist choose (-K 12,24)")


def test_lists_of_features_are_cut() -> None:
    assert listed([3]) == "feature 3"
    assert listed(range(3)) == "features 0, 1 and 2"
    assert listed(range(NAMED)) == "features 0, 1, 2, 3, 4 and 5"
    assert listed(range(NAMED + 2)) == "features 0, 1, 2, 3, 4, 5 and 2 more"


def parameters(**values: Any) -> xr.Dataset:
    coords = {"column": ["a", "b", "c"]}
    return xr.Dataset(values, coords if "common" in values else None)


def test_columns_of_mostly_one_value_are_named() -> None:
    (line,) = remarks_on_parameters(parameters(common=("column", [0.71, 0.3, 0.99])))
    assert line.startswith("columns a and c have mostly one value: ")
    (line,) = remarks_on_parameters(parameters(common=("column", [0.1, 0.3, 0.99])))
    assert line.startswith("column c has mostly one value: ")
    assert not list(remarks_on_parameters(parameters(common=("column", [0.1, 0.3, 0.7]))))


@pytest.mark.parametrize(
    ("objective", "active", "others"),
    [
        ([-1.0, -1.0005, -1.0005, -1.5], [5, 6, 8, 9], "6 and 8"),
        ([-1.0, -1.0005, -1.1, -1.5], [5, 5, 8, 9], None),
        ([-1.2, -1.0], [4, 5], None),
    ],
)
def test_another_start_that_finds_another_number(
    objective: list[float], active: list[int], others: Any
) -> None:
    found = list(
        remarks_on_parameters(
            parameters(start_objective=("start", objective), start_active=("start", active))
        )
    )
    assert len(found) == (others is not None)
    if others:
        assert f"the best short fit had 5, and others that are nearly as good had {others}" in found[0]
