"""Which fits of a campaign advance together, and how many such groups side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ibpdist.base.errors import UsageError
from ibpdist.campaigns.directory import Fit
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.engine.memory import Plan, available, plan
from ibpdist.engine.place import Place
from ibpdist.runs.fit import PLANNED, planned
from ibpdist.runs.job import job_on

LARGEST = 256
"""Fits of a group; a step of all of them is one line of its log."""
TASKS = 16
"""Tasks of a step for each worker with which one group is enough: its updates, during which workers wait,
are short against them."""


def view(spec: FitSpec) -> tuple[Any, ...]:
    """What decides which data a fit of the campaign sees."""
    subsample = () if spec.member is None else (spec.seed, spec.member, spec.subsample)
    return (spec.holdout, *subsample)


def by_view(fits: Sequence[Fit]) -> list[list[Fit]]:
    """Fits that see the same data, together and in order."""
    alike: dict[tuple[Any, ...], list[Fit]] = {}
    for fit in fits:
        alike.setdefault(view(fit.spec), []).append(fit)
    return list(alike.values())


def is_sampler(fit: Fit) -> bool:
    return systems.find(fit.spec.system).sampler


def parallel_groups(fits: Sequence[Fit], source: Source, workers: int) -> int:
    """Groups that advance side by side so that no worker waits: one where a step is many tasks."""
    tasks = min(fit.spec.chains if systems.find(fit.spec.system).in_turn else source.chunks for fit in fits)
    if workers == 0 or tasks >= TASKS * workers:
        return 1
    return min(len(fits), max(2, -(-workers // tasks)))


def resources_per_group(place: Place, count: int, processes: int | None) -> Place:
    """The share of a place that each of `count` groups has when they advance side by side."""
    if count == 1:
        return place
    memory = place.memory or available(processes or place.processes)
    cache = None if place.cache is None else place.cache // count
    return replace(place, memory=memory // count, cache=cache)


def spread(groups: Sequence[Sequence[Fit]], count: int) -> list[list[Fit]]:
    """At least `count` groups, if there are as many fits: the largest ones are divided, large fits evenly."""
    divided = [list(fits) for fits in groups]
    while len(divided) < count:
        largest = max(divided, key=len)
        if len(largest) == 1:
            break
        at = divided.index(largest)
        divided[at : at + 1] = [largest[::2], largest[1::2]]
    return divided


def grouped(fits: Sequence[Fit], source: Source, place: Place, processes: int | None) -> list[list[Fit]]:
    """As few groups as fit into memory, in order; a fit that is too large goes alone, and so do samplers."""
    groups: list[list[Fit]] = []
    for fit in sorted(fits, key=is_sampler):
        alone = not groups or len(groups[-1]) >= LARGEST or is_sampler(fit)
        if not alone and _fits([*groups[-1], fit], source, place, processes):
            groups[-1].append(fit)
        else:
            groups.append([fit])
    return groups


def planned_for(fits: Sequence[Fit], source: Source, place: Place, processes: int | None = None) -> Plan:
    """The memory of each process for fits that advance together."""
    if is_sampler(fits[0]):
        return planned(job_on(fits[0].spec, source), place, processes)
    sizes = [PLANNED if fit.spec.truncation == "auto" else fit.spec.truncation for fit in fits]
    entries = max(systems.entries(fit.spec.system, fit.spec.set) for fit in fits)
    largest, count = max(sizes), processes or place.processes
    alike = -(-sum(sizes) // largest)
    limit = place.memory or available(count)
    return plan(source, largest, count, limit, place.cache, fits=alike, entries=entries)


def _fits(fits: Sequence[Fit], source: Source, place: Place, processes: int | None) -> bool:
    try:
        return not planned_for(fits, source, place, processes).spill
    except UsageError:
        return False
