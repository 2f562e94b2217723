"""Held-out scores in their run: kept, replaced, verified, shown; never in the way of the score itself."""

import shutil

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.evaluate.synthetic import synthesise
from ibpdist.report.summary import summary
from ibpdist.runs import scores
from ibpdist.storage import sealed
from ibpdist.storage.lock import Lock
from tests.support.predictive import enumerate_at_most


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    store = synthesise("images", folder / "a.zarr", rows=120, seed=4, chunk_rows=32)
    ibp.fit(store.path, system="lg-vi-finite", K=4, seed=2, steps=8, holdout=0.3, run=folder / "run")
    synthesise("images", folder / "new.zarr", rows=40, seed=5)
    return folder


@pytest.fixture
def run(sound, tmp_path):
    return shutil.copytree(sound / "run", tmp_path / "run")


def test_a_run_without_a_score(run):
    assert scores.read(run) is None
    assert "heldout" not in ibp.open_result(run).children
    assert "held out" not in summary(ibp.open_result(run))


@pytest.mark.parametrize("named", ["run", "result"])
def test_a_score_is_found_in_the_result_and_shown(sound, run, named):
    scored = ibp.evaluate(run if named == "run" else run / "result.zarr")
    held = ibp.open_result(run)["heldout"].to_dataset()
    assert held.sizes == {"evaluation": 1, "estimate": 2}
    np.testing.assert_array_equal(held.score[0], scored.score)
    np.testing.assert_array_equal(held.error[0], scored.error)
    assert int(held.cells[0]) == int(scored.cells.sum())
    assert int(held.rows[0]) == int((scored.cells > 0).sum()) < 120
    assert held.data.item() == str(sound / "a.zarr")
    (line,) = (line for line in summary(ibp.open_result(run)).splitlines() if line.startswith("held out"))
    assert f"{float(scored.score.sel(estimate='variance')):.4f} nats per hidden cell" in line
    assert scored.attrs["protocol"] in line
    assert ibp.verify(run) == []


def test_rows_whose_chains_disagree_are_kept_and_shown(run, monkeypatch):
    enumerate_at_most(monkeypatch, 1)
    monkeypatch.setattr("ibpdist.predict.annealed.APART", -100.0)
    scored = ibp.evaluate(run, chains=2)
    apart = int(scored.disagree.sel(estimate="variance"))
    held = ibp.open_result(run)["heldout"].to_dataset()
    np.testing.assert_array_equal(held.disagree[0], scored.disagree)
    assert apart == int(held.rows[0]), "every row is counted, since any distance is too far"
    assert f"; annealed chains disagree in {apart} of {apart} rows" in summary(ibp.open_result(run))


def test_scores_of_earlier_releases_have_no_such_number(run):
    ibp.evaluate(run)
    entries = sealed.read(run / scores.NAME)
    sealed.write(run / scores.NAME, [{k: v for k, v in one.items() if k != "disagree"} for one in entries])
    held = scores.read(run)
    assert held.disagree.values.tolist() == [[0, 0]]
    assert "disagree" not in summary(ibp.open_result(run))


def test_each_dataset_and_protocol_has_one_score(sound, run):
    ibp.evaluate(run)
    for visible in ("even", "odd", "even"):
        last = ibp.evaluate(run, sound / "new.zarr", visible=visible)
    held = scores.read(run)
    assert [one.split()[0] for one in held.protocol.values] == ["cells", "odd", "even"]
    np.testing.assert_array_equal(held.score[2], last.score)
    said = [line for line in summary(ibp.open_result(run)).splitlines() if line.startswith("held out")]
    assert len(said) == 3


def test_arrays_have_no_name(run):
    x = ibp.synthetic("images", 20, seed=6).x.values
    ibp.evaluate(run, x)
    ibp.evaluate(run, x + 1)
    assert scores.read(run).data.values.tolist() == ["memory", "memory"]


def test_a_result_in_memory_has_nowhere_to_keep_it(sound, run):
    ibp.evaluate(ibp.open_result(run), sound / "new.zarr")
    assert not (run / scores.NAME).exists()


def test_a_copied_result_is_left_alone(sound, run, tmp_path):
    copied = shutil.copytree(run / "result.zarr", tmp_path / "other" / "result.zarr")
    ibp.evaluate(copied, sound / "new.zarr")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["result.zarr"]


def test_a_run_that_is_in_use_gives_its_score_and_a_warning(run):
    held = Lock(run / "lock")
    with pytest.warns(UserWarning, match="the score is not kept in the run: .*in use"):
        scored = ibp.evaluate(run)
    held.release()
    assert np.isfinite(scored.score).all()
    assert scores.read(run) is None


def test_a_disk_that_cannot_be_written_gives_the_score_and_a_warning(run, monkeypatch):
    def fails(path, body):
        raise StorageError(f"{path}: No space left on device")

    monkeypatch.setattr(scores.sealed, "write", fails)
    with pytest.warns(UserWarning, match="not kept in the run: .*No space left"):
        assert isinstance(ibp.evaluate(run), xr.Dataset)
    assert not (run / "lock").exists()


def test_every_flipped_bit_is_named(run):
    ibp.evaluate(run)
    path = run / scores.NAME
    raw = path.read_bytes()
    for at in range(0, len(raw), 7):
        flipped = bytearray(raw)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        assert any(scores.NAME in problem for problem in ibp.verify(run)), at
    with pytest.raises(StorageError, match=scores.NAME):
        ibp.open_result(run)


def test_a_new_fit_in_the_same_place_forgets_it(sound, run):
    ibp.evaluate(run)
    ibp.fit(sound / "a.zarr", system="lg-vi-finite", K=3, steps=3, run=run, overwrite=True)
    assert scores.read(run) is None


def test_which_evaluation_is_of_what_was_held_out(sound, run):
    """Not the newest, nor one of other columns of the same rows."""
    store = str(sound / "a.zarr")
    assert scores.own(scores.read(run), store) is None
    ibp.evaluate(run, store, visible="even")
    assert scores.own(scores.read(run), store) == 0
    ibp.evaluate(run)
    ibp.evaluate(run, sound / "new.zarr")
    held = scores.read(run)
    assert held.sizes["evaluation"] == 3
    assert scores.own(held, store) == scores.own(held, "moved.zarr") == 1
    assert scores.own(held.isel(evaluation=[2]), store) is None


def test_a_score_that_must_be_kept_is_an_error_when_it_is_not(run, monkeypatch):
    def fails(path, body):
        raise StorageError(f"{path}: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(scores.sealed, "write", fails)
        with pytest.raises(StorageError, match=r"heldout\.json: No space left"), scores.required():
            ibp.evaluate(run)
        with pytest.warns(UserWarning, match="not kept in the run"):
            ibp.evaluate(run)
    with scores.required():
        ibp.evaluate(run)
    assert scores.read(run) is not None


def test_damaged_scores_say_the_way_out_and_are_mended(run):
    ibp.evaluate(run)
    scores.mend(run)
    assert scores.read(run) is not None, "what is whole stays"
    path = run / scores.NAME
    path.write_bytes(path.read_bytes()[:40])
    way = r"heldout\.json: damaged: .*; remove it, and evaluate or sweep makes scores again"
    for reading in (ibp.open_result, ibp.evaluate):
        with pytest.raises(StorageError, match=way):
            reading(run)
    scores.mend(run)
    assert scores.read(run) is None
    scores.mend(run)


def test_damaged_scores_that_cannot_be_removed_are_told(run):
    (run / scores.NAME).mkdir()
    with pytest.raises(StorageError, match=scores.NAME):
        scores.mend(run)
