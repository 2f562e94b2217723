"""The summary of a campaign: dims, numbers and words, on disk."""

import shutil
import warnings

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.campaigns import summary as table
from ibpdist.campaigns.directory import CampaignDirectory, Manifest, fit_folder
from ibpdist.runs import result
from ibpdist.storage import sealed
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
        stored = xr.open_zarr(found.path / "summary").load()
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
    assert xr.open_zarr(tmp_path / "run" / "summary").load().status.values.flat[0] == "failed"


def test_it_has_a_list_of_its_hashes(found, tmp_path):
    for _ in range(2):
        table.write(tmp_path, Manifest.of(found.spec, "f"))
        assert sealed.read(tmp_path / table.SEAL) == result.hashes(tmp_path / "summary") != {}
    assert {entry.name for entry in tmp_path.iterdir()} == {"summary", table.SEAL}


@pytest.fixture
def copied(found, tmp_path):
    """A fit of a campaign that is a copy, with its folder."""
    run = shutil.copytree(found.path, tmp_path / "run")
    fit = Manifest.read(run).fits[3]
    return run, fit, fit_folder(run, fit.id)


@pytest.mark.parametrize("damage", [b"", b"#", None], ids=["empty", "damaged", "missing"])
def test_a_fit_without_its_log_has_failed(copied, damage):
    run, fit, folder = copied
    log = folder / "events.jsonl"
    if damage is None:
        log.unlink()
    else:
        log.write_bytes(damage + log.read_bytes() if damage else damage)
    told = table.row(run, fit)
    assert told["status"] == "failed"
    assert told["stop"].startswith(f"{log}: ")
    assert told["stop"].endswith("; remove the folder of this fit, and sweep makes the fit again")
    assert "objective" not in told
    with pytest.raises(StorageError, match="events"):
        table.ended(folder)


def test_a_failure_that_cannot_be_read_is_one(copied):
    run, fit, folder = copied
    (folder / "failed.json").write_text("half")
    told = table.row(run, fit)
    assert told["status"] == "failed"
    assert told["stop"].endswith(
        "failed.json: damaged: it does not match its hash; sweep tries the fit again"
    )


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
