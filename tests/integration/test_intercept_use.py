"""Fits with an intercept in use: what a constant added to a column changes, scores, new rows, warm starts."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.evaluate.fitted import predictor_of
from ibpdist.predict.exact import patterns
from tests.support.covering import everyday

SYSTEMS = ("lg-vi-infinite", "lg-vi-finite-hard", "fa-vi-finite", "fa-vi-dense", "ica-vi-infinite")
ADDED = np.array([0.0, 5.0, -3.0, 40.0, 1.0, 0.5])


def data(rows=120, seed=2):
    rng = np.random.default_rng(seed)
    z = rng.random((rows, 2)) < [0.4, 0.2]
    x = (z * rng.gamma(2.0, 1.0, z.shape)) @ rng.normal(size=(2, 6)) + 0.4 * rng.normal(size=(rows, 6))
    return x + rng.normal(size=6)


def torn(x, share, seed=8):
    """The same with this share of the cells missing, in no pattern."""
    return np.where(np.random.default_rng(seed).random(x.shape) < share, np.nan, x)


def fitted(x, system, **more):
    settings = {"start": "random", "moves": False, "steps": 40} | more
    return ibp.fit(x, system=system, K=3, seed=4, intercept=True, **settings)


@pytest.mark.parametrize(
    ("system", "share"),
    [*((system, 0.0) for system in SYSTEMS), ("fa-vi-infinite", 0.2), ("lg-vi-finite", 0.2)],
)
def test_a_constant_moves_the_intercept_alone(system, share):
    """The fit, its scores and what it says of new rows."""
    x, more = torn(data(), share), data(30, 5)
    missing = {} if not share else {"missing": "rows"}
    plain, moved = fitted(x, system, **missing), fitted(x + ADDED, system, **missing)
    assert moved.attrs["objective"] == pytest.approx(plain.attrs["objective"], rel=1e-9)
    one, other = plain["params"], moved["params"]
    np.testing.assert_allclose(other["mean"], one["mean"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(other["intercept"] - one["intercept"], ADDED, atol=1e-5)
    np.testing.assert_allclose(other["intercept_sd"], one["intercept_sd"], rtol=1e-6)
    scores = [ibp.evaluate(r, rows, chains=2).row_score for r, rows in ((plain, more), (moved, more + ADDED))]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5, atol=1e-5)
    more[3:9, 1], more[5, 4] = np.nan, np.nan  # cells that are missing otherwise than in the fit
    rows = [ibp.transform(r, found) for r, found in ((plain, more), (moved, more + ADDED))]
    np.testing.assert_allclose(rows[1]["z"], rows[0]["z"], atol=1e-5)
    assert (
        np.abs(rows[0]["z"] - ibp.transform(plain, more + ADDED)["z"]).max() > 0.05 or system == "fa-vi-dense"
    )


def test_scores_are_those_of_the_joint_posterior_of_dictionary_and_intercept():
    """Unit weights, every pattern: the variance of z A_d + b_d written out."""
    result, rows = fitted(data(), "lg-vi-finite"), data(10, 7)
    of = predictor_of(result)
    z, visible = patterns(3, 0, 8), np.arange(6) % 2 == 0
    prior = (z @ np.log(expit(of.log_odds)) + (1 - z) @ np.log(expit(-of.log_odds)))[None]
    density = np.empty((len(rows), 8, 6))
    for d in range(6):
        sigma = (of.basis[0] / (1 + of.spectrum[0] / of.noise[d])) @ of.basis[0].T
        away = z - of.intercept.centre[0]
        spread = np.einsum("pk,kl,pl->p", away, sigma, away) + of.intercept.error[d] + of.noise[d]
        mean = of.intercept.mean[d] + z @ of.mean[:, d]
        density[:, :, d] = norm.logpdf(rows[:, d, None], mean, np.sqrt(spread))
    seen, every = density[:, :, visible].sum(axis=2), density.sum(axis=2)
    expected = logsumexp(prior + every, axis=1) - logsumexp(prior + seen, axis=1)
    found = ibp.evaluate(result, rows, uneven=False).row_score.sel(estimate="variance")
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("system", ["lg-vi-infinite", "fa-vi-infinite"])
def test_a_fit_begins_where_another_has_ended(system):
    x = data()
    first = fitted(x, system, steps=200)
    again = fitted(x, system, steps=3, start=first)
    assert again.attrs["objective"] >= first.attrs["objective"] - 1e-6 * abs(first.attrs["objective"])
    none = ibp.fit(x, system=system, K=3, seed=4, steps=5, start=first, intercept=False)
    assert "intercept" not in none["params"]
    plain = ibp.fit(x, system=system, K=3, seed=4, steps=60, intercept=False)
    later = ibp.fit(x, system=system, K=3, seed=4, steps=60, start=plain, intercept=True)
    assert np.isfinite(later["params"]["intercept"]).all()


@pytest.mark.parametrize(
    ("system", "missing"), everyday(product(["lg-vi-infinite", "fa-vi-infinite"], ["groups", "rows"]), 1)
)
def test_moves_and_starts_of_their_own(system, missing):
    """As users fit: the start and the moves of the system; blocks of cells missing together, or scattered."""
    x = data(200)
    x[150:, :2] = np.nan
    x = torn(x, 0.3) if missing == "rows" else x
    found = ibp.fit(x, system=system, K=8, seed=1, intercept=True, steps=300, missing=missing)
    trace = found["trace"]["objective"].values
    moved = found["trace"]["trial"].values if "trial" in found["trace"] else trace
    kept = np.maximum.accumulate(np.where(moved == trace, trace, -np.inf))
    assert (np.diff(kept[np.isfinite(kept)]) >= 0).all()
    assert found.attrs["objective"] >= trace.max() - 1e-6 * abs(trace.max())
    assert 1 <= int(found["params"]["active"].sum()) <= 8


def test_a_run_on_disk(tmp_path):
    """Written, read, continued, reported, scored."""
    x, run = data(), tmp_path / "run"

    def stop(now):
        if now.step == 5:
            raise KeyboardInterrupt

    options = {"system": "fa-vi-infinite", "K": 4, "seed": 1, "steps": 12, "rtol": 0.0, "intercept": True}
    with pytest.raises(KeyboardInterrupt):
        ibp.fit(x, run=run, progress=stop, checkpoint=2, **options)
    ibp.resume(run)
    whole = ibp.fit(x, **options)
    found = ibp.open_result(run)
    np.testing.assert_array_equal(found["params"]["intercept"], whole["params"]["intercept"])
    assert found["params"]["intercept"].attrs["long_name"]
    assert float(ibp.evaluate(run, x).score.sel(estimate="variance")) == pytest.approx(
        float(ibp.evaluate(whole, x).score.sel(estimate="variance")), rel=1e-12
    )
    assert ibp.verify(run) == []


@pytest.mark.slow
def test_chunks_and_workers_do_not_matter(tmp_path):
    x = data(300).astype(np.float32)
    options = {"system": "fa-vi-finite", "K": 3, "seed": 3, "steps": 12, "intercept": True}
    store = tmp_path / "x.zarr"
    ibp.ingest(x, store, chunk_rows=64)
    one = ibp.fit(store, serial=True, **options)
    two = ibp.fit(store, workers=2, **options)
    np.testing.assert_array_equal(one["params"]["intercept"], two["params"]["intercept"])
    np.testing.assert_array_equal(one["params"]["mean"], two["params"]["mean"])


def test_refused_in_a_sentence():
    said = "intercept: lg-collapsed-infinite has none; use a system of all rows at once"
    with pytest.raises(UsageError, match=said):
        ibp.fit(data(), system="lg-collapsed-infinite", K=3, intercept=True)
    with pytest.raises(UsageError, match="intercept: 1: expected true or false"):
        ibp.fit(data(), system="fa-vi-infinite", K=3, intercept=1)
