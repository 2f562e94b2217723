"""Features of new rows: those that were planted, whatever the chunking, in memory and on disk."""

import itertools
from functools import partial

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import InputError, OutputInUse, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.store import create
from ibpdist.evaluate.recovery import recovery
from ibpdist.evaluate.synthetic import synthetic
from ibpdist.evaluate.transform import ESTIMATES, PosteriorMeans, transform
from tests.support.image_fits import ROWS, fit_images
from tests.support.predictive import enumerate_at_most


@pytest.fixture(scope="module")
def images():
    return fit_images("lg-vi-finite", restarts=5)


def test_planted_features_are_found_in_new_rows(images):
    data, result = images
    match = recovery(result, data)
    assert int(match.recovered) == 4
    found = transform(result, data.x.values[ROWS:])
    assert found.z.dims == ("row", "feature")
    z, true = found.z.values[:, match.match.values] > 0.5, data.z.values[ROWS:]
    np.testing.assert_array_less(0.93, (z == true).mean(0))
    # No classifier of rows does better than the posterior mode of the planted model.
    best = posterior_mode(data, data.x.values[ROWS:])
    assert (z == true).mean() > (best == true).mean() - 0.02


def posterior_mode(data, x):
    patterns = np.array(list(itertools.product([0, 1], repeat=4)), dtype=float)
    misfit = ((x[:, None] - patterns @ data.dictionary.values) ** 2).sum(2)
    return patterns[misfit.argmin(1)] > 0


def test_the_rows_of_the_fit_are_found_again(images):
    data, result = images
    found = transform(result, data.x.values[:ROWS])
    close = np.abs(found.z.values - result["rows"].z.values) < 0.01
    assert close.mean() > 0.97


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_missing_cells_count_for_nothing(images, estimate):
    data, result = images
    found_with = partial(transform, result, estimate=estimate)
    x = data.x.values[ROWS : ROWS + 30].copy()
    x[::2, 5:9] = np.nan
    found = found_with(x).z.values
    assert np.isfinite(found).all()
    x[:, 5:9] = np.where(np.isnan(x[:, 5:9]), 1e6, x[:, 5:9])
    x[::2, 5:9] = np.nan
    np.testing.assert_array_equal(found_with(x).z.values, found)
    whole = found_with(data.x.values[ROWS : ROWS + 30]).z.values
    np.testing.assert_allclose(found[1::2], whole[1::2], atol=1e-3)
    assert not np.array_equal(found[::2], whole[::2])


def test_a_column_that_the_fit_never_saw_says_little(images):
    data, _ = images
    x = data.x.values[:ROWS]
    result = ibp.fit(
        np.where(np.arange(36) == 7, np.nan, x), system="lg-vi-finite", K=8, seed=1, noise="column"
    )
    hidden = np.where(np.arange(36) == 7, np.nan, data.x.values[ROWS:])
    shown, before = (transform(result, new).z.values for new in (data.x.values[ROWS:], hidden))
    assert np.abs(shown - before).mean() < 0.05


def test_weights_come_with_normal_weights():
    data = synthetic("factor-analysis", 900, 30, 2, 0.05, seed=4, prior="beta_bernoulli", mass=4.0)
    result = ibp.fit(data.x.values[:700], system="fa-vi-finite", K=2, seed=0, restarts=3)
    found = transform(result, data.x.values[700:])
    y, dictionary = found.z * found.w, result["params"]["mean"].values
    explained = data.x.values[700:] - y.values @ dictionary
    assert explained.var() < 0.08
    assert data.x.values[700:].var() > 0.3


@pytest.fixture
def labelled(images, tmp_path):
    data, _ = images
    names = np.array([f"cell {i}" for i in range(200)])
    with create(tmp_path / "new.zarr", columns=36, dtype="float64", chunk_rows=64) as writer:
        writer.append(data.x.values[ROWS:], row_coords={"row": names, "age": np.arange(200) / 2})
    return tmp_path / "new.zarr", names


def test_a_store_of_features_keeps_labels_and_values(images, labelled, tmp_path):
    _, result = images
    store, names = labelled
    seen = []
    found = transform(
        result, store, tmp_path / "out.zarr", progress=lambda done, whole: seen.append((done, whole))
    )
    in_memory = transform(result, store)
    for given in (found, xr.open_zarr(tmp_path / "out.zarr"), in_memory):
        np.testing.assert_array_equal(given.z, in_memory.z)
        assert given.row.values.tolist() == names.tolist()
        np.testing.assert_array_equal(given.age, np.arange(200) / 2)
        assert given.attrs["fit_fingerprint"] == result.attrs["fingerprint"]
    assert found.z.chunks[0] == (64, 64, 64, 8)
    assert seen == [(64, 200), (128, 200), (192, 200), (200, 200)]


def test_an_existing_output_is_kept_unless_overwritten(images, labelled, tmp_path):
    data, result = images
    out = tmp_path / "out.zarr"
    transform(result, data.x.values[:10], out)
    with pytest.raises(OutputInUse, match="exists already"):
        transform(result, data.x.values[:20], out)
    assert xr.open_zarr(out).sizes["row"] == 10
    assert transform(result, data.x.values[:20], out, overwrite=True).sizes["row"] == 20
    other = tmp_path / "mine"
    other.mkdir()
    with pytest.raises(OutputInUse):
        transform(result, data.x.values[:20], other, overwrite=True)


def test_a_failure_leaves_nothing_behind(images, tmp_path, monkeypatch):
    data, result = images

    def fails(self, index, tick):
        raise RuntimeError("no more")

    monkeypatch.setattr(PosteriorMeans, "rows", fails)
    with pytest.raises(RuntimeError, match="no more"):
        transform(result, data.x.values[:10], tmp_path / "out.zarr")
    assert list(tmp_path.iterdir()) == []


def test_other_columns_are_refused(images):
    data, result = images
    with pytest.raises(InputError, match="7 columns, the fit has 36"):
        transform(result, data.x.values[:5, :7])


def test_a_damaged_output_is_noticed(images, tmp_path):
    data, result = images
    transform(result, data.x.values[:10], tmp_path / "out.zarr")
    chunk = next(path for path in (tmp_path / "out.zarr" / "z" / "c").rglob("*") if path.is_file())
    held = bytearray(chunk.read_bytes())
    held[len(held) // 2] ^= 1
    chunk.write_bytes(held)
    with pytest.raises(ValueError, match="checksum"):
        xr.open_zarr(tmp_path / "out.zarr").z.load()


# --- posterior means ---


@pytest.fixture(scope="module")
def factors():
    """Rows with factors, gaps and noise of their own, far from zero, and a fit of some of them."""
    rng = np.random.default_rng(3)
    y = (rng.random((260, 3)) < [0.5, 0.3, 0.4]) * rng.gamma(3, 0.5, (260, 3))
    noise = rng.normal(size=(260, 14)) / np.sqrt(rng.gamma(2.0, 0.5, (260, 1)))
    x = 50 + y @ (2 * rng.normal(size=(3, 14))) + 0.3 * noise
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, ibp.fit(x[:200], system="fa-vi-infinite", K=5, seed=1, steps=60, moves=False)


def test_the_variables_are_labelled(factors):
    x, result = factors
    found = transform(result, x[200:])
    dims = {"z": ("row", "feature"), "w": ("row", "feature"), "precision": ("row",)}
    dims |= {"mean": ("row", "column"), "sd": ("row", "column")}
    assert {name: found[name].dims for name in found.data_vars} == dims
    for name in dims:
        assert found[name].attrs["long_name"]
    assert found.attrs["estimate"] == "posterior"
    assert "patterns of features" in found.attrs["method"]
    step = transform(result, x[200:], estimate="mean-field")
    assert sorted(step.data_vars) == ["precision", "w", "z"]
    assert step.attrs["estimate"] == "mean-field"


def test_cells_are_those_of_reconstruct_and_of_the_features(factors):
    x, result = factors
    found, cells = transform(result, x[200:]), ibp.reconstruct(result, x[200:])
    np.testing.assert_array_equal(found["mean"], cells["mean"])
    np.testing.assert_array_equal(found.sd, cells.sd)
    params = result["params"]
    signal = (found.z * found.w) @ params["mean"] + params["intercept"]
    np.testing.assert_allclose(found["mean"], signal, atol=0.02)


def test_hidden_cells_are_predicted_better_than_by_the_row_step():
    """Where few cells are visible, so that several patterns explain them."""
    rng = np.random.default_rng(1)
    y = (rng.random((260, 3)) < [0.5, 0.3, 0.4]) * rng.gamma(3, 0.5, (260, 3))
    x = y @ (2 * rng.normal(size=(3, 8))) + rng.normal(size=(260, 8))
    result = ibp.fit(x[:200], system="fa-vi-infinite", K=5, seed=1, steps=60, moves=False)
    shown = np.where(np.arange(8) % 2 == 0, x[200:], np.nan)
    found, step = (transform(result, shown, estimate=name) for name in ESTIMATES)
    params, hidden = result["params"], np.isnan(shown)
    by_step = (step.z.values * step.w.values) @ params["mean"].values + params["intercept"].values
    error, worse = (np.sqrt(np.mean((e - x[200:])[hidden] ** 2)) for e in (found["mean"].values, by_step))
    assert error < 0.97 * worse


def test_noisy_rows_are_told(factors):
    x, result = factors
    new = x[200:].copy()
    new[:5] += 3 * np.random.default_rng(1).normal(size=(5, 14))
    precision = transform(result, new).precision.values
    assert precision[:5].max() < np.median(precision[5:])


@pytest.mark.parametrize(
    "system", ["fa-vi-finite-positive", "ica-vi-finite", "fa-vi-finite-hard", "fa-vi-dense"]
)
def test_every_kind_of_weights_has_posterior_means(factors, system):
    x = factors[0]
    result = ibp.fit(x[:200], system=system, K=3, seed=1, steps=25)
    shown = np.where(np.arange(14) % 2 == 0, x[200:220], np.nan)
    found, cells = transform(result, shown, chains=4), ~np.isnan(x[200:220]) & np.isnan(shown)
    error, of_means = ((e - x[200:220])[cells] for e in (found["mean"].values, np.nanmean(x[:200], axis=0)))
    assert np.sqrt(np.mean(error**2)) < 0.8 * np.sqrt(np.mean(of_means**2))
    assert (found.z >= 0).all()
    assert (found.z <= 1).all()
    assert system != "fa-vi-finite-positive" or (found.w > 0).all()


@pytest.mark.parametrize("system", ["lg-gibbs-infinite", "fa-gibbs-finite", "lg-collapsed-infinite"])
def test_features_of_a_sampler_are_those_of_its_last_draw(factors, system):
    x = np.nan_to_num(factors[0][:60] - 50)
    result = ibp.fit(x, system=system, K=3, seed=1, steps=12)
    found = transform(result, x[:20])
    assert found.z.shape == (20, result["params"].sizes["feature"])
    step = transform(result, x[:20], estimate="mean-field")
    assert np.abs(found.z - step.z).mean() < 0.1
    assert np.isfinite(found["mean"]).all()


def test_threads_have_the_same_bits_and_chunks_do_not_matter(factors, monkeypatch):
    x, result = factors
    monkeypatch.setattr("ibpdist.predict.chunks.MOST_ROWS", 3)
    enumerate_at_most(monkeypatch, 2)
    one, two = (transform(result, ArrayData(x[200:212], chunk_rows=5), workers=n, chains=3) for n in (1, 2))
    assert "annealed chains" in one.attrs["method"]
    xr.testing.assert_identical(one, two)
    whole = transform(result, ArrayData(x[200:212]), chains=3)
    for name in one.data_vars:
        np.testing.assert_allclose(one[name], whole[name], rtol=1e-7, atol=1e-9)


def test_cells_are_in_the_units_of_what_was_ingested(tmp_path):
    raw = synthetic("linear-gaussian", 90, 6, 2, 0.1, seed=4).x.values * 7 + 30
    np.save(tmp_path / "raw.npy", raw)
    ibp.ingest(tmp_path / "raw.npy", tmp_path / "data.zarr", center=True, scale=True)
    ibp.fit(tmp_path / "data.zarr", run=tmp_path / "run", system="lg-vi-finite", K=2, seed=1, steps=20)
    for data in (raw, tmp_path / "data.zarr"):
        found = transform(tmp_path / "run", data)
        assert np.sqrt(np.mean((found["mean"].values - raw) ** 2)) < 5
        assert found.sd.values.min() > 0.5


def test_an_unknown_estimate_is_refused(images):
    with pytest.raises(UsageError, match="estimate is 'mode': expected posterior or mean-field"):
        transform(images[1], images[0].x.values[:2], estimate="mode")
