"""Hidden cells of planted rows: how good they are, and that nothing else of the rows changes."""

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import InputError, OutputInUse, UsageError
from ibpdist.data.arrays import ArrayData
from ibpdist.data.store import create
from ibpdist.evaluate.reconstruct import NORMAL_95, reconstruct

KINDS = {"lg-vi-infinite": "linear-gaussian", "fa-vi-infinite": "factor-analysis"}
ROWS, COLUMNS = 500, 24
VARIABLES = ["x", "mean", "sd", "low", "high", "hidden"]


def planted(kind, rows=ROWS, dtype="float64"):
    size = {"rows": rows, "columns": COLUMNS, "features": 4, "noise": 0.3, "seed": 4, "mass": 2.0}
    return ibp.synthetic(kind, **size, dtype=dtype).x.values + 3


def torn(x, share=0.3, seed=0):
    return np.where(np.random.default_rng(seed).random(x.shape) < share, np.nan, x)


@pytest.fixture(
    scope="module", params=["lg-vi-infinite", pytest.param("fa-vi-infinite", marks=pytest.mark.slow)]
)
def case(request):
    """Planted rows, the same with gaps, and a fit of these."""
    x = planted(KINDS[request.param])
    return x, torn(x), ibp.fit(torn(x), system=request.param, K=6, seed=1)


@pytest.fixture(scope="module")
def images():
    x = ibp.synthetic("images", 150, seed=3).x.values
    return torn(x, 0.2), ibp.fit(torn(x, 0.2), system="lg-vi-finite", K=5, seed=1, steps=30)


def test_hidden_cells_are_found_better_than_by_means_of_columns(case):
    x, given, result = case
    hidden, found = np.isnan(given), reconstruct(result, given)
    of_means = np.sqrt(np.mean((np.nanmean(given, axis=0) - x)[hidden] ** 2))
    error = np.sqrt(np.mean((found.x.values - x)[hidden] ** 2))
    assert error < 0.6 * of_means
    assert error < 1.25 * np.sqrt(0.3), "hardly more than the noise that was planted"


def test_the_intervals_hold_their_share_of_the_hidden_cells(case):
    x, given, result = case
    found, hidden = reconstruct(result, given), np.isnan(given)
    inside = (found.low.values <= x) & (x <= found.high.values)
    assert 0.93 < inside[hidden].mean() < 0.97
    scores = ((x - found["mean"].values) / found.sd.values)[hidden]
    assert 0.93 < scores.std() < 1.07


def test_observed_cells_are_kept_to_the_bit(case):
    _, given, result = case
    found, seen = reconstruct(result, given), ~np.isnan(given)
    assert [name for name in VARIABLES if found[name].dims == ("row", "column")] == VARIABLES
    np.testing.assert_array_equal(found.hidden, ~seen)
    assert found.x.values[seen].tobytes() == given[seen].tobytes()
    np.testing.assert_array_equal(found.x.values[~seen], found["mean"].values[~seen])
    np.testing.assert_allclose(found.high, found["mean"] + NORMAL_95 * found.sd)
    np.testing.assert_allclose(found.low, found["mean"] - NORMAL_95 * found.sd)
    assert "normal approximation" in found.low.attrs["long_name"]


def test_new_rows_are_reconstructed_too(case):
    x, _, result = case
    new = torn(x[:60], 0.5, seed=9)
    found = reconstruct(result, new)
    error = (found.x.values - x[:60])[np.isnan(new)]
    assert np.sqrt(np.mean(error**2)) < 0.85
    whole = reconstruct(result, x[:60])
    assert not whole.hidden.any()
    np.testing.assert_array_equal(whole.x, x[:60])


@pytest.mark.parametrize(
    "system", ["lg-gibbs-finite", pytest.param("fa-gibbs-finite", marks=pytest.mark.slow)]
)
def test_a_sampler_averages_over_its_draws(system):
    x = planted("factor-analysis" if system.startswith("fa") else "linear-gaussian", 120)
    given = torn(x, 0.2)
    found = reconstruct(ibp.fit(given, system=system, K=3, seed=1, steps=60), given)
    hidden = np.isnan(given)
    inside = (found.low.values <= x) & (x <= found.high.values)
    assert found.attrs["method"].startswith("mean over ")
    assert 0.88 < inside[hidden].mean() < 0.99
    of_means = np.sqrt(np.mean((np.nanmean(given, axis=0) - x)[hidden] ** 2))
    assert np.sqrt(np.mean((found.x.values - x)[hidden] ** 2)) < 0.9 * of_means


# --- units ---


def stored(folder, x, **done):
    np.save(folder / "raw.npy", x)
    ibp.ingest(folder / "raw.npy", folder / "data.zarr", **done)
    return folder / "data.zarr"


def fit_of(store, folder, **options):
    ibp.fit(store, run=folder / "run", system="lg-vi-finite", K=4, seed=1, steps=25, **options)
    return folder / "run"


def test_centring_and_scaling_are_undone(tmp_path):
    raw = torn(planted("linear-gaussian", 120) * np.linspace(1, 50, COLUMNS), 0.1)
    store = stored(tmp_path, raw, center=True, scale=True)
    run, seen = fit_of(store, tmp_path), ~np.isnan(raw)
    found, as_stored = reconstruct(run), reconstruct(run, units="stored")
    held = ibp.open_dataset(store)
    center, scale = held.extra("transform_center"), held.extra("transform_scale")
    np.testing.assert_allclose(found.x.values[seen], raw[seen], rtol=1e-12)
    np.testing.assert_array_equal(as_stored.x.values[seen], held.read(0).x[seen])
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(found[name], as_stored[name] * scale + center, rtol=1e-9)
    np.testing.assert_allclose(found.sd, as_stored.sd * scale, rtol=1e-9)
    # Rows that were not ingested are in units of their own, to the bit.
    new = reconstruct(run, raw)
    assert new.x.values[seen].tobytes() == raw[seen].tobytes()
    np.testing.assert_allclose(new["mean"], found["mean"], rtol=1e-6)


def test_means_that_the_fit_took_off_are_put_back(tmp_path):
    raw = torn(planted("linear-gaussian", 120) + 1e6, 0.1)
    with pytest.warns(UserWarning, match="far from zero"):
        run, seen = fit_of(stored(tmp_path, raw), tmp_path), ~np.isnan(raw)
    found = reconstruct(run)
    assert found.x.values[seen].tobytes() == raw[seen].tobytes()
    assert np.abs(found["mean"].values[seen] - raw[seen]).max() < 10
    near = reconstruct(ibp.fit(raw - 1e6, system="lg-vi-finite", K=4, seed=1, steps=25), raw - 1e6)
    np.testing.assert_allclose(found.sd, near.sd, rtol=0.5)


def test_logarithms_are_taken_back_as_medians(tmp_path):
    counts = np.random.default_rng(0).poisson(np.exp(planted("linear-gaussian", 120) / 2)).astype(float)
    raw = torn(counts, 0.2)
    run, seen = fit_of(stored(tmp_path, raw, log1p=True), tmp_path), ~np.isnan(raw)
    found, logs = reconstruct(run), reconstruct(run, units="stored")
    np.testing.assert_allclose(found.x.values[seen], raw[seen], atol=1e-12)
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(found[name], np.maximum(np.expm1(logs[name]), 0))
    m, s = logs["mean"].values, logs.sd.values
    np.testing.assert_allclose(found.sd, np.sqrt(np.expm1(s**2) * np.exp(2 * m + s**2)), rtol=1e-9)
    assert "median" in found["mean"].attrs["long_name"]
    assert "median" not in logs["mean"].attrs["long_name"]
    inside = (found.low.values <= counts) & (counts <= found.high.values)
    assert inside[~seen].mean() > 0.85


# --- stores ---


@pytest.fixture
def labelled(images, tmp_path):
    """Rows with gaps, labels and covariates, one of which has the name of a variable, in four chunks."""
    names = np.array([f"cell {i}" for i in range(150)])
    columns = {"column": [f"pixel {j}" for j in range(36)], "edge": np.arange(36) % 6 == 0}
    options = {"columns": 36, "dtype": "float32", "chunk_rows": 40, "column_coords": columns}
    with create(tmp_path / "new.zarr", **options) as writer:
        writer.append(images[0], row_coords={"row": names, "age": np.arange(150) / 2, "mean": names})
    return tmp_path / "new.zarr", names


def test_a_store_has_the_values_and_labels_of_the_rows(images, labelled, tmp_path):
    (given, result), (store, names), seen = images, labelled, []
    out = tmp_path / "out.zarr"
    found = reconstruct(result, store, out, progress=lambda *told: seen.append(told))
    assert found.chunks["row"] == (40, 40, 40, 30)
    in_memory = reconstruct(result, store)
    for one in (found, xr.open_zarr(out), in_memory):
        xr.testing.assert_equal(one.load(), in_memory)
        assert one.row.values.tolist() == one["mean_"].values.tolist() == names.tolist()
        np.testing.assert_array_equal(one.age, np.arange(150) / 2)
        assert one.column.values[3] == "pixel 3"
        np.testing.assert_array_equal(one.edge, np.arange(36) % 6 == 0)
        assert one.x.dtype == one.sd.dtype == np.float32
        assert one.hidden.dtype == bool
        assert one.x.attrs["long_name"] == "observed cells as they are, hidden cells filled with mean"
        assert one.attrs["fit_fingerprint"] == result.attrs["fingerprint"]
        np.testing.assert_array_equal(one.x.values[~np.isnan(given)], given[~np.isnan(given)])
    assert seen[-1] == (150, 150)


def test_threads_and_chunks_do_not_matter(images, labelled, monkeypatch):
    (given, result), (store, _) = images, labelled
    one, two = (reconstruct(result, store, workers=count) for count in (1, 2))
    xr.testing.assert_identical(one, two)
    parts = reconstruct(result, ArrayData(given, chunk_rows=7))
    monkeypatch.setattr("ibpdist.predict.chunks.NUMBERS", 36 * 3)
    blocks = reconstruct(result, store)
    for name in VARIABLES:
        np.testing.assert_allclose(parts[name], one[name], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(blocks[name], one[name], rtol=1e-5, atol=1e-6)


def test_an_existing_output_is_kept_unless_overwritten(images, tmp_path):
    given, result = images
    out = tmp_path / "out.zarr"
    reconstruct(result, given[:10], out)
    with pytest.raises(OutputInUse, match="exists already"):
        reconstruct(result, given[:20], out)
    assert xr.open_zarr(out).sizes["row"] == 10
    assert reconstruct(result, given[:20], out, overwrite=True).sizes["row"] == 20
    ibp.transform(result, given[:20], tmp_path / "features.zarr")
    with pytest.raises(OutputInUse, match="not of the kind"):
        reconstruct(result, given, tmp_path / "features.zarr", overwrite=True)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_what_is_stopped_leaves_nothing_behind(images, labelled, tmp_path, stop):
    def progress(done, whole):
        if done > 40:
            raise stop

    before = sorted(tmp_path.iterdir())
    with pytest.raises(stop):
        reconstruct(images[1], labelled[0], tmp_path / "out.zarr", progress=progress, serial=True)
    assert sorted(tmp_path.iterdir()) == before


# --- which rows ---


@pytest.mark.parametrize("holdout", ["cells:share=0.3,rows=1.0", "rows:share=0.2,seed=3"])
def test_cells_held_out_of_the_fit_are_hidden(tmp_path, holdout):
    x = torn(planted("linear-gaussian", 120), 0.05)
    run = fit_of(stored(tmp_path, x), tmp_path, holdout=holdout)
    result, data = ibp.open_result(run), np.load(tmp_path / "raw.npy")
    found = reconstruct(run)
    wanted = np.isnan(x)
    if holdout.startswith("cells"):
        assert found.hidden.mean(axis=0).values.max() == 1
        assert (~found.hidden.values & wanted).sum() == 0
        assert found.hidden.mean() > 0.3
        assert np.abs(found.x.values - data)[found.hidden.values & ~wanted].min() > 0
        stays = reconstruct(result, ibp.open_dataset(tmp_path / "data.zarr"))
        np.testing.assert_array_equal(stays.hidden, found.hidden)
    else:
        np.testing.assert_array_equal(found.hidden, wanted)
        assert found.sizes["row"] == 120
    other = reconstruct(run, x[:50])
    np.testing.assert_array_equal(other.hidden, wanted[:50])


def test_rows_without_gaps_need_others(tmp_path):
    run = fit_of(stored(tmp_path, planted("linear-gaussian", 60)), tmp_path)
    with pytest.raises(UsageError, match=r"saw every cell .* nothing is hidden: pass rows .*--data"):
        reconstruct(run)


def test_bad_input_is_one_sentence(images, tmp_path):
    given, result = images
    with pytest.raises(UsageError, match="in memory, so its data are not kept: pass them"):
        reconstruct(result)
    with pytest.raises(InputError, match="7 columns, the fit has 36"):
        reconstruct(result, given[:, :7])
    with pytest.raises(UsageError, match="units is 'raw': expected source or stored"):
        reconstruct(result, given, units="raw")
    run = fit_of(stored(tmp_path, given), tmp_path)
    np.save(tmp_path / "raw.npy", given[:100])
    ibp.ingest(tmp_path / "raw.npy", tmp_path / "data.zarr", overwrite=True)
    with pytest.raises(InputError, match="not the data of the fit any more: their fingerprints differ"):
        reconstruct(run)
