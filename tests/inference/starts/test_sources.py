"""From whitened rows to soft columns: what was planted, the right way round, the same every time."""

import numpy as np
import pytest

from ibpdist.inference.starts.rank import Spectrum
from ibpdist.inference.starts.sources import SEARCH_ROWS, Separation, candidates
from tests.support.start_cases import Matrix, matched, plant, whitened


def run(x: Matrix, most: int, seed: int = 0) -> tuple[Spectrum, Matrix, list[Separation]]:
    found, y = whitened(x, most)
    return found, y, candidates(y, found.ratio, np.random.default_rng(seed), most)


@pytest.mark.parametrize("prevalence", [0.05, 0.3, 0.5, 0.79])
@pytest.mark.parametrize(("columns", "features"), [(50, 10), (200, 20)])
def test_planted_columns_are_found_and_oriented(prevalence: float, columns: int, features: int) -> None:
    made = plant(500, columns, features, prevalence, seed=7)
    _, _, found = run(made.x, 2 * features)
    assert len(found) == 2
    assert matched(found[0].z, made.z) == features
    assert matched(found[1].z, made.z) >= features - 1


def test_the_pool_finds_25_features_in_100_rows() -> None:
    made = plant(100, 500, 25, 0.3, seed=1)
    _, _, found = run(made.x, 38)
    symmetric, pool = found
    assert matched(symmetric.z, made.z) < 10
    assert matched(pool.z, made.z) == 25
    assert pool.certified == 25
    assert pool.score > symmetric.score


def test_probabilities_are_clipped_and_those_of_the_rows() -> None:
    made = plant(300, 60, 8, 0.3)
    _, y, found = run(made.x, 20)
    for one in found:
        assert one.z.shape == (8, 300)
        assert one.z.min() >= 0.01
        assert one.z.max() <= 0.99
        np.testing.assert_allclose(one.probabilities(y), one.z)
        assert np.all(one.mixture.high > one.mixture.low)


def test_rows_that_were_not_sampled_get_their_columns() -> None:
    made = plant(1000, 60, 8, 0.3)
    spectrum, y = whitened(made.x, 20)
    for one in candidates(y[:, :400], spectrum.ratio, np.random.default_rng(0), 20):
        assert matched(one.probabilities(y[:, 400:]), made.z[:, 400:]) == 8


def test_the_pool_samples_rows_when_there_are_many() -> None:
    made = plant(SEARCH_ROWS + 500, 30, 5, 0.3)
    _, _, found = run(made.x, 12)
    assert [matched(one.z, made.z) for one in found] == [5, 5]


def test_same_generator_same_bits_and_rows_stay_as_they_were() -> None:
    made = plant(80, 200, 10, 0.3)
    spectrum, y = whitened(made.x, 20)
    before = y.copy()
    one, two = (candidates(y, spectrum.ratio, np.random.default_rng(9), 20) for _ in range(2))
    assert np.array_equal(y, before)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.z, b.z)
        assert np.array_equal(a.directions, b.directions)
        assert a.score == b.score


def test_no_pool_where_the_spectrum_was_cut() -> None:
    made = plant(300, 60, 12, 0.3)
    spectrum, _, found = run(made.x, 8)
    assert spectrum.capped
    assert len(found) == 1
    assert found[0].z.shape == (8, 300)
    assert found[0].certified == 0


def test_a_rank_of_one() -> None:
    made = plant(200, 20, 1, 0.3)
    _, _, found = run(made.x, 5)
    assert [matched(one.z, made.z) for one in found] == [1, 1]


@pytest.mark.parametrize("x", [np.ones((1, 5)), np.zeros((30, 4)), np.full((30, 4), 2.5)])
def test_nothing_to_separate(x: Matrix) -> None:
    assert run(x, 5)[2] == []


def test_few_rows_without_noise_stay_finite() -> None:
    made = plant(8, 40, 3, 0.5, noise_sd=0.0)
    _, _, found = run(made.x, 6)
    assert found
    assert all(np.all(np.isfinite(one.z)) for one in found)


def test_duplicate_rows_and_normal_data_stay_finite() -> None:
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 30)) + 0.1 * rng.standard_normal(
        (50, 30)
    )
    _, _, found = run(np.repeat(factors, 3, axis=0), 10)
    assert found
    assert all(np.all(np.isfinite(one.z)) for one in found)
