"""The summary of a campaign: dims, numbers and words, on disk."""

import warnings

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.errors import StorageError
from ibpdist.runs import table
from ibpdist.runs.campaign import CampaignDirectory, Manifest, fit_folder
from tests.support.grids import grid, small_store


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    store = small_store(folder)
    keys = grid(
        store, system=["lg-vi-infinite", "fa-vi-infinite"], set={"moves": False, "mass": ["learn", 2]}
    )
    return ibp.sweep(keys, folder / "run")


def test_dims_are_those_of_the_grid(found):
    summary = found.summary
    assert dict(summary.sizes) == {"system": 2, "truncation": 2, "mass": 2, "restart": 2}
    assert list(summary.mass.values) == ["learn", "2"]
    assert list(summary.truncation.values) == [3, 4]
    assert set(summary.data_vars) == set(table.NUMBERS) | set(table.WORDS)
    assert all(summary[name].attrs["long_name"] for name in summary.data_vars)


def test_numbers_are_those_of_the_results(found):
    for fit in found.manifest.fits:
        result = found.open(fit)
        labels = {**fit.labels, "mass": str(fit.labels["mass"])}
        one = found.summary.sel(labels)
        assert float(one.objective) == result.attrs["objective"]
        assert int(one.steps) == result.attrs["steps"]
        assert int(one.active) == int(result["params"]["active"].sum())
        assert one.stop.item() == result.attrs["stopped"]
        assert one.seed.item() == str(fit.spec.seed)
        assert one.fit.item() == fit.id == fit_folder(found.path, fit.id).name
        assert one.status.item() == "finished"
        assert np.isnan(one.heldout)
        assert float(one.seconds) >= 0


def test_it_is_read_as_it_was_written(found):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored = table.read(found.path)
        opened = xr.open_zarr(found.path / "summary").load()
    assert stored.equals(opened)
    for name, values in found.summary.variables.items():
        np.testing.assert_array_equal(stored[name].values, values.values, err_msg=str(name))


def test_what_waits_or_failed_is_nan_and_told(found, tmp_path):
    directory = CampaignDirectory(tmp_path / "run")
    manifest = directory.begin(found.spec, "f")
    directory.fail(manifest.fits[0], "it is too large", 2)
    directory.close()
    made = table.write(tmp_path / "run", manifest)
    assert made.status.values.flat[0] == "failed"
    assert made.stop.values.flat[0] == "it is too large"
    assert set(made.status.values.flat[1:]) == {"waiting"}
    assert np.isnan(made.objective).all()
    assert (made.fit != "").all()
    assert table.read(tmp_path / "run").status.values.flat[0] == "failed"


def test_a_damaged_summary_is_named(found, tmp_path):
    assert table.read(tmp_path) is None
    table.write(tmp_path, Manifest.of(found.spec, "f"))
    (tmp_path / "summary" / "zarr.json").write_text("{")
    with pytest.raises(StorageError, match=r"summary: cannot be read: .*; sweep writes it again"):
        table.read(tmp_path)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 4], [3, 4]),
        ([0.5, 2], [0.5, 2.0]),
        ([True, False], [True, False]),
        (["a", "b"], ["a", "b"]),
        (["auto", 3], ["auto", "3"]),
        ([True, 2], ["True", "2"]),
    ],
)
def test_labels_are_numbers_or_words(values, expected):
    found = table.coordinate(values)
    assert list(found) == expected
    assert found.dtype.kind == ("O" if isinstance(expected[0], str) else np.array(expected).dtype.kind)
