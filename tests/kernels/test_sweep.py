"""The compiled sweep against a scalar loop: every weight and rule, strips, runs, turns."""

from itertools import product

import numpy as np
import pytest

from ibpdist.catalog import systems
from ibpdist.kernels import respond
from ibpdist.kernels.sweep import sweep
from tests.support.covering import everyday
from tests.support.sweep_cases import loop, tables

WEIGHTS = {name: systems.weights_of(name).respond() for name in systems.weights_names()}
RULES = {"mean": respond.Mean(), "mode": respond.Mode(), "draw": respond.Draw()}
EVERY = [(w, r) for w in WEIGHTS for r in RULES]


def run(made, weights, rule, runs, inner, dtype=np.float64):
    """The kernel on a case of `tables`; new z, w of the tile, and sums."""
    cast = {name: made[name].astype(dtype) for name in ("f", "gamma", "prior", "tilt", "z", "w")}
    fresh = (np.full_like(cast["z"], -9), np.full_like(cast["w"], -9))
    precision = made["precision"]
    square = np.zeros((0, 0), dtype) if precision is None else np.full_like(cast["z"], -9)
    u, g = made["noise"]
    sums = sweep(
        cast["f"],
        cast["gamma"],
        np.asarray(runs),
        cast["prior"],
        cast["tilt"],
        precision if precision is None else precision.astype(dtype),
        (cast["z"], cast["w"]),
        WEIGHTS[weights],
        RULES[rule],
        (u if rule == "draw" else g.astype(dtype), g.astype(dtype)),
        inner,
        (*fresh, square),
    )
    made["square"] = square
    return *fresh, sums


def expected(made, weights, rule, runs, inner):
    z, w, made["square0"], sums = loop(
        made["f"],
        made["gamma"],
        np.asarray(runs),
        made["prior"],
        made["tilt"],
        made["precision"],
        made["z"],
        made["w"],
        weights,
        rule,
        made["noise"],
        inner,
    )
    return z, w, sums


def check(weights, rule, runs, features=3, inner=1):
    made = tables(17, features, runs, weights, rule, inner)
    z, w, sums = run(made, weights, rule, runs, inner)
    z0, w0, sums0 = expected(made, weights, rule, runs, inner)
    np.testing.assert_allclose(z, z0, rtol=1e-12, atol=1e-13)
    if weights != "unit":
        np.testing.assert_allclose(w, w0, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(sums, sums0, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("weights", "rule"), EVERY)
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 130])
def test_strips_and_remainders(weights, rule, rows):
    check(weights, rule, [0, rows])


@pytest.mark.parametrize(("weights", "rule"), EVERY)
@pytest.mark.parametrize("inner", [1, 2, 3])
def test_turns(weights, rule, inner):
    check(weights, rule, [0, 70], inner=inner)


@pytest.mark.parametrize(("weights", "rule"), EVERY)
def test_runs_with_their_own_gamma(weights, rule):
    check(weights, rule, [0, 1, 66, 67, 131], inner=2)


@pytest.mark.parametrize("features", [1, 2, 4, 5, 8, 11])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_numbers_of_features(weights, features):
    """Terms are added four at a time; all remainders."""
    check(weights, "mean", [0, 65], features=features)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_features_and_no_rows(weights):
    z, _, sums = run(tables(1, 0, [0, 5], weights, "mean", 1), weights, "mean", [0, 5], 1)
    assert z.shape == (0, 5)
    assert sums.shape == (5, 1, 0)
    z, _, sums = run(tables(1, 2, [0, 0], weights, "mean", 1), weights, "mean", [0, 0], 1)
    assert z.shape == (2, 0)
    assert (sums == 0).all()


@pytest.mark.parametrize(("weights", "rule"), everyday(product(WEIGHTS, ["mean", "mode"]), 1))
def test_float32(weights, rule):
    runs = [0, 100]
    made = tables(23, 5, runs, weights, rule, 2)
    z, w, sums = run(made, weights, rule, runs, 2, dtype=np.float32)
    z0, w0, sums0 = expected(made, weights, rule, runs, 2)
    assert z.dtype == np.float32
    assert sums.dtype == np.float64
    np.testing.assert_allclose(z, z0, atol=3e-5)
    if weights != "unit":
        np.testing.assert_allclose(w, w0, rtol=3e-4, atol=3e-5)
    np.testing.assert_allclose(sums, sums0, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_strip_does_not_depend_on_its_neighbours(weights):
    """The same rows alone and among others: the same bits."""
    runs = [0, 130]
    made = tables(29, 4, runs, weights, "mean", 1)
    z, w, _ = run(made, weights, "mean", runs, 1)
    part = {name: made[name][:, 64:100] for name in ("f", "z", "w")} | {
        name: made[name] for name in ("gamma", "prior", "tilt", "precision", "noise")
    }
    alone, alone_w, _ = run(part, weights, "mean", [0, 36], 1)
    np.testing.assert_array_equal(alone, z[:, 64:100])
    np.testing.assert_array_equal(alone_w, w[:, 64:100])


@pytest.mark.parametrize(
    ("weights", "rule", "dtype"), everyday(product(WEIGHTS, RULES, [np.float64, np.float32]))
)
def test_extreme_evidence_is_finite(weights, rule, dtype):
    made = tables(31, 3, [0, 66], weights, rule, 1)
    made["f"] = made["f"] * 1e6
    z, w, sums = run(made, weights, rule, [0, 66], 1, dtype=dtype)
    assert np.isfinite(z).all()
    assert np.isfinite(w).all()
    assert np.isfinite(sums).all()
    assert ((z >= 0) & (z <= 1)).all()


def test_draws_come_as_often_as_their_chance():
    """One feature, no likelihood: the share of ones is the prior's chance."""
    rows, odds = 20_000, np.array([-2.0, 0.0, 1.5])
    rng = np.random.default_rng(37)
    u = rng.random((3, rows))
    z = np.zeros((3, rows))
    fresh = (z.copy(), np.zeros((0, rows)))
    sweep(
        np.zeros((3, rows)),
        np.zeros((1, 3, 3)),
        np.array([0, rows]),
        odds,
        np.zeros(3),
        None,
        (z, fresh[1]),
        WEIGHTS["unit"],
        RULES["draw"],
        (u, u),
        1,
        (*fresh, fresh[1]),
    )
    chance = 1 / (1 + np.exp(-odds))
    error = np.sqrt(chance * (1 - chance) / rows)
    assert (np.abs(fresh[0].mean(axis=1) - chance) < 4 * error).all()
    np.testing.assert_array_equal(fresh[0], u < chance[:, None])


# --- precisions of rows ---


@pytest.mark.parametrize(("weights", "rule"), everyday(EVERY, 1))
@pytest.mark.parametrize("runs", [[0, 63], [0, 1, 66, 131]])
def test_rows_with_precisions_of_their_own(weights, rule, runs):
    made = tables(19, 3, runs, weights, rule, 2)
    made["precision"] = np.random.default_rng(6).gamma(2.0, 0.5, runs[-1])
    z, w, sums = run(made, weights, rule, runs, 2)
    z0, w0, sums0 = expected(made, weights, rule, runs, 2)
    np.testing.assert_allclose(z, z0, rtol=1e-12, atol=1e-13)
    if weights != "unit":
        np.testing.assert_allclose(w, w0, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(made["square"], made["square0"], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(sums, sums0, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_equal_precisions_are_another_noise(weights):
    """Rows that are twice as precise see products and Gram matrices twice as large."""
    made = tables(23, 4, [0, 70], weights, "mean", 2)
    other = made | {"f": 2 * made["f"], "gamma": 2 * made["gamma"]}
    z0, w0, sums0 = run(other, weights, "mean", [0, 70], 2)
    z, w, sums = run(made | {"precision": np.full(70, 2.0)}, weights, "mean", [0, 70], 2)
    np.testing.assert_allclose(z, z0, rtol=1e-12)
    np.testing.assert_allclose(w, w0, rtol=1e-12)
    np.testing.assert_allclose(sums, sums0, rtol=1e-11, atol=1e-12)


# --- log odds of each row ---


# Only anchored samplers have them, and each weight and rule compiles another kernel.


DRAWN_EVERY_DAY = [
    pytest.param(*case, marks=() if case[1] == "draw" and case[0] != "exponential" else pytest.mark.slow)
    for case in EVERY
]
"""Only samplers without a limit have log odds of each row."""


@pytest.mark.parametrize("runs", [[0, 63], [0, 130], [0, 1, 66, 131]])
@pytest.mark.parametrize(("weights", "rule"), DRAWN_EVERY_DAY)
def test_log_odds_of_each_row(weights, rule, runs):
    made = tables(17, 3, runs, weights, rule, 2)
    made["prior"] = np.random.default_rng(5).normal(size=(3, runs[-1])) * 2
    z, w, sums = run(made, weights, rule, runs, 2)
    z0, w0, sums0 = expected(made, weights, rule, runs, 2)
    np.testing.assert_allclose(z, z0, rtol=1e-12, atol=1e-13)
    if weights != "unit":
        np.testing.assert_allclose(w, w0, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(sums, sums0, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("weights", "rule"), DRAWN_EVERY_DAY)
def test_the_same_log_odds_for_every_row_give_the_same_bits(weights, rule, dtype):
    runs = [0, 70]
    made = tables(3, 4, runs, weights, rule, 1)
    each = made | {"prior": np.repeat(made["prior"][:, None], 70, axis=1)}
    for one, two in zip(
        run(made, weights, rule, runs, 1, dtype), run(each, weights, rule, runs, 1, dtype), strict=True
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("weights", "dtype"), everyday(product(WEIGHTS, [np.float32, np.float64]), 1))
def test_infinite_log_odds_freeze_a_draw(weights, dtype):
    """Whatever the rows say and whatever the uniforms are; weights are drawn all the same."""
    made = tables(7, 3, [0, 200], weights, "draw", 1)
    made["f"] = made["f"] * 1e3
    u, g = made["noise"]
    made["noise"] = (np.where(u < 0.5, 2.0**-53, 1 - 2.0**-53), g)
    side = np.random.default_rng(1).random((3, 200)) < 0.5
    made["prior"] = np.where(side, np.inf, -np.inf)
    z, w, sums = run(made, weights, "draw", [0, 200], 1, dtype)
    np.testing.assert_array_equal(z, side)
    np.testing.assert_array_equal(sums[0, 0], side.sum(axis=1))
    assert np.isfinite(w).all()
    assert np.isfinite(sums).all()
    if weights != "unit":
        assert np.unique(w).size > 500


def test_normals_are_not_read_where_there_are_no_weights():
    made = tables(7, 3, [0, 90], "unit", "draw", 1)
    expected_z = run(made, "unit", "draw", [0, 90], 1)[0]
    made["noise"] = (made["noise"][0], np.zeros((0, 90)))
    np.testing.assert_array_equal(run(made, "unit", "draw", [0, 90], 1)[0], expected_z)
