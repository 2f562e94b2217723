"""Certificates as `deploy/make_tls.py` makes them, and a cluster of other processes that uses them."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from ibpdist.engine.remote import MALLOC

HERE = Path(__file__).parents[2]
MAKE = HERE / "deploy" / "make_tls.py"


def make_tls(*arguments):
    command = [sys.executable, str(MAKE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def environment(folder=None, **more):
    """The environment of a process that finds the certificates of a folder, or none."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DASK_", "MALLOC_"))}
    found = {"DASK_CONFIG": str(folder / "dask.yaml")} if folder else {}
    return kept | {"PYTHONPATH": str(HERE)} | found | more


@contextlib.contextmanager
def tls_cluster(folder, room, workers=2):
    """The address of a scheduler with workers, all on loopback; gone at the end, by their ids."""
    file, loopback = room / "scheduler.json", ["--host", "127.0.0.1", "--no-dashboard"]
    options = {
        "env": environment(folder, **MALLOC),
        "cwd": HERE,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    python = [sys.executable, "-m"]
    where = ["--protocol", "tls", "--port", "0", "--scheduler-file", str(file)]
    single = ["--nthreads", "1", "--nworkers", "1", "--no-nanny", "--local-directory", str(room)]
    processes = [subprocess.Popen([*python, "distributed.cli.dask_scheduler", *loopback, *where], **options)]
    try:
        wait_for(file.exists)
        joins = [*python, "distributed.cli.dask_worker", "--scheduler-file", str(file), *loopback, *single]
        processes += [subprocess.Popen(joins, **options) for _ in range(workers)]
        yield json.loads(file.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(30)


def wait_for(happened, seconds=60.0, pause=0.1):
    """Until something is true; what it was then."""
    deadline = time.monotonic() + seconds
    while not (found := happened()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen in {seconds:g} s: {happened}")
        time.sleep(pause)
    return found
