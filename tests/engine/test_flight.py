"""Results whose worker is gone are made again while they are waited for; nothing here waits for a time."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from ibpdist.base.errors import ClusterLost
from ibpdist.engine import dask
from ibpdist.engine.dask import Flight
from ibpdist.engine.owners import Owners

LOOKS = 10_000
"""Far more looks at the workers than it takes."""


class Client:
    """Tasks end at once; a result arrives when the event of its worker is set."""

    def __init__(self):
        self.loop = SimpleNamespace(asyncio_loop=asyncio.new_event_loop())
        self.reachable = {"gone": asyncio.Event(), "here": asyncio.Event()}
        self.cancelled, self.gathered = [], []
        self._thread = threading.Thread(target=self.loop.asyncio_loop.run_forever)
        self._thread.start()

    def sync(self, function, *arguments, **options):
        """Nobody waits for tasks: they have ended."""

    async def _gather(self, futures):
        self.gathered.append([future.worker for future in futures])
        for future in futures:
            await self.reachable[future.worker].wait()
        return [future.value for future in futures]

    def cancel(self, futures, force):
        self.cancelled += futures

    def reach(self, worker):
        self.loop.asyncio_loop.call_soon_threadsafe(self.reachable[worker].set)

    def close(self):
        """Let what is on its way arrive, and stop."""
        asyncio.run_coroutine_threadsafe(self._drain(), self.loop.asyncio_loop).result()
        self.loop.asyncio_loop.call_soon_threadsafe(self.loop.asyncio_loop.stop)
        self._thread.join()
        self.loop.asyncio_loop.close()

    async def _drain(self):
        for event in self.reachable.values():
            event.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


class Engine:
    """What a flight asks of an engine; `gone` is found missing at the look with this number."""

    due = True
    watch = SimpleNamespace(heard=lambda: None)
    patience = SimpleNamespace(stall=1e9)
    chunks = 2

    def __init__(self, client, missed=3):
        self.client, self.missed, self.looks = client, missed, 0
        self.cluster = SimpleNamespace(halt=threading.Event())
        self.alive, self.owners = ["gone"], Owners(2)

    def look(self):
        self.looks += 1
        assert self.looks < LOOKS
        self.alive = ["here"] if self.looks >= self.missed else ["gone"]
        return self.alive

    def submit(self, task, arguments, owner):
        return SimpleNamespace(value=arguments[0], worker=owner, done=lambda: True, status="finished")

    def lost(self, cause):
        return ClusterLost(cause)


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr(dask, "TICK", 0.0)
    made = Client()
    yield made
    made.close()


def flight_of(engine):
    """A flight of two tasks that are given to whoever is alive."""
    engine.owners = SimpleNamespace(of=lambda chunk, alive: alive[0])
    return Flight(engine, "task", [(0,), (1,)])


def test_the_workers_are_looked_at_while_results_are_on_their_way(client):
    engine = Engine(client)
    client.reach("here")
    assert list(flight_of(engine).results()) == [0, 1]
    assert engine.looks >= engine.missed
    assert client.gathered == [["gone", "gone"], ["here", "here"]], "asked for again where they are"
    assert [future.worker for future in client.cancelled] == ["gone", "gone"]


def test_results_that_take_long_are_asked_for_once(client):
    engine = Engine(client, missed=LOOKS)
    results = flight_of(engine).results()
    look = engine.look

    def look_and_arrive():
        if engine.looks == 50:
            client.reach("gone")
        return look()

    engine.look = look_and_arrive
    assert list(results) == [0, 1]
    assert engine.looks > 50
    assert client.gathered == [["gone", "gone"]]
    assert client.cancelled == []


def test_a_fetch_that_is_interrupted_ends(client):
    engine = Engine(client, missed=LOOKS)
    results = flight_of(engine).results()
    look = engine.look

    def look_and_halt():
        engine.cluster.halt.set()
        return look()

    engine.look = look_and_halt
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert len(client.cancelled) == 2
