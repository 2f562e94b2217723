"""A group: fits of data with one hold-out that advance together, in a run of their own.

Its `spec.yaml` lists the fits, and they stay together: when all have ended, the result of each is written
to its own run. One that is there already is left as it is, so the end can be interrupted and made again.
Fits of subsamples take their rows out of the chunks of all rows, which are read once for all fits; where all
fits are of one subsample, only its rows are read.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibpdist.base.errors import StorageError, UsageError
from ibpdist.catalog.spec import FitSpec, Spec
from ibpdist.data._base import Source
from ibpdist.data.splits import SomeRows
from ibpdist.data.subsample import Subsample
from ibpdist.engine import provenance
from ibpdist.engine._base import Engine
from ibpdist.engine.history import RunHistory
from ibpdist.engine.members import MemberEngine
from ibpdist.engine.memo import InFiles, InMemory, Memo
from ibpdist.engine.memory import Plan
from ibpdist.engine.serial import Serial
from ibpdist.engine.work import AnyWorkbench, Workbench
from ibpdist.inference._base import Info
from ibpdist.inference.batch import AllEnded, Batch, Member, terms_of
from ibpdist.inference.stopping import AnySnapshot, Snapshot, Stop, StopCode, StopRule
from ibpdist.runs import result
from ibpdist.runs.bench import refuse_changed
from ibpdist.runs.directory import RunDirectory, identity, is_run
from ibpdist.runs.job import Job, centred_as, job_begun, job_on, of_all_rows, rows_of, subsample_of
from ibpdist.runs.loop import Ended, to_end
from ibpdist.storage import events, records

if TYPE_CHECKING:
    from ibpdist.engine.cluster import Cluster

OPEN = "ibpdist.runs.group:open_bench"
_UNFINISHED = ("params", "checkpoints", "state")
"""What a group that has ended needs no more."""


class GroupSpec(Spec):
    """The fits of a group, in order."""

    fits: list[FitSpec]


@dataclass(frozen=True)
class Group:
    """Fits with their algorithms, ready to advance together over `source`; `rows` are those of it that each
    fit is made of, None for all."""

    source: Source
    jobs: tuple[Job, ...]
    rows: tuple[SomeRows | None, ...]
    isolate: bool = True
    """Whether a fit that fails is set aside."""
    seed: int = 0
    """Every member has its own."""

    @property
    def algorithm(self) -> Batch:
        """The algorithms of all fits, side by side."""
        each = zip(self.jobs, self.rows, strict=True)
        members = (Member(job.algorithm, job.seed, 0, tuple(job.rules()), rows) for job, rows in each)
        return Batch(tuple(members), self.isolate)

    @property
    def checkpoint(self) -> int:
        return min(job.checkpoint for job in self.jobs)

    def rules(self) -> list[StopRule]:
        return [AllEnded()]


def group_of(specs: Sequence[FitSpec], seen: Source, isolate: bool = True) -> Group:
    """The group of these specs; `seen` are the data as fits of all rows with their hold-out see them."""
    alike = {subsample(spec): spec for spec in specs}
    rows = {key: None if key is None else rows_of(spec, seen) for key, spec in alike.items()}
    sources = {key: seen if some is None else centred_as(some, seen) for key, some in rows.items()}
    jobs = tuple(job_on(spec, sources[subsample(spec)]) for spec in specs)
    if len(sources) == 1:
        return Group(jobs[0].source, jobs, (None,) * len(jobs), isolate)
    return Group(seen, jobs, tuple(rows[subsample(spec)] for spec in specs), isolate)


def subsample(spec: FitSpec) -> Subsample | None:
    """The subsample that a fit is made of, None for all rows."""
    return None if spec.member is None else subsample_of(spec, spec.member)


def open_bench(run: str, cache: int, spill: str) -> AnyWorkbench:
    """The workbench of a group, from its directory alone."""
    specs = GroupSpec.read(Path(run) / "spec.yaml").fits
    group = group_of(specs, job_begun(of_all_rows(specs[0]), identity(Path(run))).source)
    refuse_changed(Path(run), group.jobs[0].spec.data, group.source)
    memo: Memo[Any] = InFiles(Path(spill)) if spill else InMemory()
    return Workbench(group.algorithm, group.source, RunHistory(Path(run)), 0, cache=cache, memo=memo)


@contextmanager
def engine_of(run: RunDirectory, cluster: Cluster | None, planned: Plan, chunks: int) -> Iterator[Engine]:
    """What advances a group: this process, or the workers of a cluster."""
    path = run.path.absolute()
    if cluster is None:
        spill = str(path / "state") if planned.spill else ""
        engine: Engine = Serial(open_bench(str(path), planned.cache, spill))
    else:
        engine = cluster.engine(path, run.nonce, OPEN, chunks, planned, run.tell)
    try:
        yield engine
    finally:
        engine.close()
        shutil.rmtree(path / "state", ignore_errors=True)


def group_folder(path: Path, ids: Sequence[str]) -> Path:
    """The folder in a run or a campaign in which fits with these ids advance together."""
    return path / "groups" / hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]


def under_way(path: Path, wanted: Mapping[str, object]) -> list[list[tuple[str, FitSpec]]]:
    """Groups of a run or a campaign that began and did not end and have fits that are wanted; the others are
    removed.

    Each has all of its fits, with their ids: those that are there already, or not wanted any more, end with
    the others.
    """
    groups = []
    for folder in sorted((path / "groups").glob("*")):
        try:
            fits = _fits(folder)
        except (StorageError, UsageError):  # damaged, or killed while it was made: its fits are made again
            fits = []
        if fits is not None and any(one in wanted for one, _ in fits):
            groups.append(fits)
        elif fits is not None:
            shutil.rmtree(folder, ignore_errors=True)
    return groups


@contextmanager
def opened(
    path: Path, ids: Sequence[str], specs: Sequence[FitSpec], source: Source
) -> Iterator[RunDirectory]:
    """The run of a group, new or under way."""
    folder = group_folder(path, ids)
    if is_run(folder) and not _has_ended(folder):
        run = RunDirectory.open(folder)
    else:
        facts = {**provenance.facts(source), "ids": list(ids)}
        run = RunDirectory.create(folder, GroupSpec(fits=list(specs)).dump(), lambda: facts, overwrite=True)
    try:
        yield run
    finally:
        run.close()


@dataclass(frozen=True)
class FitEnd:
    """How a fit of a group ended: its place in the group, why, and its steps with their seconds."""

    at: int
    stop: Stop
    steps: int
    seconds: float

    @property
    def failed(self) -> bool:
        return self.stop.code is StopCode.FAILED


def finish(
    run: RunDirectory,
    group: Group,
    folders: Sequence[Path],
    engine: Engine,
    tell: Callable[[FitEnd], None],
    progress: Callable[[AnySnapshot], None] | None = None,
) -> None:
    """Take a group to the results of its fits, each in its folder unless it is there; `tell` is told of each
    fit that has failed or whose result was written."""
    with records.storage_errors(run.path):
        ended = to_end(run, group, engine, progress)
        seconds = _seconds(run.path, len(folders))
        for at, (folder, job) in enumerate(zip(folders, group.jobs, strict=True)):
            member = ended.last.params.members[at]
            end = FitEnd(at, member.stop, int(member.ended), seconds[at])
            if end.failed or not result.is_complete(folder):
                if not end.failed:
                    _write(folder, job, MemberEngine(engine, at), end, ended)
                tell(end)
    close(run, step=ended.last.step)


def close(run: RunDirectory, **facts: Any) -> None:
    """Close the run of a group and remove all but its log."""
    run.events.add("finished", **facts)
    for name in _UNFINISHED:
        shutil.rmtree(run.path / name, ignore_errors=True)


def ending_of(at: int, job: Job, ended: Ended, facts: Mapping[str, Any]) -> result.Ending:
    """The last step of one fit of a group, its terms, and why it stopped."""
    member = ended.last.params.members[at]
    step = int(member.ended)
    terms = {one: terms_of(at, ended.terms[one]) for one in range(1, step + 1)}
    last = Snapshot(step, member.params, Info.of(terms[step]))
    return result.Ending(last, member.stop, terms, job.attributes(facts), ended.last.step)


def _write(folder: Path, job: Job, engine: Engine, end: FitEnd, ended: Ended) -> None:
    """Write the run of one fit, with its result."""
    facts = provenance.facts(job.source)
    ending = ending_of(end.at, job, ended, facts)
    run = RunDirectory.create(folder, job.spec.dump(), lambda: facts, overwrite=True)
    try:
        active = int(job.algorithm.describe(ending.last.params)["active"][1].sum())
        numbers = {"objective": ending.last.info.objective, "active": active}
        said: dict[str, Any] = {"stop": end.stop.code.value, "reason": end.stop.sentence, **numbers}
        run.events.add("ended", step=end.steps, seconds=end.seconds, **said)
        result.write(run.path, job.algorithm, engine, job.source, ending)
    finally:
        run.close()


def _seconds(run: Path, fits: int) -> list[float]:
    """Seconds of the steps of each fit; those of a step are shared among the fits that made it."""
    spent = [0.0] * fits
    for event in events.read(run / "events.jsonl"):
        if event["event"] != "step":
            continue
        running = [at for at in range(fits) if f"{at}/objective" in event["terms"]]
        for at in running:
            spent[at] += event["seconds"] / len(running)
    return [round(one, 3) for one in spent]


def _fits(folder: Path) -> list[tuple[str, FitSpec]] | None:
    """The ids and specs of the fits of a group; None when it has ended."""
    if _has_ended(folder):
        return None
    ids: list[str] = identity(folder)["ids"]
    return list(zip(ids, GroupSpec.read(folder / "spec.yaml").fits, strict=True))


def _has_ended(folder: Path) -> bool:
    return any(event["event"] == "finished" for event in events.read(folder / "events.jsonl"))
