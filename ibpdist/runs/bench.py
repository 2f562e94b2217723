"""A workbench for a run, from its directory alone: what every worker process makes once."""

from __future__ import annotations

from pathlib import Path

from ibpdist.engine.memo import InFiles, InMemory
from ibpdist.engine.work import Workbench
from ibpdist.runs.history import RunHistory
from ibpdist.runs.job import Job, job_of
from ibpdist.spec import FitSpec


def open_bench(run: str, cache: int, spill: str) -> Workbench:
    """The workbench of RUN; `cache` bytes for data, row state in the folder `spill` unless it is empty."""
    return bench_of(job_of(FitSpec.read(Path(run) / "spec.yaml")), run, cache, spill)


def bench_of(job: Job, run: str, cache: int = 0, spill: str = "") -> Workbench:
    memo = InFiles(Path(spill)) if spill else InMemory()
    return Workbench(job.algorithm, job.seen, RunHistory(Path(run)), job.spec.seed, cache=cache, memo=memo)
