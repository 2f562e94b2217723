"""A driver process for tests that kill it: goes on with a toy run until it is done.

    python -m tests.support.toy_driver RUN WORKERS PAUSE

PAUSE seconds pass after each step, so that a kill meets the run in the middle.
"""

import sys
import time
from pathlib import Path

from ibpdist.catalog.spec import FitSpec
from ibpdist.engine.cluster import local
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.loop import drive
from tests.support.clusters import IMPATIENT, fit_on
from tests.support.toy import serial_engine, toy_job


def main(path, workers, pause):
    run = RunDirectory.open(Path(path))
    job = toy_job(FitSpec.read(run.path / "spec.yaml"))

    def progress(now):
        time.sleep(pause)

    if workers == 0:
        drive(run, job, serial_engine(run.path, job), progress)
    else:
        with local(workers, memory=1 << 30, patience=IMPATIENT) as cluster:
            fit_on(cluster, run, job, progress=progress)
    run.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
