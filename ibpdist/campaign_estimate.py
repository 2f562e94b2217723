"""What a campaign would take: fits, memory, disk, and time from one timed step of each kind of fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ibpdist import catalog
from ibpdist.campaign_groups import abreast, grouped, planned_for, share_of, spread
from ibpdist.campaigns import Given, spec_of
from ibpdist.data._base import Source
from ibpdist.data.arrays import as_source
from ibpdist.draws import Draws
from ibpdist.engine.place import Place, place_for
from ibpdist.engine.threads import one_thread
from ibpdist.errors import IbpError
from ibpdist.pipeline import PLANNED
from ibpdist.runs.campaign import Fit, Manifest, is_finished
from ibpdist.runs.checkpoint import KEPT
from ibpdist.runs.draws import PLACED, ROWS_KEPT
from ibpdist.runs.job import features_for
from ibpdist.spec import FitSpec
from ibpdist.words import counted, duration, size

PLAIN = {"start": "random", "moves": False}
"""A step like any other, from a start that asks nothing of the data."""


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
    spec, path = spec_of(campaign), Path(run)
    source = as_source(spec.data)
    place = place_for(source, True, workers, serial, scheduler, memory, cache)
    manifest = Manifest.of(spec, source.fingerprint)
    new = [fit for fit in manifest.fits if not is_finished(path, fit.id)]
    there = len(manifest.fits) - len(new)
    known = f", {there} of them are there already" if there else ""
    lines = [f"{counted(len(manifest.fits), 'fit')}{known}"]
    return "\n".join([*lines, *(_needs(new, source, place) if new else [])])


def _needs(fits: Sequence[Fit], source: Source, place: Place) -> list[str]:
    by_holdout = sorted(fits, key=lambda fit: str(fit.spec.holdout))
    count = abreast(fits, source, place.workers)
    share = share_of(place, count, None)
    groups = [
        some
        for _, alike in groupby(by_holdout, key=lambda fit: fit.spec.holdout)
        for some in grouped(list(alike), source, share, None)
    ]
    groups = spread(groups, count)
    largest = max((planned_for(some, source, share) for some in groups), key=lambda plan: plan.state)
    processes = max(1, place.workers)
    results = sum(_stored(fit.spec, source) for fit in fits)
    kept = KEPT * largest.state * processes
    return [
        f"{counted(len(fits), 'fit')} in {counted(len(groups), 'group')}, in {place.words}",
        str(largest),
        f"disk: at most {size(results)} of results, and {size(kept)} of checkpoints while they are made",
        _time(groups, source, processes),
    ]


def _stored(spec: FitSpec, source: Source) -> int:
    """Bytes of a result: what a row has of each feature, and parameters."""
    features = _features(spec)
    numbers = catalog.entries(spec.system, {**spec.set, "moves": False})
    rows = source.rows * features * numbers * source.dtype.itemsize
    fitted = rows + 8 * features * (4 * source.columns + 2 * features)
    return fitted + (_drawn(spec, features, source) if catalog.find(spec.system).sampler else 0)


def _drawn(spec: FitSpec, features: int, source: Source) -> int:
    """The same of the draws of a sampler, with who has what unless that is too much."""
    entries = spec.chains * features * ((spec.steps - spec.burned) // spec.thin)
    kept = source.rows if entries * source.rows <= ROWS_KEPT else 0
    return entries * (4 * source.columns + 8 * len(PLACED) + kept)


def _time(groups: Sequence[Sequence[Fit]], source: Source, processes: int) -> str:
    timed: dict[tuple[str, int, int], float] = {}
    chunk, reading = _clocked(lambda: source.read(0))
    share = source.chunks / processes
    total = 0.0
    for fits in groups:
        total += max(fit.spec.steps for fit in fits) * reading * share
        for spec in (fit.spec for fit in fits):
            kind = (spec.system, _features(spec), spec.inner)
            if kind not in timed:
                timed[kind] = _step(spec, chunk, source, share)
            total += spec.steps * timed[kind]
    steps = sorted({fit.spec.steps for fits in groups for fit in fits})
    limit = " or ".join(f"{one:,}" for one in steps)
    return (
        f"time: at most {duration(total)}, if every fit makes its {limit} steps; "
        "fits that converge make fewer"
    )


def _step(spec: FitSpec, chunk: Any, source: Source, share: float) -> float:
    """Seconds of a step: of all chunks, from one, and of the update; 0 when it cannot begin."""
    draws = Draws(spec.seed)
    try:
        features = min(_features(spec), features_for(spec, source))
        known = catalog.settings_of(spec.system)
        settings = {**spec.set, **{name: value for name, value in PLAIN.items() if name in known}}
        algorithm = catalog.build(spec.system, features, inner=spec.inner, settings=settings)
        if catalog.find(spec.system).in_turn:
            return spec.chains * spec.inner * share * _sweep(algorithm, chunk, draws)
        return spec.chains * _parallel(algorithm, chunk, share, draws)
    except IbpError:
        return 0.0


def _sweep(sampler: Any, chunk: Any, draws: Draws) -> float:
    """Seconds that rows taken in turn need for those of a chunk."""
    with one_thread():
        chain = sampler.start(chunk, sampler.model.observation.survey(chunk), draws.at(0))
        sampler.sweep(chunk, chain, draws.at(1))
        return _clocked(lambda: sampler.sweep(chunk, chain, draws.at(1)))[1]


def _parallel(algorithm: Any, chunk: Any, share: float, draws: Draws) -> float:
    with one_thread():
        params = algorithm.init(algorithm.survey(chunk), draws.at(0))
        local = algorithm.start(chunk, params, draws.at(0))
        algorithm.local(chunk, local, params, draws.at(1))  # once more than is timed: it may compile
        (_, sums), rows = _clocked(lambda: algorithm.local(chunk, local, params, draws.at(1)))
        _, update = _clocked(lambda: algorithm.update(params, sums, draws.at(1)))
    return rows * share + update


def _clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def _features(spec: FitSpec) -> int:
    return PLANNED if spec.truncation == "auto" else spec.truncation
