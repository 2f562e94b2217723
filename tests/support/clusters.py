"""Local clusters for tests, and fits of toys on them."""

import contextlib
import os
import signal
import threading
import time

import psutil

from ibpdist.engine.memory import Plan
from ibpdist.engine.watch import Patience
from ibpdist.runs.loop import drive
from tests.support.toy import OPEN_TOY

PLAN = Plan(limit=1 << 30, base=0, chunks=0, sums=0, start=0, state=0, cache=1 << 20, spill=False)
IMPATIENT = Patience(named=3.0, worker=10.0, cluster=20.0, scheduler=2.0, stall=60.0)


def engine_on(cluster, run, job, plan=PLAN):
    """The engine of a toy run on a cluster."""
    return cluster.engine(run.path, run.nonce, OPEN_TOY, job.source.chunks, plan, run.tell)


def fit_on(cluster, run, job, plan=PLAN, progress=None):
    """Drive a toy run to its end on a cluster."""
    engine = engine_on(cluster, run, job, plan)
    try:
        drive(run, job, engine, progress)
    finally:
        engine.close()


def pids(cluster):
    """Process ids of the workers by address."""
    return cluster.client.run(os.getpid)


def worker_pids():
    """Process ids of the workers that this process has started."""
    found = []
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "spawn_main" in " ".join(process.cmdline()):
                found.append(process.pid)
    return found


def kill_the_oldest():
    """Kill the worker of this process that has run longest: one that has just come has no row state yet."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess, ValueError):
        os.kill(min(worker_pids(), key=lambda pid: psutil.Process(pid).create_time()), signal.SIGKILL)


class StepKiller:
    """Called after every step: kills a worker until row state had to be made again in `wanted` steps.

    It kills in turn at once, when the row state of the worker is certainly needed again, and `delay` seconds
    later, when tasks of the next step run. `due` tells which steps count.
    """

    def __init__(self, workers, wanted, delay, due=lambda now: True):
        self.workers, self.wanted, self.delay, self.due = workers, wanted, delay, due
        self.noticed = self.kills = 0

    def __call__(self, now):
        self.noticed += now.replayed > 0
        if self.noticed >= self.wanted or not self.due(now):
            return
        deadline = time.monotonic() + 30
        while len(worker_pids()) < self.workers and time.monotonic() < deadline:
            time.sleep(0.1)
        self.kills += 1
        if self.kills % 2:
            kill_the_oldest()
        else:
            threading.Timer(self.delay, kill_the_oldest).start()
