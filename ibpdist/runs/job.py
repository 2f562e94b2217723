"""A spec with its algorithm and its data, opened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ibpdist.base.errors import InputError, UsageError
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.data.arrays import as_source
from ibpdist.data.centring import Centred, centred, with_center
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.data.one_chunk import Whole
from ibpdist.data.splits import HeldCells, SomeRows, as_split, held
from ibpdist.data.subsample import HALF, Subsample
from ibpdist.engine import provenance
from ibpdist.engine._base import Engine
from ibpdist.engine.members import ChainEngine, MemberEngine
from ibpdist.inference._base import AnyParallel
from ibpdist.inference.batch import AllEnded, Batch, Member
from ibpdist.inference.in_turn.chains import Chains
from ibpdist.inference.in_turn.sequential import Sequential
from ibpdist.inference.stopping import AllSteps, Converged, Rising, Steady, StepLimit, StopRule, tolerance
from ibpdist.model.observations.tiles import tile_rows


@dataclass(frozen=True)
class Job:
    """A fit or sampler, ready to run anywhere."""

    spec: FitSpec
    algorithm: Any
    source: Source

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def checkpoint(self) -> int:
        return self.spec.checkpoint

    @property
    def truncation(self) -> int:
        return features_for(self.spec, self.source)

    @cached_property
    def seen(self) -> Source:
        """The data as engines see them."""
        return self.source

    def rules(self) -> list[StopRule]:
        """The rules that stop the fit, and those that fail it."""
        monotone = self.algorithm.monotone()
        converged = (Converged if monotone else Steady)(self.spec.rtol)
        return [_guard(self.source, monotone), converged, StepLimit(self.spec.steps)]

    def attributes(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes of a result about its origin; records as JSON."""
        values = {name: _plain(value) for name, value in facts.items() if name != provenance.CENTER}
        own = {
            "system": self.spec.system,
            "truncation": features_for(self.spec, self.source),
            "seed": str(self.spec.seed),
        }
        tile = tile_rows(self.source.columns, self.source.dtype.itemsize)
        return {"spec": self.spec.dump(), **own, **values, "tile": tile}


@dataclass(frozen=True)
class SamplerJob(Job):
    """Chains that each make all of their steps."""

    @cached_property
    def seen(self) -> Source:
        """The data, or for chains that take rows in turn all rows once for each chain."""
        return Whole(self.source, self.spec.chains) if isinstance(self.algorithm, Chains) else self.source

    def rules(self) -> list[StopRule]:
        return [AllEnded()]

    def views(self, engine: Engine) -> list[tuple[AnyParallel, Engine]]:
        """Each chain as a fit of its own."""
        members = enumerate(self.algorithm.members)
        if isinstance(self.algorithm, Chains):
            return [(m.algorithm, ChainEngine(engine, c, self.source.chunks)) for c, m in members]
        return [(m.algorithm, MemberEngine(engine, c)) for c, m in members]


def opened(data: object, system: str) -> Source:
    """Data as a system takes them: what is odd about columns of real-valued data is usual for counts."""
    counts = systems.find(system).counts
    return as_source(data, judged=not counts, counts=counts, level=3)


def job_of(spec: FitSpec, source: Source | None = None) -> Job:
    """A spec with its algorithm and its data, which are opened unless they are given."""
    return job_on(spec, _centred_for(spec, _trained_on(spec, source)))


def job_begun(spec: FitSpec, facts: Mapping[str, Any]) -> Job:
    """The job of a run whose `facts` were recorded when it began: its data are centred as they were then."""
    return job_on(spec, as_begun(_trained_on(spec), facts))


def as_begun(data: Source, facts: Mapping[str, Any]) -> Source:
    """Data centred as the facts of a run say."""
    return with_center(data, facts.get(provenance.CENTER))


def seen_by_fits(source: Source, spec: FitSpec) -> Source:
    """Data as fits of all rows with this hold-out see them."""
    return _centred_for(spec, held(source, spec.holdout) if spec.holdout else source)


def _centred_for(spec: FitSpec, source: Source) -> Source:
    """Data centred where it must be; counts stay as they are."""
    return source if systems.find(spec.system).counts else centred(source)


def _trained_on(spec: FitSpec, source: Source | None = None) -> Source:
    """The data of a spec without what it holds out."""
    data = (
        source
        if source is not None
        else as_source(spec.data, judged=False, counts=systems.find(spec.system).counts)
    )
    if data.rows == 0:
        raise InputError("has no rows", file=spec.data)
    seen = held(data, spec.holdout) if spec.holdout else data
    return seen if spec.member is None else subsample_of(spec, spec.member).of(seen)


def subsample_of(spec: FitSpec, member: int) -> Subsample:
    """A subsample of the rows that a fit sees."""
    return Subsample(spec.seed, member, spec.subsample)


def of_all_rows(spec: FitSpec) -> FitSpec:
    """The spec of the same fit made of all rows instead of a subsample."""
    return spec.model_copy(update={"member": None, "subsample": HALF})


def rows_of(spec: FitSpec, seen: Source) -> SomeRows:
    """The rows of the subsample that a fit is made of, of data from which its hold-out is taken; their
    values are not centred."""
    raw = seen.source if isinstance(seen, Centred) else seen
    return subsample_of(spec, spec.member or 0).of(raw)


def centred_as(rows: Source, seen: Source) -> Source:
    """Some rows of data as fits see them, centred like these."""
    return with_center(rows, seen.center if isinstance(seen, Centred) else None)


def job_on(spec: FitSpec, data: Source) -> Job:
    """A job on data from which the hold-out is taken already."""
    check(spec)
    features, system = features_for(spec, data), systems.find(spec.system)
    one = systems.build(spec.system, features, inner=spec.inner, settings=spec.set, burn=spec.burned)
    if not system.sampler:
        return Job(spec, one, data)
    rules: tuple[StopRule, ...] = (_guard(data, False), AllSteps(spec.steps))
    if isinstance(one, Sequential):
        return SamplerJob(spec, Chains.of(one, spec.seed, spec.chains, rules, spec.inner), data)
    members = [Member(one, spec.seed, chain, rules) for chain in range(spec.chains)]
    return SamplerJob(spec, Batch(tuple(members), isolate=False), data)


def check(spec: FitSpec) -> None:
    """Refuse options that a system does not have, before any data are read."""
    sampler = systems.find(spec.system).sampler
    _check_holdout(spec)
    if not sampler and (spec.chains > 1 or spec.burn is not None or spec.thin > 1):
        raise UsageError(
            f"chains, burn and thin are for samplers, and {spec.system} is not one: use restarts"
        )
    if spec.stability is None and spec.member is None and spec.subsample != HALF:
        raise UsageError(
            f"subsample is {spec.subsample}, and no subsamples are asked for: give stability, their number"
        )
    if sampler and spec.stability is not None:
        raise UsageError(
            f"stability is for fits that look for an optimum: for {spec.system} use chains, whose draws say "
            "how sure each feature is"
        )
    if sampler and spec.restarts > 1:
        raise UsageError(f"restarts are for fits that look for an optimum: for {spec.system} use chains")
    if sampler and spec.burned + spec.thin > spec.steps:
        raise UsageError(
            f"burn is {spec.burned} and thin {spec.thin}: no draw is left of {spec.steps} steps; make more"
        )
    at_once = sampler and not systems.find(spec.system).in_turn
    if at_once and spec.burned == 0 and spec.set.get("start") == "fit":
        raise UsageError(
            "burn is 0: with start=fit the first steps are those of a fit, which are no draws: burn at least "
            "one, or use start=random"
        )


def _check_holdout(spec: FitSpec) -> None:
    """Refuse to hold out cells of counts, and tokens of real-valued data."""
    if not spec.holdout:
        return
    split, counts = as_split(spec.holdout), systems.find(spec.system).counts
    if counts and isinstance(split, HeldCells):
        raise UsageError(
            f"holdout={spec.holdout}: hides cells, and a fit of counts by {spec.system} sees all of them: "
            "hold out rows:share=0.1 or tokens:share=0.5,rows=0.25"
        )
    if isinstance(split, HeldTokens) and not counts:
        raise UsageError(
            f"holdout={spec.holdout}: hides tokens of counts, and {spec.system} is for real-valued data: "
            "hold out cells or rows"
        )


def features_for(spec: FitSpec, source: Source) -> int:
    """The truncation level: as given, or the most that `auto` may come to on these data."""
    if spec.truncation != "auto":
        return spec.truncation
    return max(1, min(source.rows, source.columns, systems.most_features(spec.system, spec.set)))


def _guard(source: Source, monotone: bool) -> StopRule:
    return Rising(source.rows * source.columns, tolerance(source.dtype.itemsize), monotone)


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
