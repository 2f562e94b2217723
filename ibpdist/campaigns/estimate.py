"""The cost of a campaign: fits, memory, disk, and time from a trial of each kind of fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ibpdist.base.errors import IbpError
from ibpdist.base.words import counted, duration, size
from ibpdist.campaigns.directory import Fit, Manifest, is_finished
from ibpdist.campaigns.groups import by_holdout, parallel_groups, resources_per_group, spread
from ibpdist.campaigns.run import Given, spec_of
from ibpdist.campaigns.spec import in_words
from ibpdist.campaigns.timing import Timing, seconds
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.data.splits import held
from ibpdist.engine.checkpoint import KEPT
from ibpdist.engine.place import Place
from ibpdist.runs.job import opened
from ibpdist.runs.planning import features, grouped, planned_for, share_of_rows, together
from ibpdist.runs.posterior_draws import PLACED, ROWS_KEPT

NAMED = 8
"""Kinds of fits that cannot begin which are named one by one."""


def estimate(
    campaign: Given,
    run: str | Path,
    *,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    cache: int | None = None,
) -> str:
    """What `sweep` would do with the same arguments, in words. Nothing is written."""
    asked = Place(workers, serial, scheduler, memory, cache)
    path = Path(run)
    spec = spec_of(campaign, path)
    source = opened(spec.data, spec.system[0])
    place = asked.for_data(source, kept=True)
    manifest = Manifest.of(spec, source.fingerprint)
    new = [fit for fit in manifest.fits if not is_finished(path, fit.id)]
    there = len(manifest.fits) - len(new)
    known = f", {there} of them are there already" if there else ""
    lines = [f"{counted(len(manifest.fits), 'fit')}{known}{_subsamples(new)}{_chains(new)}"]
    if not new:
        return lines[0]
    timing = Timing(source, place.processes)
    broken = _broken(new, timing, place)
    lines += _refused(broken)
    begun = [fit for fit in new if fit.id not in broken]
    some = [part for fit in begun for part in fit.parts if not is_finished(path, part.id)]
    stored = {fit.id: _stored(fit.spec, source) for fit in (*begun, *some)}
    return "\n".join([*lines, *(_needs(some, sum(stored.values()), timing, place) if some else [])])


def _subsamples(fits: Sequence[Fit]) -> str:
    """The number of fits of subsamples in words."""
    count = sum(fit.spec.stability or 0 for fit in fits)
    return f"; {counted(count, 'fit')} of subsamples beside them" if count else ""


def _chains(fits: Sequence[Fit]) -> str:
    """The number of samplers and of their chains in words."""
    each = [fit.spec.chains for fit in fits if systems.find(fit.spec.system).sampler]
    if not each:
        return ""
    return f"; {counted(len(each), 'sampler')} among them, together {counted(sum(each), 'chain')}"


def _broken(fits: Sequence[Fit], timing: Timing, place: Place) -> Mapping[str, tuple[Fit, str]]:
    """Fits that cannot begin, each with the reason; restarts of a kind are alike."""
    faults: dict[str, str | None] = {}
    broken = {}
    for fit in fits:
        kind = in_words({name: value for name, value in fit.labels.items() if name != "restart"})
        if kind not in faults:
            faults[kind] = _fault(fit, timing, place)
        reason = faults[kind]
        if reason is not None:
            broken[fit.id] = fit, reason
    return broken


def _fault(fit: Fit, timing: Timing, place: Place) -> str | None:
    try:
        timing.check(fit.spec)
        planned_for([fit], timing.source, place)
    except IbpError as error:
        return str(error)
    return None


def _refused(broken: Mapping[str, tuple[Fit, str]]) -> Iterator[str]:
    """A line for each kind of fit that cannot begin."""
    if not broken:
        return
    yield f"{counted(len(broken), 'fit')} cannot begin:"
    kinds: dict[str, str] = {}
    for fit, reason in broken.values():
        kinds.setdefault(in_words({n: v for n, v in fit.labels.items() if n != "restart"}), reason)
    yield from (f"- {kind}: {reason}" for kind, reason in list(kinds.items())[:NAMED])
    if len(kinds) > NAMED:
        yield f"- and {counted(len(kinds) - NAMED, 'more kind')}"


def _needs(fits: Sequence[Fit], results: int, timing: Timing, place: Place) -> list[str]:
    """Groups, memory, disk with so many bytes of results, and time."""
    source = timing.source
    count = parallel_groups(fits, source, place.workers or 0)
    share = resources_per_group(place, count, None)
    groups = [
        some
        for holdout, held_out in by_holdout(fits).items()
        for alike in together(held_out, held(source, holdout) if holdout else source)
        for some in grouped(alike, source, share, None)
    ]
    groups = spread(groups, count)
    largest = max((planned_for(some, source, share) for some in groups), key=lambda plan: plan.state)
    kept = KEPT * largest.state * place.processes
    return [
        f"{counted(len(fits), 'fit')} in {counted(len(groups), 'group')}, in {place.words}",
        str(largest),
        f"disk: at most {size(results)} of results, and {size(kept)} of checkpoints while they are made",
        _time(groups, timing, place),
    ]


def _stored(spec: FitSpec, source: Source) -> int:
    """Bytes of a result: what a row has of each feature, and parameters."""
    each = features(spec)
    numbers = systems.entries(spec.system, {**spec.set, "moves": False})
    rows = round(source.rows * share_of_rows(spec)) * each * numbers * source.dtype.itemsize
    fitted = rows + 8 * each * (4 * source.columns + 2 * each)
    return fitted + (_drawn(spec, each, source) if systems.find(spec.system).sampler else 0)


def _drawn(spec: FitSpec, count: int, source: Source) -> int:
    """Bytes of the draws of a sampler, with z of the rows unless that is too large."""
    entries = spec.chains * count * ((spec.steps - spec.burned) // spec.thin)
    kept = source.rows if entries * source.rows <= ROWS_KEPT else 0
    return entries * (4 * source.columns + 8 * len(PLACED) + kept)


def _time(groups: Sequence[Sequence[Fit]], timing: Timing, place: Place) -> str:
    specs = [[fit.spec for fit in fits] for fits in groups]
    total = seconds(specs, timing, lambda spec: _stored(spec, timing.source), bool(place.workers))
    steps = sorted({spec.steps for group in specs for spec in group})
    limit = " or ".join(f"{one:,}" for one in steps)
    return (
        f"time: about {duration(total)}, if every fit makes its {limit} steps; fits that converge make fewer"
    )
