"""Features of new rows: those that were planted, whatever the chunking, in memory and on disk."""

import itertools

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import InputError, OutputInUse
from ibpdist.data.arrays import ArrayData
from ibpdist.data.store import create
from ibpdist.evaluate import transform as module
from ibpdist.evaluate.recovery import recovery
from ibpdist.evaluate.synthetic import synthetic
from ibpdist.evaluate.transform import inference_of, transform
from ibpdist.model.observations import gaussian, patterns

ROWS = 600


def fit_images(system, **options):
    data = synthetic("images", ROWS + 200, seed=3, dtype="float64")
    return data, ibp.fit(data.x.values[:ROWS], system=system, K=8, seed=1, **options)


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


def test_missing_cells_count_for_nothing(images):
    data, result = images
    x = data.x.values[ROWS : ROWS + 30].copy()
    x[::2, 5:9] = np.nan
    found = transform(result, x).z.values
    assert np.isfinite(found).all()
    x[:, 5:9] = np.where(np.isnan(x[:, 5:9]), 1e6, x[:, 5:9])
    x[::2, 5:9] = np.nan
    np.testing.assert_array_equal(transform(result, x).z.values, found)
    whole = transform(result, data.x.values[ROWS : ROWS + 30]).z.values
    np.testing.assert_allclose(found[1::2], whole[1::2], atol=1e-3)
    assert not np.array_equal(found[::2], whole[::2])


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
    observation, params = inference_of(result).algorithm.model.observation, inference_of(result).params
    parts = [part.rows for part, _ in observation.per_row_params(params.observation, chunk_of(new))]
    assert sum(parts) == 40
    assert max(parts) < 10
    np.testing.assert_allclose(transform(result, new, tolerance=1e-9).z.values, whole, atol=1e-6)


def chunk_of(x):
    return ArrayData(x).read(0)


def test_a_column_that_the_fit_never_saw_says_little(images):
    data, _ = images
    x = data.x.values[:ROWS]
    result = ibp.fit(
        np.where(np.arange(36) == 7, np.nan, x), system="lg-vi-finite", K=8, seed=1, noise="column"
    )
    hidden = np.where(np.arange(36) == 7, np.nan, data.x.values[ROWS:])
    shown, before = (transform(result, new).z.values for new in (data.x.values[ROWS:], hidden))
    assert np.abs(shown - before).mean() < 0.05


def test_a_row_with_nothing_observed_has_the_prior(images):
    _, result = images
    found = transform(result, np.full((2, 36), np.nan)).z.values
    odds = result["params"].log_odds.values
    np.testing.assert_allclose(found, np.tile(1 / (1 + np.exp(-odds)), (2, 1)), atol=1e-6)


def test_weights_come_with_normal_weights():
    data = synthetic("factor-analysis", 900, 30, 2, 0.05, seed=4, prior="beta_bernoulli", mass=4.0)
    result = ibp.fit(data.x.values[:700], system="fa-vi-finite", K=2, seed=0, restarts=3)
    found = transform(result, data.x.values[700:])
    y, dictionary = found.z * found.w, result["params"]["mean"].values
    explained = data.x.values[700:] - y.values @ dictionary
    assert explained.var() < 0.08
    assert data.x.values[700:].var() > 0.3


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

    def fails(self, source, index):
        raise RuntimeError("no more")

    monkeypatch.setattr(module.Inference, "rows", fails)
    with pytest.raises(RuntimeError, match="no more"):
        transform(result, data.x.values[:10], tmp_path / "out.zarr")
    assert list(tmp_path.iterdir()) == []


def test_other_columns_are_refused(images):
    data, result = images
    with pytest.raises(InputError, match="7 columns, the fit has 36"):
        transform(result, data.x.values[:5, :7])


def test_the_algorithm_is_that_of_the_result(images):
    _, result = images
    made = inference_of(result)
    assert made.algorithm.model.prior.name == "beta_bernoulli"
    np.testing.assert_array_equal(np.sort(made.params.ids), np.sort(result["params"].id.values))


def test_a_damaged_output_is_noticed(images, tmp_path):
    data, result = images
    transform(result, data.x.values[:10], tmp_path / "out.zarr")
    chunk = next(path for path in (tmp_path / "out.zarr" / "z" / "c").rglob("*") if path.is_file())
    held = bytearray(chunk.read_bytes())
    held[len(held) // 2] ^= 1
    chunk.write_bytes(held)
    with pytest.raises(ValueError, match="checksum"):
        xr.open_zarr(tmp_path / "out.zarr").z.load()
