"""Sums of squares in the eigenbasis against the dictionary's own, and EM for noise and scale."""

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.model.observations import dictionary, gaussian_params, variances
from ibpdist.model.observations.rotation import Family, Rotation
from ibpdist.model.observations.variances import PSEUDO, Evidence, Levels
from tests.support.model_cases import Case, algorithm, chunked, problem, random_params, random_state, sweep

CLOSE = {"rtol": 1e-10, "atol": 1e-11}
FAMILIES = list(Family)


def prepared(family, noise="column", seed=4):
    """Parameters and sums of one pass over complete data."""
    case = Case("finite", "normal", str(family), noise)
    chunks, alg = chunked(problem(seed, 20, 4)[0]), algorithm(case)
    params = random_params(case, alg, chunks, seed)
    _, sums = sweep(alg, chunks, [random_state(case, params, chunks[0], seed)], params, Draws(1))
    return params.observation, sums.observation


def rotated(params, sums, family):
    (made,) = dictionary.rotations(params, sums, family)
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_of_squares(family):
    """At q(A) for any noise: misfit by column, and the size of A over the scale."""
    params, sums = prepared(family)
    made = rotated(params, sums, family)
    solved = dictionary.solve(params, [made])
    levels = Levels.of(made, one=False)
    misfit = params.squares - levels.explained(params.noise)
    np.testing.assert_allclose(misfit, dictionary.residual(solved, sums), **CLOSE)
    second = (gaussian_params.second_moment(solved) / solved.scale).sum()
    assert levels.second(params.noise) == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_noise_collapses_the_columns(family):
    params, sums = prepared(family, "one")
    made, noise = rotated(params, sums, family), params.noise
    each, one = Levels.of(made, one=False), Levels.of(made, one=True)
    np.testing.assert_allclose(one.explained(noise[:1]).sum(), each.explained(noise).sum(), **CLOSE)
    assert one.second(noise[:1]) == pytest.approx(each.second(noise), rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_another_scale(family):
    """Rescaling a rotation, or its levels, is rotating under the new scale."""
    params, sums = prepared(family)
    made = rotated(params, sums, family).rescaled(2.5)
    fresh = rotated(replace(params, scale=2.5 * params.scale), sums, family)
    np.testing.assert_allclose(made.mean(params.noise), fresh.mean(params.noise), **CLOSE)
    for a, b in (
        (Levels.of(made, False), Levels.of(fresh, False)),
        (Levels.of(rotated(params, sums, family), False).rescaled(2.5), Levels.of(fresh, False)),
    ):
        np.testing.assert_allclose(a.explained(params.noise), b.explained(params.noise), **CLOSE)
        assert a.second(params.noise) == pytest.approx(b.second(params.noise), rel=1e-10)


def test_basis_gives_the_covariance():
    params, sums = prepared(Family.STRUCTURED)
    made = rotated(params, sums, Family.STRUCTURED)
    basis, noise = made.basis(), params.noise[1]
    exact = np.linalg.inv(sums.gram[0] / noise + np.diag(1 / params.scale))
    np.testing.assert_allclose((basis / (1 + made.own_spectrum / noise)) @ basis.T, exact, **CLOSE)


def settings(params, sums, unit=1.0):
    data = Evidence(params.cells, params.squares, 1e-3 * unit)
    return data, Evidence(np.asarray(float(params.mean.size)), np.zeros(()), unit)


RATIOS = [None, np.ones(4), np.array([0.2, 1.9, 1.0, 0.9])]
"""A noise of each column, one of all, and one level with ratios of its own."""


@pytest.mark.parametrize("ratios", RATIOS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fit_stands_still_at_the_end(ratios, family):
    params, sums = prepared(family, "one" if ratios is RATIOS[1] else "column")
    made = [rotated(params, sums, family)]
    data, prior = settings(params, sums)
    noise, ratio = variances.fit(made, params.noise, params.scale[0], data, prior, ratios, 3000)
    again = [r.rescaled(ratio) for r in made]
    scale = params.scale[0] * ratio
    stood, still = variances.fit(again, noise, scale, data, prior, ratios, 1)
    np.testing.assert_allclose(stood, noise, rtol=1e-7)
    assert still == pytest.approx(1, abs=1e-7)
    level = noise if ratios is None else noise / ratios
    assert np.allclose(level, level[0], rtol=1e-12) == (ratios is not None)


@pytest.mark.parametrize("ratios", RATIOS)
def test_one_turn_by_hand(ratios):
    params, sums = prepared(Family.STRUCTURED, "one" if ratios is RATIOS[1] else "column")
    made = rotated(params, sums, Family.STRUCTURED)
    solved = dictionary.solve(params, [made])
    data, prior = settings(params, sums, 2.0)
    noise, ratio = variances.fit([made], params.noise, params.scale[0], data, prior, ratios, 1)
    misfit, cells = dictionary.residual(solved, sums), params.cells
    times = np.ones(4) if ratios is None else ratios
    if ratios is not None:
        misfit, cells = sum(e / r for e, r in zip(misfit, ratios, strict=True)), cells.sum()
    np.testing.assert_allclose(noise, (misfit + PSEUDO * 2e-3) / (cells + PSEUDO) * times, **CLOSE)
    scale = (gaussian_params.second_moment(solved).sum() + PSEUDO * 2.0) / (params.mean.size + PSEUDO)
    assert ratio * params.scale[0] == pytest.approx(scale, rel=1e-10)


def test_what_is_fixed_stays():
    params, sums = prepared(Family.STRUCTURED)
    made = [rotated(params, sums, Family.STRUCTURED)]
    data, prior = settings(params, sums)
    noise, ratio = variances.fit(made, params.noise, params.scale[0], None, prior, np.ones(4), 30)
    np.testing.assert_array_equal(noise, np.full(4, params.noise[0]))
    assert ratio != 1
    noise, ratio = variances.fit(made, params.noise, params.scale[0], data, None, None, 30)
    assert ratio == 1
    assert (noise != params.noise).all()


def test_rotation_of_nothing():
    """No feature used: the spectrum is zero and the mean too."""
    none = np.zeros((2, 2))
    for family in FAMILIES:
        made = Rotation.of(slice(None), none, np.zeros((2, 3)), np.ones(3), np.ones(2), family)
        assert (made.spectrum == 0).all()
        assert (made.mean(np.ones(3)) == 0).all()
