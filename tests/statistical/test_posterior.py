"""The draw rule visits every z as often as the exact posterior says."""

import numpy as np
import pytest

from ibpdist.data._base import Chunk
from ibpdist.kernels import respond
from ibpdist.model.weights.normal import Normal
from tests.support.enumeration import batch_error, events, posterior
from tests.support.model_cases import Case, algorithm, begin

NOISE, SCALE, MASS = 0.6, 1.2, 1.5
STEPS = 8000
"""Before a release twice as many."""


def chain(alg, x, observed, steps, seed=0):
    """z (step, row, feature) after a warm-up of a tenth."""
    chunk = Chunk(0, 0, x, observed)
    params, (state,), draws = begin(alg, [chunk], seed)
    kept = []
    for step in range(1, steps + 1):
        state, sums = alg.local(chunk, state, params, draws.at(step))
        params, _ = alg.update(params, sums, draws.at(step))
        if step > steps // 10:
            kept.append(state.z.T)
    return np.array(kept)


def farthest(weights, masked, steps, inner=1):
    """Largest distance of a marginal from the exact one, in standard errors."""
    rng = np.random.default_rng(8)
    rows = 3 if weights == "unit" else 2
    x = rng.normal(size=(rows, 2)) * 1.2
    observed = np.array([[1, 0], [1, 1], [0, 1]], bool)[:rows] if masked else None
    mask = np.ones(x.shape, bool) if observed is None else observed
    x = np.where(mask, x, 0.0)
    tables, chance = posterior(x, mask, NOISE, SCALE, MASS, 2, weights)
    case = Case(weights=weights, rule="draw", noise=NOISE, scale=SCALE, mass=MASS, missing="masked")
    seen = events(chain(algorithm(case, 2, inner), x, observed, steps))
    exact = chance @ events(tables)
    usual = np.minimum(exact, 1 - exact) > 0.01
    error = np.maximum(batch_error(seen), 1e-4)
    return np.abs((seen.mean(axis=0) - exact) / error)[usual].max()


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("steps", [STEPS, pytest.param(2 * STEPS, marks=pytest.mark.long)])
def test_exact_posterior(weights, masked, inner, steps):
    assert farthest(weights, masked, steps, inner) < 4.5


@pytest.mark.slow
def test_a_wrong_weight_is_caught(monkeypatch):
    """Weights of a sixth of the variance: the same comparison fails."""
    monkeypatch.setattr(Normal, "respond", lambda self: respond.Normal(6.0))
    assert farthest("normal", False, STEPS) > 6


def test_exact_posterior_in_short():
    assert farthest("unit", False, 1500) < 4.5


def test_enumeration_sums_to_one_and_is_symmetric_in_features():
    x, mask = np.array([[1.0, -0.5], [0.2, 0.9]]), np.ones((2, 2), bool)
    tables, chance = posterior(x, mask, NOISE, SCALE, MASS, 2)
    assert chance.sum() == pytest.approx(1)
    swapped = {tuple(z[:, ::-1].ravel()): p for z, p in zip(tables, chance, strict=True)}
    for z, p in zip(tables, chance, strict=True):
        assert swapped[tuple(z.ravel())] == pytest.approx(p, rel=1e-12)
