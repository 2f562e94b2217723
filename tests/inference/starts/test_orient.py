"""Orientation finds the complemented columns: equal to trying all sets, and to the truth."""

from itertools import product

import numpy as np
import pytest

from ibpdist.inference.starts.orient import Sets, objective, orientations, regression


def every_set(features: int) -> Sets:
    return np.array(list(product([False, True], repeat=features)))


@pytest.mark.parametrize("features", range(1, 9))
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_best_of_all_sets(features: int, seed: int) -> None:
    rng = np.random.default_rng([seed, features])
    a, b = rng.standard_normal((features, 12)), rng.standard_normal(12)
    best = min(objective(a, b, f) for f in every_set(features))
    found = orientations(a, b, np.random.default_rng(0))
    assert objective(a, b, found[0]) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("prevalence", [0.05, 0.5, 0.79, 0.95])
def test_finds_the_complemented_columns(prevalence: float) -> None:
    rng = np.random.default_rng(int(100 * prevalence))
    z = (rng.random((15, 400)) < prevalence).astype(float)
    a = rng.standard_normal((15, 60))
    x = a.T @ z + 0.5 * rng.standard_normal((60, 400))
    flipped = rng.random(15) < 0.5
    columns = np.where(flipped[:, None], 1 - z, z)
    found = orientations(*regression(x, columns), np.random.default_rng(0))
    assert np.array_equal(found[0], flipped)


def test_regression_is_least_squares_with_an_intercept() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((7, 50)), rng.random((3, 50))
    design = np.vstack([z, np.ones(50)]).T
    expected = np.linalg.lstsq(design, x.T, rcond=None)[0]
    a, b = regression(x, z)
    np.testing.assert_allclose(a, expected[:-1], atol=1e-9)
    np.testing.assert_allclose(b, expected[-1], atol=1e-9)


def test_sets_are_distinct_sorted_and_at_most_as_many_as_asked() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((10, 6)), rng.standard_normal(6)
    found = orientations(a, b, np.random.default_rng(0), best=4)
    scores = [objective(a, b, f) for f in found]
    assert len(np.unique(found, axis=0)) == len(found) <= 4
    assert scores == sorted(scores)
    assert np.array_equal(found[:1], orientations(a, b, np.random.default_rng(0), best=1))


def test_no_single_or_double_flip_is_better() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((20, 8)), rng.standard_normal(8)
    f = orientations(a, b, np.random.default_rng(0))[0]
    least = objective(a, b, f)
    for k in range(20):
        for other in range(k, 20):
            g = f.copy()
            g[[k, other]] = ~g[[k, other]]
            assert objective(a, b, g) >= least - 1e-9


def test_complementing_changes_the_dictionary_and_the_intercept_as_said() -> None:
    rng = np.random.default_rng(3)
    x, z = rng.standard_normal((5, 40)), rng.random((4, 40))
    f = np.array([True, False, True, False])
    a, b = regression(x, z)
    turned, left = regression(x, np.where(f[:, None], 1 - z, z))
    np.testing.assert_allclose(turned, np.where(f[:, None], -a, a), atol=1e-9)
    np.testing.assert_allclose(left @ left, objective(a, b, f), atol=1e-9)


def test_columns_that_never_vary_do_no_harm() -> None:
    rng = np.random.default_rng(4)
    z = np.vstack([np.ones(30), rng.random((2, 30)) < 0.5]).astype(float)
    a, b = regression(rng.standard_normal((5, 30)), z)
    assert np.all(np.isfinite(a))
    assert orientations(a, b, np.random.default_rng(0)).shape[1] == 3
