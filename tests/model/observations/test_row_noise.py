"""Rows with a noise of their own, against expectations written out row by row and cell by cell."""

import dataclasses
from functools import reduce

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln
from scipy.stats import gamma as gamma_law

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing, combine
from ibpdist.catalog.systems import build
from ibpdist.model.model import Model
from ibpdist.model.observations import dictionary, gaussian, gaussian_params
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import ScatteredParams
from ibpdist.model.observations.joint import Joint
from ibpdist.model.observations.row_noise import (
    LEAST,
    MOST,
    Posterior,
    PrecisionLaw,
    RowNoiseSums,
    best_freedom,
    score,
)
from ibpdist.model.priors.always import Always
from ibpdist.model.weights.normal import Normal
from tests.support.model_cases import Case, algorithm, begin, chunked, fit, objectives, problem, sweep

CASES = [
    Case("finite", "normal", noise="column", mu="learn"),
    Case("sticks", "normal", noise="column", scale="feature", mu="learn"),
    Case("finite", "normal", noise="column", scale="feature", missing="block", mu="learn"),
    Case("finite", "laplace", noise=0.7),
    Case("finite", "normal", noise="one", scale="feature", rule="mode"),
]
SCATTERED = [
    Case("sticks", "normal", noise="column", scale="feature", missing="rows", mu="learn"),
    Case("finite", "laplace", family="factorised", missing="rows"),
]
EVERY = CASES + SCATTERED
INTERCEPT = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])


def uneven(case, seed=3, rows=24, columns=4):
    """Rows whose noise differs by a factor of ten."""
    x, observed = problem(seed, rows, columns, case.missing)
    more = (
        np.random.default_rng(seed).normal(size=x.shape)
        * np.where(np.arange(rows) % 3 == 0, 3.0, 0.0)[:, None]
    )
    x = x + more + np.arange(columns)
    return (x, None) if observed is None else (np.where(observed, x, 0.0), observed)


def prepared(case, intercept, steps=3, sizes=(10, 14), dense=False):
    """A fit after some steps: algorithm, chunks, states, parameters before the last update, and its sums."""
    x, observed = uneven(case)
    chunks, alg = chunked(x, observed, sizes), algorithm(case, intercept=intercept, row_noise="learn")
    if dense:
        whole = Joint(noise="column", scale="feature", intercept=intercept, row_noise="learn")
        alg = dataclasses.replace(alg, model=Model(Always(), Normal(), whole))
    params, states, draws = begin(alg, chunks)
    for step in range(1, steps + 1):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        before, (params, info) = params, alg.update(params, sums, draws.at(step))
    return alg, chunks, states, before, params, sums, info


def rows_of(alg, chunks, states):
    """x, visible cells, E y, Var y (row, feature) and E tau of all rows; the variance from the sums of each
    chunk, met alone."""
    x = np.concatenate([c.x for c in chunks]).astype(float)
    seen = np.concatenate([np.ones(c.x.shape, bool) if c.observed is None else c.observed for c in chunks])
    y = np.concatenate([alg.model.weights.combine(s.z, s.w).T for s in states]).astype(float)
    return x, seen, y, np.concatenate([s.precision.mean for s in states])


def pseudo_cells(alg, params):
    """Number and sum of squares, in units of the noise, of the pseudo cells of the noise's prior: two for
    each variance that is learned."""
    if alg.model.observation.noise == "column":
        return 2.0 * params.noise.size, sum(
            2 * 0.1 * v / p for v, p in zip(params.spread, params.noise, strict=True)
        )
    if alg.model.observation.noise == "one":
        return 2.0, 2 * 1e-3 * float(params.unit) / params.noise[0]
    return 0.0, 0.0


def covariances(params):
    """Of the dictionary, column by column."""
    spectra, groups = params.spectra(), len(params.basis)
    turns = [params.basis[g if groups > 1 else 0] for g in params.group]
    return [(b / (1 + e / psi)) @ b.T for b, e, psi in zip(turns, spectra, params.noise, strict=True)]


def spread_of(alg, chunks, before_states, params, draws):
    """Var y (row, feature): rows one by one, whose sums of E y^2 are their own."""
    made = []
    for chunk, state in zip(chunks, before_states, strict=True):
        for n in range(chunk.rows):
            one = dataclasses.replace(chunk.part(n, n + 1))
            own = dataclasses.replace(
                state,
                z=state.z[:, n : n + 1],
                w=state.w[:, n : n + 1],
                precision=NOTHING
                if isinstance(state.precision, Nothing)
                else dataclasses.replace(state.precision, mean=state.precision.mean[n : n + 1]),
            )
            after, sums = alg.local(one, own, params, draws)
            mean = alg.model.weights.combine(after.z, after.w)[:, 0]
            made.append(sums.entries.second - mean**2)
    return np.array(made)


@INTERCEPT
@pytest.mark.parametrize("case", EVERY, ids=str)
def test_precisions_follow_from_expected_squares(case, intercept):
    """E_n over visible cells, from the moments of the dictionary, the intercept and the row."""
    alg, chunks, states, params, _, _, _ = prepared(case, intercept)
    draws = Draws(1, 9)
    after, _ = sweep(alg, chunks, states, params, draws)
    x, seen, y, found = rows_of(alg, chunks, after)
    variance, observed = spread_of(alg, chunks, states, params, draws), params.observation
    b, a, sigma = gaussian_params.intercept_mean(observed), observed.mean, covariances(observed)
    freedom = float(observed.row_noise.freedom)
    count, squares = pseudo_cells(alg, observed)
    for n in range(len(x)):
        total, share = 0.0, seen[n].sum() / seen.sum()
        for d in np.flatnonzero(seen[n]):
            error = (x[n, d] - b[d] - y[n] @ a[:, d]) ** 2 + variance[n] @ (a[:, d] ** 2 + np.diag(sigma[d]))
            centre = np.zeros(len(a))
            if intercept:
                turn = observed.group[d] if len(observed.intercept.centre) > 1 else 0
                centre = observed.intercept.centre[turn]
                error += observed.intercept.error[d] * observed.noise[d]
            away = y[n] - centre
            total += (error + away @ sigma[d] @ away) / observed.noise[d]
        expected = (freedom + seen[n].sum() + share * count) / (freedom + total + share * squares)
        assert found[n] == pytest.approx(expected, rel=1e-7)


def test_precisions_of_rows_that_have_every_feature():
    alg, chunks, states, params, _, _, _ = prepared(CASES[1], True, dense=True)
    after, _ = sweep(alg, chunks, states, params, Draws(1, 9))
    x, _, y, found = rows_of(alg, chunks, after)
    before = np.concatenate([s.precision.mean for s in states])
    observed = params.observation
    gram = gaussian_params.precision_gram(observed)[0]
    b, a, sigma = gaussian_params.intercept_mean(observed), observed.mean, covariances(observed)
    centre, freedom = observed.intercept.centre[0], float(observed.row_noise.freedom)
    count, squares = (value / len(x) for value in pseudo_cells(alg, observed))
    for n in range(len(x)):
        spread = np.linalg.inv(np.eye(len(a)) + before[n] * gram)
        total = np.trace(spread @ gram) + observed.intercept.error.sum()
        for d in range(x.shape[1]):
            error = (x[n, d] - b[d] - y[n] @ a[:, d]) ** 2 + (y[n] - centre) @ sigma[d] @ (y[n] - centre)
            total += error / observed.noise[d]
        expected = (freedom + x.shape[1] + count) / (freedom + total + squares)
        assert found[n] == pytest.approx(expected, rel=1e-7)


def test_second_moments_of_rows_that_have_every_feature():
    """Weights are correlated as they were found, at the precision before, and count by that after."""
    alg, chunks, states, params, _, _, _ = prepared(CASES[1], False, dense=True)
    after, sums = sweep(alg, chunks, states, params, Draws(1, 9))
    _, _, y, times = rows_of(alg, chunks, after)
    before = np.concatenate([s.precision.mean for s in states])
    gram = gaussian_params.precision_gram(params.observation)[0]
    spread = [t * np.linalg.inv(np.eye(3) + b * gram) for t, b in zip(times, before, strict=True)]
    expected = (y * times[:, None]).T @ y + np.sum(spread, axis=0)
    assert np.abs(times - before).max() > 1e-3
    np.testing.assert_allclose(sums.observation.gram[0], expected, rtol=1e-10)


@INTERCEPT
@pytest.mark.parametrize("case", CASES, ids=str)
def test_sums_count_rows_by_their_precision(case, intercept):
    alg, chunks, states, params, _, _, _ = prepared(case, intercept)
    after, sums = sweep(alg, chunks, states, params, Draws(1, 9))
    x, seen, y, times = rows_of(alg, chunks, after)
    observed, found = params.observation, sums.observation
    np.testing.assert_allclose(found.cross, (y * times[:, None]).T @ np.where(seen, x, 0.0), rtol=1e-9)
    np.testing.assert_allclose(
        found.squares(observed) if not intercept else found.raw_squares(observed),
        (times[:, None] * seen * x**2).sum(axis=0),
        rtol=1e-9,
    )
    np.testing.assert_allclose(found.totals(np.zeros(4)), (times[:, None] * seen * x).sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.counted(observed), times @ seen, rtol=1e-12)
    if alg.model.weights.two_sided:  # it sums E |y|, which |E y| is below
        assert (sums.entries.first > np.abs(y).sum(axis=0)).all()
    else:
        np.testing.assert_allclose(sums.entries.first, y.sum(axis=0), rtol=1e-12, atol=1e-12)
    for d, g in enumerate(observed.group):
        rows = seen[:, d]
        off = (y[rows] * times[rows, None]).T @ y[rows]
        gram = found.gram[g] - np.diag(np.diagonal(found.gram[g]))
        np.testing.assert_allclose(gram, off - np.diag(np.diagonal(off)), rtol=1e-8, atol=1e-9)


@INTERCEPT
@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
def test_the_objective_term_by_term(intercept, dense):
    """Likelihood and row noise from moments of rows; the intercept is integrated out."""
    alg, chunks, states, _, params, sums, info = prepared(CASES[1], intercept, dense=dense)
    x, _, y, times = rows_of(alg, chunks, states)
    observed, total = params.observation, 0.0
    y, rows = y / observed.stretch, len(x)
    gram = sums.observation.gram[0] / np.outer(observed.stretch, observed.stretch)
    own = gram - (y * times[:, None]).T @ y
    b, a, sigma = gaussian_params.intercept_mean(observed), observed.mean, covariances(observed)
    centre = observed.intercept.centre[0] if intercept else np.zeros(len(a))
    for d in range(x.shape[1]):
        error = times @ (x[:, d] - b[d] - y @ a[:, d]) ** 2
        error += (own * (np.outer(a[:, d], a[:, d]) + sigma[d])).sum()
        away = y - centre
        error += np.einsum("n,nk,kl,nl->", times, away, sigma[d], away)
        count = rows - 1 if intercept else rows
        total += -0.5 * (count * np.log(2 * np.pi * observed.noise[d]) + error / observed.noise[d])
        total -= 0.5 * np.log(times.sum()) if intercept else 0.0
    assert info.terms["likelihood"] == pytest.approx(total, rel=1e-9)
    held, h = sums.observation.precisions, 0.5 * float(observed.row_noise.freedom)
    prior = rows * (h * np.log(h) - gammaln(h)) + (h - 1) * held.log - h * held.precision
    count, squares = pseudo_cells(alg, observed)
    weak = 0.5 * (count * held.log / rows - squares * (held.precision / rows - 1))
    expected = float(0.5 * held.cells + prior + held.entropy + weak)
    assert info.terms["row noise"] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(held.precision, times.sum(), rtol=1e-12)


@INTERCEPT
@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_pseudo_cells_of_the_noise_are_as_precise_as_the_rows(case, intercept):
    """Where a fit rests, the noise of a column is the mean square of its cells, counted by the precision of
    their rows, and of two pseudo cells that are counted by the mean precision. This is one where rows see
    all columns."""
    alg, _, states, _, params, sums, _ = prepared(case, intercept, steps=200)
    _, seen, _, times = rows_of(alg, *(chunked(*uneven(case), (10, 14)), states))
    observed = params.observation
    squares = dictionary.residual(observed, sums.observation.rescaled(observed.stretch))
    typical = (times @ seen).sum() / seen.sum()
    cells = seen.sum(axis=0) - (1 if intercept else 0)
    expected = (squares + 2 * 0.1 * observed.spread * typical) / (cells + 2)
    np.testing.assert_allclose(observed.noise, expected, rtol=1e-6)
    if seen.all():
        assert typical == pytest.approx(1, abs=1e-4)


def test_the_noise_of_few_rows_is_that_of_an_average_row():
    """30 rows have little to set against the prior of the noise of 200 columns: with pseudo cells of
    precision one their mean precision was 3.3, and their degrees of freedom 1.1."""
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(30, 200)) / np.sqrt(rng.gamma(5.0, 0.2, (30, 1)))
    x = rng.normal(size=(30, 12)) @ rng.normal(size=(12, 200)) + 0.5 * noise
    alg, chunks = build("fa-vi-dense", 28, settings={"moves": False}), chunked(x)
    params, states, _, _ = fit(alg, chunks, 40)
    assert states[0].precision.mean.mean() == pytest.approx(1, abs=0.05)
    assert float(params.observation.row_noise.freedom) > 5


@INTERCEPT
@pytest.mark.parametrize("case", EVERY, ids=str)
def test_the_objective_never_falls(case, intercept):
    alg, chunks, states, _, params, _, info = prepared(case, intercept)
    assert falls(alg, chunks, states, params, info) > -1e-8


def test_the_objective_of_dense_factors_never_falls():
    alg, chunks, states, _, params, _, info = prepared(CASES[1], True, dense=True)
    assert falls(alg, chunks, states, params, info) > -1e-8


def test_the_objective_of_many_dense_factors_never_falls():
    """About as many factors as rows: precisions change much from step to step."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(30, 40)) / np.sqrt(rng.gamma(1.0, 1.0, 30))[:, None]
    x = rng.normal(size=(30, 6)) @ rng.normal(size=(6, 40)) + noise
    alg, chunks = build("fa-vi-dense", 28, settings={"moves": False}), chunked(x)
    params, states, draws = begin(alg, chunks)
    states, sums = sweep(alg, chunks, states, params, draws.at(1))
    params, info = alg.update(params, sums, draws.at(1))
    assert falls(alg, chunks, states, params, info) > -1e-8


def falls(alg, chunks, states, params, info, steps=40):
    """The least step of the objective, as a share of its size."""
    levels = [info.objective]
    for step in range(4, 4 + steps):
        states, sums = sweep(alg, chunks, states, params, Draws(1, step))
        params, info = alg.update(params, sums, Draws(1, step))
        levels.append(info.objective)
    assert levels[-1] > levels[0]
    return np.diff(levels).min() / abs(levels[-1])


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_a_constant_moves_the_intercept_alone(case):
    added = np.array([0.0, 7.0, -4.0, 1.0])

    def fitted(offset):
        x, observed = uneven(case)
        x = x + offset if observed is None else np.where(observed, x + offset, 0.0)
        alg = algorithm(case, intercept=True, row_noise="learn")
        return fit(alg, chunked(x, observed, (10, 14)), 6)

    plain, moved = fitted(0.0), fitted(added)
    np.testing.assert_allclose(objectives(moved[3]), objectives(plain[3]), rtol=1e-9)
    shift = [gaussian_params.intercept_mean(one[0].observation) for one in (moved, plain)]
    np.testing.assert_allclose(shift[0] - shift[1], added, atol=1e-6)


@INTERCEPT
@pytest.mark.parametrize("case", SCATTERED, ids=str)
def test_rows_without_gaps_are_fitted_as_complete_data(case, intercept, monkeypatch):
    x, _ = uneven(dataclasses.replace(case, missing="complete"), rows=40, columns=6)
    settings = {"intercept": intercept, "row_noise": "learn"}
    whole = fit(algorithm(case, 4, missing="groups", **settings), chunked(x), 8)
    monkeypatch.setattr(gaussian, "column_groups", lambda missing: np.arange(missing.size))
    alg = algorithm(case, 4, **settings)
    params, states, _, traces = fit(alg, chunked(x, np.ones(x.shape, bool), [13, 27]), 8)
    assert isinstance(params.observation, ScatteredParams)
    np.testing.assert_allclose(objectives(traces), objectives(whole[3]), rtol=1e-9)
    found = np.concatenate([s.precision.mean for s in states])
    np.testing.assert_allclose(found, whole[1][0].precision.mean, rtol=1e-7)


def test_noisy_rows_are_told():
    _, _, states, *_ = prepared(CASES[1], True, steps=30)
    times = np.concatenate([s.precision.mean for s in states])
    assert np.median(times[::3]) < 0.75 * np.median(np.delete(times, np.s_[::3]))


def test_chunks_do_not_matter():
    parts = [prepared(CASES[2], True, sizes=s)[4].observation for s in ((24,), (3, 9, 12))]
    np.testing.assert_allclose(parts[1].mean, parts[0].mean, rtol=1e-8)
    np.testing.assert_allclose(parts[1].row_noise.freedom, parts[0].row_noise.freedom, rtol=1e-8)


def test_sums_of_chunks_are_added():
    alg, chunks, states, before, _, _, _ = prepared(CASES[2], True)
    parts = [alg.local(c, s, before, Draws(3, 2))[1] for c, s in zip(chunks, states, strict=True)]
    whole = reduce(combine, parts).observation.precisions
    assert isinstance(whole, RowNoiseSums)
    np.testing.assert_allclose(
        whole.weighted.weight, sum(p.observation.precisions.weighted.weight for p in parts)
    )


def test_without_it_rows_have_no_precision():
    alg, (chunk,) = algorithm(Case(weights="normal")), chunked(problem(1)[0])
    params, (state,), draws = begin(alg, [chunk])
    state, sums = alg.local(chunk, state, params, draws)
    assert isinstance(state.precision, Nothing)
    assert isinstance(sums.observation.precisions, Nothing)
    assert "row_freedom" not in alg.describe(params)
    assert "precision" not in alg.describe_rows(state, params)


def test_it_is_described():
    alg, _, states, _, params, _, _ = prepared(CASES[0], True)
    assert LEAST <= float(alg.describe(params)["row_freedom"][1]) <= MOST
    dims, values = alg.describe_rows(states[0], params)["precision"]
    assert dims == ("row",)
    np.testing.assert_array_equal(values, states[0].precision.mean)


# --- one row, and all rows ---


def test_moments_and_entropy_of_a_precision():
    found = Posterior.of(PrecisionLaw(5.0, 0.25, 0.125), np.array([8.0]), np.array([3.0]))
    law = gamma_law(7.5, scale=1 / 4.5)
    assert found.mean[0] == pytest.approx(law.mean())
    assert found.entropy[0] == pytest.approx(law.entropy())
    assert found.log[0] == pytest.approx(digamma(7.5) - np.log(4.5))


def test_a_row_without_cells_keeps_its_prior():
    found = Posterior.of(PrecisionLaw(6.0, 0.1, 0.2), np.zeros(1), np.zeros(1))
    assert found.mean[0] == 1
    none = found.sums(np.zeros(1), NOTHING)
    assert score(1.0, PrecisionLaw(6.0, 0.1, 0.2), none, 0.0) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("truth", [1.5, 4.0, 60.0])
def test_the_best_freedom(truth):
    rng = np.random.default_rng(1)
    tau = rng.gamma(truth / 2, 2 / truth, 20_000)
    one = np.asarray(0.0)
    sums = RowNoiseSums(np.asarray(tau.sum()), np.asarray(np.log(tau).sum()), one, one, one)
    found = best_freedom(len(tau), sums)

    def worth(nu):
        return score(len(tau), PrecisionLaw(nu), sums, 0.0)

    best = minimize_scalar(lambda nu: -worth(nu), bounds=(LEAST, MOST), method="bounded")
    assert worth(found) >= -best.fun - 1e-9 * abs(best.fun)
    assert found == pytest.approx(truth, rel=0.1)


def test_the_freedom_stays_within_its_limits():
    def sums(mean, log):
        return RowNoiseSums(*(np.asarray(10.0 * value) for value in (mean, log, 0.0, 0.0, 0.0)))

    assert best_freedom(10.0, sums(1.0, 0.0)) == MOST
    assert best_freedom(10.0, sums(1.0, -50.0)) == LEAST


# --- settings ---


def test_bad_settings():
    with pytest.raises(UsageError, match="row_noise: 'yes': expected learn, none"):
        Gaussian(row_noise="yes")
    with pytest.raises(UsageError, match="row_noise: lg-vi-infinite has none; use a system with weights"):
        build("lg-vi-infinite", 3, settings={"row_noise": "learn"})
    with pytest.raises(UsageError, match="row_noise: lg-gibbs-finite has none; use a system with weights"):
        build("lg-gibbs-finite", 3, settings={"row_noise": "learn"})


# --- hot rows, small chunks ---


def test_hot_rows_are_even():
    """With raised noise precisions would rise as much, and take it back."""
    alg, chunks, _, _, params, _, _ = prepared(CASES[1], True, steps=6)
    *hot, cold = alg.model.observation.cooling_path(params.observation)
    assert len(hot) == 6
    assert all(isinstance(one.row_noise, Nothing) for one in hot)
    assert cold.row_noise is params.observation.row_noise
    state = alg.start(chunks[0], params, Draws(2))
    assert np.isfinite(state.precision.mean).all()


def test_annealed_fits_know_the_noise():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 20)) + 0.5 * rng.normal(size=(200, 20))
    settings = {"anneal": 16.0, "start": "random", "moves": False}
    alg, chunks = build("fa-vi-infinite", 4, settings=settings), chunked(x)
    params, states, draws = begin(alg, chunks)
    for step in range(1, 120):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, info = alg.update(params, sums, draws.at(step))
        assert "row noise" in info.terms
    assert 0.1 < np.median(params.observation.noise) < 1.5 * x.var()


def test_values_are_not_frequent_in_few_rows():
    alg = algorithm(Case(weights="normal"), 2)
    x = np.random.default_rng(1).normal(size=(12, 3))
    for sizes in ((12,), (1,) * 12, (2,) * 6):
        parts = [alg.summarise(chunk) for chunk in chunked(x, None, sizes)]
        assert (reduce(combine, parts).common == 0).all()
