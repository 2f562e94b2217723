"""All weights of a row at once: against the exact posterior and the exact evidence given the dictionary."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine, replace
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.joint import Joint
from ibpdist.model.priors.always import Always
from ibpdist.model.weights.normal import Normal
from tests.support.model_cases import begin, chunked, covariances, fit, problem

FEATURES = 3


def algorithm(**settings):
    given = {"noise": "column", "scale": "feature", "missing": "exact"} | settings
    return Coordinate(Model(Always(), Normal(), Joint(**given)), FEATURES)


def prepared(missing="complete", known=True, rows=9, dtype=np.float64):
    """Chunks, random parameters (the dictionary known exactly or not) and fresh row states."""
    x, observed = problem(7, rows, 5, missing, dtype)
    chunks, alg = chunked(x, observed, [4, rows - 4]), algorithm()
    params, states, draws = begin(alg, chunks)
    rng, was = np.random.default_rng(2), params.observation
    spread = np.zeros_like(was.basis) if known else 0.4 * rng.normal(size=was.basis.shape)
    made = replace(was, mean=rng.normal(size=was.mean.shape), basis=spread, noise=rng.uniform(0.3, 1.5, 5))
    return alg, chunks, replace(params, observation=made), states, draws, x, observed


def row_by_row(params, x, observed):
    """Posterior mean and covariance of the weights of every row, with E[A_d' A_d] of the observed columns."""
    seen = np.ones(x.shape, bool) if observed is None else observed
    a, psi, sigma = params.mean, params.noise, covariances(params)
    for n in range(len(x)):
        precision, pull = np.eye(FEATURES), np.zeros(FEATURES)
        for d in np.flatnonzero(seen[n]):
            precision += (np.outer(a[:, d], a[:, d]) + sigma[d]) / psi[d]
            pull += a[:, d] * x[n, d] / psi[d]
        yield np.linalg.solve(precision, pull), np.linalg.inv(precision), seen[n]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("missing", ["complete", "masked", "block"])
def test_sums_are_those_of_the_posteriors_of_the_rows(missing, known):
    alg, chunks, params, states, draws, x, observed = prepared(missing, known)
    made = [alg.local(c, s, params, draws) for c, s in zip(chunks, states, strict=True)]
    sums = combine(made[0][1], made[1][1])
    gram, cross = np.zeros_like(sums.observation.gram), np.zeros((FEATURES, 5))
    second, cost = np.zeros(FEATURES), 0.0
    w = np.concatenate([state.w for state, _ in made], axis=1)
    for n, (mean, spread, seen) in enumerate(row_by_row(params.observation, x, observed)):
        np.testing.assert_allclose(w[:, n], mean, rtol=1e-10, atol=1e-12)
        both = np.outer(mean, mean) + spread
        for g in range(len(gram)):
            gram[g] += both * seen[params.observation.group == g].any()
        cross += np.outer(mean, np.where(seen, x[n], 0))
        second += np.diag(both)
        cost += 0.5 * (np.trace(both) - FEATURES - np.linalg.slogdet(spread)[1])
    np.testing.assert_allclose(sums.observation.gram, gram, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sums.observation.cross, cross, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sums.entries.second, second, rtol=1e-10)
    assert sums.entries.cost.sum() == pytest.approx(cost, rel=1e-10)
    assert (sums.entries.on == len(x)).all()
    assert (sums.entries.entropy == 0).all()


@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_the_bound_is_the_evidence_when_the_dictionary_is_known(missing):
    """x ~ N(0, A'A + diag(psi)): likelihood and cost of the weights together are exact."""
    alg, chunks, params, states, draws, x, observed = prepared(missing)
    made = [alg.local(c, s, params, draws)[1] for c, s in zip(chunks, states, strict=True)]
    terms = alg.score(params, combine(*made)).terms
    seen = np.ones(x.shape, bool) if observed is None else observed
    a, psi = params.observation.mean, params.observation.noise
    whole = a.T @ a + np.diag(psi)
    exact = sum(
        multivariate_normal(np.zeros(s.sum()), whole[np.ix_(s, s)]).logpdf(row[s])
        for row, s in zip(x, seen, strict=True)
        if s.any()
    )
    assert terms["likelihood"] + terms["weights"] == pytest.approx(exact, rel=1e-10)


def test_where_the_rows_began_does_not_matter():
    alg, chunks, params, states, draws, _, _ = prepared()
    other = replace(states[0], w=states[0].w + 3.0)
    one, two = (alg.local(chunks[0], state, params, draws)[0] for state in (states[0], other))
    np.testing.assert_array_equal(one.w, two.w)


@pytest.mark.parametrize("scale", ["one", "feature", 1.5])
@pytest.mark.parametrize("noise", ["one", "column"])
@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_never_falls(missing, noise, scale):
    x, observed = problem(5, 30, 6, missing)
    alg = algorithm(noise=noise, scale=scale, missing="exact")
    value = np.array([t["objective"] for t in fit(alg, chunked(x, observed, [11, 19]), 150)[3]])
    assert np.diff(value).min() >= -1e-9 * (np.abs(value).max() + x.size)
    assert value[-1] > value[0]


def test_above_a_factor_for_each_weight():
    """For the same dictionary, and sweeps to convergence."""
    alg, chunks, params, states, draws, _, _ = prepared(known=False)
    swept = Coordinate(Model(Always(), Normal(), Gaussian("column", "feature")), FEATURES, inner=200)
    reached = [
        fitted.score(params, fitted.local(chunks[1], states[1], params, draws)[1]).objective
        for fitted in (alg, swept)
    ]
    assert reached[0] > reached[1] + 0.1


def test_single_precision():
    alg, chunks, params, states, _, _, _ = prepared(dtype=np.float32)
    state, sums = alg.local(chunks[1], states[1], params, Draws(1))
    assert state.w.dtype == state.z.dtype == np.float32
    assert sums.observation.gram.dtype == np.float64
