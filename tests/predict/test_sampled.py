"""Annealed draws against enumeration, within the error that they print."""

from dataclasses import replace

import numpy as np
import pytest

from ibpdist.predict.exact import exact
from ibpdist.predict.sampled import Sampling, sampled
from tests.support.predictive import make_predictor, rows_of


def masks(rows, columns, seed):
    draw = np.random.default_rng(seed).random((rows, columns))
    return draw < 0.5, draw > 0.5


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("common", [False, True])
def test_agrees_with_enumeration_within_its_error(weights, common):
    of = make_predictor(5, 12, seed=3, weights=weights)
    x, _ = rows_of(of, 150, seed=1)
    visible, hidden = masks(1 if common else 150, 12, seed=4)
    visible, hidden = np.broadcast_to(visible, x.shape), np.broadcast_to(hidden, x.shape)
    estimates = sampled(of, x, visible, hidden, Sampling(chains=8, draws=60, seed=2))
    for estimate, reference in zip(estimates, (of.plug_in(), of), strict=True):
        truth = exact(reference, x, visible, hidden)
        total = np.sqrt((estimate.error**2).sum())
        assert abs((estimate.score - truth).sum()) < 3 * total
        assert total < 0.05 * abs(truth.sum())
        z = (estimate.score - truth)[estimate.error > 1e-9] / estimate.error[estimate.error > 1e-9]
        assert 0.6 < np.sqrt(np.mean(np.clip(z, -4, 4) ** 2)) < 1.7


def test_the_error_falls_with_more_chains():
    of = make_predictor(5, 12, seed=3)
    x, _ = rows_of(of, 100, seed=1)
    visible, hidden = masks(100, 12, seed=4)
    few, many = (sampled(of, x, visible, hidden, Sampling(c, 10, 0))[1].error for c in (4, 32))
    assert np.sqrt((many**2).sum()) < 0.6 * np.sqrt((few**2).sum())


def test_rows_are_drawn_by_their_global_number():
    of = make_predictor(4, 8, seed=3)
    x, _ = rows_of(of, 20, seed=1)
    visible, hidden = masks(20, 8, seed=4)
    plan = Sampling(2, 5, 1)
    whole = sampled(of, x, visible, hidden, plan)[1].score
    tail = sampled(of, x[13:], visible[13:], hidden[13:], plan, start=13)[1].score
    np.testing.assert_allclose(tail, whole[13:], rtol=1e-12)
    other = sampled(of, x, visible, hidden, Sampling(2, 5, 2))[1].score
    assert not np.allclose(other, whole)


def test_no_features_no_hidden_cells_and_one_row():
    of = make_predictor(0, 4, seed=2)
    x, hidden = np.array([[0.5, -1.0, 2.0, 0.0]]), np.array([[True, False, True, False]])
    for estimate in sampled(of, x, ~hidden, hidden, Sampling(3, 4)):
        np.testing.assert_allclose(estimate.score, exact(of, x, ~hidden, hidden), rtol=1e-12)
        np.testing.assert_allclose(estimate.error, 0, atol=1e-12)
    of = make_predictor(3, 4, seed=2)
    for estimate in sampled(of, x, ~hidden, np.zeros_like(hidden), Sampling(3, 4)):
        np.testing.assert_allclose(estimate.score, 0, atol=1e-12)


def test_certain_features_and_far_outliers_stay_finite():
    of = replace(make_predictor(3, 6, seed=2), log_odds=np.array([np.inf, -np.inf, 0.0]))
    visible = np.tile(np.arange(6) % 2 == 0, (4, 1))
    for estimate in sampled(of, np.full((4, 6), 1e5), visible, ~visible, Sampling(2, 3)):
        assert np.isfinite(estimate.score).all()
        assert np.isfinite(estimate.error).all()


def test_weights_correct_for_a_very_uncertain_dictionary():
    # The chain moves under the plug-in density, which is far from the one with variance here.
    of = make_predictor(4, 8, seed=5, groups=1, strength=0.5)
    of = replace(of, spectrum=0.05 * of.spectrum)
    x, _ = rows_of(of, 200, seed=3)
    visible = np.tile(np.arange(8) % 2 == 0, (200, 1))
    full = sampled(of, x, visible, ~visible, Sampling(16, 60, 4))[1]
    truth = exact(of, x, visible, ~visible)
    assert abs((truth - exact(of.plug_in(), x, visible, ~visible)).sum()) > 5
    assert abs((full.score - truth).sum()) < 3 * np.sqrt((full.error**2).sum())


def test_modes_count_as_their_probability_says():
    """Half of the chains cool to either mode, one of which is much more probable (annealed importance)."""
    of = make_predictor(14, 36, seed=0, strength=1.0)
    x, _ = rows_of(replace(of, noise=np.full(36, 0.3)), 60, seed=1)
    of = replace(of, noise=np.full(36, 0.3))
    visible = np.tile(np.arange(36) % 2 == 0, (len(x), 1))
    truth = exact(of.plug_in(), x, visible, ~visible)
    plug, _ = sampled(of, x, visible, ~visible, Sampling(32, 25))
    assert np.abs(plug.score - truth).max() < 0.25
    assert np.abs((plug.score - truth).mean()) < 0.01
