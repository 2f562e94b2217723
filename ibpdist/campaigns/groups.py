"""How many groups of fits of a campaign advance side by side (runs/planning.py says which fits together)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ibpdist.campaigns.directory import Fit
from ibpdist.catalog import systems
from ibpdist.data._base import Source
from ibpdist.engine.memory import available
from ibpdist.engine.place import Place

TASKS = 16
"""Tasks of a step for each worker with which one group is enough: its updates, during which workers wait,
are short against them."""


def by_holdout(fits: Sequence[Fit]) -> dict[float | str, list[Fit]]:
    """Fits that hold out the same, in order; those of a campaign are of one kind of data."""
    alike: dict[float | str, list[Fit]] = {}
    for fit in fits:
        alike.setdefault(fit.spec.holdout, []).append(fit)
    return alike


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
