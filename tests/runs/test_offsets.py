"""Data behind an offset that single precision cannot hold: a fit is that of the stored values centred."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import InputError
from ibpdist.campaigns.verify import verify
from ibpdist.catalog.spec import FitSpec
from ibpdist.data.centring import Centred
from ibpdist.engine import provenance
from ibpdist.evaluate.recovery import compare
from ibpdist.report.summary import summary
from ibpdist.runs import result as results
from ibpdist.runs.directory import identity
from ibpdist.runs.job import job_begun, job_of
from ibpdist.runs.loop import Saver
from tests.support.covering import everyday
from tests.support.matrices import stored

ROWS, COLUMNS, FEATURES = 400, 24, 4
VARIATIONAL = ["lg-vi-finite", "lg-vi-infinite", "lg-vi-infinite-hard", "fa-vi-infinite", "fa-vi-dense"]
SAMPLERS = ["lg-gibbs-infinite", "lg-collapsed-infinite"]

pytestmark = pytest.mark.filterwarnings("ignore:.*far from zero")


def planted(offset, *, system="lg", rows=ROWS, missing=0.0, dtype=np.float32, seed=0):
    """Rows of planted features behind an offset of so many standard deviations, as they are stored, and the
    features; columns lie to either side."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((FEATURES, COLUMNS))
    z = rng.random((rows, FEATURES)) < 0.35
    w = rng.standard_normal((rows, FEATURES)) if system.startswith("fa") else 1.0
    x = (z * w) @ features + 0.3 * rng.standard_normal((rows, COLUMNS))
    x += offset * 1.1 * np.where(np.arange(COLUMNS) % 2, 1, -1)
    x[rng.random(x.shape) < missing] = np.nan
    return x.astype(dtype), features


def centred(x):
    """The same stored values centred, as anybody would do it."""
    wide = x.astype(np.float64)
    return (wide - np.nanmean(wide, axis=0)).astype(x.dtype)


def fit(data, system="lg-vi-infinite", **options):
    short = {"steps": 12, "burn": 6} if system in SAMPLERS else {"steps": 25}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return ibp.fit(data, **{"system": system, "K": 6, "seed": 3, "serial": True} | short | options)


def alike(one, other, atol=1e-4):
    """Two fits are the same fit, up to the rounding of their data."""
    for name in ("mean", "prevalence", "noise", "active"):
        np.testing.assert_allclose(one["params"][name], other["params"][name], rtol=1e-3, atol=atol)
    np.testing.assert_allclose(one["rows"]["z"], other["rows"]["z"], atol=10 * atol)
    np.testing.assert_allclose(one.attrs["objective"], other.attrs["objective"], rtol=1e-5)


@pytest.mark.parametrize(
    ("system", "offset", "missing"),
    everyday(((system, *data) for system in VARIATIONAL for data in ((1e6, 0.0), (1e3, 0.1))), 1),
)
def test_a_fit_is_that_of_the_same_stored_values_centred(system, offset, missing):
    x, _ = planted(offset, system=system, missing=missing)
    alike(fit(x, system), fit(centred(x), system))


@pytest.mark.parametrize("system", SAMPLERS)
def test_so_are_draws(system):
    x, _ = planted(1e6, rows=120)
    found, expected = fit(x, system), fit(centred(x), system)
    np.testing.assert_allclose(found["draws"]["mean"], expected["draws"]["mean"], atol=1e-3)
    np.testing.assert_array_equal(found["rows"]["z"], expected["rows"]["z"])


@pytest.mark.parametrize("setting", [{"noise": "column"}, {"noise": 0.09}, {"missing": "rows"}])
def test_and_with_settings_of_their_own(setting):
    x, _ = planted(1e6, missing=0.1)
    alike(fit(x, **setting), fit(centred(x), **setting))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_planted_features_are_found_behind_an_offset(offset, dtype):
    x, features = planted(offset, dtype=dtype)
    found = fit(x)["params"]
    mean = found["mean"].values[found["active"].values]
    assert int(compare(mean, features, free=True).recovered) == FEATURES, "or their complements"


def test_factors_are_not_lost_behind_an_offset():
    x, features = planted(1e3, system="fa", rows=800)
    found = fit(x, "fa-vi-infinite", steps=400)["params"]
    mean, active = found["mean"].values, found["active"].values
    near = np.linalg.lstsq(mean[active].T, features.T, rcond=None)[0]
    left = features - (mean[active].T @ near).T
    assert int(active.sum()) == FEATURES
    assert float((left**2).mean() / (features**2).mean()) < 0.02
    assert float(found["noise"].mean()) == pytest.approx(0.09, rel=0.05)


def test_the_bits_do_not_depend_on_where_the_data_are(tmp_path):
    x, _ = planted(1e6, missing=0.05)
    first = fit(x)
    ibp.ingest(x, tmp_path / "a.zarr")
    data = ibp.open_dataset(tmp_path / "a.zarr")
    for other in (fit(data), fit(x, run=tmp_path / "run"), fit(data.path, run=tmp_path / "r")):
        for name in ("mean", "noise", "prevalence"):
            np.testing.assert_array_equal(first["params"][name], other["params"][name])
        np.testing.assert_array_equal(first["transform"]["center"], other["transform"]["center"])


def test_a_result_says_so(tmp_path):
    x, _ = planted(1e3)
    found = fit(x, run=tmp_path / "run")
    assert json.loads(found.attrs["transform"]) == {"log1p": False, "center": True, "scale": False}
    assert bool(found.attrs["centred_by_fit"])
    assert provenance.CENTER not in found.attrs
    np.testing.assert_allclose(found["transform"]["center"], x.astype(float).mean(0), rtol=1e-12)
    assert "the fit took the mean off each: features are of centred values" in summary(found)
    assert "features are of centred values" in ibp.report(tmp_path / "run").read_text()
    assert verify(tmp_path / "run") == []
    assert "centred" not in summary(fit(planted(0)[0]))


def new_rows(offset, **options):
    x, _ = planted(offset, **options)
    return x[:300], x[300:]


@pytest.mark.parametrize("form", ["array", "store"])
def test_new_rows_have_the_same_means_taken_off(tmp_path, form):
    old, new = new_rows(1e6)
    center = old.astype(float).mean(0)
    found, expected = fit(old), fit(centred(old))
    data = new if form == "array" else stored(tmp_path / "new.zarr", new).path
    plain = (new.astype(float) - center).astype(np.float32)
    np.testing.assert_allclose(
        ibp.transform(found, data)["z"], ibp.transform(expected, plain)["z"], atol=1e-3
    )
    for visible in ("even", "odd"):
        scored = ibp.evaluate(found, data, visible=visible)["score"]
        np.testing.assert_allclose(scored, ibp.evaluate(expected, plain, visible=visible)["score"], rtol=1e-4)


@pytest.mark.parametrize("holdout", [0.25, "rows:share=0.2"])
def test_held_out_cells_are_scored_in_the_units_of_the_fit(tmp_path, holdout):
    x, _ = planted(1e6)
    ibp.ingest(x, tmp_path / "a.zarr")
    found = fit(tmp_path / "a.zarr", run=tmp_path / "run", holdout=holdout)
    again = fit(x, holdout=holdout)
    np.testing.assert_array_equal(found["params"]["mean"], again["params"]["mean"])
    plain = (x.astype(float) - found["transform"]["center"].values).astype(np.float32)
    expected = ibp.evaluate(fit(plain, holdout=holdout), plain, visible="fitted")["score"]
    np.testing.assert_allclose(ibp.evaluate(tmp_path / "run")["score"], expected, rtol=1e-4)
    assert float(expected[1]) > -1.5


def test_data_that_were_scaled_when_they_were_stored_and_lie_far_from_zero(tmp_path):
    old, new = new_rows(1e4, dtype=np.float64)
    old, new = old * 3, new * 3
    ibp.ingest(old, tmp_path / "a.zarr", scale=True)
    found = fit(tmp_path / "a.zarr", run=tmp_path / "run")
    own = ibp.transform(found, tmp_path / "a.zarr")["z"].values
    assert np.abs(own - found["rows"]["z"].values).mean() < 1e-2
    np.testing.assert_allclose(ibp.transform(found, old)["z"], own, atol=1e-3)
    np.testing.assert_allclose(found["transform"]["center"], old.mean(0), rtol=1e-9)
    ibp.ingest(new, tmp_path / "b.zarr", center=True)
    with pytest.raises(
        InputError, match="with --center, the data of the fit with --scale: ingest it without"
    ):
        ibp.transform(found, tmp_path / "b.zarr")


class Killed(Exception):
    """What ends a fit in the middle."""


@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-gibbs-infinite"])
def test_a_fit_that_was_interrupted_goes_on_with_the_same_means(tmp_path, monkeypatch, system):
    x, _ = planted(1e6)
    whole = fit(x, system, run=tmp_path / "whole", holdout=0.2, checkpoint=2)
    save = Saver.save

    def save_and_die(self, now):
        save(self, now)
        raise Killed

    monkeypatch.setattr(Saver, "save", save_and_die)
    with pytest.raises(Killed):
        fit(x, system, run=tmp_path / "run", holdout=0.2, checkpoint=2)
    monkeypatch.undo()
    known = identity(tmp_path / "run")[provenance.CENTER]
    found = ibp.resume(tmp_path / "run", serial=True)
    np.testing.assert_array_equal(found["transform"]["center"], known)
    np.testing.assert_array_equal(found["params"]["mean"], whole["params"]["mean"])
    np.testing.assert_array_equal(found["rows"]["z"], whole["rows"]["z"])


def test_a_run_that_began_with_its_values_as_they_are_goes_on_so(tmp_path):
    """Runs of versions that did not centre say nothing of a center."""
    path = str(stored(tmp_path / "a.zarr", planted(1e3)[0]).path)
    spec = FitSpec.make(data=path, system="lg-vi-infinite", truncation=4, seed=0)
    assert isinstance(job_of(spec).source, Centred)
    assert not isinstance(job_begun(spec, {}).source, Centred)


def test_a_fit_that_begins_with_the_features_of_another_has_its_means_taken_off():
    x, _ = planted(1e3)
    first = fit(x)
    moved = fit(x + np.float32(5), start=first)
    np.testing.assert_array_equal(moved["transform"]["center"], first["transform"]["center"])
    far = x + np.float32(1e6)
    own = fit(far, start=first)
    np.testing.assert_allclose(own["transform"]["center"], far.astype(float).mean(0), rtol=1e-12)
    assert "transform" not in fit(centred(x), start=first).children


@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-gibbs-infinite"])
def test_fits_of_a_campaign_are_those_that_are_made_alone(tmp_path, system):
    data = stored(tmp_path / "a.zarr", planted(1e6)[0]).path
    own = {"chains": 1, "burn": 6, "steps": 12} if "gibbs" in system else {"steps": 12}
    grid = {"data": str(data), "system": system, "truncation": 5, "restarts": 1, "holdout": 0.2, "seed": 3}
    campaign = ibp.sweep(grid | own, tmp_path / "campaign", serial=True)
    found = campaign.best()
    found = found if isinstance(found, xr.DataTree) else results.open_result(found)
    seed = int(found.attrs["seed"])
    alone = fit(data, system, K=5, seed=seed, holdout=0.2, run=tmp_path / "alone", **own)
    np.testing.assert_array_equal(found["params"]["mean"], alone["params"]["mean"])
    np.testing.assert_array_equal(found["transform"]["center"], alone["transform"]["center"])
    assert float(campaign.summary["heldout"].max()) > -1.5


@pytest.mark.parametrize("offset", [10.0, 30.0])
@pytest.mark.parametrize("system", ["lg-vi-infinite", "fa-vi-dense"])
def test_nearer_than_that_a_fit_is_sane_as_it_is(system, offset):
    x, _ = planted(offset, system=system)
    found, exact = fit(x, system, steps=120), fit(x.astype(np.float64), system, steps=120)
    assert "transform" not in found.children
    np.testing.assert_allclose(found["params"]["noise"], exact["params"]["noise"], rtol=5e-3)


@pytest.mark.slow
def test_workers_have_the_same_bits(tmp_path):
    ibp.ingest(planted(1e6, missing=0.05)[0], tmp_path / "a.zarr", chunk_rows=64)
    for holdout in (None, 0.2):
        found = [
            fit(tmp_path / "a.zarr", run=tmp_path / f"{holdout}-{workers}", holdout=holdout, **place)
            for workers, place in ((0, {}), (2, {"serial": None, "workers": 2}))
        ]
        for name in ("mean", "noise", "prevalence"):
            np.testing.assert_array_equal(found[0]["params"][name], found[1]["params"][name])
        np.testing.assert_array_equal(found[0]["rows"]["z"], found[1]["rows"]["z"])
