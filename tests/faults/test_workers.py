"""Workers die, freeze and vanish in the middle of steps; every step keeps its bits."""

import os
import signal
import time

import numpy as np
import pytest

from ibpdist.base.errors import ClusterLost
from ibpdist.campaigns.verify import verify
from ibpdist.engine.cluster import attached, local
from ibpdist.engine.sweeps import sweeps
from ibpdist.runs.loop import Saver
from ibpdist.storage import events
from tests.support.clusters import IMPATIENT, engine_on, fit_on, pids
from tests.support.compare import assert_same_result
from tests.support.logs import objectives
from tests.support.toy import blobs, save_blobs, serial_engine, toy_run, toy_spec

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
STEPS = 9
KILLS = {2: 70, 4: 0, 5: 420, 6: 210, 8: 310}
"""First row of the chunk by the step in which its worker dies."""


@pytest.fixture
def data(tmp_path):
    return save_blobs(tmp_path / "x.npy", blobs(rows=430, width=10))


@pytest.fixture
def truth(request, tmp_path, data):
    """The spec, and objective and row state of each step without any fault."""
    spec = toy_spec(data, set={"draw": getattr(request, "param", False)}, steps=STEPS)
    run, job = toy_run(tmp_path / "serial", spec)
    objective, states = {}, {}
    for now, shares in stepped(run, job, serial_engine(run.path, job)):
        objective[now.step], states[now.step] = now.trace["objective"], shares
    run.close()
    return spec, objective, states


def stepped(run, job, engine, after=lambda now: None):
    """Steps with their row state, saved every third step; `after` is called between steps."""
    saver = Saver(run, engine, 3)
    for now in sweeps(job.algorithm, engine, job.spec.seed):
        run.events.add("step", step=now.step, terms=dict(now.trace), replayed=now.replayed)
        yield (
            now,
            [share for part in engine.each("tests.support.toy:shares", now.step) for share in part.value],
        )
        if now.step == STEPS:
            return
        if now.step % 3 == 0:
            saver.save(now)
        after(now)


def compare(steps, truth):
    """Every step's objective and row state, not only the last."""
    _, objective, states = truth
    seen = 0
    for now, shares in steps:
        assert now.trace["objective"] == objective[now.step], now.step
        assert all(np.array_equal(a, b) for a, b in zip(shares, states[now.step], strict=True)), now.step
        seen += 1
    assert seen == STEPS


@pytest.mark.parametrize(
    ("truth", "workers"), [(False, 1), (False, 2), (False, 4), (True, 2)], indirect=["truth"]
)
def test_killed_while_a_task_of_the_step_runs_in_five_steps(tmp_path, truth, workers):
    orders = tmp_path / "orders"
    orders.mkdir()
    for step, row in KILLS.items():
        (orders / f"{step}-{row}").touch()
    spec = truth[0]
    spec = spec.model_copy(update={"set": spec.set | {"faults": str(orders)}})
    run, job = toy_run(tmp_path / "run", spec)
    with local(workers, memory=1 << 30, patience=IMPATIENT) as cluster:
        engine = engine_on(cluster, run, job)
        compare(stepped(run, job, engine), truth)
        engine.look()
    obeyed = {path.name for path in orders.iterdir()}
    assert obeyed == {f"obeyed-{step}-{row}" for step, row in KILLS.items()}
    log = events.read(run.path / "events.jsonl")
    gone = [e["number"] for e in log if e["event"] == "notice" and "gone" in e["text"]]
    assert gone, "the log tells of it"
    assert sum(e["replayed"] for e in log if e["event"] == "step") > 0
    run.close()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV], ids=lambda s: s.name)
def test_ended_between_steps_and_between_checkpoints(tmp_path, truth, end):
    spec = truth[0]
    run, job = toy_run(tmp_path / "run", spec)
    with local(2, memory=1 << 30, patience=IMPATIENT) as cluster:

        def after(now):
            if now.step in (2, 4):  # saved are 3 and 6
                os.kill(next(iter(pids(cluster).values())), end)

        compare(stepped(run, job, engine_on(cluster, run, job), after), truth)
    run.close()


def test_who_comes_back_between_short_steps_has_its_share_again(tmp_path, data):
    orders = tmp_path / "orders"
    orders.mkdir()
    (orders / "5-70").touch()
    run, job = toy_run(tmp_path / "run", toy_spec(data, set={"faults": str(orders)}))
    with local(2, memory=1 << 30, patience=IMPATIENT) as cluster:
        engine = engine_on(cluster, run, job)
        before = set(engine.alive)
        for now in sweeps(job.algorithm, engine, 7):
            run.events.add("step", step=now.step, terms=dict(now.trace))
            time.sleep(0.1)
            shared = set(engine.owners.slots)
            if now.step == 600 or (shared != before and len(shared) == 2):
                break
        assert len(before & set(engine.owners.slots)) == 1
        assert set(engine.alive) == set(engine.owners.slots) == set(pids(cluster))
    said = [e["text"] for e in events.read(run.path / "events.jsonl") if e["event"] == "notice"]
    assert [text for text in said if "gone" in text]
    run.close()


def test_all_workers_killed_at_once(tmp_path, truth):
    run, job = toy_run(tmp_path / "run", truth[0])
    with local(2, memory=1 << 30, patience=IMPATIENT) as cluster:

        def after(now):
            if now.step == 5:
                for pid in pids(cluster).values():
                    os.kill(pid, signal.SIGKILL)

        compare(stepped(run, job, engine_on(cluster, run, job), after), truth)
    run.close()


def test_a_frozen_worker_is_done_without(tmp_path, truth):
    run, job = toy_run(tmp_path / "run", truth[0])
    frozen = []
    with local(2, memory=1 << 30, patience=IMPATIENT) as cluster:

        def after(now):
            if now.step == 4:
                frozen.append(next(iter(pids(cluster).values())))
                os.kill(frozen[0], signal.SIGSTOP)

        try:
            compare(stepped(run, job, engine_on(cluster, run, job), after), truth)
        finally:
            os.kill(frozen[0], signal.SIGCONT)
    said = [e["text"] for e in events.read(run.path / "events.jsonl") if e["event"] == "notice"]
    assert any("has been silent for" in text for text in said)
    run.close()


def test_random_kills_all_along(tmp_path, truth):
    """Kills at times of their own; the whole fit, its result and its verification."""
    import threading

    from ibpdist.runs.loop import drive

    spec = truth[0].model_copy(update={"steps": 60})
    plain, job = toy_run(tmp_path / "plain", spec)
    drive(plain, job, serial_engine(plain.path, job))
    plain.close()
    run, job = toy_run(tmp_path / "run", spec)
    over, killed = threading.Event(), []
    with local(2, memory=1 << 30, patience=IMPATIENT) as cluster:

        def kill():
            rng = np.random.default_rng(1)
            while not over.wait(rng.uniform(0.3, 2.0)):
                alive = [w["pid"] for w in workers_of(cluster)]
                if alive:
                    killed.append(alive[rng.integers(len(alive))])
                    os.kill(killed[-1], signal.SIGKILL)
                if len(killed) == 5:
                    over.set()

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            fit_on(cluster, run, job, progress=lambda now: over.wait(0.2))  # until the last kill
        finally:
            over.set()
            thread.join()
    assert len(killed) >= 3
    assert objectives(run.path) == objectives(plain.path)
    run.close()
    assert_same_result(plain.path, run.path)
    assert verify(run.path) == []


def workers_of(cluster):
    """Live worker processes of a local cluster, without asking them."""
    found = []
    for nanny in list(cluster.client.cluster.workers.values()):
        process = getattr(getattr(nanny, "process", None), "pid", None)
        if process:
            found.append({"pid": process})
    return found


def test_no_worker_comes_back(tmp_path, data):
    from dataclasses import replace

    run, job = toy_run(tmp_path / "run", toy_spec(data))
    with (
        local(1, memory=1 << 30) as host,
        attached(host.client.scheduler.address, replace(IMPATIENT, cluster=3.0)) as cluster,
    ):
        engine = engine_on(cluster, run, job)
        steps = sweeps(job.algorithm, engine, 7)
        next(steps)
        host.client.cluster.scale(0)
        with pytest.raises(ClusterLost, match=r"no workers for 3 s, 1 were asked for; .* ibpdist resume"):
            for _ in steps:
                pass
    run.close()


def test_a_nanny_that_gave_up_is_replaced(tmp_path, truth, monkeypatch):
    from ibpdist.engine import dask as module

    monkeypatch.setattr(module, "REVIVE", 2.0)
    run, job = toy_run(tmp_path / "run", truth[0])
    with local(2, memory=1 << 30, patience=IMPATIENT) as cluster:

        def after(now):
            if now.step == 4:
                nanny = next(iter(cluster.client.cluster.workers.values()))
                cluster.client.sync(nanny.close)
                cluster.client.cluster.workers.pop(nanny.name, None)

        engine = engine_on(cluster, run, job)
        compare(stepped(run, job, engine, after), truth)
        for _ in range(60):
            time.sleep(0.5)
            if len(engine.look()) == 2:
                break
        assert len(engine.alive) == 2
    run.close()
