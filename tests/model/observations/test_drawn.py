"""Draws of the parameters of the observation, against conditionals written out column by column."""

import numpy as np
import pytest
from scipy.stats import gamma as gamma_law
from scipy.stats import kstest
from scipy.stats import uniform as uniform_law

from ibpdist.base.rules import DRAW, Rule
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import ScatteredParams, intercept_mean
from ibpdist.model.observations.row_noise import MOST, Posterior, drawn_freedom
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.weights.normal import Normal
from tests.support.model_cases import begin, chunked, problem, sweep

NOISE, SCALE, DRAWN = 0.4, 1.3, 600
KINDS = ["complete", "block", "rows"]
ROWS = pytest.mark.parametrize("row_noise", ["none", "learn"], ids=["even", "uneven"])


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


@ROWS
@pytest.mark.parametrize("missing", KINDS)
def test_dictionary_and_intercept_are_drawn_together(missing, row_noise):
    alg, chunks, params, states, sums, draws = prepared(missing, intercept=True, row_noise=row_noise)
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


@ROWS
@pytest.mark.parametrize("missing", KINDS)
def test_the_likelihood_is_that_of_the_draw(missing, row_noise):
    """Given the intercept, and not about the means."""
    alg, chunks, before, states, sums, draws = prepared(
        missing, "column", intercept=True, row_noise=row_noise
    )
    params = alg.model.observation.update(before, sums, Rule.DRAW, np.random.default_rng(2))
    x, seen, y, times = rows_of(alg, chunks, before, states, draws)
    error = times[:, None] * (x - params.intercept.origin - y @ params.mean) ** 2 / params.noise
    expected = -0.5 * (error + np.log(2 * np.pi * params.noise))[seen].sum()
    terms = alg.model.observation.score(params, sums).terms
    assert terms["likelihood"] == pytest.approx(expected, rel=1e-9)
    if row_noise == "learn":
        half = params.row_noise.freedom / 2
        law = gamma_law.logpdf(times, half, scale=1 / half) + 0.5 * seen.sum(axis=1) * np.log(times)
        assert terms["row noise"] == pytest.approx(law.sum(), rel=1e-9)


@pytest.mark.parametrize("missing", KINDS)
def test_precisions_are_drawn_given_what_rows_leave(missing):
    """Of the visible cells, before hidden ones are drawn."""
    _, chunks, params, states, _, draws = prepared(missing, "column", intercept=True, row_noise="learn")
    nu = float(params.row_noise.freedom)
    for c, s in zip(chunks, states, strict=True):
        chances = draws.uniform("precision", c.start, c.rows, 1)[0]
        for n in range(c.rows):
            seen = np.ones(4, bool) if c.observed is None else c.observed[n]
            left = (c.x[n] - params.intercept.origin - (s.z[:, n] * s.w[:, n]) @ params.mean)[seen]
            law = gamma_law((nu + seen.sum()) / 2, scale=2 / (nu + (left**2 / params.noise[seen]).sum()))
            assert s.precision.mean[n] == pytest.approx(law.ppf(chances[n]), rel=1e-7)


def test_the_law_of_precisions_is_drawn_from_its_density():
    """Against a grid of log nu."""
    tau, grid = gamma_law.rvs(4, scale=1 / 4, size=12, random_state=1), np.linspace(0, np.log(MOST), 4001)
    half = np.exp(grid)[:, None] / 2
    log_density = gamma_law.logpdf(tau, half, scale=1 / half).sum(axis=1)
    chance = np.cumsum(np.exp(log_density - log_density.max()))
    sums, rng = Posterior.known(tau).sums(np.zeros(12), NOTHING), np.random.default_rng(4)
    found, now = [], 5.0
    for _ in range(8000):
        now = drawn_freedom(12.0, now, sums, rng)
        found.append(np.log(now))
    thinned = np.array(found[::8])
    assert kstest(thinned, lambda at: np.interp(at, grid, chance / chance[-1])).pvalue > 1e-3


def test_without_rows_the_law_of_precisions_is_its_prior():
    sums, rng = Posterior.known(np.ones(1)).sums(np.zeros(1), NOTHING), np.random.default_rng(5)
    none = replace(sums, log=np.zeros(()), precision=np.zeros(()))
    found = [np.log(drawn_freedom(0.0, 10.0, none, rng)) for _ in range(3000)]
    assert kstest(found, uniform_law(0, np.log(MOST)).cdf).pvalue > 1e-3


def test_hidden_cells_of_noisy_rows_vary_more():
    """Their errors are those of even rows over the root of the precision."""
    alg, chunks, params, states, _, draws = prepared("rows", row_noise="learn")
    for c, s in zip(chunks, states, strict=True):
        mean = (s.z * s.w).T @ params.mean
        own, even = (
            alg.model.observation.impute(c, params, Normal(), one, draws).x - mean
            for one in (s, replace(s, precision=NOTHING))
        )
        hidden = ~c.observed
        np.testing.assert_allclose(
            (own * np.sqrt(s.precision.mean)[:, None])[hidden], even[hidden], rtol=1e-9, atol=1e-12
        )


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
