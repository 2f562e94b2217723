"""Synthetic data: the same bits however they are cut, and the law they claim."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

from ibpdist.base.errors import OutputInUse, UsageError
from ibpdist.data.store import open_dataset
from ibpdist.evaluate.synthetic import SHAPES, draw, plant, recipe, shapes, stored, synthesise, synthetic
from tests.support.model_cases import WEIGHTS

SMALL = {"rows": 2500, "columns": 7, "features": 3, "noise": 0.3, "seed": 5}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_do_not_depend_on_how_they_are_cut(weights, dtype):
    made = recipe("linear-gaussian", **SMALL, weights=weights, dtype=dtype, missing=0.2)
    planted = plant(made)
    whole = draw(made, planted, 0, made.rows)
    cuts = [0, 1, 700, 1023, 1024, 1025, 2048, 2500]
    parts = [draw(made, planted, a, b) for a, b in pairwise(cuts)]
    for name in ("x", "z", "w", "observed"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.dtype == getattr(whole, name).dtype
        assert joined.tobytes() == getattr(whole, name).tobytes()


def test_a_longer_dataset_begins_with_the_shorter_one():
    short = synthetic("linear-gaussian", **SMALL)
    longer = synthetic("linear-gaussian", **{**SMALL, "rows": 4000})
    np.testing.assert_array_equal(longer.x[:2500], short.x)
    np.testing.assert_array_equal(longer.dictionary, short.dictionary)


def test_wide_rows_are_made_in_smaller_blocks():
    made = recipe("linear-gaussian", 5, 3_000_000, 1)
    assert made.block == 1
    assert recipe("linear-gaussian", 5, 4096, 1).block == 256


def test_seeds_differ_in_every_part():
    one = synthetic("factor-analysis", **SMALL)
    two = synthetic("factor-analysis", **{**SMALL, "seed": 6})
    for name in ("x", "z", "w", "dictionary", "prevalence"):
        assert not np.array_equal(one[name], two[name]), name


def test_blocks_of_rows_differ():
    x = synthetic("linear-gaussian", **{**SMALL, "features": 0}).x.values
    assert np.unique(x).size > 0.999 * x.size


def test_the_rows_are_the_features_plus_noise_of_the_stated_variance():
    noise = np.array([0.05, 0.2, 1.0, 4.0])
    data = synthetic("factor-analysis", 20_000, 4, 3, noise, seed=2, dtype="float64", scale=2.0)
    y = np.where(data.z, data.w, 0.0)
    residual = data.x.values - y @ data.dictionary.values
    np.testing.assert_allclose(residual.mean(0) / np.sqrt(noise), 0, atol=4 / np.sqrt(20_000))
    np.testing.assert_allclose(residual.var(0) / noise, 1, atol=4 * np.sqrt(2 / 20_000))


def test_features_are_on_as_often_as_their_prevalence_says():
    data = synthetic("linear-gaussian", 40_000, 2, 6, seed=3, mass=4.0)
    pi = data.prevalence.values
    np.testing.assert_array_less(
        np.abs(data.z.values.mean(0) - pi), 4.5 * np.sqrt(pi * (1 - pi) / 40_000) + 1e-12
    )
    pairs = np.cov(data.z.values.T.astype(float))
    np.testing.assert_allclose(pairs - np.diag(np.diag(pairs)), 0, atol=4.5 * 0.25 / np.sqrt(40_000))


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("stick_breaking", lambda k: (3.0 / 4.0) ** (k + 1)),
        ("beta_bernoulli", lambda k: np.full(len(k), 0.5 / 1.5)),
    ],
)
def test_prevalences_follow_their_prior(prior, expected):
    drawn = np.array(
        [
            plant(recipe("linear-gaussian", 1, 1, 6, seed=s, mass=3.0, prior=prior)).prevalence
            for s in range(2000)
        ]
    )
    error = drawn.std(0) / np.sqrt(len(drawn))
    np.testing.assert_array_less(np.abs(drawn.mean(0) - expected(np.arange(6))), 4.5 * error)
    assert prior == "beta_bernoulli" or (np.diff(drawn, axis=1) <= 0).all()


def test_weights_and_dictionary_are_normal_with_their_variances():
    data = synthetic("factor-analysis", 5000, 2000, 4, seed=1, scale=9.0)
    w, dictionary = data.w.values.ravel(), data.dictionary.values.ravel()
    assert abs(w.mean()) < 4.5 / np.sqrt(w.size)
    assert abs(w.var() - 1) < 4.5 * np.sqrt(2 / w.size)
    assert abs(dictionary.var() / 9 - 1) < 4.5 * np.sqrt(2 / dictionary.size)


def test_missing_cells_are_nan_in_memory_and_zero_in_a_draw():
    data = synthetic("linear-gaussian", **SMALL, missing=0.3)
    gone = np.isnan(data.x.values)
    assert abs(gone.mean() - 0.3) < 4.5 * np.sqrt(0.3 * 0.7 / gone.size)
    complete = synthetic("linear-gaussian", **SMALL)
    np.testing.assert_array_equal(data.x.values[~gone], complete.x.values[~gone])
    made = recipe("linear-gaussian", **SMALL, missing=0.3)
    drawn = draw(made, plant(made), 0, 2500)
    np.testing.assert_array_equal(drawn.observed, ~gone)
    assert (drawn.x[gone] == 0).all()


def test_images_hold_four_different_shapes_in_half_of_the_rows():
    data = synthetic("images", 4000, seed=4)
    assert dict(data.sizes) == {"row": 4000, "column": 36, "feature": 4}
    assert data.attrs["image"] == [6, 6]
    np.testing.assert_array_equal(data.dictionary, shapes())
    assert set(np.unique(shapes())) == {0.0, 1.0}
    assert np.linalg.matrix_rank(shapes()) == len(SHAPES)
    overlap = shapes() @ shapes().T
    assert (overlap - np.diag(np.diag(overlap))).max() <= 3
    assert np.abs(data.z.values.mean(0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(4000)
    residual = data.x.values - data.z.values @ shapes()
    assert abs(residual.var() - 0.25) < 4.5 * 0.25 * np.sqrt(2 / residual.size)


def test_no_features_is_noise():
    data = synthetic("linear-gaussian", 50, 3, 0)
    assert data.sizes["feature"] == 0
    assert np.isfinite(data.x).all()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "pictures"}, "pictures"),
        ({"rows": 0}, "rows is 0"),
        ({"columns": 0}, "columns is 0"),
        ({"columns": None}, "needs a number of columns"),
        ({"features": -1}, "features is -1"),
        ({"noise": 0.0}, "positive"),
        ({"noise": float("nan")}, "positive"),
        ({"noise": [1.0, 2.0]}, "2 variances"),
        ({"mass": -1.0}, "mass is -1"),
        ({"scale": float("inf")}, "scale is inf"),
        ({"missing": 1.0}, "missing is 1"),
        ({"prior": "flat"}, "flat"),
        ({"weights": "heavy"}, "heavy"),
        ({"dtype": "int8"}, "int8"),
        ({"seed": -3}, "seed is -3"),
        ({"kind": "images"}, "36 columns"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_sentence(change, word):
    with pytest.raises(UsageError, match=word) as caught:
        synthetic(**{"kind": "linear-gaussian", **SMALL, **change})
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_a_store_holds_the_rows_of_memory_and_the_truth(tmp_path, missing):
    data = synthetic("factor-analysis", **SMALL, missing=missing)
    seen = []
    made = synthesise(
        "factor-analysis",
        tmp_path / "a.zarr",
        **SMALL,
        missing=missing,
        keep_z=True,
        progress=lambda done, whole: seen.append((done, whole)),
    )
    x = np.concatenate([made.read(i).x for i in range(made.chunks)])
    np.testing.assert_array_equal(x, np.nan_to_num(data.x.values))
    for name in ("dictionary", "prevalence", "noise", "z", "w"):
        np.testing.assert_array_equal(made.extra(name), data[name].values)
    assert made.attributes["kind"] == "factor-analysis"
    assert made.missing == np.isnan(data.x.values).sum()
    assert seen[-1] == (2500, 2500)


def test_a_store_of_many_chunks_is_the_same_matrix(tmp_path, monkeypatch):
    monkeypatch.setattr("ibpdist.data.layout.TARGET_BYTES", 7 * 4 * 100)
    made = synthesise("linear-gaussian", tmp_path / "a.zarr", **SMALL)
    assert made.chunks > 30
    x = np.concatenate([made.read(i).x for i in range(made.chunks)])
    assert x.tobytes() == synthetic("linear-gaussian", **SMALL).x.values.tobytes()
    assert "z" not in {file.split("/")[0] for file in made.manifest.files}


def test_a_store_is_replaced_only_when_asked(tmp_path):
    target = tmp_path / "a.zarr"
    synthesise("images", target, rows=10, seed=1)
    with pytest.raises(OutputInUse):
        synthesise("images", target, rows=20, seed=1)
    assert open_dataset(target).rows == 10
    assert synthesise("images", target, rows=20, seed=1, overwrite=True).rows == 20


def test_a_refused_recipe_leaves_nothing_behind(tmp_path):
    with pytest.raises(UsageError):
        synthesise("linear-gaussian", tmp_path / "a.zarr", rows=10, columns=2, features=2, noise=-1.0)
    assert list(tmp_path.iterdir()) == []


def test_prior_names_may_have_a_hyphen():
    options = {**SMALL, "prior": "beta-bernoulli"}
    assert synthetic("linear-gaussian", **options).attrs["prior"] == "beta_bernoulli"


def test_planted_arrays_are_read_by_name(tmp_path):
    made = synthesise("images", tmp_path / "a.zarr", rows=10, seed=1, chunk_rows=4)
    assert made.chunks == 3
    np.testing.assert_array_equal(stored(made, "dictionary"), shapes())
    with pytest.raises(UsageError, match="holds no planted z"):
        stored(made, "z")


def test_noise_has_no_memory_across_rows_columns_and_blocks():
    x = synthetic("linear-gaussian", 8192, 4, 0, 1.0, seed=8, dtype="float64").x.values
    for a, b in ((x[:-1], x[1:]), (x[:-1024], x[1024:]), (x[:, :-1], x[:, 1:])):
        assert abs((a * b).mean()) < 4.5 / np.sqrt(a.size)
    edge = x[1023:8191:1024] * x[1024:8192:1024]
    assert abs(edge.mean()) < 4.5 / np.sqrt(edge.size)


def test_noise_is_normal():
    x = np.sort(synthetic("linear-gaussian", 20_000, 5, 0, 4.0, seed=8).x.values.ravel())
    distance = np.abs(ndtr(x / 2.0) - (np.arange(x.size) + 0.5) / x.size).max()
    assert distance < 1.95 / np.sqrt(x.size)  # Kolmogorov-Smirnov at 0.1 %


def test_weights_may_be_chosen_apart_from_the_kind():
    data = synthetic("images", 300, seed=4, weights="normal")
    y = np.where(data.z, data.w, 0.0)
    residual = data.x.values - y @ shapes()
    assert abs(residual.var() - 0.25) < 4.5 * 0.25 * np.sqrt(2 / residual.size)
    assert "w" not in synthetic("factor-analysis", 30, 2, 2, weights="unit")


def test_positive_factors_have_exponential_weights():
    data = synthetic("positive-factors", 4000, 5, 3, 0.01, seed=3, dtype="float64", prior="beta_bernoulli")
    assert data.attrs["weights"] == "exponential"
    w, y = data.w.values, data.z.values * data.w.values
    assert kstest(w.ravel(), "expon").pvalue > 1e-3
    np.testing.assert_allclose((data.x.values - y @ data.dictionary.values).std(), 0.1, rtol=0.05)


def test_missing_cells_do_not_depend_on_values_or_change_the_truth():
    data = synthetic("linear-gaussian", 20_000, 5, 2, seed=6, missing=0.5)
    complete = synthetic("linear-gaussian", 20_000, 5, 2, seed=6)
    gone = np.isnan(data.x.values)
    for name in ("z", "dictionary", "prevalence"):
        np.testing.assert_array_equal(data[name], complete[name])
    values = complete.x.values
    assert abs(values[gone].mean() - values[~gone].mean()) < 4.5 * values.std() * 2 / np.sqrt(gone.size)


def test_every_recipe_says_what_it_is():
    data = synthetic("linear-gaussian", 5, 3, 2, seed=6, mass=3.0, scale=2.0, missing=0.1)
    said = {"kind": "linear-gaussian", "seed": 6, "mass": 3.0, "scale": 2.0, "missing": 0.1}
    assert said.items() <= data.attrs.items()
    assert "image" not in data.attrs


def test_the_default_mass_is_half_the_number_of_features():
    assert recipe("linear-gaussian", 1, 1, 10).mass == 5
    assert recipe("linear-gaussian", 1, 1, 0).mass == 0.5
    assert recipe("linear-gaussian", 1, 1, 10, mass=2.0).mass == 2


def test_one_noise_or_one_for_each_column():
    assert recipe("linear-gaussian", 1, 3, 1, 0.5).noise == (0.5, 0.5, 0.5)
    assert recipe("linear-gaussian", 1, 3, 1, [0.1, 0.2, 0.3]).noise == (0.1, 0.2, 0.3)
