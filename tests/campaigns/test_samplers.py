"""Samplers in a campaign: chains that advance together, with the bits they have alone, beside other fits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.campaigns import run as campaigns
from ibpdist.campaigns.campaign import comparable
from ibpdist.campaigns.estimate import estimate
from ibpdist.campaigns.verify import verify
from ibpdist.evaluate import posterior
from ibpdist.report.campaign import summary
from ibpdist.report.page import page, read
from tests.support.compare import assert_same_result
from tests.support.grids import alone, small_store
from tests.support.logs import events_of_kind
from tests.support.report_page import Page, Truth, same

SYSTEMS = ["lg-vi-infinite", "lg-gibbs-infinite", "lg-collapsed-finite"]
SAMPLERS = SYSTEMS[1:]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store(tmp_path_factory.mktemp("data"), rows=96, chunk_rows=32)


def mixed(store: Path, **keys: Any) -> dict[str, Any]:
    plain = {"system": SYSTEMS, "truncation": 3, "restarts": 2, "steps": 12, "chains": 2, "thin": 2}
    return {"data": str(store), **plain, "holdout": 0.25} | keys


@pytest.fixture(scope="module")
def swept(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("swept") / "run"
    ibp.sweep(mixed(store), run)
    return run


def test_a_sampler_has_the_bits_it_has_alone(swept: Path, tmp_path: Path) -> None:
    found = ibp.open_campaign(swept)
    for at, fit in enumerate(found.manifest.fits):
        assert_same_result(found.open(fit), alone(fit, tmp_path / f"alone{at}"))


def test_the_summary_tells_of_all_draws(swept: Path) -> None:
    found = ibp.open_campaign(swept)
    assert (found.summary.status == "finished").all()
    assert (found.summary.seconds > 0).all()
    for fit in found.with_labels(system="lg-gibbs-infinite"):
        result = found.open(fit)
        assert result["posterior"].sizes["chain"] == 2
        assert found.number(fit, "objective") == pytest.approx(float(result["posterior"]["log_joint"].mean()))
        often = posterior.number(result)
        assert found.number(fit, "active") == int(often["features"][np.argmax(often.values)])
        assert found.number(fit, "steps") == 12
    assert verify(swept) == []


def test_fits_that_are_no_samplers_still_share_the_data(swept: Path) -> None:
    (group,) = (swept / "groups").iterdir()
    assert len(events_of_kind(swept, "fit")) == 6
    assert (group / "spec.yaml").read_text().count("lg-vi-infinite") == 2


def test_a_log_joint_density_is_compared_with_no_bound(swept: Path) -> None:
    found = ibp.open_campaign(swept)
    assert np.isnan(comparable(np.array([1.0, 2.0]), np.array(SYSTEMS[:2]))).tolist() == [False, True]
    assert comparable(np.array([[1.0, np.nan]]), np.array([SYSTEMS[:2]])).tolist()[0][0] == 1.0
    assert comparable(np.array([1.0, 2.0]), np.array(SAMPLERS)).tolist() == [1.0, 2.0]
    assert comparable(np.array([np.nan, 2.0]), np.array(SYSTEMS[:2])).tolist()[1] == 2.0
    assert found.best_fit("objective").labels["system"] == "lg-vi-infinite"
    assert found.best_fit("objective", system="lg-gibbs-infinite").labels["system"] == "lg-gibbs-infinite"
    assert found.best_fit("heldout").labels == found.best_fit().labels


def test_what_is_there_is_not_made_again(swept: Path, store: Path) -> None:
    before = len(events_of_kind(swept, "fit"))
    ibp.sweep(mixed(store), swept)
    assert len(events_of_kind(swept, "fit")) == before
    ibp.sweep(mixed(store, restarts=3, system=SYSTEMS[:2]), swept)
    new = events_of_kind(swept, "fit")[before:]
    wanted = {f.id for f in ibp.open_campaign(swept).manifest.fits if f.labels["restart"] == 2}
    assert {event["fit"] for event in new} == wanted
    ibp.sweep(mixed(store), swept)


def test_an_interrupted_sampler_goes_on(
    swept: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = mixed(store, system="lg-gibbs-infinite", restarts=1, checkpoint=4)
    seen: list[int] = []
    monkeypatch.setattr("ibpdist.runs.loop.SHARE", 0)  # a checkpoint whenever one is due

    def stop(now: Any) -> None:
        seen.extend(one.step for one in now.running)
        if 7 in seen:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ibp.sweep(keys, tmp_path / "run", progress=stop)
    seen.clear()
    found = ibp.sweep(
        keys, tmp_path / "run", progress=lambda now: seen.extend(one.step for one in now.running)
    )
    assert seen[0] > 1
    (fit,) = found.manifest.fits
    whole = ibp.open_campaign(swept)
    assert_same_result(found.open(fit), whole.fit(system="lg-gibbs-infinite", restart=0))


def test_a_sampler_that_fails_fails_alone(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = campaigns.advance

    def broken(run: Any, job: Any, *rest: Any, **more: Any) -> None:
        if job.spec.system == "lg-collapsed-finite":
            raise ValueError("no luck")
        true(run, job, *rest, **more)

    keys = mixed(store, restarts=1, holdout=0.0, system=SAMPLERS)
    monkeypatch.setattr(campaigns, "advance", broken)
    found = ibp.sweep(keys, tmp_path / "run")
    ((fit, reason, code),) = found.failed
    assert (fit.labels["system"], code) == ("lg-collapsed-finite", 1)
    assert "no luck" in reason
    monkeypatch.undo()
    again = ibp.sweep(keys, tmp_path / "run")
    assert again.failed == []
    assert (again.summary.status == "finished").all()


def test_too_few_steps_are_told(store: Path, tmp_path: Path) -> None:
    found = ibp.sweep(mixed(store, burn=12, restarts=1, holdout=0.0), tmp_path / "run")
    assert {fit.labels["system"] for fit, _, _ in found.failed} == set(SAMPLERS)
    assert all("no draw is left" in reason and code == 2 for _, reason, code in found.failed)


def test_what_is_planned_and_estimated(store: Path, tmp_path: Path) -> None:
    said = estimate(mixed(store), tmp_path / "run").splitlines()
    assert said[0] == "6 fits; 4 samplers among them, together 8 chains"
    assert said[1] == "6 fits in 5 groups, in this process"
    assert said[-1].startswith("time: about ")
    assert not (tmp_path / "run").exists()


def test_the_words_and_the_page(swept: Path) -> None:
    campaign = ibp.open_campaign(swept)
    assert "lg-gibbs-infinite" in summary(campaign)
    facts = read(swept)
    assert facts.result.attrs["system"] == campaign.best_fit().labels["system"]
    found = Page(page(facts))
    assert found.naked == []
    (section,) = (one for one in found.all("section") if one.attributes["id"] == "campaign")
    assert "mean log joint density of its draws. It cannot be compared" in section.text


def test_the_page_of_samplers_alone(store: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ibp.sweep(mixed(store, system="lg-gibbs-infinite", steps=20), run)
    campaign, facts = ibp.open_campaign(run), read(run)
    assert facts.sampled
    found = Page(page(facts))
    truth = Truth(campaign.best(), campaign.summary, logs=facts.logs)
    assert not [one for one in found.numbers if not same(float(one.attributes["data-value"]), truth.of(one))]
    assert found.naked == []
    assert "stability" not in {one.attributes.get("id") for one in found.all("section")}
    assert "come back" not in summary(campaign)
    assert np.isfinite(campaign.summary["heldout"]).all()


@pytest.mark.slow
def test_a_cluster_makes_the_same_bits(swept: Path, store: Path, tmp_path: Path) -> None:
    found = ibp.sweep(mixed(store, restarts=1, system=SAMPLERS), tmp_path / "run", workers=2)
    whole = ibp.open_campaign(swept)
    for fit in found.manifest.fits:
        assert_same_result(found.open(fit), whole.fit(**fit.labels))
