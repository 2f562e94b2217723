"""Features that groups of rows share."""

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.evaluate import groups
from tests.support.groups_reference import shared_by_pairs


def result(rows=50, features=4, seed=0, **coords):
    rng = np.random.default_rng(seed)
    held = {"z": (("row", "feature"), rng.random((rows, features)))}
    params = {"active": ("feature", np.arange(features) != 1)}
    known = {name: ("row", values) for name, values in coords.items()}
    return xr.DataTree.from_dict({"rows": xr.Dataset(held, known), "params": xr.Dataset(params)})


@pytest.mark.parametrize("block", [1 << 20, 40])
def test_sums_of_blocks_are_means_over_pairs(monkeypatch, block):
    monkeypatch.setattr(groups, "BLOCK", block)
    by = np.array(["b", "a", "c"])[np.random.default_rng(1).integers(0, 3, 50)]
    made = result(region=by)
    found = ibp.shared_features(made, "region")
    wanted = shared_by_pairs(made["rows"].to_dataset(), made["params"], by)
    for name in ("shared", "features", "rows"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)
    assert found["group"].values.tolist() == ["a", "b", "c"]
    assert found["feature"].values.tolist() == [0, 2, 3]
    np.testing.assert_allclose(found["prevalence"].sum("feature"), found["features"])
    assert ibp.shared_features(made, by).drop_attrs().equals(found.drop_attrs())


def test_a_group_of_one_row_shares_nothing_with_itself():
    found = ibp.shared_features(result(3), ["x", "x", "y"])
    assert np.isnan(found["shared"].sel(group="y", group_="y"))
    assert np.isfinite(found["shared"].sel(group="x", group_="x"))


def test_unknown_groups_are_refused():
    with pytest.raises(UsageError, match="no covariate 'site'; they have region"):
        ibp.shared_features(result(4, region=["a", "b", "a", "b"]), "site")
    with pytest.raises(UsageError, match="no covariate 'site'; ingest with --covariate NAME"):
        ibp.shared_features(result(4), "site")
    with pytest.raises(UsageError, match="expected a label for each of 4 rows"):
        ibp.shared_features(result(4), ["a", "b"])


def test_a_covariate_that_makes_groups():
    rows = result(8, row=list("abcdefgh"), dose=np.arange(8.0), code=np.arange(8), kind=list("xyxyxyxy"))
    assert groups.covariate(rows["rows"].to_dataset()) == "kind"
    assert groups.covariate(result(8, code=np.arange(8))["rows"].to_dataset()) is None
