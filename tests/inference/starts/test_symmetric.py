"""Symmetric separation: right with many rows, the same bits for the same generator."""

import numpy as np
import pytest

from ibpdist.inference.starts.symmetric import nearest_rotation, refine, separate
from tests.support.start_cases import Matrix, Planted, matched, plant, whitened


def centred(
    rows: int, columns: int, features: int, prevalence: float, noise_sd: float = 0.5
) -> tuple[Planted, Matrix]:
    made = plant(rows, columns, features, prevalence, noise_sd)
    found, y = whitened(made.x, 2 * features)
    assert found.rank == features
    return made, y - y.mean(1, keepdims=True)


@pytest.mark.parametrize("prevalence", [0.05, 0.3, 0.5, 0.79])
def test_finds_all_planted_columns_with_many_rows(prevalence: float) -> None:
    made, y = centred(800, 80, 10, prevalence)
    found = separate(y, np.random.default_rng(0))
    assert matched(found.directions @ y, made.z, signed=False) == 10


def test_directions_are_a_rotation() -> None:
    _, y = centred(500, 50, 8, 0.3)
    w = separate(y, np.random.default_rng(0)).directions
    np.testing.assert_allclose(w @ w.T, np.eye(8), atol=1e-10)


def test_the_truth_is_more_likely_than_one_bad_contrast() -> None:
    # Symmetric sources have no skewness; the first contrast alone may fail, the score tells.
    _, y = centred(800, 80, 10, 0.5)
    scores = [separate(y, np.random.default_rng(1), (name,)).score for name in ("skew", "tanh", "cube")]
    best = separate(y, np.random.default_rng(1)).score
    assert best >= max(scores) - 0.02


def test_same_generator_same_bits_other_generator_other_path() -> None:
    _, y = centred(300, 40, 6, 0.3)
    one, two = (separate(y, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(one.directions, two.directions)
    assert one.score == two.score
    assert not np.array_equal(one.directions, separate(y, np.random.default_rng(5)).directions)


def test_strong_noise_does_not_bias_the_directions() -> None:
    # Without the total covariance in the step, noisy directions would be pushed aside.
    made, y = centred(5000, 30, 5, 0.3, noise_sd=1.0)
    w = separate(y, np.random.default_rng(0)).directions
    # The mixing: each row is where one source points.
    true = np.linalg.lstsq((made.z - made.z.mean(1, keepdims=True)).T, y.T, rcond=None)[0]
    true /= np.linalg.norm(true, axis=1, keepdims=True)
    assert np.all(np.abs(w @ true.T).max(0) > 0.99)


def test_one_component() -> None:
    made, y = centred(200, 20, 1, 0.3)
    assert matched(separate(y, np.random.default_rng(0)).directions @ y, made.z, signed=False) == 1


def test_nearest_rotation_leaves_rotations_and_undoes_stretching() -> None:
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    np.testing.assert_allclose(nearest_rotation(q), q, atol=1e-12)
    stretch = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(nearest_rotation(stretch @ q), q, atol=1e-12)


def test_refining_stays_at_the_solution_and_returns_to_it() -> None:
    made, y = centred(800, 80, 10, 0.3)
    found = separate(y, np.random.default_rng(0))
    again = refine(y, found.directions)
    np.testing.assert_allclose(
        np.abs(np.einsum("ij,ij->i", again.directions, found.directions)), 1, atol=1e-3
    )
    moved = nearest_rotation(found.directions + 0.05 * np.random.default_rng(1).standard_normal((10, 10)))
    assert refine(y, moved).score == pytest.approx(found.score, abs=0.02)
    assert matched(refine(y, moved).directions @ y, made.z, signed=False) == 10
