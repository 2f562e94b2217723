"""The jackknife over chains, and errors of sums of rows."""

import numpy as np
import pytest

from ibpdist.predict.averaged import averaged
from ibpdist.predict.estimates import Sampled, adjoining, jackknife, together
from ibpdist.predict.rownoise import EVEN


def test_jackknife_is_the_log_of_the_mean_with_its_error():
    rng = np.random.default_rng(0)
    terms = rng.gamma(2.0, size=(12, 3000))
    made = jackknife(np.log(terms), np.zeros_like(terms))
    # The mean is 2; the plain log of a mean of 12 is low by 1 / (2 x 2 x 12).
    assert abs(made.score.mean() - np.log(2.0)) < 4 * made.score.std() / np.sqrt(3000)
    assert abs(made.plain.mean() - np.log(2.0)) > 4 * made.score.std() / np.sqrt(3000)
    assert made.error.mean() == pytest.approx(made.score.std(), rel=0.1)


def test_jackknife_leaves_each_chain_out():
    above, below = np.random.default_rng(1).normal(size=(2, 5, 7)) * 30
    made = jackknife(above, below)

    def log_ratio(keep):
        return np.logaddexp.reduce(above[keep]) - np.logaddexp.reduce(below[keep])

    each = np.array([log_ratio(np.arange(5) != c) for c in range(5)])
    np.testing.assert_allclose(made.plain, log_ratio(np.arange(5)))
    np.testing.assert_allclose(made.error, np.sqrt(0.8 * ((each - each.mean(0)) ** 2).sum(0)))


def test_jackknife_survives_very_small_numbers_and_one_chain():
    terms = np.array([[-1000.0], [-1001.0], [-1000.5]])
    shifted = jackknife(terms, np.zeros_like(terms)).score + 1000
    np.testing.assert_allclose(shifted, jackknife(terms + 1000, np.zeros_like(terms)).score, rtol=1e-10)
    assert np.isnan(jackknife(terms[:1], np.zeros((1, 1))).error).all()


def test_a_chain_that_alone_has_found_the_row_is_not_trusted_without_limit():
    """Of eight chains one is 500 nats above the others: the correction is at most log 8."""
    above, below = np.full((8, 1), -600.0), np.zeros((8, 1))
    above[3] = -100.0
    found = jackknife(above, below)
    assert found.score[0] == pytest.approx(-100.0)
    assert found.error[0] > 100
    assert found.effective[0] == pytest.approx(1)
    even = jackknife(above * 0 - 50.0, below)
    assert (even.score[0], even.error[0]) == (pytest.approx(-50.0), pytest.approx(0, abs=1e-12))
    assert even.effective[0] == pytest.approx(8)


def test_what_rows_have_in_common_is_added_before_it_is_squared():
    part = Sampled(np.zeros(4), np.full(4, 0.5), bias=np.full(4, 0.3))
    assert together([part]) == pytest.approx(np.sqrt(4 * 0.16 + 1.2**2))
    assert together([part, part]) == pytest.approx(np.sqrt(8 * 0.16 + 2.4**2))
    assert together([adjoining([part, part], 3, 2)]) == pytest.approx(together([part, part]))


def test_rows_beside_others_keep_their_places():
    made = adjoining([Sampled(np.ones(2), np.full(2, 0.1), apart=np.array([0.0, 1.0]))], 1, 2)
    np.testing.assert_array_equal(made.score, [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(made.disagree, [False, False, True, False, False])
    assert Sampled(np.zeros(3), np.zeros(3)).disagree.tolist() == [False] * 3


def test_mixtures_and_means_keep_the_bias_and_who_disagrees():
    rng = np.random.default_rng(0)
    one = Sampled(rng.normal(size=6), np.full(6, 0.2), None, np.full(6, 0.1), np.eye(6)[2])
    for mixed in (EVEN.mixed([one]), averaged([one, one])):
        np.testing.assert_allclose(mixed.bias, 0.1)
        np.testing.assert_array_equal(mixed.disagree, one.disagree)
    assert together([EVEN.mixed([one])]) == pytest.approx(together([one]))
    assert together([averaged([one, one])]) == pytest.approx(np.sqrt(6 * 0.03 / 2 + 0.36))
