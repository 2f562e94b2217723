"""The problems of the recovery benchmark: what the seed decides, the ranges, what is planted."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.support.planted import COUNTS, MARGINS, NEAR, NOISES, SETS, Problem, draw, prevalences, problem

SMALL = Problem(400, 30, 6, "0.3", 0.5, 9, (7, 1))


@pytest.mark.parametrize("kind", SETS)
def test_a_problem_is_a_function_of_set_seed_and_number(kind):
    assert problem(kind, 5, 3) == problem(kind, 5, 3)
    seeds = {problem(kind, seed, number).seed for seed in (5, 6) for number in range(20)}
    assert len(seeds) == 40
    assert problem(kind, 5, 3).seed not in {problem(other, 5, 3).seed for other in SETS if other != kind}


@pytest.mark.parametrize("seed", [0, 1, 0xF122200])
def test_the_grid_stays_in_its_ranges_and_reaches_their_ends(seed):
    grid = [problem("grid", seed, number) for number in range(COUNTS["grid"])]
    assert len(grid) == 200
    for one in grid:
        assert 500 <= one.rows <= 20_000
        assert 50 <= one.columns <= 1000
        assert 5 <= one.features <= 40
        assert one.rows * one.columns <= 1.1e6
        assert one.features <= one.columns / 1.25
        assert one.noise in NOISES
        assert one.truncation in {int(np.ceil(one.features * margin)) for margin in MARGINS}
        assert (one.missing, one.spread, one.exclusive) == (0, 1, False)
    for name, ends in (("rows", (500, 20_000)), ("columns", (50, 1000)), ("features", (5, 40))):
        assert set(ends) <= {getattr(one, name) for one in grid}
        assert len({getattr(one, name) for one in grid}) > 20
    assert {one.noise for one in grid} == set(NOISES)


@pytest.mark.parametrize("seed", [0, 3])
def test_every_ten_problems_have_all_prevalences(seed):
    for first in range(0, 200, 10):
        words = Counter(problem("grid", seed, number).prevalence for number in range(first, first + 10))
        assert words == Counter(
            ["0.05", "0.2", "0.21", "0.3", "0.5", "0.79", "0.95", "mixed"] + 2 * ["sticks"]
        )
    orders = {tuple(problem("grid", seed, n).prevalence for n in range(at, at + 10)) for at in (0, 10, 20)}
    assert len(orders) == 3


def test_near_problems_are_those_of_the_table_five_times():
    near = [problem("near", 0, number) for number in range(COUNTS["near"])]
    shapes = Counter((p.rows, p.columns, p.features, p.prevalence, p.noise) for p in near)
    assert shapes == dict.fromkeys(NEAR, 5)
    assert len(near) == 70
    assert all(p.truncation == 2 * p.features for p in near)


def test_the_further_sets_change_one_thing():
    missing, columns, exclusive, hard = (
        [problem(kind, 2, number) for number in range(20)]
        for kind in ("missing", "columns", "exclusive", "hard")
    )
    plain = {"missing": 0.0, "spread": 1.0, "exclusive": False}
    for made, other in (
        (missing, {"missing": 0.1}),
        (columns, {"spread": 10.0}),
        (exclusive, {"exclusive": True}),
    ):
        for one in made:
            assert {name: getattr(one, name) for name in plain} == plain | other
    assert {(p.rows, p.columns, p.features, p.noise) for p in hard} == {(500, 50, 40, 1.0)}
    assert {p.truncation for p in hard} == {60, 80}


def test_the_same_problem_has_the_same_bits():
    one, two = draw(SMALL), draw(SMALL)
    assert one.x.tobytes() == two.x.tobytes()
    assert one.z.tobytes() == two.z.tobytes()
    assert draw(replace(SMALL, seed=(7, 2))).x.tobytes() != one.x.tobytes()


def test_rows_are_sums_of_features_plus_noise():
    made = draw(replace(SMALL, rows=4000))
    rest = made.x - made.z @ made.dictionary
    assert rest.std() == pytest.approx(0.5, rel=0.01)
    assert abs(np.corrcoef(rest.ravel(), (made.z @ made.dictionary).ravel())[0, 1]) < 0.02
    np.testing.assert_allclose(made.z.mean(0), 0.3, atol=0.03)
    assert made.cells == 4000 * 30


def test_missing_cells_are_a_share_at_random():
    made = draw(replace(SMALL, missing=0.1))
    holes = np.isnan(made.x)
    assert holes.mean() == pytest.approx(0.1, abs=0.01)
    assert holes.mean(0).max() < 0.2
    assert made.cells == made.x.size - holes.sum()


def test_noise_differs_between_columns_by_a_factor():
    made = draw(replace(SMALL, rows=3000, columns=400, spread=10.0))
    deviations = (made.x - made.z @ made.dictionary).std(axis=0)
    assert 8 < deviations.max() / deviations.min() < 10.5
    assert np.exp(np.log(deviations).mean()) == pytest.approx(0.5, rel=0.1)


def test_exclusive_features_come_from_one_half():
    made = draw(replace(SMALL, exclusive=True))
    first, second = made.z[:, :3].any(1), made.z[:, 3:].any(1)
    assert not (first & second).any()
    assert min(first.sum(), second.sum()) > 80


def test_prevalences():
    rng = np.random.default_rng(0)
    sticks = prevalences("sticks", 20, rng)
    assert (np.diff(sticks) < 0).all()
    last = [prevalences("sticks", 20, rng)[-1] for _ in range(400)]
    assert np.mean(last) == pytest.approx((10 / 11) ** 20, rel=0.1)
    mixed = prevalences("mixed", 1000, rng)
    assert mixed.min() >= 0.05
    assert mixed.max() <= 0.95
    assert mixed.std() == pytest.approx(0.9 / np.sqrt(12), rel=0.1)
    np.testing.assert_array_equal(prevalences("0.21", 4, rng), 0.21)
