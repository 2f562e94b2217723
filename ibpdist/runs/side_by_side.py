"""The fits of subsamples within a run, side by side: in as few groups as fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ibpdist.base.progress import after, before
from ibpdist.engine import provenance
from ibpdist.engine.members import MemberEngine
from ibpdist.engine.memory import Plan
from ibpdist.engine.place import Place
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.work import Workbench
from ibpdist.inference._base import Info
from ibpdist.inference.stopping import AnySnapshot
from ibpdist.runs import result
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.group import FitEnd, ending_of, engine_of, finish, group_of, opened, under_way
from ibpdist.runs.job import Job
from ibpdist.runs.loop import Progress, end_in_memory
from ibpdist.runs.nested import Nested, nested_fits
from ibpdist.runs.planning import grouped, planned_for, together

if TYPE_CHECKING:
    from ibpdist.engine.cluster import Cluster


def advance(
    directory: RunDirectory, job: Job, place: Place, cluster: Cluster | None, progress: Progress | None
) -> None:
    """Take the subsamples of a run that have no result yet to theirs; groups that are under way go first."""
    fits = {one.place: one for one in _subsamples(job)}
    missing = {name: one for name, one in fits.items() if not result.is_complete(one.folder(directory.path))}
    known = [[fits[name] for name, _ in group] for group in under_way(directory.path, missing)]
    taken = {one.place for group in known for one in group}
    rest = [one for name, one in missing.items() if name not in taken]
    for some in [*known, *_groups(rest, job, place, cluster.size if cluster else None)]:
        _advance(directory, some, job, place, cluster, progress)


def in_memory(job: Job, place: Place, progress: Progress | None) -> list[xr.DataTree]:
    """The results of all subsamples, with nothing left on disk."""
    found: dict[str, xr.DataTree] = {}
    for some in _groups(_subsamples(job), job, place, None):
        group = group_of([one.spec for one in some], job.source, isolate=False)
        cache = planned_for(some, group.source, place).cache
        engine = Serial(Workbench(group.algorithm, group.source, MemoryHistory(), 0, cache=cache))
        ended = end_in_memory(group, engine, _as_one(progress))
        for at, (one, own) in enumerate(zip(some, group.jobs, strict=True)):
            ending = ending_of(at, own, ended, provenance.facts(own.source))
            found[one.place] = result.tree(own.algorithm, MemberEngine(engine, at), own.source, ending)
    return [found[one.place] for one in _subsamples(job)]


def planned(job: Job, place: Place) -> list[Plan]:
    """The memory of each process for each of the groups of subsamples."""
    groups = _groups(_subsamples(job), job, place, None)
    sources = [group_of([one.spec for one in some], job.source).source for some in groups]
    return [planned_for(some, source, place) for some, source in zip(groups, sources, strict=True)]


def _subsamples(job: Job) -> list[Nested]:
    return [one for one in nested_fits(job.spec) if not one.of_all_rows]


def _groups(fits: Sequence[Nested], job: Job, place: Place, processes: int | None) -> list[list[Nested]]:
    alike = together(fits, job.source)
    return [group for some in alike for group in grouped(some, job.source, place, processes)]


def _advance(
    directory: RunDirectory,
    fits: Sequence[Nested],
    job: Job,
    place: Place,
    cluster: Cluster | None,
    progress: Progress | None,
) -> None:
    """Take a group to the results of its subsamples. What fails one fails the run."""

    def tell(end: FitEnd) -> None:
        directory.events.add(fits[end.at].kind, **fits[end.at].facts)

    ids, specs = [one.place for one in fits], [one.spec for one in fits]
    group = group_of(specs, job.source, isolate=False)
    memory = planned_for(fits, group.source, place, cluster.size if cluster else None)
    with opened(directory.path, ids, specs, group.source) as run:
        run.events.add("memory", plan=str(memory))
        with engine_of(run, cluster, memory, group.source.chunks) as engine:
            folders = [one.folder(directory.path) for one in fits]
            finish(run, group, folders, engine, tell, _as_one(progress))


def _as_one(progress: Progress | None) -> Progress | None:
    return None if progress is None else AsOne(progress)


class AsOne:
    """Progress of fits that advance together, told as that of one fit with their mean numbers."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.before, self.after = before(progress), after(progress)

    def __call__(self, now: AnySnapshot) -> None:
        """The objective of a fit that has ended is that of its last step."""
        level = float(np.mean([one.level for one in now.params.members]))
        terms = {**now.info.terms, "objective": level}
        self._progress(replace(now, info=Info(terms, running=now.info.running)))
