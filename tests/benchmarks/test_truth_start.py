"""The reference of the recovery benchmark begins at the truth, stays there, and drops what nobody has."""

from dataclasses import replace

import numpy as np
import pytest

from ibpdist import fit
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine
from ibpdist.catalog import systems as catalog
from ibpdist.data.arrays import ArrayData
from ibpdist.evaluate.recovery import compare
from tests.support.planted import Problem, draw
from tests.support.truth_start import SURE, FromTruth, plain, truth_started

PROBLEM = Problem(300, 40, 6, "0.3", 0.5, 9, (7, 1))


def algorithm(x, z, chunk_rows=None, missing="auto"):
    """The algorithm that begins at z, and its source."""
    source, settings = ArrayData(x, chunk_rows), plain("lg-vi-infinite") | {"missing": missing}
    usual = catalog.build("lg-vi-infinite", z.shape[1], settings=settings)
    return FromTruth(usual.model, usual.features, z=z.astype(float), source=source), source


def begun(made, source):
    """Parameters before the first step."""
    survey = made.summarise(source.read(0))
    for index in range(1, source.chunks):
        survey = combine(survey, made.summarise(source.read(index)))
    return made.init(survey, Draws(0))


def features(found):
    params = found["params"].to_dataset()
    return params["mean"].values[params["active"].values]


@pytest.mark.parametrize(("missing", "route"), [(0.0, "auto"), (0.1, "groups"), (0.1, "rows")])
@pytest.mark.parametrize("chunk_rows", [None, 64])
def test_it_begins_with_the_features_that_belong_to_the_planted_z(missing, route, chunk_rows):
    planted = draw(replace(PROBLEM, missing=missing))
    made, source = algorithm(planted.x, planted.z, chunk_rows, route)
    params = begun(made, source)
    found = compare(params.observation.mean, planted.dictionary)
    np.testing.assert_array_equal(found.match, np.arange(6))
    assert float(found.error.max()) < 0.15
    np.testing.assert_allclose(params.on, planted.z.sum(0), atol=300 * (1 - SURE))
    assert params.observation.noise[0] == pytest.approx(0.25, rel=0.15)


def test_rows_begin_at_the_planted_z():
    planted = draw(PROBLEM)
    made, source = algorithm(planted.x, planted.z, 64)
    params = begun(made, source)
    for index in range(source.chunks):
        chunk = source.read(index)
        state = made.start(chunk, params, Draws(0))
        np.testing.assert_array_equal(state.z.T > 0.5, planted.z[chunk.start : chunk.start + chunk.rows])
        np.testing.assert_array_equal(np.unique(state.z), [1 - SURE, SURE])


def test_the_first_sums_are_plain_sums_over_rows():
    planted = draw(replace(PROBLEM, rows=20, columns=5, features=3, missing=0.3))
    made, source = algorithm(planted.x, planted.z)
    params = begun(made, source)
    sums = made._sums(source.read(0), params.observation)
    z = np.where(planted.z, SURE, 1 - SURE)
    for column, group in enumerate(params.observation.group):
        gram, cross = np.zeros((3, 3)), np.zeros(3)
        for row in np.flatnonzero(~np.isnan(planted.x[:, column])):
            second = np.outer(z[row], z[row])
            np.fill_diagonal(second, z[row])
            gram, cross = gram + second, cross + z[row] * planted.x[row, column]
        np.testing.assert_allclose(sums.observation.gram[group], gram, rtol=1e-12)
        np.testing.assert_allclose(sums.observation.cross[:, column], cross, atol=1e-12)
    np.testing.assert_allclose(sums.entries.on, z.sum(0))
    entropy = -20 * (SURE * np.log(SURE) + (1 - SURE) * np.log(1 - SURE))
    np.testing.assert_allclose(sums.entries.entropy, entropy)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_it_stays_at_the_truth_above_a_random_start(missing):
    planted = draw(replace(PROBLEM, missing=missing))
    found = truth_started(planted.x, planted.z)
    assert int(compare(features(found), planted.dictionary).recovered) == 6
    assert len(features(found)) == 6
    z = found["rows"]["z"].values[:, np.argsort(np.argsort(-planted.z.sum(0)))]
    assert ((z > 0.5) == planted.z).mean() > 0.97
    other = fit(planted.x, system="lg-vi-infinite", K=6, seed=1, **plain("lg-vi-infinite"))
    assert found.attrs["objective"] >= other.attrs["objective"]
    assert found.attrs["stop"] == "converged"


def test_the_objective_rises_from_the_first_step():
    planted = draw(PROBLEM)
    trace = truth_started(planted.x, planted.z)["trace"]["objective"].values
    assert (np.diff(trace) >= -1e-12 * np.abs(trace).max()).all()
    assert len(trace) <= 20


def test_features_that_no_row_has_and_a_second_constant_are_dropped():
    planted = draw(replace(PROBLEM, features=4))
    rows = len(planted.x)
    constant = np.random.default_rng(0).standard_normal(40)
    nobody, everybody = np.zeros((rows, 2), dtype=bool), np.ones((rows, 2), dtype=bool)
    found = truth_started(planted.x + constant, np.hstack([planted.z, nobody, everybody]))
    assert len(features(found)) == found["params"].sizes["feature"] == 5
    assert int(compare(features(found), planted.dictionary).recovered) == 4
    assert compare(features(found), constant[None]).recovered == 1


def test_a_rare_feature_that_pays_is_kept():
    planted = draw(replace(PROBLEM, features=3, noise=0.25))
    z = np.hstack([planted.z, np.arange(len(planted.x))[:, None] < 3])
    rare = np.random.default_rng(0).standard_normal(40)
    found = truth_started(planted.x + z[:, 3:] * rare, z)
    assert len(features(found)) == 4
    assert int(compare(features(found), np.vstack([planted.dictionary, rare])).recovered) == 4


def test_plain_settings_are_those_that_the_system_has(monkeypatch):
    monkeypatch.setattr(catalog, "settings_of", lambda system: ["mass", "start"])
    assert plain("lg-vi-infinite") == {"start": "random"}
    monkeypatch.setattr(catalog, "settings_of", lambda system: ["mass"])
    assert plain("lg-vi-infinite") == {}


def test_settings_reach_the_reference():
    planted = draw(PROBLEM)
    found = truth_started(planted.x, planted.z, settings={"noise": "column"})
    assert found["params"]["noise"].dims == ("column",)
    assert truth_started(planted.x, planted.z, settings={"mass": 2.0})["params"]["mass"] == 2
