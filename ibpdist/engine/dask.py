"""The engine on a Dask cluster: one task a group of chunks, gathered in the order of the groups.

Everything is submitted at once. Each task names its owner as a hint; Dask hangs for ever on a hint
to a worker that is gone (engine.md 11), so such tasks are submitted again under another key. A task
is a pure function, so doing it twice is harmless.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent import futures
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed
from distributed import CancelledError, KilledWorker
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from ibpdist.base.errors import ClusterLost
from ibpdist.base.words import command
from ibpdist.engine._base import ADVANCE, Block, Part, Scalar, groups
from ibpdist.engine.history import RunHistory
from ibpdist.engine.memory import Plan
from ibpdist.engine.owners import Owners, refit, width_for
from ibpdist.engine.remote import call, forget
from ibpdist.engine.watch import Watch
from ibpdist.inference._base import Params

if TYPE_CHECKING:
    from ibpdist.engine.cluster import Cluster

TICK = 0.5
GATHER = 32
"""Results fetched in one go."""
REVIVE = 15.0
"""Seconds between attempts to start workers that are missing."""
ERROR = 30.0
"""Seconds for the error of a task that has failed to arrive."""

Future = Any  # the class has no types of its own
_wait: Any = distributed.client._wait
"""`distributed.wait` finds its client by way of a setting of the whole process; here several threads wait."""
_numbers = count()


class DaskEngine:
    """One run on a cluster. `build` names the function that makes a workbench of the run."""

    def __init__(
        self, cluster: Cluster, run: Path, nonce: str, build: str, chunks: int, plan: Plan, watch: Watch
    ) -> None:
        self.cluster = cluster
        self.client: Any = cluster.client
        self.run, self.nonce, self.chunks = run, nonce, chunks
        self.watch = watch
        self.patience = cluster.patience
        self.owners = Owners(chunks)
        self.alive: list[str] = []
        self._revived = self._looked = time.monotonic()
        self._common = (build, str(run), nonce, plan.cache, plan.spill)
        self._history = RunHistory(run)
        self.look()
        self.width = width_for(chunks, max(1, len(self.alive)))

    def publish(self, step: int, params: Params) -> None:
        self._history.publish(step, params)

    def each(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        if self.due:
            self.look()
        seconds = []
        parts = groups(self.chunks, self.width, self.owners.borders())
        flight = Flight(self, task, [(first, last, *arguments) for first, last in parts])
        for (first, last), result in zip(parts, flight.results(), strict=True):
            if isinstance(result, Block):
                seconds.append(result.seconds / (last - first))
            yield Part(last - first, result)
        if task == ADVANCE:
            usual = self.width * statistics.median(seconds)
            self.width = refit(self.width, self.chunks, len(self.alive), usual)

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        return list(Flight(self, task, items).results())

    def close(self) -> None:
        """Let the workers give the memory of this run free, if they can be reached."""
        try:
            self.client.sync(self.client._run, forget, self.nonce, callback_timeout=5)
        except Exception:  # noqa: BLE001  (they are gone, and their memory with them)
            return

    @property
    def due(self) -> bool:
        """Whether it is time to look, however short the flights are."""
        return time.monotonic() - self._looked > 2 * TICK

    def look(self) -> list[str]:
        """Who can work, asked now; raises ClusterLost."""
        try:
            self.alive = self.watch.look()
        except ClusterLost as lost:
            raise self.lost(str(lost)) from lost
        self._looked = time.monotonic()
        self.owners.refresh(self.alive)
        if len(self.alive) < self.cluster.size and time.monotonic() - self._revived > REVIVE:
            self._revived = time.monotonic()
            self.cluster.revive()
        return self.alive

    def submit(self, task: str, arguments: tuple[Scalar, ...], owner: str | None) -> Future:
        key = f"{task.rpartition(':')[2]}-{self.nonce}-{next(_numbers)}"
        hint = {} if owner is None else {"workers": [owner], "allow_other_workers": True}
        return self.client.submit(call, *self._common, task, *arguments, key=key, pure=False, **hint)

    def lost(self, cause: str) -> ClusterLost:
        way = command("resume", self.run)
        return ClusterLost(f"{cause}; nothing that was saved is lost, continue with: {way}")


class Fetch:
    """Results of some tasks on their way here. The workers can be looked at meanwhile: Dask waits for ever
    for results of a worker that is gone if the task that makes them again has a hint to that worker."""

    def __init__(self, client: Any, wanted: Sequence[Future]) -> None:
        self.count = len(wanted)
        self._arriving = asyncio.run_coroutine_threadsafe(
            client._gather(list(wanted)), client.loop.asyncio_loop
        )

    def within(self, seconds: float) -> list[Any] | None:
        """The results if they arrive within this time."""
        futures.wait([self._arriving], seconds)
        return list(self._arriving.result()) if self._arriving.done() else None


class Flight:
    """Tasks under way, from submission to the last result."""

    def __init__(self, engine: DaskEngine, task: str, items: Sequence[tuple[Scalar, ...]]) -> None:
        self._engine, self._task, self._items = engine, task, items
        self._futures: list[Future] = []
        self._owners: list[str | None] = []
        self._taken = 0
        self._fetch: Fetch | None = None
        self._moved = time.monotonic()

    def results(self) -> Iterator[Any]:
        """Results in the order of the items; stops with what stopped a task, or with ClusterLost."""
        try:
            self._submit_all()
            while self._taken < len(self._items):
                if self._engine.cluster.halt.is_set():
                    raise KeyboardInterrupt
                for result in self._next():
                    self._taken += 1
                    self._moved = time.monotonic()
                    self._engine.watch.heard()
                    yield result
                if self._engine.due:
                    self._look()
        except (CancelledError, NoWorkerError, NoValidWorkerError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, ConnectionError):
                raise
            raise self._engine.lost(self._cause(error)) from error
        except KilledWorker as error:
            raise self._engine.lost(
                "the same task has ended ten workers, most likely for want of memory: "
                "give the workers more of it, or use smaller chunks"
            ) from error
        finally:
            self._engine.client.cancel(self._futures[self._taken :], force=True)

    def _submit_all(self) -> None:
        for item in self._items:
            owner = self._owner(item)
            self._owners.append(owner)
            self._futures.append(self._engine.submit(self._task, item, owner))

    def _owner(self, item: tuple[Scalar, ...]) -> str | None:
        first = item[0] if item and isinstance(item[0], int) else 0
        return self._engine.owners.of(min(first, self._engine.chunks - 1), self._engine.alive)

    def _next(self) -> list[Any]:
        """The results that are there and next in order; waits a tick for them to be made or to arrive."""
        if self._fetch is None:
            ready = self._ready()
            if not ready:
                return []
            self._fetch = Fetch(self._engine.client, ready)
        try:
            results = self._fetch.within(TICK)
        except TimeoutError:  # a worker does not answer: asked for again
            results = []
        if results is not None:
            self._fetch = None
        return results or []

    def _ready(self) -> list[Future]:
        """The tasks next in order that have ended; waits a tick for them."""
        pending = self._futures[self._taken :]
        try:
            self._engine.client.sync(_wait, pending, timeout=TICK)
        except TimeoutError:
            failed = [future for future in pending if future.status == "error"]
            if failed:
                failed[0].result(timeout=ERROR)
        ready = 0
        while ready < min(GATHER, len(pending)) and pending[ready].done():
            ready += 1
        return pending[:ready]

    def _look(self) -> None:
        engine = self._engine
        alive = engine.look()
        fetched = self._taken + (self._fetch.count if self._fetch else 0)
        for index in range(self._taken, len(self._items)):
            if self._owners[index] in alive or not alive:
                continue
            if index < fetched:  # its results may never arrive
                self._fetch = None
            elif self._futures[index].done():
                continue
            engine.client.cancel([self._futures[index]], force=True)
            self._owners[index] = owner = self._owner(self._items[index])
            self._futures[index] = engine.submit(self._task, self._items[index], owner)
        if time.monotonic() - self._moved > engine.patience.stall:
            raise engine.lost(f"no task has finished for {engine.patience.stall:g} s, though workers answer")

    def _cause(self, error: BaseException) -> str:
        """A cause in words: what the scheduler says, else what Dask said."""
        try:
            self._engine.watch.look()
        except ClusterLost as lost:
            return str(lost)
        return f"the cluster gave up ({str(error) or type(error).__name__})"
