"""Draws of the parameters of the observation, against conditionals written out column by column."""

import numpy as np
import pytest

from ibpdist.base.rules import DRAW, Rule
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import ScatteredParams, intercept_mean
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.weights.normal import Normal
from tests.support.model_cases import begin, chunked, problem, sweep

NOISE, SCALE, DRAWN = 0.4, 1.3, 600
KINDS = ["complete", "block", "rows"]


def prepared(missing, noise=NOISE, scale=SCALE, steps=2, **settings):
    """A sampler after some steps: algorithm, chunks, parameters before the last update, the row state and the
    sums that it is made from, and the draws of that step."""
    x, observed = problem(5, 30, 4, missing)
    x = x + 2.0 * np.arange(1, 5)
    x = x if observed is None else np.where(observed, x, 0.0)
    route = "rows" if missing == "rows" else "groups"
    seen = Gaussian(noise, scale, missing=route, **settings)
    alg = Coordinate(Model(BetaBernoulli(), Normal(), seen, DRAW), 3)
    chunks = chunked(x, observed, [13, 17])
    params, states, draws = begin(alg, chunks)
    for step in range(1, steps + 1):
        before = params
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, _ = alg.update(params, sums, draws.at(step))
    assert isinstance(before.observation, ScatteredParams) == (missing == "rows")
    return alg, chunks, before.observation, states, sums.observation, draws.at(steps)


def rows_of(alg, chunks, params, states, draws):
    """x with the cells that were drawn, the cells that count, y (row, feature) and the precisions of rows."""
    whole = [
        alg.model.observation.impute(c, params, alg.model.weights, s, draws)
        for c, s in zip(chunks, states, strict=True)
    ]
    x = np.concatenate([c.x for c in whole])
    seen = np.concatenate([np.ones(c.x.shape, bool) if c.observed is None else c.observed for c in whole])
    y = np.concatenate([(s.z * s.w).T for s in states])
    even = [np.ones(len(s.z[0])) if isinstance(s.precision, Nothing) else s.precision.mean for s in states]
    return x, seen, y, np.concatenate(even)


def joint_law(x, seen, y, times, noise):
    """Mean and covariance of (A_d, b_d) of one column."""
    rows = np.column_stack([y, np.ones(len(y))])[seen]
    precision = (rows.T * times[seen]) @ rows / noise + np.diag([1 / SCALE] * y.shape[1] + [0.0])
    covariance = np.linalg.inv(precision)
    return covariance @ (rows.T * times[seen]) @ x[seen] / noise, covariance


@pytest.mark.parametrize("missing", KINDS)
def test_dictionary_and_intercept_are_drawn_together(missing):
    alg, chunks, params, states, sums, draws = prepared(missing, intercept=True)
    x, seen, y, times = rows_of(alg, chunks, params, states, draws)
    rng = np.random.default_rng(1)
    made = [alg.model.observation.update(params, sums, Rule.DRAW, rng) for _ in range(DRAWN)]
    found = np.array([np.vstack([one.mean, intercept_mean(one)]) for one in made])
    for d in range(x.shape[1]):
        mean, covariance = joint_law(x[:, d], seen[:, d], y, times, NOISE)
        sd = np.sqrt(np.diag(covariance))
        assert (np.abs(found[:, :, d].mean(axis=0) - mean) < 4.5 * sd / np.sqrt(DRAWN)).all()
        correlation = np.cov(found[:, :, d].T) / np.outer(sd, sd)
        np.testing.assert_allclose(correlation, covariance / np.outer(sd, sd), atol=0.27)


@pytest.mark.parametrize("missing", ["complete", "block"])
def test_the_likelihood_is_that_of_the_draw(missing):
    """Given the intercept, and not about the means."""
    alg, chunks, before, states, sums, draws = prepared(missing, "column", intercept=True)
    params = alg.model.observation.update(before, sums, Rule.DRAW, np.random.default_rng(2))
    x, seen, y, times = rows_of(alg, chunks, params, states, draws)
    error = times[:, None] * (x - params.intercept.origin - y @ params.mean) ** 2 / params.noise
    expected = -0.5 * (error + np.log(2 * np.pi * params.noise))[seen].sum()
    found = alg.model.observation.score(params, sums).terms["likelihood"]
    assert found == pytest.approx(expected, rel=1e-9)


def test_hidden_cells_are_drawn_about_the_intercept():
    alg, chunks, params, states, _, draws = prepared("rows", intercept=True)
    plain = replace(params, intercept=NOTHING)
    for c, s in zip(chunks, states, strict=True):
        with_it, without = (alg.model.observation.impute(c, p, Normal(), s, draws).x for p in (params, plain))
        np.testing.assert_allclose(
            with_it - without, np.where(c.observed, 0.0, intercept_mean(params)), atol=1e-12
        )


def test_draws_are_named_by_rows():
    """Another chunking draws the same."""
    params = []
    for sizes in ([13, 17], [30]):
        alg, chunks, *_ = prepared("rows", intercept=True)
        x, observed = (np.concatenate([getattr(c, name) for c in chunks]) for name in ("x", "observed"))
        again = chunked(x, observed, sizes)
        now, states, draws = begin(alg, again)
        for step in range(1, 4):
            states, sums = sweep(alg, again, states, now, draws.at(step))
            now, _ = alg.update(now, sums, draws.at(step))
        params.append(now)
    np.testing.assert_allclose(*[intercept_mean(one.observation) for one in params], rtol=1e-9)
