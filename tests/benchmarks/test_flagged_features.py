"""The benchmark of flagged features: fresh half-samples, and the numbers of a line."""

import numpy as np
import pytest

from tests.benchmarks.flagged_features import FRESH, Checked, checked, halves, main
from tests.support import real_sets
from tests.support.factor_problems import FactorProblem, draw
from tests.support.fit_variants import Variant

CLEAR = FactorProblem(300, 20, (0.4, 0.25, 0.15), 0.2, 6, (1,))


def test_halves_come_in_pairs_and_are_fresh():
    x = np.arange(200.0)[:, None] + np.zeros(3)
    first, second, third = halves(x, 0, 3)
    np.testing.assert_array_equal(np.sort(np.concatenate([first, second]), axis=0), x)
    assert not np.array_equal(first[:, 0], third[:, 0])
    assert not np.array_equal(first[:, 0], halves(x, FRESH, 1)[0][:, 0])


@pytest.mark.slow
def test_clear_features_are_flagged_and_come_back():
    made = checked(Variant(), draw(CLEAR).x, 6, 0, 2)
    assert made.flagged.tolist() == [True] * 3
    assert made.again.tolist() == [1.0] * 3


def test_the_numbers_of_a_line():
    made = Checked(np.array([True, False, True]), np.array([1.0, 0.25, 0.5]))
    assert made.cells() == ["3", "2", "0.75", "0.50", "0.25"]
    none = Checked(np.zeros(2, bool), np.array([0.25, 0.75]))
    assert none.cells() == ["2", "0", "-", "-", "0.50"]
    assert Checked(np.ones(1, bool), np.ones(1)).cells() == ["1", "1", "1.00", "1.00", "-"]


def test_the_command_prints_a_table(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setitem(real_sets.MADE, "breast", lambda: draw(CLEAR).x)
    arguments = ["3", "--sets", "breast", "--features", "4", "100", "--subsamples", "2", "--set", "steps=20"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["breast", "4", "3"]
    assert lines[1].split() == ["set", "K", "seed", "method", "active", "flagged", "again", "least", "others"]
    assert len(lines) == 3
