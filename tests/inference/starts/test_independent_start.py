"""The start of independent components: rotations, short fits, and where there is nothing to turn."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.catalog.systems import build, rows_held
from ibpdist.inference.starts.contrast import fourth_power
from ibpdist.inference.starts.independent import largest_fourth_moments, whitened
from ibpdist.inference.starts.independent_start import Independent
from ibpdist.inference.starts.symmetric import fixed_point, random_rotation
from tests.support.model_cases import chunked, initial
from tests.support.planted_sources import SourceProblem, correlation


def begun(x, features=8, sizes=None, observed=None, **settings):
    alg = build("ica-vi-infinite", features, settings={"moves": False, **settings})
    chunks = chunked(x, observed, sizes)
    return alg, chunks, initial(alg, chunks, Draws(3))


def cosines(found, planted):
    """|cosine| of each planted feature with the nearest one that was found."""
    unit = [m / np.maximum(np.linalg.norm(m, axis=1, keepdims=True), 1e-300) for m in (found, planted)]
    return np.abs(unit[1] @ unit[0].T).max(axis=1)


def test_no_step_lowers_the_fourth_moments():
    planted = SourceProblem(1, 0.1).planted
    scores = whitened(planted.y)[0]
    turn = random_rotation(5, np.random.default_rng(4))
    values = [(turn @ scores).ravel() ** 4 @ np.ones(scores.size)]
    for _ in range(30):
        turn = fixed_point(scores, turn, fourth_power, 1)
        values.append((turn @ scores).ravel() ** 4 @ np.ones(scores.size))
    assert (np.diff(values) >= -1e-9 * values[-1]).all()
    assert values[-1] > 1.3 * values[0]


def test_the_largest_fourth_moments_are_those_of_the_sources():
    planted = SourceProblem(2, 0.0, rows=4000).planted
    scores = whitened(random_rotation(5, np.random.default_rng(4)) @ whitened(planted.y)[0])[0]
    found = largest_fourth_moments(scores, np.random.default_rng(1), 3) @ scores
    assert correlation(found, planted.y) > 0.99


@pytest.mark.parametrize("sizes", [None, [100, 45, 100]])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_fit_begins_near_the_sources(missing, sizes):
    planted = SourceProblem(1, 0.1).planted
    observed = None if not missing else np.random.default_rng(2).random(planted.x.shape) > missing
    x = planted.x if observed is None else np.where(observed, planted.x, 0.0)
    alg, chunks, params = begun(x, sizes=sizes, observed=observed)
    assert isinstance(alg.begin, Independent)
    assert cosines(params.observation.mean, planted.mixing).min() > 0.98
    assert len(params.ids) == 8
    assert len(params.starts.objective) == 2
    states = [alg.start(chunk, params, Draws(3)) for chunk in chunks]
    y = np.concatenate([state.z * state.w for state in states], axis=1)
    assert correlation(y, planted.y) > 0.95, "rows begin at the sources too"


def test_noise_has_nothing_to_turn():
    x = np.random.default_rng(5).normal(size=(60, 6))
    _, _, params = begun(x, 4)
    assert params.observation.mean.shape == (4, 6)
    assert len(params.starts.objective) == 1
    assert np.isfinite(params.observation.mean).all()


@pytest.mark.parametrize("x", [np.zeros((20, 4)), np.ones((3, 2)), np.arange(12.0).reshape(12, 1)])
def test_data_without_sources(x):
    _, _, params = begun(x, 3)
    assert np.isfinite(params.observation.mean).all()


def test_few_rows_of_many_columns():
    planted = SourceProblem(1, 0.1, rows=12, columns=40).planted
    _, _, params = begun(planted.x, 6)
    assert np.isfinite(params.observation.mean).all()


def test_rows_in_memory_are_counted():
    assert rows_held("ica-vi-infinite", {}, 100, 8) == Independent.rows_held(100, 8) > 0


def test_the_number_of_sources_is_left_to_the_data():
    found = ibp.fit(SourceProblem(3, 0.3).planted.x, system="ica-vi-infinite", K="auto", seed=1)
    assert int(found["params"]["active"].sum()) == 5
    assert int(found.attrs["truncation"]) > 5
