"""A result in words, from trees made by hand."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

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
    assert said[0] == "3 of 4 features are active"
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
    assert said[:2] == ["0 of 2 features are active", ""]


def test_a_long_list_is_cut() -> None:
    said = lines(tree([0.9 / (k + 1) for k in range(LISTED + 5)]))
    assert said[1].startswith("every feature provided is in use"), "the number found is no answer"
    listed = said[3 : said.index("")]
    assert len(listed) == LISTED + 1
    assert listed[-1].split() == ["...", "5", "more,", "the", "least", "frequent", "0.036"]


def test_the_longest_list_that_is_not_cut() -> None:
    said = lines(tree([0.9 / (k + 1) for k in range(LISTED)]))
    assert not any("..." in line for line in said)


def test_noise_by_column_is_a_range() -> None:
    (noise,) = (line for line in lines(tree([0.5], [0.1, 0.2, 0.9])) if line.startswith("noise"))
    assert noise.split(None, 1)[1] == "0.2 median, 0.1 to 0.9, 3 columns  (variance)"


@pytest.mark.parametrize(
    ("objectives", "best", "spread"), [([-3.0, -1.0, -2.0], 1, "2"), ([-1.0, -1.0], 0, "0")]
)
def test_restarts_say_which_was_best_and_how_far_apart(
    objectives: list[float], best: int, spread: str
) -> None:
    restarts = xr.Dataset({"objective": ("restart", objectives)})
    (line,) = (line for line in lines(tree([0.5], restarts=restarts)) if line.startswith("restarts"))
    assert line.split(None, 1)[1] == f"{len(objectives)}; the best is {best}, {spread} above the worst"
