"""The engine on a Dask cluster: one task a group of chunks.

Everything is submitted at once. Each task names its owner as a hint; Dask hangs for ever on a hint
to a worker that is gone (engine.md 11), so such tasks are submitted again under another key. A task
is a pure function, so doing it twice is harmless. Results that are only added up are gathered as they come:
otherwise those of the last groups would wait on their workers for all before them.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
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
GATHER, GATHERED = 32, 128 << 20
"""Results fetched in one go, and their bytes."""
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
        self.gather = max(1, min(GATHER, GATHERED // max(1, plan.result)))
        self.widest = plan.width
        self.alive: list[str] = []
        self._revived = self._looked = time.monotonic()
        self._common = (build, str(run), nonce, plan.cache, plan.spill)
        self._history = RunHistory(run)
        self.look()
        self.width = min(self.widest, width_for(chunks, max(1, len(self.alive))))

    def publish(self, step: int, params: Params) -> None:
        self._history.publish(step, params)

    def each(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        return self._parts(task, arguments, ordered=True)

    def some(self, task: str, *arguments: Scalar) -> Iterator[Part]:
        return self._parts(task, arguments, ordered=False)

    def map(self, task: str, items: Sequence[tuple[Scalar, ...]]) -> list[Any]:
        return [result for _, result in Flight(self, task, items, ordered=True).results()]

    def _parts(self, task: str, arguments: tuple[Scalar, ...], ordered: bool) -> Iterator[Part]:
        if self.due:
            self.look()
        seconds = []
        parts = groups(self.chunks, self.width, self.owners.borders())
        flight = Flight(self, task, [(first, last, *arguments) for first, last in parts], ordered)
        for index, result in flight.results():
            first, last = parts[index]
            if isinstance(result, Block):
                seconds.append(result.seconds / (last - first))
            yield Part(first, last - first, result)
        if task == ADVANCE:
            usual = self.width * statistics.median(seconds)
            self.width = min(self.widest, refit(self.width, self.chunks, len(self.alive), usual))

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

    def __init__(self, client: Any, wanted: Mapping[int, Future]) -> None:
        self.indices = list(wanted)
        self._arriving = asyncio.run_coroutine_threadsafe(
            client._gather(list(wanted.values())), client.loop.asyncio_loop
        )

    def within(self, seconds: float) -> dict[int, Any] | None:
        """The results by the number of their item, if they arrive within this time."""
        futures.wait([self._arriving], seconds)
        if not self._arriving.done():
            return None
        return dict(zip(self.indices, self._arriving.result(), strict=True))


class Flight:
    """Tasks under way, from submission to the last result."""

    def __init__(
        self, engine: DaskEngine, task: str, items: Sequence[tuple[Scalar, ...]], ordered: bool
    ) -> None:
        self._engine, self._task, self._items, self._ordered = engine, task, items, ordered
        self._left: dict[int, Future] = {}
        """Tasks whose result was not given out yet, by the number of their item, in rising order."""
        self._owners: list[str | None] = []
        self._fetch: Fetch | None = None
        self._moved = time.monotonic()

    def results(self) -> Iterator[tuple[int, Any]]:
        """Numbers of items and their results, in the order of the items if `ordered`, else as they come;
        stops with what stopped a task, or with ClusterLost."""
        try:
            self._submit_all()
            while self._left:
                if self._engine.cluster.halt.is_set():
                    raise KeyboardInterrupt
                yield from self._taken()
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
            self._engine.client.cancel(list(self._left.values()), force=True)

    def _submit_all(self) -> None:
        for index, item in enumerate(self._items):
            owner = self._owner(item)
            self._owners.append(owner)
            self._left[index] = self._engine.submit(self._task, item, owner)

    def _owner(self, item: tuple[Scalar, ...]) -> str | None:
        first = item[0] if item and isinstance(item[0], int) else 0
        return self._engine.owners.of(min(first, self._engine.chunks - 1), self._engine.alive)

    def _taken(self) -> Iterator[tuple[int, Any]]:
        """The results that have arrived; workers forget them with the task."""
        arrived = self._next()
        for index in list(arrived):
            del self._left[index]
            self._moved = time.monotonic()
            self._engine.watch.heard()
            yield index, arrived.pop(index)

    def _next(self) -> dict[int, Any]:
        """The results that are there; waits a tick for them to be made or to arrive."""
        if self._fetch is None:
            ready = self._ready()
            if not ready:
                return {}
            self._fetch = Fetch(self._engine.client, ready)
        try:
            results = self._fetch.within(TICK)
        except TimeoutError:  # a worker does not answer: asked for again
            results = {}
        if results is not None:
            self._fetch = None
        return results or {}

    def _ready(self) -> dict[int, Future]:
        """The tasks that have ended and may be fetched; waits a tick for them. Large results are fetched one
        by one, before they fill the memory of their workers."""
        one_by_one = not self._ordered and self._engine.gather < GATHER
        when = "FIRST_COMPLETED" if one_by_one else "ALL_COMPLETED"
        try:
            self._engine.client.sync(_wait, list(self._left.values()), timeout=TICK, return_when=when)
        except TimeoutError:
            failed = [future for future in self._left.values() if future.status == "error"]
            if failed:
                failed[0].result(timeout=ERROR)
        ready: dict[int, Future] = {}
        for index, future in self._left.items():
            if len(ready) == self._engine.gather or (self._ordered and not future.done()):
                break
            if future.done():
                ready[index] = future
        return ready

    def _look(self) -> None:
        engine = self._engine
        alive = engine.look()
        fetched = self._fetch.indices if self._fetch else []
        for index, future in self._left.items():
            if self._owners[index] in alive or not alive:
                continue
            if index in fetched:  # its results may never arrive
                self._fetch = None
            elif future.done():
                continue
            engine.client.cancel([future], force=True)
            self._owners[index] = owner = self._owner(self._items[index])
            self._left[index] = engine.submit(self._task, self._items[index], owner)
        if time.monotonic() - self._moved > engine.patience.stall:
            raise engine.lost(f"no task has finished for {engine.patience.stall:g} s, though workers answer")

    def _cause(self, error: BaseException) -> str:
        """A cause in words: what the scheduler says, else what Dask said."""
        try:
            self._engine.watch.look()
        except ClusterLost as lost:
            return str(lost)
        return f"the cluster gave up ({str(error) or type(error).__name__})"
