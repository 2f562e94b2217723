"""worth: what a row contributes to the objective, against scalar loops and against the objective itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.inference.moves.renew import renewed
from ibpdist.model.observations.rows import worth
from tests.support.model_cases import (
    Case,
    algorithm,
    covariances,
    problem,
    random_case,
)
from tests.support.moves import sums_of

FORMS = [
    Case(prior, family=family, noise=noise, missing=missing)
    for prior, family, noise, missing in (
        ("sticks", "structured", "one", "complete"),
        ("finite", "structured", "column", "complete"),
        ("sticks", "factorised", "column", "masked"),
        ("finite", "structured", "column", "masked"),
        ("sticks", "structured", "one", "block"),
    )
]
ROWWISE = [Case("sticks", noise="column", missing="rows"), Case(family="factorised", missing="rows")]
CASES = pytest.mark.parametrize("case", FORMS, ids=str)
EVERY = pytest.mark.parametrize("case", [*FORMS, *ROWWISE], ids=str)
ROWS, COLUMNS, FEATURES = 9, 5, 4


def prepared(case, seed=3):
    x, observed = problem(seed, ROWS, COLUMNS, case.missing)
    alg = algorithm(case, FEATURES)
    (chunk,), params, (state,) = random_case(case, seed, alg, x, observed)
    return alg, chunk, params, state


def scalar_worth(x, seen, mean, sigma, noise, log_odds, z):
    """One row by terms (linear-gaussian.md 4): E log p(x | z, A) + z log odds + entropy, up to constants."""
    total = 0.0
    for k, on in enumerate(z):
        total += on * log_odds[k]
        for share in (on, 1 - on):
            total -= share * math.log(share) if share > 0 else 0.0
    for d, value in enumerate(x):
        if not seen[d]:
            continue
        fit = square = 0.0
        for k in range(len(z)):
            fit += z[k] * mean[k, d]
            for j in range(len(z)):
                both = z[k] if j == k else z[k] * z[j]
                square += both * (mean[k, d] * mean[j, d] + sigma[d, k, j])
        total += (value * fit - 0.5 * square) / noise[d]
    return total


@CASES
def test_equals_scalar_loops(case):
    alg, chunk, params, state = prepared(case)
    log_odds = alg.model.prior.log_odds(params.prior)
    found = worth(chunk, params.observation, log_odds, state.z)
    observed, sigma = params.observation, covariances(params.observation)
    seen = np.ones(chunk.x.shape, bool) if chunk.observed is None else chunk.observed
    for n in range(ROWS):
        expected = scalar_worth(
            chunk.x[n], seen[n], observed.mean, sigma, observed.noise, log_odds, state.z[:, n]
        )
        assert found[n] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@CASES
def test_differences_are_those_of_the_objective(case):
    """Globals fixed, one row changed: soft, hard and empty."""
    alg, chunk, params, state = prepared(case)
    log_odds = alg.model.prior.log_odds(params.prior)
    rng = np.random.default_rng(8)
    before = alg.score(params, sums_of(state, chunk, params, alg.model)).objective
    first = worth(chunk, params.observation, log_odds, state.z)
    for n in range(ROWS):
        for row in (rng.random(FEATURES), np.round(rng.random(FEATURES)), np.zeros(FEATURES)):
            z = state.z.copy()
            z[:, n] = row
            after = alg.score(params, sums_of(replace(state, z=z), chunk, params, alg.model)).objective
            second = worth(chunk, params.observation, log_odds, z)
            assert second[n] - first[n] == pytest.approx(after - before, rel=1e-8, abs=1e-8)
            others = np.arange(ROWS) != n
            np.testing.assert_allclose(second[others], first[others], rtol=1e-12, atol=1e-12)


@CASES
def test_a_sweep_raises_the_worth_of_every_row(case):
    alg, chunk, params, state = prepared(case)
    log_odds = alg.model.prior.log_odds(params.prior)
    before = worth(chunk, params.observation, log_odds, state.z)
    for step in range(1, 4):
        state, _ = alg.local(chunk, state, params, Draws(0, step))
        after = worth(chunk, params.observation, log_odds, state.z)
        assert (after >= before - 1e-9 * np.abs(before)).all()
        before = after


@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_renewed_rows_are_nowhere_worse(missing):
    """A row is replaced only as a whole, and only where it gains."""
    case = Case("sticks", missing=missing)
    alg, chunk, params, state = prepared(case, 5)
    params = replace(params, on=np.full(FEATURES, 0.4 * ROWS), rows=np.asarray(float(ROWS)))
    log_odds = alg.model.prior.log_odds(params.prior)
    made = renewed(alg, chunk, state, params, Draws(0, 1))
    before, after = (worth(chunk, params.observation, log_odds, one.z) for one in (state, made))
    changed = (made.z != state.z).any(axis=0)
    assert changed.any()
    assert (after[changed] > before[changed]).all()
    np.testing.assert_array_equal(after[~changed], before[~changed])


def test_rows_with_weights_are_not_renewed():
    alg, chunk, params, state = prepared(Case(weights="normal"))
    made = renewed(alg, chunk, state, params, Draws(0, 1))
    np.testing.assert_array_equal(made.z, state.z)
    np.testing.assert_array_equal(made.w, state.w)


def test_certain_rows_and_no_features():
    alg, chunk, params, state = prepared(Case())
    log_odds = alg.model.prior.log_odds(params.prior)
    hard = np.round(state.z)
    assert np.isfinite(worth(chunk, params.observation, log_odds, hard)).all()
    assert (worth(chunk, params.observation, log_odds, np.zeros_like(hard)) == 0).all()
    single = worth(chunk, params.observation, log_odds, hard.astype(np.float32))
    assert single.dtype == np.float64
