"""The benchmark of sources: problems are what they say, scores count what they say, a run prints a table."""

import numpy as np
import pytest

from tests.benchmarks import sources
from tests.support.fit_variants import Variant
from tests.support.planted_sources import (
    AMPLITUDES,
    SourceProblem,
    correlation,
    fast_ica,
    recovered,
    truth_started,
)


@pytest.mark.parametrize("law", AMPLITUDES)
def test_problems_are_what_they_say(law):
    planted = SourceProblem(1, 0.5, rows=60_000, amplitudes=law).planted
    assert planted.x.shape == (60_000, 10)
    assert planted.z.mean() == pytest.approx(0.4, abs=0.02)
    stays = (planted.z[:, 1:] == planted.z[:, :-1]).mean()
    assert stays == pytest.approx(0.9 + 0.1 * (0.4**2 + 0.6**2), abs=0.01)
    if law != "student":
        assert planted.w.var() == pytest.approx(2, rel=0.05)
    left = planted.x - planted.y.T @ planted.mixing
    assert left.std() == pytest.approx(0.5, rel=0.01)


def test_noise_alone_differs_between_problems_of_a_seed():
    one, two = SourceProblem(3, 0.1).planted, SourceProblem(3, 0.6).planted
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.mixing, two.mixing)
    assert not np.array_equal(one.y, SourceProblem(4, 0.1).planted.y)


def test_correlation_is_that_of_the_best_assignment():
    y = np.random.default_rng(1).normal(size=(3, 400))
    assert correlation(-2 * y[[2, 0, 1]], y) == pytest.approx(1)
    assert correlation(y[:2], y) == pytest.approx(2 / 3, abs=0.1)
    assert correlation(np.zeros((2, 400)), y) == 0
    assert correlation(np.vstack([y[:1], np.zeros((1, 400))]), y[:1]) == pytest.approx(1)


def test_one_fit_finds_all_sources_and_their_number():
    """Above FastICA, which is told the number, and as far as the fit from the truth."""
    of = SourceProblem(2, 0.3)
    found = sources.outcome(Variant("ica-vi-infinite"), of)
    assert found.fit > found.truth - 0.002
    assert found.active == 5
    pytest.importorskip("sklearn")
    assert found.truth - 0.002 > found.fast == fast_ica(of.planted.x, of.planted.y)


def test_a_fit_from_the_truth_stays_there():
    planted = SourceProblem(2, 0.1).planted
    found = truth_started(planted, "ica-vi-infinite", {})
    assert correlation(recovered(found), planted.y) > 0.999
    assert np.abs(found["rows"]["z"].values.mean(axis=0) - np.sort(planted.z.mean(axis=1))[::-1]).max() < 0.1


def test_a_run_prints_a_line_for_each_problem_and_a_table(capsys):
    assert sources.main(["1", "--noise", ".3", "--set", "--set", "start=principal"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "seed 1" in line]) == 2
    assert lines[-3].split() == [*sources.HEADER]
    assert lines[-1].startswith("ica-vi-infinite start=principal")
