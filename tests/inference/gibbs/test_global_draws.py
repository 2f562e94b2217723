"""What ends a sweep: sums of a draw of z, globals given it."""

from types import SimpleNamespace

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs.global_draws import (
    blank_params,
    draw_globals,
    gaussian_of,
    gaussian_sums,
    resized,
)
from ibpdist.inference.in_turn.growable_tables import widened
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.unit import Unit
from tests.support.turns import planted

MODEL = Model(Buffet(), Unit(), Gaussian(), DRAW)


def chunk_of(masked):
    x, z = planted()
    observed = np.random.default_rng(2).random(x.shape) < 0.7 if masked else None
    return Chunk(0, 0, np.where(observed, x, 0.0) if masked else x, observed), z


def params_of(chunk, features=3, model=MODEL):
    rng = np.random.default_rng(0)
    observed = model.observation.init(model.observation.summarise(chunk), features, rng)
    return blank_params(model.prior.init(features, chunk.rows), observed)


@pytest.mark.parametrize("masked", [False, True])
def test_sums_are_those_of_the_observed_cells(masked):
    chunk, z = chunk_of(masked)
    params = params_of(chunk)
    sums = gaussian_sums(chunk, params.observation.group, z)
    seen = np.ones(chunk.x.shape, bool) if chunk.observed is None else chunk.observed
    for d in range(chunk.x.shape[1]):
        rows = seen[:, d]
        gram = sums.gram[params.observation.group[d]]
        np.testing.assert_array_equal(gram, z[:, rows] @ z[:, rows].T)
        np.testing.assert_allclose(sums.cross[:, d], z[:, rows] @ chunk.x[rows, d], atol=1e-12)
    assert sums.rows == chunk.rows


@pytest.mark.parametrize("masked", [False, True])
def test_the_dictionary_is_drawn_from_its_conditional(masked):
    """Mean and variance of many draws of an entry, variances fixed, given z."""
    model = Model(Buffet(1.0), Unit(), Gaussian(noise=0.4, scale=1.3), DRAW)
    chunk, z = chunk_of(masked)
    params = params_of(chunk, model=model)
    made = np.array(
        [
            draw_globals(model, chunk, params, z, np.arange(3), Draws(step))[0].params.observation.mean
            for step in range(500)
        ]
    )
    seen = np.ones(chunk.x.shape, bool) if chunk.observed is None else chunk.observed
    for d in (0, 5):
        inside = z[:, seen[:, d]]
        covariance = np.linalg.inv(inside @ inside.T / 0.4 + np.eye(3) / 1.3)
        mean = covariance @ inside @ chunk.x[seen[:, d], d] / 0.4
        sd = np.sqrt(np.diag(covariance))
        assert (np.abs(made[:, :, d].mean(axis=0) - mean) < 4 * sd / np.sqrt(500)).all()
        np.testing.assert_allclose(np.cov(made[:, :, d].T), covariance, atol=0.25 * covariance.max())


def test_features_that_nobody_has_are_dropped_with_their_ids():
    chunk, z = chunk_of(False)
    z = np.insert(z, 1, 0.0, axis=0)
    chain, info = draw_globals(MODEL, chunk, params_of(chunk, 4), z, np.array([4, 7, 9, 11]), Draws(0))
    np.testing.assert_array_equal(chain.state.ids, [4, 9, 11])
    np.testing.assert_array_equal(chain.params.ids, [4, 9, 11])
    assert info.terms["active"] == 3


def test_parameters_of_another_number_of_features_keep_facts_and_variances():
    chunk, _ = chunk_of(True)
    before = params_of(chunk).observation
    for features in (0, 1, 5):
        after = resized(before, features)
        assert after.mean.shape == (features, 6)
        assert after.basis.shape == (len(before.spectrum), features, features)
        np.testing.assert_array_equal(after.scale, np.full(features, before.scale[0]))
        np.testing.assert_array_equal(after.noise, before.noise)
        np.testing.assert_array_equal(after.group, before.group)


def test_only_gaussian_rows():
    assert gaussian_of(MODEL) is MODEL.observation
    other = SimpleNamespace(observation=SimpleNamespace(name="counts"))
    with pytest.raises(UsageError, match="counts: rows are drawn in turn of Gaussian observations only"):
        gaussian_of(other)


def test_wider_tables_are_in_c_order():
    table = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    made = widened(table, (1,), 2)
    assert made.shape == (2, 5)
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made[:, :3], table)
