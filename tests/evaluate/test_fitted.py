"""What a run is taken for: a path or a tree, its spec, its predictor, and data that fit it."""

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import InputError, StorageError, UsageError
from ibpdist.catalog import systems as catalog
from ibpdist.evaluate.fitted import predictor_of, result_of, source_of, spec_of
from ibpdist.evaluate.synthetic import synthetic
from ibpdist.model.observations import gaussian_params
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.weights.unit import Unit
from ibpdist.predict.kinds import kind_of
from ibpdist.runs.layout import state_of


@pytest.fixture(scope="module")
def result():
    x = synthetic("images", 200, seed=3, missing=0.05, dtype="float64").x.values
    x[:, 10:] = np.nan_to_num(x[:, 10:])
    return ibp.fit(x, system="lg-vi-infinite", K=5, seed=1, steps=10, noise="column", mass=2.0)


def test_a_run_on_disk_and_its_result_are_the_same(tmp_path):
    x = synthetic("images", 60, seed=3).x.values
    made = ibp.fit(x, system="lg-vi-finite", K=3, seed=1, steps=5, run=tmp_path / "run")
    for given in (tmp_path / "run", str(tmp_path / "run"), tmp_path / "run" / "result.zarr", made):
        assert isinstance(result_of(given), xr.DataTree)
        np.testing.assert_array_equal(predictor_of(result_of(given)).mean, made["params"]["mean"])
    with pytest.raises(StorageError, match="is not a run"):
        result_of(tmp_path)


def test_the_spec_of_a_result_has_all_its_settings(result):
    spec = spec_of(result)
    assert (spec.system, spec.truncation, spec.seed) == ("lg-vi-infinite", 5, 1)
    assert spec.set == {"noise": "column", "mass": 2.0}


def test_the_predictor_has_the_dictionary_of_the_fit_with_its_variance(result):
    of, params = predictor_of(result), state_of(result)
    order = [list(params.ids).index(k) for k in result["params"].id.values]
    np.testing.assert_allclose(of.mean, params.observation.mean[order])
    np.testing.assert_allclose(of.variances(), gaussian_params.variance(params.observation)[order], rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(of.variances()), result["params"].mean_sd, rtol=1e-9)
    np.testing.assert_array_equal(of.noise, params.observation.noise)
    assert len(np.unique(of.group)) > 5
    prior = catalog.build("lg-vi-infinite", 5, settings={"mass": 2.0}).row_inference().model.prior
    chance = 1 / (1 + np.exp(-of.log_odds))
    np.testing.assert_allclose(chance, prior.expected(params.prior)[order], rtol=1e-9)
    np.testing.assert_allclose(chance, result["params"].chance, rtol=1e-9)
    np.testing.assert_array_equal(of.active, params.on[order] > 0.5)
    assert of.weights == Unit()
    z = np.eye(len(of.mean))
    assert np.isfinite(kind_of(of).density(of).grid(np.zeros((1, 36)), np.ones((1, 36)), z)).all()


def test_an_observation_without_densities_of_rows_is_refused(result, monkeypatch):
    monkeypatch.setattr(Gaussian, "has_row_density", False)
    with pytest.raises(UsageError, match="cells of gaussian observations cannot be predicted"):
        predictor_of(result)


def test_data_must_have_the_columns_of_the_fit():
    assert source_of(np.zeros((3, 4)), 4).rows == 3
    with pytest.raises(InputError, match="the data have 4 columns, the fit has 5") as caught:
        source_of(np.zeros((3, 4)), 5)
    assert caught.value.code == 3


def test_columns_go_by_their_labels():
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    fitted = ibp.fit(frame, system="lg-vi-finite", K=2, steps=3)
    assert ibp.transform(fitted, frame).sizes["row"] == 30
    assert ibp.transform(fitted, frame.to_numpy()).sizes["row"] == 30
    for wrong in (frame[list("acb")], frame.rename(columns={"b": "c", "c": "b"})):
        with pytest.raises(InputError, match="column 1: is c where the fit has b"):
            ibp.transform(fitted, wrong)
        with pytest.raises(InputError, match="column 1"):
            ibp.evaluate(fitted, wrong)


@pytest.mark.parametrize("size", [1e59, 1e30, 1e-59, 1e-100, 1e-300])
def test_numbers_of_any_accepted_size_give_finite_results(size):
    x = size * np.random.default_rng(1).normal(size=(40, 5))
    for system in ("lg-vi-finite", "fa-vi-infinite"):
        fitted = ibp.fit(x, system=system, K=np.int64(3), steps=6)
        assert np.isfinite(fitted["trace"]["objective"]).all()
        assert np.isfinite(fitted["params"]["mean"]).all()


def test_a_fit_in_memory_does_not_keep_its_data():
    x = np.random.default_rng(1).normal(size=(40, 6))
    fitted = ibp.fit(x, system="lg-vi-finite", K=2, steps=3, holdout=0.3)
    with pytest.raises(UsageError, match="pass them"):
        ibp.evaluate(fitted)
    assert np.isfinite(float(ibp.evaluate(fitted, x, visible="fitted").score[0]))


def test_new_rows_are_not_judged(recwarn):
    """Columns that do not vary in a few new rows are nothing odd."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    result = ibp.fit(x, system="lg-vi-infinite", K=2, steps=3, serial=True)
    source_of(np.zeros((2, 3)), 3)
    ibp.evaluate(result, np.ones((2, 3)), serial=True)
    assert not [one for one in recwarn if one.category is UserWarning]
