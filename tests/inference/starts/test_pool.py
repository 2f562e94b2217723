"""The pool finds all features where rows are few and the symmetric solution finds none."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from ibpdist.inference.starts.certificate import Columns, Space, certify, space
from ibpdist.inference.starts.pool import complement, exclusive_or, greedy, one_unit, search, weak
from ibpdist.inference.starts.symmetric import separate
from tests.support.start_cases import Planted, matched, plant, whitened


def problem(
    rows: int = 100, columns: int = 500, features: int = 25, prevalence: float = 0.3, seed: int = 0
) -> tuple[Planted, Space]:
    made = plant(rows, columns, features, prevalence, seed=seed)
    found, y = whitened(made.x, 2 * features)
    assert found.rank == features
    return made, space(y, found.ratio)


@pytest.mark.parametrize("prevalence", [0.3, 0.5, 0.8])
def test_all_25_features_in_100_rows(prevalence: float) -> None:
    made, into = problem(prevalence=prevalence)
    rng = np.random.default_rng(0)
    seeds = separate(into.y, rng).directions
    assert matched(seeds @ into.y, made.z, signed=False) < 25
    found = search(into, seeds, rng)
    assert found.certified == 25
    assert matched(found.directions @ into.y, made.z, signed=False) == 25


def test_same_generator_same_bits() -> None:
    _, into = problem(60, 200, 8)
    seeds = np.eye(8)
    one, two = (search(into, seeds, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one.directions, two.directions)


def test_with_plenty_of_rows_a_certified_solution_is_not_searched_again() -> None:
    _, into = problem(800, 80, 8)
    rng = np.random.default_rng(0)
    seeds = separate(into.y, rng).directions
    before = rng.bit_generator.state
    found = search(into, seeds, rng)
    assert found.certified == 8
    assert rng.bit_generator.state == before


def test_directions_are_complete_when_nothing_can_be_certified() -> None:
    y = np.random.default_rng(0).standard_normal((5, 60))
    found = search(space(y, np.full(5, 1e-6)), np.eye(5), np.random.default_rng(1))
    assert found.certified == 0
    assert found.directions.shape == (5, 5)
    assert np.linalg.matrix_rank(found.directions) == 5


def test_one_unit_stays_at_a_true_direction_and_leaves_no_start_behind() -> None:
    made, into = problem()
    c = certify(made.z.astype(bool), into).directions
    c /= np.linalg.norm(c, axis=1, keepdims=True)
    w = one_unit(into.y, c, 60)
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1, atol=1e-12)
    assert matched(w @ into.y, made.z, signed=False) >= 24


def test_one_unit_starts_do_not_touch_each_other() -> None:
    _, into = problem(60, 200, 8)
    w = np.random.default_rng(0).standard_normal((6, 8))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    whole = one_unit(into.y, w, 10)
    alone = np.concatenate([one_unit(into.y, w[[k]], 10) for k in range(6)])
    np.testing.assert_allclose(whole, alone, atol=1e-9)


def columns(z: ArrayLike, directions: ArrayLike, ratio: ArrayLike = 1.0) -> Columns:
    hard = np.array(z, bool)
    return Columns(
        hard, np.array(directions, float), np.broadcast_to(ratio, len(hard)), np.ones(len(hard), bool)
    )


def test_greedy_takes_simple_columns_and_leaves_unions() -> None:
    a, b = np.eye(20)[0] + np.eye(20)[1], np.eye(20)[4] + np.eye(20)[5] + np.eye(20)[6]
    pool = columns([a + b, a, b], [[1, 1], [1, 0], [0, 1]])
    assert sorted(greedy(pool)) == [1, 2]


def test_greedy_prefers_usual_residuals() -> None:
    a, b = np.eye(40)[:2].sum(0), np.eye(40)[2:4].sum(0)
    pool = columns([a, b], [[1, 0.01], [1, 0.0]], [1.9, 1.0])
    assert greedy(pool).tolist() == [1]


def test_greedy_of_nothing() -> None:
    assert greedy(columns(np.zeros((0, 5)), np.zeros((0, 3)))).tolist() == []


def test_exclusive_or_undoes_unions_nesting_and_disjoint_pairs() -> None:
    a = np.array([1, 1, 0, 0, 0, 0, 0, 0], bool)
    b = np.array([0, 0, 1, 1, 1, 0, 0, 0], bool)
    assert np.array_equal(exclusive_or(np.array([a, b])), [a | b])
    assert np.array_equal(exclusive_or(np.array([a, a | b])), [b])
    assert np.array_equal(exclusive_or(np.array([~a, a | b])), [~b])
    crossing = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], bool)
    assert exclusive_or(crossing).shape == (0, 4)


def test_complement_is_orthonormal_and_outside() -> None:
    basis = np.random.default_rng(0).standard_normal((3, 7))
    rest = complement(basis)
    assert rest.shape == (4, 7)
    np.testing.assert_allclose(rest @ rest.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(rest @ basis.T, 0, atol=1e-12)


def test_weak_signal_is_where_balanced_columns_fail_the_certificate() -> None:
    assert not weak(np.full(10, 0.2))
    assert weak(np.full(10, 0.3))
