"""Which fits `choose` compares, and in which order."""

import numpy as np
import pytest

from ibpdist.base.timeleft import AllSteps, Converging
from ibpdist.evaluate.trials import counts, grid_for, planned_fits, trials_of, without_others

BOTH = ["fa-vi-infinite", "lg-vi-finite"]


@pytest.mark.parametrize("given", [4, np.int64(4), [4], (4,), np.array([4]), range(4, 5)])
def test_numbers_of_features(given):
    assert counts(given) == [4]


def test_numbers_are_in_rising_order():
    assert counts([40, 5, np.int32(10)]) == [5, 10, 40]


@pytest.mark.parametrize(
    ("rows", "columns", "grid"),
    [(1000, 1000, [5, 10, 20, 40, 80]), (1000, 40, [5, 10, 20, 40]), (19, 1000, [5, 10]), (1000, 4, [4])],
)
def test_auto_is_within_rows_and_columns(rows, columns, grid):
    assert grid_for(rows, columns) == grid


def test_small_fits_come_first_and_row_noise_is_compared_where_it_is_learned():
    assert [(one.K, one.system, one.row_noise) for one in trials_of(BOTH, [5, 10], {})] == [
        (5, "fa-vi-infinite", "learn"),
        (5, "fa-vi-infinite", "none"),
        (5, "lg-vi-finite", "none"),
        (10, "fa-vi-infinite", "learn"),
        (10, "fa-vi-infinite", "none"),
        (10, "lg-vi-finite", "none"),
    ]


def test_row_noise_that_is_given_is_not_compared():
    (one,) = trials_of(BOTH[:1], [5], {"row_noise": "none"})
    assert (one.row_noise, one.settings) == ("none", {})


def test_without_the_other_row_noise_of_one_fit():
    trials = trials_of(BOTH, [5, 10], {})
    assert without_others(trials, 0) == [trials[0], *trials[2:]]
    assert without_others(trials, 3) == [*trials[:4], trials[5]]
    assert without_others(trials, 1) == trials, "what was fitted stays"


def test_fits_as_progress_is_told_of_them():
    trials = trials_of(["fa-vi-dense", "lg-gibbs-finite"], [5], {"row_noise": "none"})
    dense, sampler = planned_fits(trials, {"steps": 30, "rtol": None, "restarts": 2})
    assert (dense.name, dense.kind, dense.features, dense.starts) == ("fa-vi-dense, K=5", "fa-vi-dense", 5, 2)
    assert (dense.stopping, sampler.stopping) == (Converging(30, 1e-6, 5), AllSteps(30))
