"""A workbench for a run, from its directory alone: what every worker process makes once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.data.store import changed
from ibpdist.engine.history import RunHistory
from ibpdist.engine.memo import InFiles, InMemory, Memo
from ibpdist.engine.work import AnyWorkbench, Workbench
from ibpdist.runs.directory import identity
from ibpdist.runs.job import Job, job_begun


def open_bench(run: str, cache: int, spill: str) -> AnyWorkbench:
    """The workbench of RUN; `cache` bytes for data, row state in the folder `spill` unless it is empty."""
    job = job_begun(FitSpec.read(Path(run) / "spec.yaml"), identity(Path(run)))
    refuse_changed(Path(run), job.spec.data, job.source)
    return bench_of(job, run, cache, spill)


def refuse_changed(run: Path, data: str, source: Source) -> None:
    """StorageError unless `source`, the data as the fit sees them, is that with which RUN began: a worker
    that comes later opens them again."""
    begun = identity(run)
    if source.fingerprint != begun["fingerprint"]:
        raise changed(data, begun["rows"], source.rows)


def bench_of(job: Job, run: str, cache: int = 0, spill: str = "") -> AnyWorkbench:
    memo: Memo[Any] = InFiles(Path(spill)) if spill else InMemory()
    return Workbench(job.algorithm, job.seen, RunHistory(Path(run)), job.spec.seed, cache=cache, memo=memo)
