"""The bodies of the flows without a server: each asks what is there first, and does only what is missing."""

from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from flows.campaign import bests_of, campaign
from flows.evaluate import evaluate, kept
from flows.fit import fit
from flows.ingest import ingest
from flows.report import report
from flows.steps import Where
from flows.sweep import sweep
from ibpdist.base.errors import IbpError, OutputInUse, UsageError
from tests.support.logs import kinds_of_events

SERIAL = Where(serial=True)
FIT = {"features": 5, "steps": 3, "settings": {"moves": False, "start": "random"}, "where": SERIAL}
GRID = """\
data: {data}
system: lg-vi-infinite
truncation: {truncation}
steps: 3
holdout: 0.2
set: {{moves: false, start: random, noise: {noise}}}
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Rows to fit, and new ones."""
    folder = tmp_path_factory.mktemp("stores")
    for name, seed in (("x", 3), ("new", 4)):
        ibp.synthesise("images", folder / f"{name}.zarr", rows=60, noise=0.1, seed=seed, chunk_rows=20)
    return str(folder / "x.zarr"), str(folder / "new.zarr")


def grid(folder, data, truncation="[4, 5]", noise="one"):
    file = folder / "grid.yaml"
    file.write_text(GRID.format(data=data, truncation=truncation, noise=noise))
    return str(file)


def test_ingest_stores_once(tmp_path, capsys):
    source, store = tmp_path / "x.csv", str(tmp_path / "x.zarr")
    source.write_text("a,b\n1,2\n3,4.5\n")
    assert ingest.fn(str(source), store) == store
    assert capsys.readouterr().out == f"{store}: 2 rows of 2 columns\n"
    written = ibp.open_dataset(store).fingerprint
    assert ingest.fn(str(source), store) == store
    assert capsys.readouterr().out == ""
    assert ibp.open_dataset(store).fingerprint == written


def test_ingest_has_options(tmp_path):
    source, store = tmp_path / "x.npy", str(tmp_path / "x.zarr")
    np.save(source, np.arange(12.0).reshape(3, 4))
    ingest.fn(str(source), store, rows_in="columns", center=True)
    found = ibp.open_dataset(store)
    assert (found.rows, found.columns) == (4, 3)
    assert found.read(0).x.mean(0) == pytest.approx(np.zeros(3))


def test_ingest_does_not_pass_other_data_for_these(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("1,2\n3,4\n")
    store = str(tmp_path / "x.zarr")
    ingest.fn(str(tmp_path / "a.csv"), store)
    with pytest.raises(OutputInUse, match=r"x\.zarr: holds data of a\.csv, not of .*b\.csv"):
        ingest.fn(str(tmp_path / "b.csv"), store)


def test_a_fit_is_made_once(stores, tmp_path, capsys):
    run = str(tmp_path / "run")
    assert fit.fn(stores[0], run, **FIT) == run
    assert "features, of at most 5" in capsys.readouterr().out
    before = kinds_of_events(Path(run))
    assert before.count("finished") == 1
    assert fit.fn(stores[0], run, **FIT) == run
    assert kinds_of_events(Path(run)) == before, "a finished run is only opened"
    assert not list(tmp_path.glob("*.flow"))


def test_a_fit_that_was_interrupted_goes_on(stores, tmp_path, monkeypatch):
    run, settings = str(tmp_path / "run"), {"moves": False, "start": "random"}

    def stop(now):
        if now.step == 2:
            raise KeyboardInterrupt

    options = {"system": "lg-vi-infinite", "K": 5, "steps": 3, "serial": True, "checkpoint": 1}
    with pytest.raises(KeyboardInterrupt):
        ibp.fit(stores[0], run=run, progress=stop, **options, **settings)
    with pytest.raises(OutputInUse, match="checkpoint 1"):
        fit.fn(stores[0], run, **FIT)
    other = str(tmp_path / "other")
    options.pop("checkpoint")
    with pytest.raises(KeyboardInterrupt):
        ibp.fit(stores[0], run=other, progress=stop, **options, **settings)
    fit.fn(stores[0], other, **FIT)
    ibp.fit(stores[0], run=tmp_path / "plain", **options, **settings)
    ours, plain = (ibp.open_result(path)["params"].to_dataset() for path in (other, tmp_path / "plain"))
    assert ours.identical(plain)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"features": 6}, "truncation 5"), ({"seed": 8}, "seed 0"), ({"settings": {}}, "set {'moves': False")],
)
def test_a_run_of_another_fit_is_refused(stores, tmp_path, change, said):
    run = str(tmp_path / "run")
    fit.fn(stores[0], run, **FIT)
    with pytest.raises(OutputInUse, match=f"holds a fit with {said}"):
        fit.fn(stores[0], run, **(FIT | change))


def test_a_dataset_is_the_same_however_it_is_spelt(stores, tmp_path, monkeypatch):
    run, store = str(tmp_path / "run"), Path(stores[0])
    monkeypatch.chdir(store.parent)
    fit.fn(store.name, run, **FIT)
    (tmp_path / "link.zarr").symlink_to(store)
    before = kinds_of_events(Path(run))
    for spelt in (f"../{store.parent.name}/{store.name}", str(tmp_path / "link.zarr"), f"./{store.name}"):
        assert fit.fn(spelt, run, **FIT) == run
    assert kinds_of_events(Path(run)) == before
    with pytest.raises(OutputInUse, match=f"holds a fit with data '{store}'"):
        fit.fn(stores[1], run, **FIT)


def test_a_fit_may_have_subsamples(stores, tmp_path):
    run = str(tmp_path / "run")
    fit.fn(stores[0], run, **FIT, stability=2, subsample=0.8)
    assert ibp.open_result(run)["stability"].sizes["subsample"] == 2
    with pytest.raises(OutputInUse, match="stability 2"):
        fit.fn(stores[0], run, **FIT)


def test_a_score_is_made_once(stores, tmp_path, capsys):
    run = str(tmp_path / "run")
    fit.fn(stores[0], run, **FIT, holdout=0.3)
    assert kept(run, None) is None
    own = evaluate.fn(run, where=SERIAL)
    new = evaluate.fn(run, stores[1], where=SERIAL)
    assert own != new
    assert (kept(run, None), kept(run, stores[1])) == (own, new)
    assert "hidden cells" in capsys.readouterr().out
    assert (evaluate.fn(run), evaluate.fn(run, stores[1])) == (own, new)
    assert capsys.readouterr().out == ""


def test_a_fit_without_a_score_has_none_to_look_up(stores, tmp_path):
    run = str(tmp_path / "run")
    fit.fn(stores[0], run, **FIT)
    with pytest.raises(UsageError, match="saw every cell"):
        evaluate.fn(run)


def test_a_sweep_makes_what_is_new(stores, tmp_path):
    run = tmp_path / "run"
    assert sweep.fn(grid(tmp_path, stores[0]), str(run), SERIAL) == str(run)
    first = {file: file.stat().st_mtime_ns for file in run.glob("fits/*/result.json")}
    assert len(first) == 2
    sweep.fn(grid(tmp_path, stores[0], "[4, 5, 6]"), str(run), SERIAL)
    assert kinds_of_events(Path(run)).count("fit") == 3
    assert {file: file.stat().st_mtime_ns for file in first} == first


def test_a_campaign_from_its_source_to_its_report(stores, tmp_path, capsys):
    source, run = tmp_path / "x.npy", str(tmp_path / "run")
    np.save(source, ibp.open_dataset(stores[0]).read(0).x)
    file = grid(tmp_path, "x.zarr")
    page = campaign.fn(file, run, source=str(source), new=stores[1], where=SERIAL)
    assert page == f"{run}/report.html"
    assert Path(page).read_text().startswith("<!DOCTYPE html>")
    assert ibp.open_dataset(tmp_path / "x.zarr").rows == 20
    assert [kept(best, stores[1]) is not None for best in bests_of(run)] == [True]
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == f"report: {page}"
    before = kinds_of_events(Path(run))
    campaign.fn(file, run, source=str(source), new=stores[1], where=SERIAL)
    assert kinds_of_events(Path(run)) == before, "nothing is made twice"


def test_the_report_of_a_campaign_alone(stores, tmp_path, capsys):
    run = str(tmp_path / "run")
    sweep.fn(grid(tmp_path, stores[0]), run, SERIAL)
    page = Path(report.fn(run))
    first = page.read_bytes()
    page.unlink()
    assert Path(report.fn(run)).stat().st_size == len(first)
    assert capsys.readouterr().out.endswith(f"report: {page}\n")


def test_a_fit_that_fails_fails_the_flow_after_its_report(stores, tmp_path):
    run = tmp_path / "run"
    file = grid(tmp_path, stores[0], truncation="5", noise="[one, 1e-100]")
    said = r"run: 1 of 2 fits failed, first lg-vi-infinite, K = 5, noise 1e-100, restart 0: noise is"
    with pytest.raises(IbpError, match=said) as caught:
        campaign.fn(file, str(run), where=SERIAL)
    assert caught.value.code == 2
    assert (run / "report.html").is_file()
    assert ibp.open_campaign(run).summary.status.squeeze().values.tolist() == ["finished", "failed"]


def test_when_every_fit_fails_there_is_no_report(stores, tmp_path):
    run, file = tmp_path / "run", grid(tmp_path, stores[0], truncation="5", noise="1e-100")
    with pytest.raises(IbpError, match="1 of 1 fit failed"):
        campaign.fn(file, str(run), where=SERIAL)
    assert not (run / "report.html").exists()


def test_the_best_fit_of_a_campaign(stores, tmp_path):
    run = str(tmp_path / "run")
    sweep.fn(grid(tmp_path, stores[0]), run, SERIAL)
    summary = ibp.open_campaign(run).summary
    where = int(np.argmax(summary.heldout.values))
    assert [Path(best).name for best in bests_of(run)] == [summary.fit.values.ravel()[where]]
