"""The comparison of the report's figures measures what it says."""

from itertools import islice

import numpy as np
import pytest

from ibpdist.evaluate.synthetic import draw, plant, recipe
from tests.benchmarks.figures45 import MASS, METHODS, NOISE, at_truth, curve, of_fit, plot, score, split


def small():
    return split(24, 12, 3, seed=1)


def test_a_third_of_the_columns_is_hidden_in_the_second_half():
    of = small()
    np.testing.assert_array_equal(of.rows, np.arange(12, 24))
    assert len(of.hidden) == 4
    assert not of.chunk.x[np.ix_(of.rows, of.hidden)].any()
    assert of.chunk.observed[:12].all()
    assert of.x[np.ix_(of.rows, of.hidden)].all()


def test_densities_are_those_of_the_hidden_cells():
    of = small()
    fit, variance = np.zeros((12, 4)), np.full(4, 2.0)
    hidden = of.x[np.ix_(of.rows, of.hidden)]
    expected = -0.5 * (np.log(2 * np.pi * 2.0) + hidden**2 / 2.0)
    np.testing.assert_allclose(of.density(fit, variance), expected.sum(axis=1))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_steps(name):
    of = small()
    for took, looked in islice(METHODS[name](of, 0), 3):
        densities = looked() if callable(looked) else looked
        assert took >= 0
        assert densities.shape[1] == len(of.rows)
        assert np.isfinite(densities).all()


def test_scores_are_means_of_densities_over_the_later_half():
    of = small()
    kept = [np.full((1, 12), value) for value in (-1000.0, -1000.0, np.log(1.0), np.log(3.0))]
    assert score(of, kept) == pytest.approx(np.log(2.0) * 12 / (12 * 4))
    fit = [np.full((2, 12), -50.0), np.log(np.array([[1.0], [3.0]])) * np.ones((2, 12))]
    assert score(of, fit) == pytest.approx(np.log(2.0) / 4)


def test_the_truth_scores_like_the_noise():
    """The planted dictionary under a certain z, known exactly, scores the entropy of the noise."""
    of = split(400, 60, 3, seed=2)
    made = recipe("linear-gaussian", 400, 60, 3, mass=MASS, noise=NOISE, seed=2)
    planted = plant(made)
    chance = draw(made, planted, 0, 400).z.T.astype(float)
    found = {
        "mean": ((), planted.dictionary),
        "mean_sd": ((), np.zeros((3, 60))),
        "noise": ((), np.asarray(NOISE)),
    }
    densities = of_fit(of, found, chance, np.random.default_rng(0))
    assert score(of, [densities]) == pytest.approx(at_truth(of), abs=0.05)
    none = of_fit(of, found, np.zeros_like(chance), np.random.default_rng(0))
    assert score(of, [none]) < at_truth(of) - 0.1


def test_curves_go_on_until_the_time_is_up():
    of = small()
    steps = ((0.1, np.full((1, 12), float(i))) for i in range(1000))
    found = curve(of, steps, 2.0)
    times = [at for at, _ in found]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(2.0, abs=0.11)
    assert len(found) > 5


def test_curves_are_drawn(tmp_path):
    of = small()
    name = "collapsed infinite"
    plot(tmp_path / "out.png", "small", {name: [curve(of, METHODS[name](of, 0), 0.05)]}, at_truth(of))
    assert (tmp_path / "out.png").stat().st_size > 5000
