"""The contract of engines: serial is the specification, any cluster has the same bits at every step."""

from itertools import islice

import numpy as np
import pytest

from ibpdist.base.errors import ClusterLost, InputError
from ibpdist.engine.cluster import local
from ibpdist.engine.dask import DaskEngine, Flight
from ibpdist.engine.sweeps import sweeps
from tests.support.clusters import IMPATIENT, PLAN, engine_on, fit_on
from tests.support.compare import assert_same_result
from tests.support.logs import objectives
from tests.support.toy import blobs, save_blobs, serial_engine, toy_fit, toy_run, toy_spec

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda n: f"{n} workers")
def cluster(request):
    with local(request.param, memory=1 << 30, patience=IMPATIENT) as made:
        yield made


two_workers = pytest.mark.parametrize("cluster", [2], indirect=True, ids=["2 workers"])
"""For what does not depend on their number."""


@pytest.fixture
def data(tmp_path):
    return save_blobs(tmp_path / "x.npy", blobs(rows=430, width=10))


def serial_truth(tmp_path, spec):
    """Objective and row state of every step of the serial engine."""
    run, job = toy_run(tmp_path / "serial", spec)
    engine = serial_engine(run.path, job)
    objective, states = {}, {}
    for now in islice(sweeps(job.algorithm, engine, spec.seed), spec.steps):
        objective[now.step] = now.trace["objective"]
        states[now.step] = [engine.bench._memo.get(c)[1].share.copy() for c in range(engine.chunks)]
    run.close()
    return objective, states


@pytest.mark.parametrize("draw", [False, True], ids=["mean", "draw"])
def test_every_step_has_the_bits_of_the_serial_engine(cluster, tmp_path, data, draw):
    spec = toy_spec(data, set={"draw": draw}, steps=8)
    objective, states = serial_truth(tmp_path, spec)
    run, job = toy_run(tmp_path / "run", spec)
    engine = engine_on(cluster, run, job)
    for now in islice(sweeps(job.algorithm, engine, spec.seed), spec.steps):
        assert now.trace["objective"] == objective[now.step], now.step
        found = [share for part in engine.each("tests.support.toy:shares", now.step) for share in part.value]
        assert all(np.array_equal(a, b) for a, b in zip(found, states[now.step], strict=True))
    engine.close()
    run.close()


@pytest.mark.parametrize("width", [1, 2, 16, 64])
def test_the_width_of_groups_does_not_change_the_bits(cluster, tmp_path, data, width):
    spec = toy_spec(data, steps=4)
    objective, _ = serial_truth(tmp_path, spec)
    run, job = toy_run(tmp_path / "run", spec)
    engine = engine_on(cluster, run, job)
    for now in islice(sweeps(job.algorithm, engine, spec.seed), spec.steps):
        engine.width = width
        assert now.trace["objective"] == objective[now.step]
    run.close()


def test_row_state_stays_where_it_is(cluster, tmp_path, data):
    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    replayed = []
    for now in islice(sweeps(job.algorithm, engine, 7), 8):
        engine.width = 2
        replayed.append(now.replayed)
    assert sum(replayed[2:]) <= 4, "only a task that was run elsewhere makes a step again"
    run.close()


def test_row_state_in_files(cluster, tmp_path, data):
    from dataclasses import replace

    spec = toy_spec(data, steps=4)
    objective, _ = serial_truth(tmp_path, spec)
    run, job = toy_run(tmp_path / "run", spec)
    fit_on(cluster, run, job, replace(PLAN, cache=0, spill=True))
    assert objectives(run.path) == objective
    run.close()


def test_whole_fit_has_the_result_of_the_serial_engine(cluster, tmp_path, data):
    spec = toy_spec(data)
    one = toy_fit(tmp_path / "one", spec)
    other, job = toy_run(tmp_path / "other", spec)
    fit_on(cluster, other, job)
    other.close()
    assert_same_result(one, other.path)


@two_workers
def test_map_keeps_the_order_of_its_items(cluster, tmp_path, data):
    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    items = [(index, "x" * index, 0.5) for index in range(20)]
    assert engine.map("tests.support.toy:echo", items) == [list(item) for item in items]
    run.close()


@two_workers
def test_an_error_in_a_task_arrives_as_it_was_raised(cluster, tmp_path, data):
    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    with pytest.raises(InputError, match="row 17: not a number") as caught:
        engine.map("tests.support.toy:refuse", [(3,), (17,)])
    assert caught.value.row == 17
    assert engine.map("tests.support.toy:echo", [(1,)]) == [[1]], "and the engine goes on"
    run.close()


@two_workers
def test_tasks_carry_strings_and_numbers_only(cluster, tmp_path, data, monkeypatch):
    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    sent = []
    plain = engine.client.submit

    def submit(function, *arguments, **options):
        sent.append(arguments)
        return plain(function, *arguments, **options)

    monkeypatch.setattr(engine.client, "submit", submit)
    list(islice(sweeps(job.algorithm, engine, 7), 3))
    assert sent
    assert all(type(value) in (str, int, float, bool) for arguments in sent for value in arguments)
    run.close()


@two_workers
def test_an_abandoned_sweep_cancels_its_tasks(cluster, tmp_path, data):
    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    items = [(index,) for index in range(40)]
    flight = Flight(engine, "tests.support.toy:slowly", items, ordered=True)
    results = flight.results()
    assert next(results) == (0, 0)
    results.close()
    assert list(flight._left) == list(range(1, 40))
    assert all(future.cancelled() for future in flight._left.values())
    run.close()


@two_workers
def test_a_stall_is_named(cluster, tmp_path, data, monkeypatch):
    from dataclasses import replace

    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    engine.patience = replace(IMPATIENT, stall=2.0)
    with pytest.raises(ClusterLost, match=r"no task has finished for 2 s.*ibpdist resume .*run") as caught:
        engine.map("tests.support.toy:sleep", [(6.0,)])
    assert caught.value.code == 5
    run.close()


def test_a_new_run_at_the_same_place_does_not_meet_the_memo_of_the_old_one(cluster, tmp_path, data):
    spec = toy_spec(data, steps=3)
    objective, _ = serial_truth(tmp_path, spec)
    for seed in (8, 7):
        run, job = toy_run(tmp_path / "run", spec.model_copy(update={"seed": seed}), overwrite=True)
        engine = engine_on(cluster, run, job)
        drive_steps = [now.trace["objective"] for now in islice(sweeps(job.algorithm, engine, seed), 3)]
        run.close()
    assert drive_steps == list(objective.values())


@two_workers
def test_it_is_an_engine(cluster, tmp_path, data):
    run, job = toy_run(tmp_path / "run", toy_spec(data))
    engine = engine_on(cluster, run, job)
    assert isinstance(engine, DaskEngine)
    assert engine.chunks == job.source.chunks == 43
    run.close()
