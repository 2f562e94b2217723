"""The intercept against the joint normal factor of dictionary and intercept, written out cell by cell."""

import dataclasses
from functools import reduce

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing, combine
from ibpdist.catalog.systems import build
from ibpdist.model.observations import dictionary, gaussian, gaussian_params
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import ScatteredParams
from ibpdist.model.observations.intercept import Intercept
from tests.support.model_cases import Case, algorithm, begin, chunked, fit, objectives, problem, sweep

CASES = [
    Case("finite", "unit"),
    Case("sticks", "normal", noise="column", scale="feature"),
    Case("finite", "normal", noise="column", missing="block"),
    Case("sticks", "unit", family="factorised", missing="block"),
    Case("finite", "laplace", noise=0.7),
]
SCATTERED = [
    Case("finite", "unit", missing="rows"),
    Case("sticks", "normal", noise="column", scale="feature", missing="rows"),
    Case("finite", "laplace", family="factorised", missing="rows"),
]
OFFSET, ADDED = np.array([3.0, -2.0, 0.5, 10.0]), np.array([0.0, 7.0, -4.0, 1.0])


def prepared(case, seed=3, rows=24, steps=2, sizes=(10, 14), offset=OFFSET):
    """A fit after some steps: algorithm, chunks, states, parameters before the last update, and its sums."""
    x, observed = problem(seed, rows, 4, case.missing)
    x = x + offset if observed is None else np.where(observed, x + offset, 0.0)
    chunks, alg = chunked(x, observed, sizes), algorithm(case, intercept=True)
    params, states, draws = begin(alg, chunks, seed)
    for step in range(1, steps + 1):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        before, (params, info) = params, alg.update(params, sums, draws.at(step))
    return alg, chunks, states, before, params, sums, info


def means(alg, states):
    """(row, feature) E y of all rows."""
    return np.concatenate([alg.model.weights.combine(s.z, s.w).T for s in states]).astype(float)


def seen_of(chunks):
    x = np.concatenate([c.x for c in chunks]).astype(float)
    observed = [np.ones(c.x.shape, bool) if c.observed is None else c.observed for c in chunks]
    return x, np.concatenate(observed)


def joint(params, gram, on, cross, total, count, d):
    """Mean and covariance of (A_d, b_d) under a flat prior of b_d."""
    features = len(params.scale)
    precision = np.zeros((features + 1, features + 1))
    precision[:-1, :-1] = gram / params.noise[d] + np.diag(1 / params.scale)
    precision[-1, :-1] = precision[:-1, -1] = on / params.noise[d]
    precision[-1, -1] = count / params.noise[d]
    covariance = np.linalg.inv(precision)
    return covariance @ np.append(cross, total) / params.noise[d], covariance


@pytest.mark.parametrize("case", CASES[:3] + CASES[4:], ids=str)
def test_dictionary_and_intercept_are_the_joint_posterior(case):
    """With one scale: one for each feature is set once q(A) is known."""
    _, chunks, _, _, params, sums, _ = prepared(dataclasses.replace(case, scale="one"))
    observed, (x, seen) = params.observation, seen_of(chunks)
    mean, variance = gaussian_params.intercept_mean(observed), gaussian_params.intercept_variance(observed)
    for d, g in enumerate(observed.group):
        rows = seen[:, d]
        first, total = sums.observation.first.on[g] / observed.stretch, x[rows, d].sum()
        gram = sums.observation.gram[g] / np.outer(observed.stretch, observed.stretch)
        cross = sums.observation.cross[:, d] / observed.stretch
        at, covariance = joint(observed, gram, first, cross, total, rows.sum(), d)
        np.testing.assert_allclose(observed.mean[:, d], at[:-1], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(mean[d], at[-1], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(variance[d], covariance[-1, -1], rtol=1e-8)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_likelihood_cell_by_cell(case):
    """Expected log likelihood and the entropy of the intercept given A, from moments of the rows."""
    alg, chunks, states, _, params, sums, info = prepared(case)
    observed, (x, seen) = params.observation, seen_of(chunks)
    y, variances = means(alg, states) / observed.stretch, gaussian_params.intercept_variance(observed)
    b, a = gaussian_params.intercept_mean(observed), observed.mean
    total = 0.0
    sigma = covariances(observed)
    for d, g in enumerate(observed.group):
        rows, noise = seen[:, d], observed.noise[d]
        first = y[rows].sum(axis=0)
        own = np.diagonal(sums.observation.gram[g]) / observed.stretch**2 - (y[rows] ** 2).sum(axis=0)
        error = ((x[rows, d] - b[d] - y[rows] @ a[:, d]) ** 2).sum() + own @ (
            a[:, d] ** 2 + np.diag(sigma[d])
        )
        centre = observed.intercept.centre[g]
        away = y[rows] - centre
        error += np.einsum("nk,kl,nl->", away, sigma[d], away) + noise
        count = rows.sum()
        np.testing.assert_allclose(centre, first / count, rtol=1e-10)
        total += -0.5 * (count * np.log(2 * np.pi * noise) + error / noise)
        total += 0.5 * np.log(2 * np.pi * np.e * noise / count)
        assert variances[d] > noise / count
    assert info.terms["likelihood"] == pytest.approx(total, rel=1e-9)


def covariances(params):
    """Of each column, by either route."""
    spectra, groups = params.spectra(), len(params.basis)
    turns = [params.basis[g if groups > 1 else 0] for g in params.group]
    return [(b / (1 + e / psi)) @ b.T for b, e, psi in zip(turns, spectra, params.noise, strict=True)]


@pytest.mark.parametrize("case", [CASES[0], CASES[3], SCATTERED[0]], ids=str)
def test_a_row_step_is_the_best_answer_to_each_feature(case):
    """Log odds of the last feature swept, from the expected squares of a row with and without it."""
    alg, chunks, states, before, _, _, _ = prepared(case)
    observed, (x, seen) = before.observation, seen_of(chunks)
    b, sigma, a = gaussian_params.intercept_mean(observed), covariances(observed), observed.mean
    odds, z = alg.model.prior.log_odds(before.prior), means(alg, states)
    last = len(odds) - 1
    for n in range(len(x)):
        gain = odds[last]
        for d in np.flatnonzero(seen[n]):
            centre = observed.intercept.centre[observed.group[d]]
            on, off = z[n].copy(), z[n].copy()
            on[last], off[last] = 1.0, 0.0
            for y, sign in ((on, 1), (off, -1)):
                away = y - centre
                error = (x[n, d] - b[d] - y @ a[:, d]) ** 2 + away @ sigma[d] @ away
                gain -= sign * error / (2 * observed.noise[d])
        assert np.log(z[n, last]) - np.log1p(-z[n, last]) == pytest.approx(gain, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("case", CASES + SCATTERED, ids=str)
def test_the_objective_never_falls(case):
    alg, chunks, states, _, params, _, info = prepared(case)
    levels = [info.objective]
    for step in range(3, 40):
        states, sums = sweep(alg, chunks, states, params, Draws(1, step))
        params, info = alg.update(params, sums, Draws(1, step))
        levels.append(info.objective)
    assert np.diff(levels).min() > -1e-8 * abs(levels[-1])


@pytest.mark.parametrize("case", CASES + SCATTERED, ids=str)
def test_a_constant_moves_the_intercept_alone(case):
    """A constant added to a column; and a unit changes the intercept as it changes the column."""
    plain, moved = (prepared(case, steps=6, offset=o) for o in (OFFSET, OFFSET + ADDED))
    assert moved[-1].objective == pytest.approx(plain[-1].objective, rel=1e-10)
    one, other = plain[4].observation, moved[4].observation
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.noise, one.noise, rtol=1e-8)
    shift = gaussian_params.intercept_mean(other) - gaussian_params.intercept_mean(one)
    np.testing.assert_allclose(shift, ADDED, atol=1e-7)


def test_without_one_there_is_none():
    alg, (chunk,) = algorithm(Case()), chunked(problem(1)[0])
    params, (state,), draws = begin(alg, [chunk])
    _, sums = alg.local(chunk, state, params, draws)
    assert isinstance(params.observation.intercept, Nothing)
    assert isinstance(sums.observation.first, Nothing)
    assert not gaussian_params.intercept_mean(params.observation).any()
    assert not gaussian_params.intercept_variance(params.observation).any()
    assert "intercept" not in alg.describe(params)


def test_chunks_and_their_order_do_not_matter():
    parts = [prepared(CASES[2], steps=3, sizes=s)[4].observation for s in ((24,), (10, 14), (3, 9, 12))]
    for one in parts[1:]:
        np.testing.assert_allclose(one.mean, parts[0].mean, rtol=1e-9)
        np.testing.assert_allclose(one.intercept.origin, parts[0].intercept.origin, rtol=1e-12)


def test_what_is_known_keeps_the_intercept():
    """Parameters of other features begin with the intercept that there was."""
    params = prepared(CASES[0])[4].observation
    fewer = dictionary.known(params, params.mean[:1], params.scale[:1])
    assert isinstance(fewer.intercept, Intercept)
    np.testing.assert_allclose(gaussian_params.intercept_mean(fewer), gaussian_params.intercept_mean(params))


def test_bad_settings():
    with pytest.raises(UsageError, match="intercept: 'yes': expected true or false"):
        Gaussian(intercept="yes")
    with pytest.raises(UsageError, match="intercept: lg-collapsed-finite has none; use a system of all"):
        build("lg-collapsed-finite", 3, settings={"intercept": True})


# --- cells missing in no pattern ---


@pytest.mark.parametrize("case", SCATTERED, ids=str)
def test_rows_without_gaps_are_fitted_as_complete_data(case, monkeypatch):
    x = problem(3, 40, 6)[0] + np.arange(6)
    whole = fit(algorithm(case, 4, missing="groups", intercept=True), chunked(x), 8)
    monkeypatch.setattr(gaussian, "column_groups", lambda missing: np.arange(missing.size))
    alg = algorithm(case, 4, intercept=True)
    params, *_, traces = fit(alg, chunked(x, np.ones(x.shape, bool), [13, 27]), 8)
    assert isinstance(params.observation, ScatteredParams)
    np.testing.assert_allclose(objectives(traces), objectives(whole[3]), rtol=1e-9)
    for name in (gaussian_params.intercept_mean, gaussian_params.intercept_variance):
        np.testing.assert_allclose(name(params.observation), name(whole[0].observation), rtol=1e-6)


def test_the_bound_is_that_of_the_visible_cells():
    """At the parameters that the rows met: the expected square of what they leave, cell by cell; and spectra
    about any centre follow from those that were measured."""
    alg, chunks, states, before, _, sums, _ = prepared(SCATTERED[0], steps=4)
    observed, found, (x, seen) = before.observation, sums.observation, seen_of(chunks)
    y, b, a = means(alg, states), gaussian_params.intercept_mean(observed), observed.mean
    squares = found.raw_squares(observed) - 2 * b * found.total - 2 * (a * found.cross).sum(axis=0)
    squares += len(x) * b**2 + 2 * b * (found.first.on[0] @ a) + (a * (found.gram[0] @ a)).sum(axis=0)
    own = y - y**2
    for d in range(x.shape[1]):
        rows = seen[:, d]
        error = ((x[rows, d] - b[d] - y[rows] @ a[:, d]) ** 2).sum() + (own[rows] @ a[:, d] ** 2).sum()
        np.testing.assert_allclose(squares[d], error, rtol=1e-8)
        away = y[rows] - found.first.on[0] / len(x)
        spectra, identity = found._spectra_about_means(observed)
        np.testing.assert_allclose(identity[:, d], (away**2 + own[rows]).sum(axis=0), rtol=1e-8, atol=1e-10)
        for basis, one in zip(found.bases, spectra, strict=True):
            expected = ((away @ basis) ** 2 + own[rows] @ basis**2).sum(axis=0)
            np.testing.assert_allclose(one[:, d], expected, rtol=1e-8, atol=1e-10)


def test_sums_of_chunks_are_added():
    alg, chunks, states, before, _, sums, _ = prepared(CASES[2])
    parts = [alg.local(c, s, before, Draws(3, 2))[1] for c, s in zip(chunks, states, strict=True)]
    whole = reduce(combine, parts).observation
    assert whole.first.on.shape == sums.observation.first.on.shape == (2, 3)
