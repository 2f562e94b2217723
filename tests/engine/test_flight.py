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
    chunks, gather = 2, 32

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
        number = arguments[0]
        ended = task != "slow" or number > 0 or self.looks >= self.missed
        return SimpleNamespace(value=number, worker=owner, done=lambda: ended, status="finished")

    def lost(self, cause):
        return ClusterLost(cause)


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr(dask, "TICK", 0.0)
    made = Client()
    yield made
    made.close()


def flight_of(engine, task="task", ordered=True, count=2):
    """A flight of tasks that are given to whoever is alive."""
    engine.owners = SimpleNamespace(of=lambda chunk, alive: alive[0])
    return Flight(engine, task, [(number,) for number in range(count)], ordered)


def test_the_workers_are_looked_at_while_results_are_on_their_way(client):
    engine = Engine(client)
    client.reach("here")
    assert list(flight_of(engine).results()) == [(0, 0), (1, 1)]
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
    assert list(results) == [(0, 0), (1, 1)]
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


def test_results_that_are_added_up_do_not_wait_for_those_before_them(client):
    """The first task does not end before its worker is found missing and it is submitted again."""
    engine = Engine(client, missed=LOOKS)
    for worker in ("gone", "here"):
        client.reach(worker)
    results = flight_of(engine, "slow", ordered=False, count=3).results()
    given = [next(results)[0], next(results)[0]]
    engine.missed = engine.looks
    assert [*given, *(index for index, _ in results)] == [1, 2, 0]


def test_results_in_order_wait_for_those_before_them(client):
    engine = Engine(client, missed=50)
    for worker in ("gone", "here"):
        client.reach(worker)
    assert [index for index, _ in flight_of(engine, "slow", count=3).results()] == [0, 1, 2]
    assert engine.looks >= 50


def test_no_more_results_are_fetched_at_once_than_memory_allows(client):
    engine = Engine(client, missed=LOOKS)
    engine.gather = 2
    client.reach("gone")
    assert len(list(flight_of(engine, count=5).results())) == 5
    assert [len(fetched) for fetched in client.gathered] == [2, 2, 1]


def test_results_that_were_given_out_are_not_held(client):
    engine = Engine(client, missed=LOOKS)
    client.reach("gone")
    flight = flight_of(engine, count=3)
    for index, _ in flight.results():
        assert list(flight._left) == list(range(index + 1, 3))
