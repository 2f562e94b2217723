"""Cells missing in no pattern: rows with Gram matrices of their own, against complete data and groups."""

from itertools import product

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.model.observations import dictionary, gaussian, gaussian_params, patterns
from ibpdist.model.observations.gaussian_params import GaussianParams, ScatteredParams
from tests.support.covering import everyday
from tests.support.model_cases import (
    WEIGHTS,
    Case,
    algorithm,
    chunked,
    fit,
    objectives,
    problem,
    survey,
    sweep,
)

NEAR = {"rtol": 1e-9, "atol": 1e-10}
CASES = [
    Case(weights=weights, family=family, noise=noise, scale=scale, missing="rows")
    for weights in ("unit", "normal")
    for family in ("structured", "factorised")
    for noise in ("one", "column")
    for scale in ("one", "feature")
]
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case}-{case.scale}")


def torn(seed, share, rows=40, columns=7):
    """A problem with this share of the cells missing, a row without any cell and a column without any."""
    x, _ = problem(seed, rows, columns)
    observed = np.random.default_rng([seed, 5]).random(x.shape) >= share
    observed[3], observed[:, 2] = False, False
    return np.where(observed, x, 0.0), observed


@EVERY
def test_rows_without_gaps_are_fitted_as_complete_data(case, monkeypatch):
    x, _ = problem(3, 40, 6)
    whole = objectives(fit(algorithm(case, 4, missing="groups"), chunked(x), 8)[3])
    monkeypatch.setattr(gaussian, "column_groups", lambda missing: np.arange(missing.size))
    params, *_, traces = fit(algorithm(case, 4), chunked(x, np.ones(x.shape, bool), [13, 27]), 8)
    assert isinstance(params.observation, ScatteredParams)
    np.testing.assert_allclose(objectives(traces), whole, rtol=1e-9)


def by_groups(params, alg, chunks):
    """The same q(A), as the other route holds it."""
    seen, blank = params.observation, alg.init(survey(alg, chunks), Draws(1)).observation
    first = blank.spectra_at()
    same = {
        name: getattr(seen, name)
        for name in ("mean", "entropy", "noise", "scale", "unit", "spread", "common")
    }
    made = GaussianParams(
        basis=np.repeat(seen.basis, len(first), axis=0),
        spectrum=seen.spectrum[first],
        group=blank.group,
        cells=blank.cells,
        squares=blank.squares,
        stretch=seen.stretch,
        **same,
    )
    return replace(params, observation=made)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("noise", ["one", "column"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_both_routes_find_the_same_rows_and_the_same_bound(weights, noise, share):
    x, observed = torn(3, share)
    chunks, case = chunked(x, observed, [15, 25]), Case(weights=weights, noise=noise)
    rows, groups = (algorithm(case, 4, missing=how) for how in ("rows", "groups"))
    params, states, *_ = fit(rows, chunks, 12)
    other = by_groups(params, groups, chunks)
    one, sums = sweep(rows, chunks, states, params, Draws(9))
    two, whole = sweep(groups, chunks, states, other, Draws(9))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a.z, b.z, rtol=1e-9, atol=1e-12)
    # At the old dictionary the bound with filled cells is that of the visible ones: spectra are those of
    # the new rows, covariances the old ones.
    seen, found = params.observation, sums.observation
    left = found.squares(seen) - 2 * np.einsum("kd,kd->d", seen.mean, found.cross)
    left += np.einsum("kd,kl,ld->d", seen.mean, found.gram[0], seen.mean)
    left += (found.spectra[0].T / (1 + seen.spectrum / seen.noise[:, None])).sum(axis=1)
    np.testing.assert_allclose(left, dictionary.residual(other.observation, whole.observation), **NEAR)


@pytest.mark.parametrize(("case", "share", "rule"), everyday(product(CASES, [0.1, 0.5], ["mean", "mode"])))
def test_the_objective_never_falls(case, share, rule):
    x, observed = torn(4, share)
    value = objectives(fit(algorithm(replaced(case, rule), 4), chunked(x, observed, [15, 25]), 80)[3])
    assert np.diff(value).min() >= -1e-9 * (np.abs(value).max() + x.size)
    assert np.isfinite(value).all()


def replaced(case, rule):
    return Case(**vars(case) | {"rule": rule})


def test_a_better_basis_is_measured_and_taken():
    """Covariances follow the rows: the basis at the end is not that of the first step."""
    x, observed = torn(5, 0.3)
    alg, chunks = algorithm(Case(missing="rows"), 4), chunked(x, observed)
    first, last = (fit(alg, chunks, steps)[0].observation for steps in (1, 40))
    turn = np.linalg.solve(first.basis[0], last.basis[0])
    assert np.abs(turn - np.diag(np.diagonal(turn))).max() > 1e-3
    assert (last.spectrum >= 0).all()


def test_spectra_of_hidden_columns_are_nothing():
    """A column that is never seen keeps the covariance of its prior, and a mean of zero at the end."""
    x, observed = torn(6, 0.2)
    params = fit(algorithm(Case(missing="rows", noise=0.5, scale=1.5), 4), chunked(x, observed), 400)[0]
    seen = params.observation
    np.testing.assert_array_equal(seen.spectrum[2], 0.0)
    np.testing.assert_allclose(gaussian_params.variance(seen)[:, 2], 1.5, rtol=1e-9)
    assert np.abs(seen.mean[:, 2]).max() < 0.1 * np.abs(seen.mean).max()


def wide(seed, share, rows=300, columns=16):
    """Three planted features, cells missing anywhere; the dictionary."""
    rng = np.random.default_rng(seed)
    planted = rng.normal(size=(3, columns))
    x = (rng.random((rows, 3)) < 0.4) @ planted + 0.6 * rng.normal(size=(rows, columns))
    return np.where(rng.random(x.shape) < share, np.nan, x), planted


@pytest.mark.parametrize("seed", [0, 3])
def test_planted_features_are_found_with_70_percent_of_the_cells_missing(seed, monkeypatch):
    """By the automatic choice for wide data (linear-gaussian.md 9)."""
    monkeypatch.setattr(patterns, "GROUP_BYTES", 0)
    x, planted = wide(seed, 0.7)
    found = ibp.fit(x, system="lg-vi-infinite", K=8, seed=1)["params"].to_dataset()
    mean = found["mean"].values[found["active"].values]
    like = np.abs(planted @ mean.T) / np.linalg.norm(planted, axis=1)[:, None] / np.linalg.norm(mean, axis=1)
    assert len(mean) == 3
    assert (like.max(axis=1) > 0.95).all()
    assert float(found["noise"]) == pytest.approx(0.36, rel=0.12)
