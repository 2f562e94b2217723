"""What every format so far holds is read, gone on with, and used by the code of today.

Fixtures are made by `write.py`; numbers are compared with those of the version that wrote them.
"""

import json
import tarfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.runs.export import export
from tests.formats.write import FINISHED, INTERRUPTED, facts, new_rows

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
CLOSE = {"rtol": 1e-4, "atol": 2e-4}
"""Another processor may round otherwise; an interrupted fit goes on for tens of steps."""


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0], scope="module")
def folder(request, tmp_path_factory):
    """A fixture in a folder of its own; paths in it are relative to that folder."""
    made = tmp_path_factory.mktemp("format")
    with tarfile.open(request.param) as archive:
        archive.extractall(made, filter="data")
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture
def expected(folder):
    return json.loads((folder / "expected.json").read_text())


def skip_unknown(name, expected):
    """Some kinds of fit are younger than some formats."""
    if name not in expected:
        pytest.skip(f"no version that wrote this format could make {name}")


def same(found, wanted):
    """Every number is close, everything else equal; groups of a result may have got other names."""
    for name in wanted.keys() - {"groups", "new rows", "summary"}:
        if isinstance(wanted[name], str):
            assert found[name] == wanted[name], name
        else:
            np.testing.assert_allclose(found[name], wanted[name], **CLOSE, err_msg=name)


def test_there_is_a_fixture_of_each_format():
    assert [path.name for path in ARCHIVES] == ["format-1.tar.xz", "format-2.tar.xz"]


@pytest.mark.parametrize("name", FINISHED)
def test_a_result_is_opened(name, expected):
    skip_unknown(name, expected)
    result = ibp.open_result(name)
    same(facts(result), expected[name])
    assert "internals" in result.children
    assert "state" not in result.children
    assert not {"basis", "spectrum", "group"} & set(result["params"].variables)
    assert ibp.verify(name) == []


@pytest.mark.parametrize("name", [name for name in FINISHED if not name.startswith("collapsed")])
def test_new_rows_get_their_features(name, expected):
    skip_unknown(name, expected)
    found = ibp.transform(name, new_rows(), estimate="mean-field")
    np.testing.assert_allclose(found.z.values, expected[name]["new rows"], **CLOSE)


def test_a_result_is_scored_again(folder):
    before = ibp.open_result("lg.run")["heldout"]
    scored = ibp.evaluate("lg.run", new_rows())
    np.testing.assert_allclose(scored.score.values, before.score.values[-1], **CLOSE)


@pytest.mark.parametrize("name", ["lg.run", "fa.run", "chains.run", "campaign.run"])
def test_a_run_is_reported_and_exported(name, tmp_path):
    ibp.report(name, output=tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()
    if name != "campaign.run":
        assert export(name, tmp_path / "csv")


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupted_run_goes_on(name, expected):
    assert ibp.verify(name) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # another machine, other versions
        same(facts(ibp.resume(name, serial=True)), expected[name])


def test_a_fit_begins_with_an_old_result():
    given = {"start": "lg.run", "serial": True}
    result = ibp.fit("store.zarr", system="lg-vi-infinite", K=6, steps=3, moves=False, **given)
    assert result.attrs["steps"] >= 1
    chains = ibp.fit("store.zarr", system="lg-gibbs-infinite", K=4, steps=4, burn=2, **given)
    assert chains["posterior"].sizes["draw"] == 2


@pytest.mark.parametrize("name", ["campaign.run", "begun-campaign.run"])
def test_a_campaign_is_opened_and_goes_on(name, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        campaign = ibp.sweep("campaign.yaml", name, serial=True)
    assert set(campaign.summary.status.values.ravel()) == {"finished"}
    found = campaign.summary.objective.values.ravel()
    np.testing.assert_allclose(found, expected["campaign.run"]["summary"], **CLOSE)
    same(facts(campaign.best()), expected["campaign.run"])
    assert ibp.verify(name) == []


def test_a_dataset_is_opened_and_appended_to():
    before = ibp.open_dataset("store.zarr")
    assert before.rows == 40
    assert before.row_coords(0)["row"][:2].tolist() == ["row00", "row01"]
    assert ibp.verify("store.zarr") == []
    ibp.append("store.zarr", np.zeros((3, before.columns)), row_coords={"row": ["a", "b", "c"]})
    assert ibp.open_dataset("store.zarr").rows == 43
