"""A mixture over the noise of whole rows: a density, cheap where it is not needed."""

import numpy as np
import pytest

from ibpdist.predict.predict import predictor
from ibpdist.predict.rownoise import EVEN, UNEVEN, RowNoise
from ibpdist.predict.sampled import Sampled


def test_shares_are_a_distribution():
    for one in (EVEN, UNEVEN):
        assert sum(one.shares) == pytest.approx(1)
        assert one.levels[0] == 0
        assert len(one.levels) == len(one.shares)


def test_even_rows_are_left_alone():
    part = Sampled(np.array([-3.0, -1.0]), np.array([0.1, 0.0]))
    found = EVEN.mixed([part])
    np.testing.assert_allclose(found.score, part.score)
    np.testing.assert_allclose(found.error, np.minimum(part.error, 30))


def test_the_mixture_is_a_density():
    """Of one hidden cell: it integrates to one."""
    grid = np.linspace(-60, 60, 200_001)
    parts = [
        Sampled(-0.5 * (np.log(2 * np.pi * (0.1 + u)) + grid**2 / (0.1 + u)), np.zeros(grid.size))
        for u in UNEVEN.levels
    ]
    assert np.trapezoid(np.exp(UNEVEN.mixed(parts).score), grid) == pytest.approx(1, abs=1e-9)


def test_what_it_costs_and_saves():
    """At most log(1 / share) a row; a row that level zero finds impossible pays for a level that does not."""
    good = UNEVEN.mixed([Sampled(np.array([5.0 - 100 * j]), np.zeros(1)) for j in range(5)])
    assert good.score[0] == pytest.approx(5 + np.log(0.7))
    bad = UNEVEN.mixed([Sampled(np.array([-500.0 if j == 0 else -20.0 - j]), np.zeros(1)) for j in range(5)])
    assert bad.score[0] > -21 + np.log(0.075)


def test_errors_to_first_order():
    rng, noise = np.random.default_rng(1), RowNoise((0.0, 1.0), (0.6, 0.4))
    score, error = np.array([[-2.0], [-1.5]]), np.array([[0.01], [0.03]])
    drawn = [
        noise.mixed(
            [Sampled(s + e * rng.normal(size=1), e) for s, e in zip(score, error, strict=True)]
        ).score[0]
        for _ in range(4000)
    ]
    found = noise.mixed([Sampled(s, e) for s, e in zip(score, error, strict=True)])
    assert found.error[0] == pytest.approx(np.std(drawn), rel=0.1)


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_levels_are_in_units_of_the_columns(weights):
    params = {"mean": np.array([[1.0, 2.0]]), "noise": np.array([0.5, 1.0]), "prevalence": np.array([0.25])}
    of = predictor(params | {"spread": np.array([3.0, 4.0])}, weights)
    np.testing.assert_array_equal(of.cell_noise, of.noise)
    object.__setattr__(of, "extra", 0.1)
    np.testing.assert_allclose(of.cell_noise, [0.85, 1.4], err_msg="3.5 is the median")
    own = predictor(params, weights)
    object.__setattr__(own, "extra", 0.1)
    share = 0.25 if weights == "normal" else 0.25 * 0.75
    np.testing.assert_allclose(own.cell_noise, [0.5 + 0.1 * (0.5 + share), 1 + 0.1 * (1 + 4 * share)])


def test_an_error_is_no_larger_than_what_a_level_gives():
    found = RowNoise((0.0, 1.0), (0.5, 0.5)).mixed(
        [Sampled(np.array([-1.0]), np.array([500.0])), Sampled(np.array([-1.0]), np.array([0.0]))]
    )
    assert found.error[0] == pytest.approx(np.log(2))
