"""The consumer of the loop of a run: it logs, saves and finishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import xarray as xr

from ibpdist.base.errors import StorageError
from ibpdist.base.progress import before as before_of
from ibpdist.engine._base import SAVE, Engine
from ibpdist.engine.sweeps import sweeps
from ibpdist.inference._base import AnySteps, Info
from ibpdist.inference.stopping import AnySnapshot, Snapshot, Stop, StopRule, until
from ibpdist.runs import result
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.job import Job
from ibpdist.storage import events, records

Progress = Callable[[AnySnapshot], None]
SHARE = 30
"""A checkpoint waits until the steps since the last one took this many times as long as it did."""


class Work(Protocol):
    """A fit, or several at once, that are stepped to their end."""

    @property
    def algorithm(self) -> AnySteps: ...
    @property
    def seed(self) -> int: ...
    @property
    def checkpoint(self) -> int:
        """Steps from one checkpoint to the next."""
        ...

    def rules(self) -> list[StopRule]: ...


class Keep(Protocol):
    """Keeps data of steps, and writes them before each checkpoint."""

    def begin(self, step: int) -> None:
        """Continue the run after this step."""
        ...

    def offer(self, now: AnySnapshot) -> None: ...

    def flush(self) -> None: ...


class KeepNothing:
    """Keeps nothing but parameters and row state."""

    def begin(self, step: int) -> None:
        """Nothing was kept."""

    def offer(self, now: AnySnapshot) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Ended:
    """The last step, why it was the last, and the terms of all of them."""

    last: AnySnapshot
    stop: Stop
    terms: dict[int, dict[str, float]]


def drive(
    run: RunDirectory, job: Job, engine: Engine, progress: Progress | None = None, first: object | None = None
) -> None:
    """Finish a run, new or interrupted; `first` are parameters of another fit to begin a new one with."""
    with records.storage_errors(run.path):
        ended = to_end(run, job, engine, progress, first)
        result.write(run.path, job.algorithm, engine, job.source, _ending(job, run.identity, ended))
        run.events.add("finished", step=ended.last.step, stop=ended.stop.code)
        run.history.prune_finished()


def to_end(
    run: RunDirectory,
    work: Work,
    engine: Engine,
    progress: Progress | None = None,
    first: object | None = None,
    keep: Keep | None = None,
) -> Ended:
    """Step a run, new or interrupted, until a rule stops it; its last state is in a checkpoint."""
    begin, kept = _begin(run), keep or KeepNothing()
    step = begin[0] if begin else 0
    terms = events.trace(events.read(run.path / "events.jsonl"), step)
    before, stop = _settled(run, work.rules(), begin, terms)
    kept.begin(step)
    run.events.add("begin", step=step, engine=type(engine).__name__, chunks=engine.chunks)
    if before is not None and stop is not None:
        engine.publish(step, before.params)
        return Ended(before, stop, terms)
    steps = sweeps(work.algorithm, engine, work.seed, begin, first, before_of(progress))
    loop = until(steps, work.rules(), before)
    return _steps(run, loop, Saver(run, engine, work.checkpoint, kept), progress, terms)


def in_memory(
    job: Job,
    engine: Engine,
    facts: dict[str, Any],
    progress: Progress | None = None,
    first: object | None = None,
) -> xr.DataTree:
    """A fit that leaves nothing on disk."""
    ended = end_in_memory(job, engine, progress, first)
    return result.tree(job.algorithm, engine, job.source, _ending(job, facts, ended))


def end_in_memory(
    work: Work, engine: Engine, progress: Progress | None = None, first: object | None = None
) -> Ended:
    """Step without a run until a rule stops."""
    terms: dict[int, Any] = {}
    steps = sweeps(work.algorithm, engine, work.seed, like=first, looked=before_of(progress))
    for now, stop in until(steps, work.rules()):
        terms[now.step] = now.trace
        if progress:
            progress(now)
        if stop:
            return Ended(now, stop, terms)
    raise AssertionError("the loop ends only by a rule")


def _steps(
    run: RunDirectory,
    loop: Iterator[tuple[AnySnapshot, Stop | None]],
    saver: Saver,
    progress: Progress | None,
    terms: dict[int, Any],
) -> Ended:
    """Step until a rule stops, logging each step into `terms` and the log, and saving now and then."""
    for now, stop in loop:
        terms[now.step] = now.trace
        facts = {"seconds": round(now.seconds, 4), "replayed": now.replayed}
        run.events.add("step", durable=False, step=now.step, terms=terms[now.step], **facts)
        saver.keep.offer(now)
        if progress:
            progress(now)
        if stop:
            saver.save(now)
            return Ended(now, stop, terms)
        saver.offer(now)
    raise AssertionError("the loop ends only by a rule")


class Saver:
    """Saves every `every` steps, unless that would take a large share of the time."""

    def __init__(self, run: RunDirectory, engine: Engine, every: int, keep: Keep | None = None) -> None:
        self._run, self._engine, self._every = run, engine, every
        self.keep: Keep = keep or KeepNothing()
        self._rest_until = 0.0

    def offer(self, now: AnySnapshot) -> None:
        if now.step % self._every == 0 and time.monotonic() >= self._rest_until:
            self.save(now)

    def save(self, now: AnySnapshot) -> None:
        began = time.monotonic()
        run, step = self._run, now.step
        self.keep.flush()
        run.events.add("saving", step=step)  # with it the steps so far are on disk
        run.checkpoints.begin(step)
        files: dict[str, str] = {}
        for part in self._engine.each(SAVE, step):
            files.update(part.value)
        run.checkpoints.commit(step, now.params, files, self._engine.chunks)
        run.history.prune()
        run.events.add("checkpoint", step=step)
        ended = time.monotonic()
        self._rest_until = ended + SHARE * (ended - began)


def _begin(run: RunDirectory) -> tuple[int, Any] | None:
    """Step and parameters to resume from: the newest whole checkpoint, else those of step 0, else none."""
    run.history.file(0).parent.mkdir(exist_ok=True)  # a checkpoint has its own copy of what was lost here
    known = run.checkpoints.newest_whole()
    damaged = [step for step in run.checkpoints.steps() if known is None or step > known[0]]
    if damaged:
        run.events.add("damaged", checkpoints=damaged)
    run.checkpoints.clean(known[0] if known else 0)
    if known is not None:
        return known
    try:
        return (0, run.history.params(0)) if run.history.file(0).exists() else None
    except StorageError:
        return None


def _settled(
    run: RunDirectory, rules: list[StopRule], begin: tuple[int, Any] | None, terms: dict[int, Any]
) -> tuple[AnySnapshot | None, Stop | None]:
    """The step to resume from as the loop left it, and whether the run had stopped there."""
    if begin is None or begin[0] == 0:
        return None, None
    step, params = begin
    missing = sorted(set(range(1, step + 1)) - set(terms))
    if missing:
        what = f"the log has no step {missing[0]}, but a checkpoint has step {step}"
        way = f"take the log from a copy, or remove {run.path} and begin again"
        raise StorageError(f"{run.path / 'events.jsonl'}: {what}; {way}")
    now = Snapshot(step, params, Info.of(terms[step]))
    before = Snapshot(step - 1, None, Info.of(terms[step - 1])) if step > 1 else None
    return now, next((stop for rule in rules if (stop := rule(before, now)) is not None), None)


def _ending(job: Job, facts: dict[str, Any], ended: Ended) -> result.Ending:
    kept = {name: value for name, value in facts.items() if name not in ("schema", "nonce", "spec")}
    return result.Ending(ended.last, ended.stop, ended.terms, job.attributes(kept))
