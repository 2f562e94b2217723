"""The memory that fits need, and which of them advance together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from ibpdist.base.errors import UsageError
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.engine.memory import Plan, available, plan
from ibpdist.engine.place import Place
from ibpdist.runs.group import subsample
from ibpdist.runs.job import Job, job_on, rows_of

PLANNED = 64
"""Features that memory is planned for when their number is left to the data."""
LARGEST = 256
"""Fits of a group; a step of all of them is one line of its log."""


class HasSpec(Protocol):
    """A fit of a campaign, or one within a run."""

    @property
    def spec(self) -> FitSpec: ...


F = TypeVar("F", bound=HasSpec)


def features(spec: FitSpec) -> int:
    """The number of features that memory and time are planned for."""
    return PLANNED if spec.truncation == "auto" else spec.truncation


def share_of_rows(spec: FitSpec) -> float:
    """The share of the rows that a fit is made of, of those that it may see."""
    return 1.0 if spec.member is None else spec.subsample


def planned(job: Job, place: Place, processes: int | None = None) -> Plan:
    """The memory of each process for a job."""
    spec = job.spec
    entries = spec.chains * systems.entries(spec.system, spec.set)
    held = systems.rows_held(spec.system, spec.set, job.source.columns, features(spec))
    return place.plan(job.seen, features(spec), processes, entries=entries, held=held)


def planned_for(fits: Sequence[HasSpec], source: Source, place: Place, processes: int | None = None) -> Plan:
    """The memory of each process for fits that advance together."""
    if is_sampler(fits[0]):
        return planned(job_on(fits[0].spec, source), place, processes)
    sizes = [features(fit.spec) for fit in fits]
    entries = max(systems.entries(fit.spec.system, fit.spec.set) for fit in fits)
    largest, count = max(sizes), processes or place.processes
    alike = -(-sum(sizes) // largest)
    held = max(systems.rows_held(fit.spec.system, fit.spec.set, source.columns, largest) for fit in fits)
    limit = place.memory or available(count)
    return plan(source, largest, count, limit, place.cache, fits=alike, entries=entries, held=held)


def is_sampler(fit: HasSpec) -> bool:
    return systems.find(fit.spec.system).sampler


def grouped(fits: Sequence[F], source: Source, place: Place, processes: int | None) -> list[list[F]]:
    """As few groups as fit into memory, in order; a fit that is too large goes alone, and so do samplers."""
    groups: list[list[F]] = []
    for fit in sorted(fits, key=is_sampler):
        alone = not groups or len(groups[-1]) >= LARGEST or is_sampler(fit)
        if not alone and _fits([*groups[-1], fit], source, place, processes):
            groups[-1].append(fit)
        else:
            groups.append([fit])
    return groups


def together(fits: Sequence[F], seen: Source) -> list[list[F]]:
    """Fits of data with one hold-out, as they can advance together over the chunks of all rows.

    Apart are those of a subsample without rows in some chunk: it has fewer chunks, whose sums are added up in
    another order.
    """
    alike: dict[Any, list[F]] = {}
    known: dict[Any, Any] = {}
    for fit in fits:
        key = subsample(fit.spec)
        if key not in known:
            whole = key is None or rows_of(fit.spec, seen).chunks == seen.chunks
            known[key] = None if whole else key
        alike.setdefault(known[key], []).append(fit)
    return list(alike.values())


def _fits(fits: Sequence[HasSpec], source: Source, place: Place, processes: int | None) -> bool:
    try:
        return not planned_for(fits, source, place, processes).spill
    except UsageError:
        return False
