"""Rows by the row step of a fit: fixed points, whatever the chunking and the cells that are missing."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.data.arrays import ArrayData
from ibpdist.evaluate import mean_field as module
from ibpdist.evaluate.mean_field import mean_field
from ibpdist.evaluate.recovery import recovery
from ibpdist.evaluate.synthetic import synthetic
from ibpdist.evaluate.transform import transform as transform_
from ibpdist.model.observations import gaussian, patterns
from tests.support.image_fits import ROWS, fit_images

transform = partial(transform_, estimate="mean-field")


@pytest.fixture(scope="module")
def images():
    return fit_images("lg-vi-finite", restarts=5)


def test_the_rows_of_the_fit_are_found_again(images):
    data, result = images
    found = transform(result, data.x.values[:ROWS])
    close = np.abs(found.z.values - result["rows"].z.values) < 0.01
    assert close.mean() > 0.97


def test_the_end_is_a_fixed_point(images):
    data, result = images
    x = data.x.values[ROWS:]
    loose, tight = (transform(result, x, tolerance=t).z.values for t in (1e-6, 1e-9))
    assert np.abs(loose - tight).max() < 1e-3


def test_chunks_and_threads_do_not_matter(images):
    data, result = images
    x = data.x.values[ROWS:]
    whole = transform(result, ArrayData(x), tolerance=1e-9).z.values
    parts = transform(result, ArrayData(x, chunk_rows=33), tolerance=1e-9, workers=2).z.values
    np.testing.assert_allclose(parts, whole, atol=1e-6)


def own_terms(result, row):
    """Gamma and F of one row, from the cells that it has (linear-gaussian.md 4)."""
    held = xr.merge([result["params"].to_dataset(), result["internals"].to_dataset()])
    mean, columns = held["mean"].values, held["mean"].sizes["column"]
    noise, group = np.broadcast_to(held["noise"].values, columns), held["group"].values
    gamma, pull = np.zeros((len(mean), len(mean))), np.zeros(len(mean))
    for d in np.flatnonzero(~np.isnan(row)):
        basis, spectrum = held["basis"].values, held["spectrum"].values[group[d]]
        basis = basis[group[d] if len(basis) > 1 else 0]
        spread = (basis / (1 + spectrum / noise[d])) @ basis.T
        gamma += (np.outer(mean[:, d], mean[:, d]) + spread) / noise[d]
        pull += mean[:, d] * row[d] / noise[d]
    return gamma, pull


def torn(x, share, seed=5):
    return np.where(np.random.default_rng(seed).random(x.shape) < share, np.nan, x)


@pytest.mark.parametrize("noise", ["one", "column"])
@pytest.mark.parametrize("missing", ["none", "block", "anywhere", "anywhere in wide data"])
def test_every_row_is_explained_by_the_cells_that_it_has(noise, missing, monkeypatch):
    """Whatever was missing in the fit: a fixed point of the local step with the row's own Gamma."""
    if missing == "anywhere in wide data":
        monkeypatch.setattr(patterns, "GROUP_BYTES", 0)
    data = synthetic("images", 200, seed=3, dtype="float64")
    x = data.x.values.copy()
    if missing == "block":
        x[::2, 5:9] = np.nan
    result = ibp.fit(
        torn(x, 0.1) if missing.startswith("anywhere") else x, system="lg-vi-finite", K=5, seed=1, noise=noise
    )
    new = torn(data.x.values[:60], 0.5)
    new[0, 1:], new[1], new[2] = np.nan, data.x.values[1], np.nan
    found, odds = transform(result, new, tolerance=1e-9).z.values, result["params"].log_odds.values
    for row, z in zip(new, found, strict=True):
        gamma, pull = own_terms(result, row)
        others = gamma @ z - np.diag(gamma) * z
        expected = 1 / (1 + np.exp(-(odds + pull - np.diag(gamma) / 2 - others)))
        np.testing.assert_allclose(z, expected, atol=1e-6)


def test_weights_of_rows_with_every_feature_are_exact_whatever_they_miss():
    data = synthetic("factor-analysis", 300, 12, 3, 0.3, seed=4, dtype="float64")
    plain = {"intercept": False, "row_noise": "none"}
    result = ibp.fit(data.x.values, system="fa-vi-dense", K=3, seed=0, **plain)
    new = torn(data.x.values[:40], 0.4)
    found = transform(result, new)
    for row, w in zip(new, found.w.values, strict=True):
        gamma, pull = own_terms(result, row)
        np.testing.assert_allclose(w, np.linalg.solve(np.eye(3) + gamma, pull), atol=1e-8)


def test_rows_with_too_many_patterns_are_taken_a_few_at_a_time(images, monkeypatch):
    data, result = images
    new = torn(data.x.values[ROWS : ROWS + 40], 0.3)
    whole = transform(result, new, tolerance=1e-9).z.values
    monkeypatch.setattr(gaussian, "EXACT_BYTES", 4 * 8 * 8**2)
    made = mean_field(result, ArrayData(new))
    observation, params = made.algorithm.model.observation, made.params
    parts = [part.rows for part, _ in observation.per_row_params(params.observation, chunk_of(new))]
    assert sum(parts) == 40
    assert max(parts) < 10
    np.testing.assert_allclose(transform(result, new, tolerance=1e-9).z.values, whole, atol=1e-6)


def chunk_of(x):
    return ArrayData(x).read(0)


def test_a_row_with_nothing_observed_has_the_prior(images):
    _, result = images
    found = transform(result, np.full((2, 36), np.nan)).z.values
    odds = result["params"].log_odds.values
    np.testing.assert_allclose(found, np.tile(1 / (1 + np.exp(-odds)), (2, 1)), atol=1e-6)


def test_samplers_give_the_mean_of_their_draws(monkeypatch):
    monkeypatch.setattr(module, "_KEEP", 40)
    data, result = fit_images("lg-gibbs-finite", steps=60)
    found = transform(result, data.x.values[ROWS:])
    shares = found.z.values * 40
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-4)
    match = recovery(result, data)
    good = match.match.values[match.matched.values]
    agree = (found.z.values[:, good] > 0.5) == data.z.values[ROWS:, match.matched.values]
    assert agree.mean() > 0.93


def test_the_algorithm_is_that_of_the_result(images):
    _, result = images
    made = mean_field(result, ArrayData(np.zeros((1, 36))))
    assert made.algorithm.model.prior.name == "beta_bernoulli"
    np.testing.assert_array_equal(np.sort(made.params.ids), np.sort(result["params"].id.values))
