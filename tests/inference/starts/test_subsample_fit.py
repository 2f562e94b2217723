"""Coarse: the start's own small fit of rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import HARD, MEAN
from ibpdist.base.structs import arrays_of
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.starts.subsample_fit import MORE, PASSES, SubsampleFit, sums_of
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.stick_breaking import StickBreaking
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.support.moves import sums_of as slow_sums
from tests.support.planted_rows import planted

MODELS = {
    "sticks": Model(StickBreaking(), Unit(), Gaussian(), MEAN),
    "finite": Model(BetaBernoulli(), Unit(), Gaussian(), MEAN),
    "hard": Model(StickBreaking(), Unit(), Gaussian(), HARD),
    "columns": Model(StickBreaking(), Unit(), Gaussian(noise="column"), MEAN),
    "weights": Model(StickBreaking(), Normal(), Gaussian(noise="column", scale="feature"), MEAN),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def coarse(name, x, features=6):
    return SubsampleFit(MODELS[name], features, x, np.random.default_rng(0))


def soft(z):
    """Columns (feature, row) as a separation gives them."""
    return np.clip(z.T, 0.01, 0.99)


@EVERY
def test_the_planted_columns_stay(name):
    x, z, a = planted(1, 200, 8, (0.3, 0.5, 0.2), 0.3)
    found = coarse(name, x).fit(soft(z))
    assert found.state.z.shape == (len(found.params.ids), 200)
    distance = np.sqrt(((found.params.observation.mean[:, None] - a[None]) ** 2).mean(axis=2)).min(axis=0)
    assert (distance < 0.15).all()


@EVERY
def test_columns_are_turned_to_features(name):
    """Complements leave an intercept; the constant takes it until they are turned."""
    x, z, a = planted(2, 300, 10, (0.3, 0.5, 0.2), 0.3)
    turned = z.copy()
    turned[:, 1] = 1 - turned[:, 1]
    found = coarse(name, x).fit(soft(turned))
    distance = np.sqrt(((found.params.observation.mean[:, None] - a[None]) ** 2).mean(axis=2)).min(axis=0)
    assert (distance < 0.15).all()
    assert found.params.on.max() < 250, "no constant is left"


@EVERY
def test_what_it_returns_belongs_together(name):
    """The objective is that of parameters and sums, and the sums are those of the rows."""
    x, z, _ = planted(3, 120, 6, (0.3, 0.5), 0.4)
    small = coarse(name, x, 4)
    found = small.fit(soft(z))
    fit = Coordinate(small._model, len(found.params.ids))
    assert fit.score(found.params, found.sums).objective == pytest.approx(found.objective, rel=1e-12)
    again = slow_sums(found.state, Chunk(0, 0, x), found.params, small._model)
    for field, value in arrays_of(again).items():
        np.testing.assert_allclose(arrays_of(found.sums)[field], value, rtol=1e-9, atol=1e-9, err_msg=field)
    assert found.state.ids.tolist() == found.params.ids.tolist()
    assert found.state.w.shape[0] == 0, "without weights, whatever the model has"


@EVERY
def test_it_climbs(name):
    x, z, _ = planted(4, 150, 6, (0.3, 0.5, 0.4), 0.5)
    small, rng = coarse(name, x), np.random.default_rng(1)
    begun = small._from(soft(np.where(rng.random(z.shape) < 0.2, 1 - z, z)))
    level = begun.objective
    at = begun
    for _ in range(4):
        at = small._passes(at, 1)
        assert at.objective >= level - 1e-9 * abs(level)
        level = at.objective
    assert small._reoriented(at).objective >= level
    assert small.fit(soft(z)).objective > begun.objective
    assert PASSES > MORE > 0


@pytest.mark.parametrize("features", [1, 2, 3, 4])
@EVERY
def test_no_more_features_than_there_may_be(name, features):
    x, z, _ = planted(5, 100, 6, (0.3, 0.5, 0.8), 0.4)
    found = coarse(name, x, features).fit(soft(z))
    assert 1 <= len(found.params.ids) <= features


@EVERY
def test_nothing_but_a_constant(name):
    x = np.random.default_rng(1).normal(size=(80, 4)) + 5
    found = coarse(name, x).fit(np.zeros((0, 80)))
    assert len(found.params.ids) == 1
    np.testing.assert_allclose(found.params.observation.mean[0], x.mean(axis=0), atol=0.1)


def test_sums_of_columns_are_those_of_rows():
    x, _, _ = planted(6, 50, 5)
    z = np.random.default_rng(0).random((3, 50))
    small = coarse("sticks", x)
    params = small._from(z).params
    state = RowState(ids=params.ids, z=z, w=np.zeros((0, 50)))
    expected = slow_sums(state, Chunk(0, 0, x), params, small._model)
    for field, value in arrays_of(sums_of(z, x)).items():
        np.testing.assert_allclose(value, arrays_of(expected)[field], rtol=1e-12, err_msg=field)


def test_the_same_again():
    x, z, _ = planted(7, 90, 6)
    one, two = (coarse("sticks", x).fit(soft(z)) for _ in range(2))
    assert one.objective == two.objective
    np.testing.assert_array_equal(one.state.z, two.state.z)


def test_a_constant_column_of_data_is_no_trouble():
    x = np.column_stack([np.full(40, 3.0), np.zeros(40)])
    found = coarse("sticks", x).fit(np.full((1, 40), 0.5))
    assert np.isfinite(found.objective)
    state, _ = Coordinate(coarse("sticks", x)._model, len(found.params.ids)).local(
        Chunk(0, 0, x), found.state, found.params, Draws(0)
    )
    assert np.isfinite(state.z).all()
