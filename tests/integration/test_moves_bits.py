"""Fits with moves give the same bits wherever they run, whoever dies, also in the middle of a trial."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ibpdist as ibp
from ibpdist.campaigns.verify import verify
from ibpdist.storage import events
from tests.support.clusters import StepKiller
from tests.support.compare import assert_same_result
from tests.support.logs import objectives

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
HERE = Path(__file__).parents[2]
SYSTEMS = {
    "lg-vi-infinite": {"start": "random"},
    "lg-vi-finite": {"start": "random", "noise": "column"},
    "lg-vi-infinite-hard": {},
}
STEPS, WORKERS, NOTICED = 130, 2, 4


@pytest.fixture(scope="module", params=SYSTEMS)
def case(request, tmp_path_factory):
    """A store in 18 chunks, the options of a fit, and the run of the serial engine."""
    folder = tmp_path_factory.mktemp("moves")
    store = folder / "data.zarr"
    size = {"rows": 3550, "columns": 16, "features": 5, "noise": 0.4, "seed": 2}
    ibp.synthesise("linear-gaussian", store, **size, chunk_rows=200)
    options = {"system": request.param, "K": 8, "seed": 5, "steps": STEPS, "rtol": 0.0, "checkpoint": 4}
    options |= SYSTEMS[request.param]
    ibp.fit(store, run=folder / "serial", serial=True, **options)
    return store, options, folder / "serial"


def terms(run):
    """What the log has of every step."""
    read = events.read(run / "events.jsonl")
    return {e["step"]: e["terms"] for e in read if e["event"] == "step"}


def trying(run):
    """Steps after which a trial is under way: what is tried is not the fit so far."""
    return [
        step
        for step, found in terms(run).items()
        if found["trial"] != found["objective"] and not found["move"]
    ]


def assert_same(run, serial):
    assert terms(run) == terms(serial)
    assert objectives(run) == objectives(serial)
    assert_same_result(run, serial)
    assert verify(run) == []


def test_there_are_moves_and_trials(case):
    """Without them the tests below say nothing."""
    found = terms(case[2])
    assert sum(step["move"] > 0 for step in found.values()) >= 3
    assert any(step["move"] and step["accepted"] for step in found.values())
    assert len(trying(case[2])) >= 5


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_workers(case, tmp_path, count):
    """Two have the same bits even where they are killed: below."""
    store, options, serial = case
    ibp.fit(store, run=tmp_path / "run", workers=count, **options)
    assert_same(tmp_path / "run", serial)


def in_a_trial(now):
    return now.trace["trial"] != now.trace["objective"]


def test_workers_killed_in_many_steps(case, tmp_path):
    store, options, serial = case
    killer = StepKiller(WORKERS, NOTICED, 0.02, due=in_a_trial)
    ibp.fit(store, run=tmp_path / "run", workers=WORKERS, progress=killer, **options)
    assert killer.noticed >= NOTICED, "kills that nobody noticed prove nothing"
    assert_same(tmp_path / "run", serial)


# --- the driver is killed ---


def go(run, step, workers=0):
    """A driver that goes on with a run and kills itself after a step, without saving it."""
    command = [sys.executable, "-m", "tests.support.mortal_driver", str(run), str(step), str(workers)]
    return subprocess.run(command, cwd=HERE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)


def begun(case, tmp_path):
    """A run with the options of the case that was stopped by its first step."""
    store, options, _ = case
    run = tmp_path / "run"

    class Enough(Exception):
        pass

    def stop(now):
        raise Enough

    with contextlib.suppress(Enough):
        ibp.fit(store, run=run, serial=True, progress=stop, **options)
    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_the_driver_is_killed_in_the_middle_of_trials(case, tmp_path, workers):
    """At the first, a middle and the last step of trials, and where they were accepted or refused."""
    serial = case[2]
    found, middle = terms(serial), trying(serial)
    decided = [step for step, one in found.items() if one["move"]]
    marks = sorted(
        {middle[0], middle[len(middle) // 2], middle[-1], decided[0], decided[-1], decided[-1] - 1}
    )
    marks = marks if workers == 0 else marks[1::3]
    run = begun(case, tmp_path)
    for step in marks:
        killed = go(run, step, workers)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert all(problem.endswith("resume removes it") for problem in verify(run)), "at rest it is valid"
    last = go(run, 0, workers)
    assert last.returncode == 0, last.stderr
    assert_same(run, serial)
