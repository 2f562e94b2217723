"""Ctrl-C and SIGTERM: the right code, soon, no orphan, and a run that goes on to the same bits."""

import os
import signal
import subprocess
import time
from contextlib import suppress

import numpy as np
import psutil
import pytest

import ibpdist as ibp
from ibpdist.campaigns.verify import verify
from ibpdist.data.arrays import ArrayData
from ibpdist.runs import fit as pipeline
from tests.support import command
from tests.support.compare import assert_same_result
from tests.support.logs import kinds_of_events, objectives
from tests.support.planted_rows import planted

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
FIT = ["--system", "lg-vi-infinite", "-K", "12", "--seed", "1", "--steps", "400", "--rtol", "0"]
SECONDS = 30
"""Within which a signalled command ends; 10 on a machine of one's own."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.zarr"
    rows, *_ = planted(0, 4000, 30, [0.4] * 6, 0.3)
    pipeline._store(ArrayData(rows.astype(np.float32), 128), path)
    return path


@pytest.fixture(scope="module")
def plain(store, tmp_path_factory):
    run = tmp_path_factory.mktemp("plain") / "run"
    ibp.fit(store, system="lg-vi-infinite", K=12, seed=1, steps=400, rtol=0.0, run=run)
    return run


def start(store, run, *options):
    """A fit in a process group of its own, as a shell gives to each command."""
    return command.start("fit", store, run, *FIT, *options, stdout=subprocess.DEVNULL, process_group=0)


def wait_for_step(run, step, process):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        if len(objectives(run)) >= step:
            return
        time.sleep(0.01)
    raise AssertionError(f"step {step} was not made")


@pytest.mark.parametrize(
    "place", [["--serial"], ["--workers", "2", "--memory", "1GB"]], ids=["serial", "workers"]
)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_in_the_middle_of_a_fit(store, plain, tmp_path, number, code, place):
    run = tmp_path / "run"
    process = start(store, run, *place)
    wait_for_step(run, 15, process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    assert process.wait(SECONDS) == code
    said = process.stderr.read()
    assert f"ibpdist resume {run}" in said
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(children, timeout=SECONDS)
    assert alive == []
    assert not (run / "lock").exists()
    assert verify(run) == []
    assert_same_result(ibp.open_result(plain), ibp.resume(run))
    assert objectives(run) == objectives(plain)


@pytest.mark.parametrize("step", [0, 1, 15])
def test_ctrl_c_reaches_the_workers_too_and_they_say_nothing(store, plain, tmp_path, step):
    """A terminal signals the whole group: while workers start, at their first step, at work."""
    run = tmp_path / "run"
    process = start(store, run, "-q", "--workers", "2", "--memory", "1GB")
    if step:
        wait_for_step(run, step, process)
    else:
        wait_for_workers(process)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert said.splitlines() == [f"ibpdist: continue with: ibpdist resume {run}", "ibpdist: interrupted"]
    _, alive = psutil.wait_procs(children, timeout=SECONDS)
    assert alive == []
    assert verify(run) == []
    assert_same_result(ibp.open_result(plain), ibp.resume(run))


def wait_for_workers(process):
    """Until the first worker process has begun: long before it can work."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        children = psutil.Process(process.pid).children()
        with suppress(psutil.NoSuchProcess):
            if any("spawn_main" in part for child in children for part in child.cmdline()):
                return
        time.sleep(0.005)
    raise AssertionError("no worker was started")


def test_signalled_again_and_again(store, plain, tmp_path):
    run = tmp_path / "run"
    process = start(store, run)
    for step in (3, 12, 40):
        wait_for_step(run, step, process)
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
        process = command.start("resume", run, stdout=subprocess.DEVNULL)
    assert process.wait(200) in (0, 7), process.stderr.read()
    assert_same_result(ibp.open_result(plain), ibp.open_result(run))
    assert verify(run) == []


def test_signalled_before_there_is_a_step(store, plain, tmp_path):
    run = tmp_path / "run"
    process = start(store, run)
    deadline = time.monotonic() + 60
    while "begin" not in kinds_of_events(run) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 130
    assert_same_result(ibp.open_result(plain), ibp.resume(run))
