"""Enumeration against a plain sum over patterns."""

import numpy as np
import pytest

from ibpdist.predict import exact as module
from ibpdist.predict.exact import exact, patterns
from tests.support.predictive import log_predictive, make_predictor, rows_of


def masks(rows, columns, seed):
    draw = np.random.default_rng(seed).random((rows, columns))
    return draw < 0.5, draw > 0.7


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("plug", [False, True])
@pytest.mark.parametrize("common", [False, True])
def test_equals_the_plain_sum(weights, plug, common):
    of = make_predictor(4, 6, seed=11, weights=weights)
    of = of.plug_in() if plug else of
    x, _ = rows_of(of, 5, seed=1)
    visible, hidden = masks(1 if common else 5, 6, seed=4)
    visible, hidden = np.broadcast_to(visible, (5, 6)), np.broadcast_to(hidden, (5, 6))
    expected = [
        log_predictive(of, *row) if row[2].any() else 0.0 for row in zip(x, visible, hidden, strict=True)
    ]
    np.testing.assert_allclose(exact(of, x, visible, hidden), expected, rtol=1e-11, atol=1e-12)


def test_cells_that_are_neither_visible_nor_hidden_do_not_matter():
    of = make_predictor(3, 6, seed=2)
    x, _ = rows_of(of, 4, seed=1)
    visible, hidden = masks(4, 6, seed=9)
    expected = exact(of, x, visible, hidden)
    x[~visible & ~hidden] = np.nan
    np.testing.assert_array_equal(exact(of, x, visible, hidden), expected)


def test_blocks_of_rows_and_patterns_do_not_matter(monkeypatch):
    of = make_predictor(5, 6, seed=2)
    x, _ = rows_of(of, 11, seed=1)
    visible, hidden = masks(11, 6, seed=9)
    expected = exact(of, x, visible, hidden)
    monkeypatch.setattr(module, "_ROWS", 4)
    monkeypatch.setattr(module, "_CELLS", 24)
    np.testing.assert_allclose(exact(of, x, visible, hidden), expected, rtol=1e-12)


def test_nothing_hidden_scores_zero():
    of = make_predictor(3, 4, seed=2)
    x, _ = rows_of(of, 3, seed=1)
    visible = np.ones((3, 4), bool)
    assert (exact(of, x, visible, ~visible) == 0).all()


def test_nothing_visible_is_the_evidence_of_the_row():
    of = make_predictor(3, 4, seed=2)
    x, _ = rows_of(of, 1, seed=1)
    none, every = np.zeros((1, 4), bool), np.ones((1, 4), bool)
    assert exact(of, x, none, every)[0] == pytest.approx(
        log_predictive(of, x[0], none[0], every[0]), rel=1e-12
    )


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_no_features_is_the_density_of_the_noise(weights):
    of = make_predictor(0, 4, seed=2, weights=weights)
    x, hidden = np.array([[0.5, -1.0, 2.0, 0.0]]), np.array([[True, False, True, False]])
    expected = -0.5 * (np.log(2 * np.pi * of.noise) + x[0] ** 2 / of.noise)
    np.testing.assert_allclose(exact(of, x, ~hidden, hidden), expected[[0, 2]].sum(), rtol=1e-12)


def test_no_rows():
    of = make_predictor(2, 4, seed=2)
    assert exact(of, np.empty((0, 4)), np.empty((0, 4), bool), np.empty((0, 4), bool)).shape == (0,)


def test_far_outliers_stay_finite():
    of = make_predictor(3, 4, seed=2)
    visible = np.array([[True, False, True, False]])
    assert np.isfinite(exact(of, np.full((1, 4), 1e6), visible, ~visible)).all()


def test_patterns_are_all_different():
    assert len(np.unique(patterns(6, 0, 64), axis=0)) == 64
    np.testing.assert_array_equal(patterns(4, 5, 7), [[1, 0, 1, 0], [0, 1, 1, 0]])
    assert patterns(0, 0, 1).shape == (1, 0)
