"""The driver is killed, again and again; the run goes on to the bits it would have had."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ibpdist.base.errors import ClusterLost
from ibpdist.campaigns.verify import verify
from ibpdist.catalog.spec import FitSpec
from ibpdist.engine.cluster import attached
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.result import is_complete
from ibpdist.storage import events
from ibpdist.storage.lock import is_held
from tests.support.clusters import IMPATIENT, fit_on
from tests.support.compare import assert_same_result
from tests.support.logs import objectives
from tests.support.toy import blobs, save_blobs, toy_fit, toy_job, toy_run, toy_spec

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
HERE = Path(__file__).parents[2]


@pytest.fixture
def plain(tmp_path):
    """An uninterrupted run, and a new one of the same spec that is still to be made."""
    data = save_blobs(tmp_path / "x.npy", blobs(rows=430, width=10))
    spec = toy_spec(data, set={"draw": True}, steps=30, checkpoint=4)
    other, _ = toy_run(tmp_path / "run", spec)
    other.close()
    return toy_fit(tmp_path / "plain", spec), other.path


def start(run, workers=0, pause=0.01):
    command = [sys.executable, "-m", "tests.support.toy_driver", str(run), str(workers), str(pause)]
    return subprocess.Popen(command, cwd=HERE, stderr=subprocess.PIPE, text=True)


def steps_made(run):
    return max((e["step"] for e in events.read(run / "events.jsonl") if e["event"] == "step"), default=0)


def wait_for_step(run, step, process, seconds=90.0):
    """Until the run has made a step; False when the process has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if steps_made(run) >= step:
            return True
        time.sleep(0.005)
    raise AssertionError(f"step {step} was not made in {seconds} s")


def assert_same(plain, run):
    """Every step's objective, the row state, and a run without any problem."""
    assert objectives(run) == objectives(plain)
    assert_same_result(plain, run)
    assert verify(run) == []
    assert not is_held(run / "lock")
    assert not (run / "lock").exists()
    assert not list(run.rglob("*.partial"))


def test_killed_at_many_steps(plain):
    truth, run = plain
    for step in (1, 3, 5, 9, 10, 17, 22, 29):
        process = start(run)
        if wait_for_step(run, step, process):
            process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert all(problem.endswith("resume removes it") for problem in verify(run)), (
            "at rest it is always valid"
        )
    process = start(run)
    assert process.wait(60) == 0, process.stderr.read()
    assert_same(truth, run)
    begun = [e["step"] for e in events.read(run / "events.jsonl") if e["event"] == "begin"]
    assert begun[0] == 0
    assert begun == sorted(begun), "no run begins before one that came earlier"


def test_killed_at_random_times(plain):
    truth, run = plain
    rng = np.random.default_rng(5)
    kills = 0
    for _ in range(8):
        process = start(run, pause=0.15)  # the run takes longer than any of the waits
        try:
            process.wait(float(rng.uniform(0.8, 2.5)))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait(30)
        if is_complete(run):
            break
    assert kills >= 2
    process = start(run)
    assert process.wait(60) == 0, process.stderr.read()
    assert_same(truth, run)


def test_killed_with_its_workers_under_way(plain):
    truth, run = plain
    for step in (6, 15):
        process = start(run, workers=2, pause=0.05)
        assert wait_for_step(run, step, process)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == [], "workers go when their driver goes"
    process = start(run, workers=2)
    assert process.wait(120) == 0, process.stderr.read()
    assert_same(truth, run)


def test_begun_serial_and_ended_on_workers(plain):
    truth, run = plain
    process = start(run, pause=0.05)
    assert wait_for_step(run, 10, process)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process = start(run, workers=2)
    assert process.wait(120) == 0, process.stderr.read()
    assert_same(truth, run)


def test_a_second_driver_is_turned_away(plain):
    truth, run = plain
    first = start(run, pause=0.2)
    assert wait_for_step(run, 2, first)
    second = start(run)
    assert second.wait(60) != 0
    assert f"in use by process {first.pid} on" in second.stderr.read()
    assert first.wait(120) == 0
    assert_same(truth, run)


def scheduler_and_workers(folder, count):
    """Processes of a cluster that is not ours; the address of its scheduler."""
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": HERE}
    loopback = ["--host", "127.0.0.1", "--no-dashboard"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment = inherited | {"PYTHONPATH": str(HERE)}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *loopback, "--port", "0"]
    processes = [subprocess.Popen([*command, "--scheduler-file", str(file)], env=environment, **quiet)]
    while not file.exists():
        time.sleep(0.1)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), *loopback]
    options = ["--nthreads", "1", "--nworkers", "1", "--no-nanny", "--local-directory", str(folder)]
    processes += [subprocess.Popen([*command, *options], env=environment, **quiet) for _ in range(count)]
    return processes, json.loads(file.read_text())["address"]


def test_the_scheduler_dies(plain, tmp_path):
    truth, path = plain
    processes, address = scheduler_and_workers(tmp_path, 2)
    run = RunDirectory.open(path)
    job = toy_job(FitSpec.read(path / "spec.yaml"))
    try:
        with attached(address, IMPATIENT) as cluster:
            cluster.client.wait_for_workers(2, timeout=60)

            def kill(now):
                if now.step == 5:
                    processes[0].send_signal(signal.SIGKILL)

            with pytest.raises(ClusterLost, match=rf"scheduler .* ibpdist resume {path}") as caught:
                fit_on(cluster, run, job, progress=kill)
            assert caught.value.code == 5
    finally:
        for process in processes:
            process.kill()
            process.wait(30)
    run.close()
    notices = [e["text"] for e in events.read(path / "events.jsonl") if e["event"] == "notice"]
    assert any("MALLOC_ARENA_MAX=1" in text for text in notices), "its workers were not started by us"
    process = start(path)
    assert process.wait(60) == 0, process.stderr.read()
    assert_same(truth, path)
