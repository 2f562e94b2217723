"""Fit and resume, from data to result, with the systems of the catalog."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import InputError, OutputInUse, StorageError, UsageError
from ibpdist.campaigns.verify import verify
from ibpdist.data.arrays import ArrayData
from ibpdist.data.store import open_dataset
from ibpdist.runs import fit as pipeline
from ibpdist.runs.restarts import seed_of
from ibpdist.storage import events
from ibpdist.storage.lock import Lock
from tests.support.compare import assert_same_result
from tests.support.logs import objectives
from tests.support.planted_rows import planted

GROUPS = ("params", "rows", "trace", "internals")
HERE = Path(__file__).parents[1]


def rows_of(rows=600, columns=12, features=4, seed=0, dtype=np.float32):
    return planted(seed, rows, columns, [0.4] * features, 0.3)[0].astype(dtype)


@pytest.fixture
def source():
    """A dataset of ten chunks."""
    return ArrayData(rows_of(), 64)


def fit(data, system="lg-vi-infinite", K=6, **options):
    """So many steps, whether or not the fit has converged before."""
    return ibp.fit(data, system=system, K=K, **({"seed": 1, "steps": 12, "rtol": 0.0} | options))


def test_a_fit_in_memory_finds_something():
    found = fit(rows_of(), steps=60)
    assert found.attrs["stop"] in ("converged", "step limit")
    assert found["rows"]["z"].shape == (600, 4)
    assert found["params"]["mean"].shape == (4, 12)
    assert (np.diff(found["trace"]["objective"]) >= -1e-6 * abs(found.attrs["objective"])).all()


@pytest.mark.parametrize("system", ["lg-vi-infinite", "fa-vi-finite-hard", "fa-gibbs-finite"])
def test_a_run_has_the_bits_of_a_fit_in_memory(tmp_path, source, system):
    found = fit(source, system, run=tmp_path / "run")
    assert_same_result(fit(source, system), found)
    assert verify(tmp_path / "run") == []
    assert found.attrs["rows"] == 600


@pytest.mark.slow
@pytest.mark.parametrize("system", ["lg-vi-infinite", "fa-vi-infinite-hard", "lg-gibbs-finite"])
def test_workers_have_the_bits_of_a_fit_in_memory(tmp_path, source, system):
    found = fit(source, system, run=tmp_path / "run", workers=2, memory=1 << 30)
    assert_same_result(fit(source, system), found)
    begun = [e for e in events.read(tmp_path / "run" / "events.jsonl") if e["event"] == "begin"]
    assert begun[0]["engine"] == "DaskEngine"


@pytest.mark.slow
def test_workers_without_a_run_leave_nothing_behind(source):
    found = fit(source, workers=1, memory=1 << 30, steps=4)
    assert_same_result(fit(source, steps=4), found)


def test_missing_cells_and_labels_survive_the_way_through_a_run(tmp_path):
    x = rows_of()
    x[3, 4] = x[500, 11] = np.nan
    import pandas as pd

    table = pd.DataFrame(x, index=[f"r{n}" for n in range(600)], columns=[f"c{n}" for n in range(12)])
    found = fit(table, run=tmp_path / "run", steps=5)
    assert_same_result(fit(table, steps=5), found)
    assert str(found["rows"]["row"].values[599]) == "r599"
    assert str(found["params"]["column"].values[11]) == "c11"
    assert open_dataset(tmp_path / "run" / "data.zarr").missing == 2


def test_a_store_by_path(tmp_path, source):
    fit(source, run=tmp_path / "first", steps=3)
    store = tmp_path / "first" / "data.zarr"
    assert_same_result(fit(source, steps=3), fit(str(store), steps=3))
    assert_same_result(fit(source, steps=3), fit(store, run=tmp_path / "second", steps=3))
    assert not (tmp_path / "second" / "data.zarr").exists()


def test_held_out_cells_are_not_seen(tmp_path, source):
    x = rows_of()
    whole, held = fit(source, steps=5), fit(source, steps=5, holdout=0.3)
    assert whole.attrs["objective"] != held.attrs["objective"]
    from ibpdist.data.splits import HeldCells

    hidden = HeldCells(0.3).hidden(0, 600, 600, 12)
    x[hidden] += 100.0
    assert_same_result(held, fit(ArrayData(x, 64), steps=5, holdout=0.3))
    assert_same_result(held, fit(source, steps=5, holdout=0.3, run=tmp_path / "run"))


def test_progress_is_called_with_each_step(source):
    seen = []
    fit(source, progress=seen.append)
    assert [now.step for now in seen] == list(range(1, 13))
    assert {"objective", "bound", "active"} <= set(seen[0].trace)


def test_settings_reach_the_system(source):
    assert fit(source, steps=2, mass=3.0).attrs["objective"] != fit(source, steps=2).attrs["objective"]
    assert "mass: 3.0" in fit(source, steps=2, mass=3.0).attrs["spec"]


class TestResume:
    def test_a_finished_run_is_only_opened(self, tmp_path, source):
        found = fit(source, run=tmp_path / "run")
        before = (tmp_path / "run" / "events.jsonl").read_bytes()
        assert_same_result(found, ibp.resume(tmp_path / "run"))
        assert (tmp_path / "run" / "events.jsonl").read_bytes() == before

    @pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES])
    def test_a_finished_run_where_nobody_can_write(self, tmp_path, source, monkeypatch, error):
        found = fit(source, run=tmp_path / "run", steps=3)
        opens = os.open

        def refuse(path, flags, *rest, **options):
            if flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(str(tmp_path)):
                raise OSError(error, os.strerror(error), str(path))
            return opens(path, flags, *rest, **options)

        monkeypatch.setattr(os, "open", refuse)
        assert_same_result(found, ibp.resume(tmp_path / "run"))
        (tmp_path / "run" / "result.json").unlink()
        with pytest.raises(StorageError, match=r"run/lock: .*choose a place that can be written"):
            ibp.resume(tmp_path / "run")

    def test_a_finished_run_that_is_in_use(self, tmp_path, source):
        found = fit(source, run=tmp_path / "run", steps=3)
        held = Lock(tmp_path / "run" / "lock")
        assert_same_result(found, ibp.resume(tmp_path / "run"))
        held.release()

    def test_a_finished_run_is_tidied_up(self, tmp_path, source):
        fit(source, run=tmp_path / "run", steps=3)
        (tmp_path / "run" / "result.json.ab.partial").write_text("")
        assert "resume removes it" in verify(tmp_path / "run")[0]
        ibp.resume(tmp_path / "run")
        assert verify(tmp_path / "run") == []

    @pytest.mark.parametrize("stop_at", [1, 5, 11])
    def test_an_interrupted_run_gets_the_bits_it_would_have_had(self, tmp_path, source, stop_at):
        def interrupt(now):
            if now.step == stop_at:
                raise KeyboardInterrupt

        plain = fit(source, run=tmp_path / "plain", checkpoint=3)
        with pytest.raises(KeyboardInterrupt):
            fit(source, run=tmp_path / "run", checkpoint=3, progress=interrupt)
        assert not (tmp_path / "run" / "lock").exists()
        assert events.read(tmp_path / "run" / "events.jsonl")[-1]["event"] == "interrupted"
        assert verify(tmp_path / "run") == []
        assert_same_result(plain, ibp.resume(tmp_path / "run"))
        assert objectives(tmp_path / "run") == objectives(tmp_path / "plain")

    def test_changed_data_are_refused(self, tmp_path, source):
        interrupted(tmp_path, source)
        import shutil

        shutil.rmtree(tmp_path / "run" / "data.zarr")
        other = ArrayData(rows_of(seed=9), 64)
        pipeline._store(other, tmp_path / "run" / "data.zarr")
        with pytest.raises(StorageError, match=r"data\.zarr: has changed since the run began"):
            ibp.resume(tmp_path / "run")
        assert (tmp_path / "run" / "run.json").exists(), "a resume never removes a run"

    def test_missing_data_are_named(self, tmp_path, source):
        interrupted(tmp_path, source)
        (tmp_path / "run" / "data.zarr").rename(tmp_path / "away")
        with pytest.raises(StorageError, match=r"data\.zarr: does not exist"):
            ibp.resume(tmp_path / "run")
        (tmp_path / "away").rename(tmp_path / "run" / "data.zarr")
        assert ibp.resume(tmp_path / "run").attrs["steps"] == 12

    def test_other_versions_are_told_and_noted(self, tmp_path, source, monkeypatch):
        interrupted(tmp_path, source)
        from ibpdist.engine import provenance

        monkeypatch.setattr(provenance, "versions", lambda: {"numpy": "0.1"})
        with pytest.warns(UserWarning, match="continues with other versions than it began with"):
            ibp.resume(tmp_path / "run")
        assert "moved" in [e["event"] for e in events.read(tmp_path / "run" / "events.jsonl")]

    def test_a_wrong_place_keeps_the_run(self, tmp_path, source):
        interrupted(tmp_path, source)
        with pytest.raises(UsageError, match="without TLS"):
            ibp.resume(tmp_path / "run", scheduler="tcp://10.0.0.1:8786")
        with pytest.raises(UsageError, match="a process needs"):
            ibp.resume(tmp_path / "run", memory=1 << 20)
        assert ibp.resume(tmp_path / "run").attrs["steps"] == 12

    def test_what_is_no_run(self, tmp_path):
        with pytest.raises(StorageError, match="is not a run"):
            ibp.resume(tmp_path)


def interrupted(tmp_path, source):
    def interrupt(now):
        if now.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(source, run=tmp_path / "run", checkpoint=3, progress=interrupt)


class TestRefused:
    """Before anything is computed, and nothing is left behind."""

    @pytest.fixture(autouse=True)
    def _nothing_left(self, tmp_path):
        yield
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"system": "lg-vi-infinit"}, "unknown system 'lg-vi-infinit'; did you mean lg-vi-infinite"),
            ({"K": 0}, "^K: expected greater than 0, got 0$"),
            ({"K": 4.0}, "^K: expected integer or auto, got 4.0$"),
            ({"K": None}, "^K: expected integer or auto"),
            ({"seed": -1}, "seed"),
            ({"steps": 0}, "steps"),
            ({"rtol": -1.0}, "rtol"),
            ({"mass": -1.0}, "mass"),
            ({"holdout": 1.0}, "holdout"),
            ({"nose": 1.0}, "unknown setting 'nose'"),
            ({"workers": 0}, "workers is 0"),
            ({"workers": 1, "serial": True}, "exclude each other"),
            ({"scheduler": "tcp://10.0.0.1:8786"}, "without TLS"),
            ({"memory": 1 << 20}, "a process needs"),
        ],
    )
    def test_options(self, tmp_path, source, options, match):
        with pytest.raises(UsageError, match=match):
            fit(source, run=tmp_path / "run", **options)
        named = {"system": "lg-vi-infinite", "K": 6} | options
        with pytest.raises(UsageError, match=match):
            pipeline.estimate(source, **named)

    @pytest.mark.parametrize("bad", [np.inf, -np.inf])
    def test_data(self, tmp_path, bad):
        x = rows_of()
        x[17, 3] = bad
        with pytest.raises(InputError, match="row 17"):
            fit(x, run=tmp_path / "run")

    def test_no_rows(self, tmp_path):
        with pytest.raises(InputError, match="no rows"):
            fit(np.zeros((0, 3)), run=tmp_path / "run")

    def test_a_store_that_is_not_there(self, tmp_path):
        with pytest.raises(StorageError, match="does not exist"):
            fit(tmp_path / "none.zarr", run=tmp_path / "run")

    @pytest.mark.parametrize("damage", ["flip", "delete"])
    def test_a_damaged_chunk(self, tmp_path, source, damage):
        pipeline._store(source, tmp_path / "data.zarr")
        (file,) = (tmp_path / "data.zarr" / "x" / "c" / "7").iterdir()
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 8
        if damage == "flip":
            file.write_bytes(raw)
        else:
            file.unlink()
        with pytest.raises(StorageError, match=r"data\.zarr.*7"):
            fit(tmp_path / "data.zarr", run=tmp_path / "run")

    def test_a_start_that_is_not_there(self, tmp_path, source):
        with pytest.raises(StorageError, match="is not a run"):
            fit(source, run=tmp_path / "run", start=tmp_path / "none")


def test_an_estimate_is_that_of_the_fit(tmp_path, source):
    """With as many chains, and all rows at once where they are taken in turn."""
    options = {"system": "lg-collapsed-infinite", "K": 5, "chains": 3, "steps": 6, "serial": True}
    said = pipeline.estimate(source, **options)
    ibp.fit(source, run=tmp_path / "run", **options)
    (told,) = (e["plan"] for e in events.read(tmp_path / "run" / "events.jsonl") if e["event"] == "memory")
    assert said == f"runs in this process; {told}"


class TestOverwrite:
    def test_an_existing_run_is_kept(self, tmp_path, source):
        first = fit(source, run=tmp_path / "run", steps=3)
        with pytest.raises(
            OutputInUse, match=r"exists already.*pass --overwrite .in Python: overwrite=True.$"
        ):
            fit(source, run=tmp_path / "run", seed=2, steps=3)
        assert_same_result(first, ibp.open_result(tmp_path / "run"))

    def test_data_within_it_are_kept(self, tmp_path, source):
        fit(source, run=tmp_path / "run", steps=3)
        before = verify(tmp_path / "run")
        with pytest.raises(UsageError, match=r"run: holds the input .*data\.zarr: choose another place"):
            fit(tmp_path / "run" / "data.zarr", run=tmp_path / "run", overwrite=True)
        assert verify(tmp_path / "run") == before == []

    def test_unless_it_may_be_overwritten(self, tmp_path, source):
        fit(source, run=tmp_path / "run", steps=3)
        second = fit(source, run=tmp_path / "run", seed=2, steps=3, overwrite=True)
        assert_same_result(fit(source, seed=2, steps=3), second)
        assert verify(tmp_path / "run") == []


class TestWarmStart:
    def test_begins_with_what_a_run_found(self, tmp_path, source):
        first = fit(source, run=tmp_path / "first", steps=40)
        warm = fit(source, start=tmp_path / "first", steps=40, seed=5)
        cold = fit(source, start="random", moves=False, steps=40, seed=5)
        assert warm["trace"]["objective"][1] > cold["trace"]["objective"][1]
        assert_same_result(warm, fit(source, start=first, steps=40, seed=5))

    def test_begins_with_what_a_smaller_truncation_found(self, source):
        first = fit(source, steps=40)
        wider = fit(source, start=first, K=9, steps=40)
        level = first.attrs["objective"]
        assert wider["trace"]["objective"][0] >= level - 1e-4 * abs(level)

    def test_other_rules_of_the_same_model_are_fine(self, source):
        assert fit(source, "lg-vi-infinite-hard", start=fit(source, steps=5), steps=2).attrs["steps"] == 2

    def test_a_resumed_one_still_begins_with_it(self, tmp_path, source):
        first = fit(source, steps=20)
        plain = fit(source, start=first, run=tmp_path / "plain", seed=5)

        def interrupt(now):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(source, start=first, run=tmp_path / "run", seed=5, progress=interrupt)
        assert_same_result(plain, ibp.resume(tmp_path / "run"))


class TestRestarts:
    def test_the_best_one_is_the_result(self, tmp_path, source):
        found = fit(source, restarts=3)
        levels = found["restarts"]["objective"].values
        chosen = int(found["restarts"].attrs["chosen"])
        assert found.attrs["objective"] == levels.max() == levels[chosen]
        assert levels.min() >= levels.max() - 1e-6 * abs(levels.max()), "all end at the same optimum"
        alone = fit(source, seed=seed_of(1, chosen))
        assert_same_result(alone, found)
        kept = fit(source, restarts=3, run=tmp_path / "run")
        assert_same_result(found, kept)
        assert kept["restarts"]["objective"].values.tolist() == levels.tolist()
        assert kept.attrs["stopped"] == found.attrs["stopped"]
        assert kept.attrs["objective"] == levels[chosen]
        assert verify(tmp_path / "run") == []

    def test_each_is_a_run_of_its_own(self, tmp_path, source):
        fit(source, restarts=2, run=tmp_path / "run")
        for restart in (0, 1):
            own = ibp.open_result(tmp_path / "run" / "restarts" / f"{restart:03d}")
            assert_same_result(fit(source, seed=seed_of(1, restart)), own)

    def test_interrupted_between_and_within(self, tmp_path, source):
        plain = fit(source, restarts=3, run=tmp_path / "plain")
        count = 0

        def interrupt(now):
            nonlocal count
            count += 1
            if count == 18:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(source, restarts=3, run=tmp_path / "run", progress=interrupt)
        finished = (tmp_path / "run" / "restarts" / "000" / "events.jsonl").read_bytes()
        assert_same_result(plain, ibp.resume(tmp_path / "run"))
        assert (tmp_path / "run" / "restarts" / "000" / "events.jsonl").read_bytes() == finished

    def test_seeds(self):
        assert seed_of(7, 0) == 7
        assert len({seed_of(7, restart) for restart in range(100)}) == 100
        assert seed_of(7, 3) == seed_of(7, 3) != seed_of(8, 3)


SCRIPT = """
import sys, time
import numpy as np, ibpdist as ibp
if __name__ == "__main__":
    options = {"workers": 2, "memory": 1 << 30} if sys.argv[3] == "2" else {}
    pause = lambda now: time.sleep(0.05)
    ibp.fit(sys.argv[1], system="lg-vi-infinite", K=6, seed=1, steps=40, rtol=0.0, checkpoint=5,
            run=sys.argv[2], progress=pause, **options)
"""


@pytest.mark.faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_killed_and_resumed_from_outside(tmp_path, source, workers):
    (tmp_path / "script.py").write_text(SCRIPT)
    pipeline._store(source, tmp_path / "data.zarr")
    options = {"seed": 1, "steps": 40, "rtol": 0.0, "checkpoint": 5}
    plain = fit(tmp_path / "data.zarr", run=tmp_path / "plain", **options)
    run = tmp_path / "run"
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "data.zarr"), str(run), workers]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(HERE)})
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(objectives(run)) < 17:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert 17 <= len(objectives(run)) < 40
    with pytest.raises(OutputInUse, match="exists already: resume it"):
        fit(tmp_path / "data.zarr", run=run, **options)
    assert_same_result(plain, ibp.resume(run))
    assert objectives(run) == objectives(tmp_path / "plain")
    assert verify(run) == []


def test_a_run_is_verified_by_a_process_that_fitted_nothing(tmp_path, source):
    """Records name the module they are of, so that whoever reads one need not have made one."""
    import subprocess
    import sys

    fit(source, steps=2, run=tmp_path / "run")
    code = "import sys; from ibpdist.campaigns.verify import verify; sys.exit(len(verify(sys.argv[1])))"
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "run"], check=False).returncode == 0
