"""Features in pairs: peaks of scores, and the angles at which they are highest."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.inference.starts import best
from ibpdist.inference.starts.pair_rotation import BINS, peaked, peaks
from tests.inference.starts.test_best import matched
from tests.support.factor_problems import draw, problem

NOISE = 0.05


def switches(rows=1000, seed=0):
    """Two features that are on in two amounts, as often as not: in one amount or twice that."""
    rng = np.random.default_rng(seed)
    on = rng.random((2, rows)) < [[0.42], [0.4]]
    s = on * np.where(rng.random((2, rows)) < 0.5, 1.0, 2.0) * rng.gamma(40.0, 1 / 40.0, (2, rows))
    return s + NOISE * rng.normal(size=s.shape), on


def white(s):
    """Of unit variance and uncorrelated, after a rotation by 40 degrees."""
    away = s - s.mean(axis=1, keepdims=True)
    values, axes = np.linalg.eigh(np.cov(away))
    c, s = np.cos(0.7), np.sin(0.7)
    return np.array([[c, -s], [s, c]]) @ (axes / np.sqrt(values)) @ axes.T @ away


def test_peaks_are_the_fullest_windows():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(size=(3, 60)), np.full((3, 20), 0.4)], axis=1)
    width, least = 0.3, values.min()
    share, where = peaks(values, width)
    for row, found, at in zip(values, share, where, strict=True):
        edges = least + np.arange(-BINS, 100 * BINS) * width / BINS
        inside = [row[(row >= edge) & (row < edge + width)] for edge in edges]
        fullest = max(inside, key=len)
        assert found == pytest.approx(len(fullest) / row.size)
        assert at == pytest.approx(fullest.mean())


@pytest.mark.parametrize("seed", range(3))
def test_features_are_turned_apart(seed):
    s, on = switches(seed=seed)
    scores = white(s)
    made = peaked(scores, np.full(2, NOISE / s.std()))
    assert made.clear.all()
    found = made.components
    np.testing.assert_allclose(found.turn @ found.turn.T, np.eye(2), atol=1e-12)
    turned = found.turn @ scores
    alike = np.corrcoef(np.vstack([turned, s]))[:2, 2:]
    order = alike.argmax(axis=1)
    assert alike.max(axis=1).min() > 0.98
    assert sorted(order) == [0, 1]
    away = turned - found.off[:, None]
    assert (away[~on[order]].std() < 0.2).all()
    assert np.abs(away[~on[order]].mean()) < 0.1


def test_what_is_apart_stays_as_it_is():
    s, _ = switches()
    scores = white(s)
    first = peaked(scores, np.full(2, NOISE)).components
    again = peaked(first.turn @ scores, np.full(2, NOISE)).components
    np.testing.assert_array_equal(again.turn, np.eye(2))
    np.testing.assert_allclose(again.off, first.off, atol=1e-12)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
def test_normal_components_stay_as_they_are(noise):
    scores = np.random.default_rng(4).normal(size=(3, 1000))
    made = peaked(scores, np.full(3, noise))
    assert not made.clear.any()
    np.testing.assert_array_equal(made.components.turn, np.eye(3))
    np.testing.assert_array_equal(made.components.off, np.zeros(3))


@pytest.mark.slow
def test_a_fit_finds_features_that_come_in_two_amounts(monkeypatch):
    of = problem("bimodal", 1, 4)
    planted = draw(of)
    for turns, right in ((best.TURNS, True), (0, False)):
        monkeypatch.setattr(best, "TURNS", turns)
        found = ibp.fit(planted.x, system="fa-vi-infinite", K=of.truncation, seed=0, serial=True)["params"]
        alike, _ = matched(found["mean"].values[found["active"].values], planted.dictionary)
        assert (alike.min() > 0.9) == right
