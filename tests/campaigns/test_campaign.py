"""Reading a campaign: the best fit, any fit by its labels, restarts beside one another."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import StorageError, UsageError
from ibpdist.campaigns.campaign import Campaign, run_of
from ibpdist.campaigns.directory import CampaignDirectory, fit_folder
from tests.support.compare import assert_same_result
from tests.support.grids import grid, small_store


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    store = small_store(folder)
    keys = grid(store, restarts=3, steps=40, holdout=0.25, set={"moves": False, "mass": ["learn", 2]})
    return ibp.sweep(keys, folder / "run")


def test_it_is_opened_as_sweep_gave_it(campaign):
    found = ibp.open_campaign(campaign.path)
    assert found.path == campaign.path
    assert found.spec == campaign.spec
    assert found.summary.identical(campaign.summary)
    with pytest.raises(StorageError, match="is not a campaign"):
        ibp.open_campaign(campaign.path / "fits")


@pytest.mark.parametrize("by", ["heldout", "objective"])
def test_the_best_fit_has_the_highest_number(campaign, by):
    best = campaign.best_fit(by)
    assert campaign.number(best, by) == float(campaign.summary[by].max())
    result = campaign.best(by)
    assert result.attrs["objective"] == campaign.number(best, "objective")
    assert_same_result(result, ibp.open_result(fit_folder(campaign.path, best.id)))


def test_the_best_is_by_heldout_where_there_is_one(campaign):
    assert campaign.is_scored
    assert campaign.best_fit() == campaign.best_fit("heldout")
    with pytest.raises(UsageError, match="by is 'loss': expected heldout or objective"):
        campaign.best("loss")
    inside = campaign.best_fit("objective", truncation=3)
    assert campaign.number(inside, "objective") == float(campaign.summary.objective.sel(truncation=3).max())


def test_any_fit_by_its_labels(campaign):
    result = campaign.fit(truncation=4, mass=2, restart=1)
    assert result.attrs["truncation"] == 4
    assert "mass: 2" in result.attrs["spec"]
    assert campaign.one(truncation="4", mass="2", restart=1) == campaign.one(truncation=4, mass=2, restart=1)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (
            {"truncation": 4},
            r"6 fits have the labels K = 4; give also mass, restart",
        ),
        ({"truncation": 9, "mass": 2, "restart": 0}, "0 fits have the labels K = 9, mass 2, restart 0"),
        (
            {"noise": 1},
            "noise is not a dim of this campaign; expected one of system, truncation, mass, restart",
        ),
        ({}, "12 fits have the labels none; give also truncation, mass, restart"),
    ],
)
def test_labels_that_name_no_fit_are_refused(campaign, labels, sentence):
    with pytest.raises(UsageError) as caught:
        campaign.fit(**labels)
    assert str(caught.value) == sentence


def test_restarts_of_one_kind_beside_one_another(campaign):
    found = campaign.aligned(truncation=4, mass=2)
    fits = list(campaign.with_labels(truncation=4, mass=2))
    levels = [campaign.number(fit, "heldout") for fit in fits]
    assert found.attrs["reference"] == int(np.argmax(levels))
    assert (found.attrs["truncation"], found.attrs["mass"]) == ("4", "2")
    assert found.sizes["restart"] == 3
    own = found.sel(restart=found.attrs["reference"])
    assert own.present.all()
    np.testing.assert_allclose(own.similarity, 1.0)
    reference = campaign.open(fits[found.attrs["reference"]])
    np.testing.assert_array_equal(own["mean"], reference["params"]["mean"].values[found.feature.values])


def test_the_reference_is_the_best_fit_by_held_out_score_where_there_is_one(campaign):
    """Not the one with the highest objective: it is the best fit whose features are shown."""
    level = campaign.summary["objective"]
    scored = Campaign(campaign.path, campaign.manifest, campaign.summary.assign(heldout=-level))
    assert scored.best_fit().id != campaign.best_fit().id
    found = scored.aligned()
    assert found.attrs["reference"] == scored.best_fit().labels["restart"]
    assert found.attrs["truncation"] == str(scored.best_fit().labels["truncation"])
    kind = {name: campaign.best_fit().labels[name] for name in ("truncation", "mass")}
    assert scored.aligned(**kind).attrs["reference"] != campaign.aligned(**kind).attrs["reference"]


def test_stability_is_the_share_of_the_other_restarts(campaign):
    found, share = campaign.aligned(), campaign.stability()
    others = [one for one in found.restart.values if one != found.attrs["reference"]]
    assert share.restart.values.tolist() == others
    np.testing.assert_allclose(share.stability, found.present.sel(restart=others).mean("restart"))
    np.testing.assert_array_equal(share.similarity, found.similarity.sel(restart=others))
    assert share.similarity.dims == ("restart", "feature")
    assert share.attrs == found.attrs | {"matched": 0.3, "least": 0.75}
    best = campaign.best_fit()
    assert found.attrs["truncation"] == str(best.labels["truncation"])


def test_a_campaign_stands_for_its_best_fit(campaign, tmp_path):
    assert run_of(campaign.path) == fit_folder(campaign.path, campaign.best_fit().id)
    assert run_of(tmp_path) == tmp_path


def test_what_has_not_ended_cannot_be_opened(campaign, tmp_path):
    directory = CampaignDirectory(tmp_path / "run")
    manifest = directory.begin(campaign.spec, "f")
    directory.fail(manifest.fits[0], "it is too large", 2)
    directory.close()
    found = ibp.open_campaign(tmp_path / "run")
    assert (found.summary.status == "waiting").sum() == 11
    assert [(fit, reason) for fit, reason, _ in found.failed] == [(manifest.fits[0], "it is too large")]
    with pytest.raises(StorageError, match="restart 0: failed: it is too large"):
        found.open(manifest.fits[0])
    with pytest.raises(StorageError, match="restart 1: is not finished; run the campaign again"):
        found.open(manifest.fits[1])
    with pytest.raises(StorageError, match="no fit has ended"):
        found.best()
    with pytest.raises(StorageError, match="no fit has a held-out score"):
        found.best("heldout")
    assert not found.cut_short


def test_a_fit_cut_short_by_the_limit_that_nobody_chose(tmp_path, monkeypatch):
    from ibpdist.catalog.spec import FitSpec

    store = small_store(tmp_path)
    found = ibp.sweep(grid(store, truncation=3, restarts=1, steps=5), tmp_path / "run")
    assert not found.cut_short
    monkeypatch.setattr(FitSpec.model_fields["steps"], "default", 5)
    assert found.cut_short


def test_fits_with_different_hold_outs_are_not_compared(tmp_path):
    store = small_store(tmp_path)
    found = ibp.sweep(grid(store, steps=20, holdout=[0.1, 0.6]), tmp_path / "run")
    for call in (found.best, found.best_fit, found.restarts, found.stability):
        with pytest.raises(UsageError, match=r"cannot be compared: give holdout, one of 0\.1, 0\.6$"):
            call()
    bests = found.bests()
    assert [fit.labels["holdout"] for fit in bests] == [0.1, 0.6]
    for fit in bests:
        held = found.summary.heldout.sel(holdout=fit.labels["holdout"])
        assert found.number(fit, "heldout") == float(held.max())
        assert found.best_fit(holdout=fit.labels["holdout"]) == fit
    assert found.shown() == bests[0]
    with pytest.raises(UsageError, match=f"name the best of one: .*{bests[0].id}, .*{bests[1].id}"):
        run_of(found.path)


def test_last_draws_of_samplers_are_not_compared(tmp_path):
    store = small_store(tmp_path, rows=64)
    keys = {"data": str(store), "system": "lg-gibbs-infinite", "truncation": 3, "restarts": 2, "steps": 8}
    found = ibp.sweep(keys, tmp_path / "run")
    for call in (found.stability, found.aligned):
        with pytest.raises(UsageError, match="lg-gibbs-infinite: one draw of a sampler is not an answer"):
            call()


def test_what_an_earlier_version_let_pass_can_still_be_read(campaign, tmp_path):
    """It is sealed: what was checked when it was written is not checked again."""
    import shutil

    from ibpdist.storage import sealed

    run = shutil.copytree(campaign.path, tmp_path / "run")
    body = sealed.read(run / "manifest.json")
    body["spec"]["set"]["mass"] = ["learn", "nonsense"]
    for fit in body["fits"]:
        if fit["labels"]["mass"] == 2:
            fit["labels"]["mass"] = fit["spec"]["set"]["mass"] = "nonsense"
    sealed.write(run / "manifest.json", body)
    assert ibp.open_campaign(run).spec.set["mass"] == ["learn", "nonsense"]
