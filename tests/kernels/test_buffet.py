"""The prior of rows in turn: odds, and the number of features that a row has for itself."""

import numpy as np
import pytest
from numba import njit
from scipy.special import gammaln, logit, logsumexp

from ibpdist.kernels.buffet import Law, any_slot, is_own, last_called, log_odds, number_of_own


@njit
def odds(law, others):
    return log_odds(law, others), is_own(law, others)


def shares(cells, squares, level, law, most=3000):
    """Probabilities of 0 .. most - 1 own features."""
    k = np.arange(most)
    variance = level[:, None] + k * law.scale
    logs = k * np.log(law.rate) - gammaln(k + 1)
    logs -= 0.5 * (cells[:, None] * np.log(variance) + squares[:, None] / variance).sum(axis=0)
    return np.exp(logs - logsumexp(logs))


CASES = {
    "nothing to explain": ([4.0], [2.0], [0.5], 0.3),
    "much to explain": ([4.0], [400.0], [0.5], 0.3),
    "very much": ([500.0], [5e5], [0.01], 0.004),
    "crowded": ([3.0], [9.0], [1.0], 40.0),
    "no cell": ([0.0], [0.0], [0.5], 1.5),
    "columns": ([1.0, 1.0, 0.0], [9.0, 0.1, 0.0], [0.2, 2.0, 1.0], 0.7),
}


@pytest.mark.parametrize("name", CASES)
def test_number_of_own_is_drawn_by_its_law(name):
    """Its quantiles, just below and just above each step of the distribution."""
    cells, squares, level, rate = CASES[name]
    cells, squares, level = np.array(cells), np.array(squares), np.array(level)
    law = Law(1.0, 1.3, 0.0, rate, 10.0)
    steps = np.cumsum(shares(cells, squares, level, law))
    looked_at = 0
    for number in np.flatnonzero(np.diff(steps, prepend=0.0) > 1e-6):
        for uniform, expected in ((steps[number] - 1e-8, number), (steps[number] + 1e-8, number + 1)):
            if 0 < uniform < 1 - 1e-7:
                assert number_of_own(cells, squares, level, law, uniform) == expected
                looked_at += 1
    assert looked_at > 3


def test_a_number_is_found_for_any_uniform():
    one, law = np.ones(1), Law(1.0, 1.3, 0.0, 0.2, 10.0)
    assert number_of_own(one, one, one, law, 1e-300) == 0
    last = number_of_own(one, one, one, law, 1 - 2**-53)
    assert 3 < last < 40


def test_finite_priors_have_no_own():
    one = np.ones(1)
    assert number_of_own(one, 1e9 * one, one, Law(1.0, 1.0, 0.1, 0.0, 5.0), 0.999999) == 0


@pytest.mark.parametrize("others", [1.0, 2.0, 3.0])
def test_odds_of_the_buffet_are_shares_of_all_rows(others):
    found, own = odds(Law(1.0, 1.0, 0.0, 0.1, 4.0), others)
    assert 1 / (1 + np.exp(-found)) == pytest.approx(others / 4)
    assert not own


def test_a_feature_of_nobody_else_is_own_only_in_the_buffet():
    assert odds(Law(1.0, 1.0, 0.0, 0.1, 4.0), 0.0)[1]
    found, own = odds(Law(1.0, 1.0, 0.5, 0.0, 4.0), 0.0)
    assert not own
    assert 1 / (1 + np.exp(-found)) == pytest.approx(0.5 / 4.5)


def test_any_slot_is_the_share_of_the_uniform():
    u = np.array([1e-300, 0.24, 0.26, 0.49, 0.51, 0.76, 1 - 1e-16])
    assert [any_slot(4, logit(v)) for v in u] == [0, 0, 1, 1, 2, 3, 3]
    assert [any_slot(1, v) for v in (-np.inf, 0.0, np.inf)] == [0, 0, 0]


def test_the_last_called_is_one_of_the_own():
    mine, numbers = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), np.array([9.0, -3.0, 2.0, 8.0, 7.0])
    assert last_called(mine, numbers, 5) == 4
    assert last_called(mine, numbers, 4) == 2
    assert last_called(mine, numbers, 2) == 1
    assert last_called(mine, numbers, 1) == -1
