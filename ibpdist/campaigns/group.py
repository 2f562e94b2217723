"""A group: fits of the same data and hold-out that advance together, in a run of their own.

Its `spec.yaml` lists the fits, and they stay together: when all have ended, the result of each is written
to its own run. One that is there already is left as it is, so the end can be interrupted and made again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibpdist.base.errors import BUG, StorageError, UsageError
from ibpdist.campaigns.directory import CampaignDirectory, Fit, fit_folder, is_finished
from ibpdist.catalog.spec import FitSpec, Spec
from ibpdist.data._base import Source
from ibpdist.engine import provenance
from ibpdist.engine._base import Engine
from ibpdist.engine.history import RunHistory
from ibpdist.engine.members import MemberEngine
from ibpdist.engine.memo import InFiles, InMemory, Memo
from ibpdist.engine.work import AnyWorkbench, Workbench
from ibpdist.inference._base import Info
from ibpdist.inference.batch import AllEnded, Batch, Member, terms_of
from ibpdist.inference.stopping import AnySnapshot, Snapshot, StopCode, StopRule
from ibpdist.runs import result
from ibpdist.runs.bench import refuse_changed
from ibpdist.runs.directory import RunDirectory, identity, is_run
from ibpdist.runs.job import Job, as_begun, job_begun, job_of, job_on
from ibpdist.runs.loop import Ended, to_end
from ibpdist.storage import events, records

OPEN = "ibpdist.campaigns.group:open_bench"
_UNFINISHED = ("params", "checkpoints", "state")
"""What a group that has ended needs no more."""


class GroupSpec(Spec):
    """The fits of a group, in order."""

    fits: list[FitSpec]


@dataclass(frozen=True)
class Group:
    """Fits with their algorithms, ready to advance together."""

    jobs: tuple[Job, ...]
    seed: int = 0
    """Every member has its own."""

    @property
    def source(self) -> Source:
        return self.jobs[0].source

    @property
    def algorithm(self) -> Batch:
        """The algorithms of all fits, side by side."""
        return Batch(tuple(Member(job.algorithm, job.seed, 0, tuple(job.rules())) for job in self.jobs))

    @property
    def checkpoint(self) -> int:
        return min(job.checkpoint for job in self.jobs)

    def rules(self) -> list[StopRule]:
        return [AllEnded()]

    def begun(self, facts: Mapping[str, Any]) -> Group:
        """The same with the data centred as the facts of its run say."""
        return group_of([job.spec for job in self.jobs], as_begun(self.source, facts))


def group_of(specs: Sequence[FitSpec], source: Source | None = None) -> Group:
    """The group of these specs; the data, as fits see them, are opened unless they are given."""
    data = source if source is not None else job_of(specs[0]).source
    return Group(tuple(job_on(spec, data) for spec in specs))


def open_bench(run: str, cache: int, spill: str) -> AnyWorkbench:
    """The workbench of a group, from its directory alone."""
    specs = GroupSpec.read(Path(run) / "spec.yaml").fits
    group = group_of(specs, job_begun(specs[0], identity(Path(run))).source)
    refuse_changed(Path(run), group.jobs[0].spec.data, group.source)
    memo: Memo[Any] = InFiles(Path(spill)) if spill else InMemory()
    return Workbench(group.algorithm, group.source, RunHistory(Path(run)), 0, cache=cache, memo=memo)


def group_folder(campaign: Path, fits: Sequence[Fit]) -> Path:
    """The folder in which these fits advance together."""
    name = hashlib.sha256(" ".join(fit.id for fit in fits).encode()).hexdigest()[:16]
    return campaign / "groups" / name


def under_way(campaign: Path, wanted: Sequence[Fit]) -> list[list[Fit]]:
    """Groups that began and did not end and have fits that are wanted; the others are removed.

    Each has all of its fits: those that are there already, or not in the grid any more, end with the others.
    """
    by_id, groups = {fit.id: fit for fit in wanted}, []
    for folder in sorted((campaign / "groups").glob("*")):
        try:
            fits = _fits(folder, by_id)
        except (StorageError, UsageError):  # damaged, or killed while it was made: its fits are made again
            fits = []
        if fits is not None and any(fit.id in by_id for fit in fits):
            groups.append(fits)
        elif fits is not None:
            shutil.rmtree(folder, ignore_errors=True)
    return groups


@contextmanager
def opened(campaign: Path, fits: Sequence[Fit], source: Source) -> Iterator[RunDirectory]:
    """The run of a group, new or under way."""
    folder = group_folder(campaign, fits)
    if is_run(folder) and _ids(folder) is not None:
        run = RunDirectory.open(folder)
    else:
        spec = GroupSpec(fits=[fit.spec for fit in fits])
        facts = {**provenance.facts(source), "ids": [fit.id for fit in fits]}
        run = RunDirectory.create(folder, spec.dump(), lambda: facts, overwrite=True)
    try:
        yield run
    finally:
        run.close()


def finish(
    campaign: CampaignDirectory,
    run: RunDirectory,
    fits: Sequence[Fit],
    group: Group,
    engine: Engine,
    progress: Callable[[AnySnapshot], None] | None = None,
) -> None:
    """Take a group to the results of its fits."""
    with records.storage_errors(run.path):
        ended = to_end(run, group, engine, progress)
        seconds = _seconds(run.path, len(fits))
        for at, (fit, job) in enumerate(zip(fits, group.jobs, strict=True)):
            stop = ended.last.params.members[at].stop
            if stop.code is StopCode.FAILED:
                campaign.fail(fit, stop.sentence, code_of(stop.sentence))
            elif not is_finished(campaign.path, fit.id):
                _write(campaign, fit, job, MemberEngine(engine, at), at, ended, seconds[at])
    close(run, step=ended.last.step)


def close(run: RunDirectory, **facts: Any) -> None:
    """Close the run of a group and remove all but its log."""
    run.events.add("finished", **facts)
    for name in _UNFINISHED:
        shutil.rmtree(run.path / name, ignore_errors=True)


def _write(
    campaign: CampaignDirectory, fit: Fit, job: Job, engine: Engine, at: int, ended: Ended, seconds: float
) -> None:
    """Write the run of one fit, with its result."""
    member = ended.last.params.members[at]
    step = int(member.ended)
    terms = {one: terms_of(at, ended.terms[one]) for one in range(1, step + 1)}
    facts = provenance.facts(job.source)
    run = RunDirectory.create(
        fit_folder(campaign.path, fit.id), fit.spec.dump(), lambda: facts, overwrite=True
    )
    try:
        last = Snapshot(step, member.params, Info.of(terms[step]))
        numbers = {"objective": last.info.objective, "active": _active(job, member.params)}
        said: dict[str, Any] = {"stop": member.stop.code.value, "reason": member.stop.sentence, **numbers}
        run.events.add("ended", step=step, seconds=seconds, **said)
        ending = result.Ending(last, member.stop, terms, job.attributes(facts), ended.last.step)
        result.write(run.path, job.algorithm, engine, job.source, ending)
    finally:
        run.close()
    campaign.events.add("fit", fit=fit.id, steps=step, seconds=seconds)


def code_of(reason: str) -> int:
    """The exit code of a fit that failed in a group, from the sentence of its failure."""
    return BUG if reason.endswith("this is a bug") else UsageError.code


def _active(job: Job, params: Any) -> int:
    return int(job.algorithm.describe(params)["active"][1].sum())


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


def _fits(folder: Path, wanted: Mapping[str, Fit]) -> list[Fit] | None:
    """The fits of a group, without labels where they are not wanted; None when it has ended."""
    ids = _ids(folder)
    if ids is None:
        return None
    specs = GroupSpec.read(folder / "spec.yaml").fits
    return [wanted.get(one) or Fit(one, {}, spec) for one, spec in zip(ids, specs, strict=True)]


def _ids(folder: Path) -> list[str] | None:
    """The ids of the fits of a group; None when it has ended."""
    if any(event["event"] == "finished" for event in events.read(folder / "events.jsonl")):
        return None
    ids: list[str] = identity(folder)["ids"]
    return ids
