"""The benchmark of features that come back: subsamples, shares, and a line of the table."""

import numpy as np
import pytest

from tests.benchmarks.subsample_stability import (
    Outcome,
    fitted,
    main,
    outcomes,
    share_again,
    standardised,
    subsample,
    varimax,
)
from tests.support import real_sets
from tests.support.factor_problems import FactorProblem, draw
from tests.support.fit_variants import Variant

CLEAR = FactorProblem(300, 20, (0.4, 0.25, 0.15), 0.2, 6, (1,))


def test_a_subsample_leaves_a_tenth_of_the_rows_out():
    rows = subsample(200, 3)
    assert len(np.unique(rows)) == 180
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, subsample(200, 3))
    assert set(rows) != set(subsample(200, 4))


def test_columns_are_standardised():
    x = np.random.default_rng(0).normal(5.0, 3.0, (50, 12))
    x[:, 4] = 1.0
    made = standardised(x, 12)
    assert made.shape == (50, 11)
    np.testing.assert_allclose(made.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(made.std(0), 1)
    assert standardised(x, 5).shape[1] <= 5


def test_shares_that_come_back():
    features = np.random.default_rng(1).normal(size=(4, 30))
    assert share_again(features, -2 * features[::-1]) == 1
    assert share_again(features, features[:3]) == 0.75
    assert share_again(features, np.random.default_rng(2).normal(size=(4, 30))) == 0
    assert share_again(features, np.zeros((0, 30))) == 0
    assert share_again(np.zeros((0, 30)), features) == 0


def test_clear_features_come_back_and_noise_does_not():
    clear, method = draw(CLEAR).x, fitted(Variant())
    (found,) = outcomes("clear", clear, {"fit": method}, [6], 2)
    assert found.again == (1.0, 1.0)
    assert found.found == 3
    pytest.importorskip("sklearn")
    noise = np.random.default_rng(0).normal(size=(100, 20))
    (lost,) = outcomes("noise", noise, {"FA": varimax}, [5], 2)
    assert np.mean(lost.again) < 0.9
    assert lost.found == lost.kept == 5


def test_more_features_than_rows_or_columns_are_not_asked_for():
    x, asked = np.random.default_rng(0).normal(size=(12, 9)), []

    def method(x, features):
        asked.append((len(x), features))
        return x[:features]

    made = list(outcomes("few", x, {"m": method}, [5, 9, 40], 2))
    assert [one.features for one in made] == [5]
    assert asked == [(12, 5), (11, 5), (11, 5)]


def test_a_line_of_the_table():
    made = Outcome("khan", 10, "m", (0.5, 0.7), 8, 7.5)
    assert made.cells() == ["khan", "10", "m", "0.60", "0.50", "8", "7.5"]


def test_the_command_says_the_same_twice(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setitem(real_sets.MADE, "breast", lambda: draw(CLEAR).x)
    arguments = ["--sets", "breast", "--features", "3", "--drops", "1", "--set", "steps=20"]
    told = []
    for _ in range(2):
        assert main(arguments) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    lines = told[0].splitlines()
    assert [line.split()[2] for line in lines[:2]] == ["FA+varimax", "fa-vi-infinite"]
    assert lines[2].split() == ["set", "K", "method", "again", "least", "found", "kept"]
