"""A result in words, from trees made by hand."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import ibpdist
from ibpdist.report.summary import LISTED, summary

FACTS: dict[str, Any] = {
    "rows": 1000, "columns": 3, "objective": -1234.56789, "stopped": "converged: the objective gained 1e-3",
    "steps": 17, "system": "lg-vi-infinite", "truncation": 4, "seed": "7", "fingerprint": "0123456789abcdef",
}  # fmt: skip


def tree(prevalence: list[float], noise: Any = 0.25, **more: xr.Dataset) -> xr.DataTree:
    shares = np.array(prevalence)
    noises = np.asarray(noise)
    params = xr.Dataset(
        {
            "prevalence": ("feature", shares),
            "active": ("feature", shares * 1000 > 0.5),
            "noise": (("column",) if noises.ndim else (), noises),
            "scale": ((), 1.5),
            "mass": ((), 2.0),
        }
    )
    made = xr.DataTree.from_dict({"params": params, **more})
    made.attrs = FACTS
    return made


def lines(result: xr.DataTree) -> list[str]:
    return summary(result).splitlines()


def test_the_answer_comes_first() -> None:
    said = lines(tree([0.5, 0.25, 0.0006, 0.0004]))
    assert said[0] == "3 features, of at most 4"
    assert [line.split() for line in said[1:5]] == [
        ["feature", "prevalence", "rows"],
        ["0", "0.5000", "500.0"],
        ["1", "0.2500", "250.0"],
        ["2", "0.0006", "0.6"],
    ]
    assert said[5] == ""


def test_the_facts_follow() -> None:
    facts = {line.split()[0]: line.split(None, 1)[1] for line in lines(tree([0.5, 0.1, 0, 0]))[5:]}
    assert facts == {
        "noise": "0.25  (variance)",
        "scale": "1.5  (variance of the dictionary)",
        "mass": "2",
        "objective": "-1,234.5679",
        "stopped": "converged: the objective gained 1e-3 (step 17)",
        "data": "1,000 rows x 3 columns, fingerprint 0123456789ab",
        "system": "lg-vi-infinite, K = 4, seed 7",
    }


def test_no_feature_at_all() -> None:
    said = lines(tree([0.0, 0.0]))
    assert said[:2] == ["0 features, of at most 4", ""]


def test_a_long_list_is_cut() -> None:
    said = lines(tree([0.9 / (k + 1) for k in range(LISTED + 5)]))
    listed = said[2 : said.index("")]
    assert len(listed) == LISTED + 1
    assert listed[-1].split() == ["...", "5", "more,", "the", "least", "frequent", "0.036"]


@pytest.mark.parametrize(("features", "doubt"), [(3, False), (4, True)])
def test_a_truncation_that_is_used_up_is_no_answer(features: int, doubt: bool) -> None:
    said = lines(tree([0.5] * features))
    assert any(line.startswith("- all 4 available features are used") for line in said) is doubt


def diagnosed(**marks: bool) -> xr.Dataset:
    """A diagnosis of two features of which one is rare."""
    pair = ("feature", "feature_")
    flags = {"rare": [False, True], "constant": [False, False], "idle": [False, False]}
    return xr.Dataset(
        {name: ("feature", values) for name, values in flags.items()}
        | {name: (pair, np.zeros((2, 2), bool)) for name in ("same_rows", "same_shape")}
        | {name: (pair, np.eye(2)) for name in ("correlation", "cosine")}
        | {"explained": ("feature", [0.4, 0.016]), "explained_together": 0.4123, "used_up": False}
        | marks
    )


def test_what_the_features_explain_and_what_is_odd_about_them() -> None:
    said = lines(tree([0.5, 0.002], diagnosis=diagnosed()))
    assert said[0] == "2 features, of at most 4; they explain 41.2 % of the variance"
    assert said[1].split() == ["feature", "prevalence", "rows", "explains"]
    assert said[3].split() == ["1", "0.0020", "2.0", "1.6", "%"]
    assert said[4:7] == [
        "",
        "- feature 1 is barely used, in fewer than 1 % of the rows or in a single one",
        "",
    ]


def test_what_the_moves_did() -> None:
    trace = xr.Dataset({name: ("step", [0.0, 1.0, 1.0]) for name in ("move", "accepted", "gain")})
    made = tree([0.5], trace=trace)
    made.attrs = FACTS | {"moves": ["delete"]}
    at = lines(made).index("moves      2 of 2 accepted, together +2 nats")
    assert lines(made)[at + 1] == "           delete 2 of 2 (+2)"
    made.attrs = FACTS
    assert not any(line.startswith("moves") for line in lines(made))


def test_the_longest_list_that_is_not_cut() -> None:
    said = lines(tree([0.9 / (k + 1) for k in range(LISTED)]))
    assert not any("..." in line for line in said)


def test_noise_by_column_is_a_range() -> None:
    (noise,) = (line for line in lines(tree([0.5], [0.1, 0.2, 0.9])) if line.startswith("noise"))
    assert noise.split(None, 1)[1] == "0.2 median, 0.1 to 0.9, 3 columns  (variance)"


@pytest.mark.parametrize(
    ("objectives", "said"),
    [
        ([-3.0, -1.0, -2.0], "3; the best is 1, 2 above the worst"),
        ([-1000.0, -1000.0 + 1e-5], "2; the best is 1, 1e-05 above the worst"),
        ([-1.0, -1.0], "2; all reached the same objective"),
        ([-61250.0, -61250.0 + 1.45519e-11, -61250.0], "3; all reached the same objective"),
        ([0.0, 0.0], "2; all reached the same objective"),
        ([-np.inf, -2.0], "2; the best is 1, inf above the worst"),
    ],
)
def test_restarts_say_which_was_best_and_how_far_apart(objectives: list[float], said: str) -> None:
    restarts = xr.Dataset({"objective": ("restart", objectives)})
    (line,) = (line for line in lines(tree([0.5], restarts=restarts)) if line.startswith("restarts"))
    assert line.split(None, 1)[1] == said


def test_a_number_of_features_left_to_the_data_is_told_as_such() -> None:
    result = ibpdist.fit(np.random.default_rng(1).normal(size=(30, 4)), system="lg-vi-infinite", K="auto")
    assert "lg-vi-infinite, K = auto, at most 4, seed 0" in summary(result)
