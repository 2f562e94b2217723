"""Campaigns among faults: workers are killed all the time, two sweeps want one folder a hundred times."""

import os
import signal
import threading

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.campaigns.verify import verify
from ibpdist.storage import events
from tests.support.clusters import worker_pids
from tests.support.compare import assert_same_result
from tests.support.grids import alone, grid, small_store
from tests.support.races import race, racers

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
FITS, SAMPLE, EVERY = 200, 6, 10.0


class Killer(threading.Thread):
    """Kills a worker of this process every so many seconds, from the first step on, until it is told."""

    def __init__(self, every):
        super().__init__(daemon=True)
        self.every, self.kills, self.enough = every, 0, threading.Event()
        self.steps = self.seen = 0
        self.rng = np.random.default_rng(3)

    def __call__(self, now):
        self.steps += 1
        if now.running and not self.is_alive():
            self.start()

    def run(self):
        while not self.enough.wait(self.every):
            found = worker_pids()
            if found and self.steps > self.seen:  # on a busy machine a worker takes long to come
                self.seen = self.steps
                os.kill(found[self.rng.integers(len(found))], signal.SIGKILL)
                self.kills += 1


@pytest.mark.long
def test_many_small_fits_while_workers_are_killed(tmp_path):
    store = small_store(tmp_path, rows=2000, columns=10, chunk_rows=250)
    settings = {"moves": False, "noise": ["one", 1e-100]}
    good = {"truncation": [2, 3], "restarts": FITS // 2, "steps": 60, "checkpoint": 4}
    keys = grid(store, **good)
    killer = Killer(EVERY)
    found = ibp.sweep(keys, tmp_path / "run", workers=2, progress=killer)
    killer.enough.set()
    killer.join()
    assert killer.kills >= 2, "a campaign that nobody disturbed proves nothing"
    logs = [events.read(log) for log in (tmp_path / "run").glob("groups/*/events.jsonl")]
    assert sum(event.get("replayed", 0) for log in logs for event in log) > 0
    assert (found.summary.status == "finished").all()
    assert found.summary.status.size == FITS
    for at, fit in enumerate(found.manifest.fits[:: FITS // SAMPLE]):
        assert_same_result(found.open(fit), alone(fit, tmp_path / f"alone{at}", serial=True))
    assert verify(tmp_path / "run") == []
    more = ibp.sweep(grid(store, **(good | {"restarts": 1, "set": settings})), tmp_path / "bad", workers=2)
    assert [fit.labels["noise"] for fit, _, _ in more.failed] == [1e-100] * 2
    for fit in more.manifest.fits:
        if fit.labels["noise"] == "one":
            labels = {name: fit.labels[name] for name in ("truncation", "restart")}
            ours = more.open(fit)["params"].to_dataset().compute()
            assert ours.identical(found.fit(**labels)["params"].to_dataset().compute())


@pytest.mark.long
def test_a_hundred_races(tmp_path):
    store, winners = small_store(tmp_path), []
    with racers(store) as (made, said):
        for number in range(100):
            winner, code, seconds = race(made, said, tmp_path / f"run{number}")
            winners.append(winner)
            assert code == 6
            assert seconds < 5
    assert set(winners) == {0, 1}, "it is a race"
    assert all(verify(tmp_path / f"run{number}") == [] for number in range(100))
