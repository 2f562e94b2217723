"""Clusters: how ours are set up, and what is refused of those of others."""

import os
import signal

import psutil
import pytest
from distributed.comm import CommClosedError

from ibpdist.base.errors import ClusterLost, StorageError, UsageError
from ibpdist.base.threads import kernels
from ibpdist.engine import cluster as clusters
from ibpdist.engine import remote
from ibpdist.engine.cluster import (
    ASKED,
    Cluster,
    _refuse_blind,
    _refuse_in_child,
    _refuse_mixed,
    attached,
    local,
)
from ibpdist.engine.watch import Patience
from tests.support.clusters import IMPATIENT, engine_on, pids, worker_pids
from tests.support.toy import blobs, save_blobs, toy_run, toy_spec

FACTS = {
    "probe": "word",
    "kernels": [("openblas", "Haswell")],
    "versions": {"numpy": "2.0"},
    "malloc": True,
}


@pytest.fixture(scope="module")
def cluster():
    with local(2, memory=1 << 30, patience=IMPATIENT) as made:
        yield made


@pytest.mark.slow
def test_workers_have_the_malloc_settings_and_one_thread(cluster):
    found = cluster.client.run(lambda: dict(os.environ))
    assert len(found) == 2
    for environment in found.values():
        assert environment["MALLOC_TRIM_THRESHOLD_"] == "268435456"
        assert environment["MALLOC_MMAP_THRESHOLD_"] == "33554432"
        assert environment["MALLOC_ARENA_MAX"] == "1"
        assert environment["OPENBLAS_NUM_THREADS"] == "1"
    facts = cluster.identity(5)["workers"].values()
    assert [worker["nthreads"] for worker in facts] == [1, 1]


@pytest.mark.slow
def test_nothing_listens_beyond_this_machine(cluster):
    processes = [psutil.Process(pid) for pid in (*pids(cluster).values(), os.getpid())]
    listening = [c for p in processes for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {c.laddr.ip for c in listening} <= {"127.0.0.1", "::1"}


@pytest.mark.slow
def test_settings_of_the_scheduler(cluster):
    scheduler = cluster.client.cluster.scheduler
    assert scheduler.allowed_failures == 10
    assert scheduler.worker_ttl == 60
    assert scheduler.no_workers_timeout == 60
    stealing = scheduler.extensions.get("stealing")
    assert stealing is None or stealing._pc is None, "work stealing is off"


@pytest.mark.slow
def test_the_settings_of_the_user_are_left_alone(cluster):
    import dask

    assert dask.config.get("distributed.scheduler.allowed-failures") != 10


@pytest.mark.slow
def test_workers_that_do_not_see_the_run_are_refused(cluster, tmp_path, monkeypatch):
    run, job = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs())))
    monkeypatch.setattr(clusters.Path, "write_text", lambda self, text: self.write_bytes(b"other"))
    with pytest.raises(StorageError, match=r"worker tcp://.* does not see what is written there \(other\)"):
        engine_on(cluster, run, job)
    assert not list(run.path.glob("probe*"))
    run.close()


@pytest.mark.slow
def test_workers_of_another_scheduler(cluster, tmp_path):
    address = cluster.client.scheduler.address
    with attached(address, IMPATIENT) as other:
        assert other.size == 2
        run, job = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs())))
        engine = engine_on(other, run, job)
        assert engine.map("tests.support.toy:echo", [(1,), (2,)]) == [[1], [2]]
        run.close()
    assert len(cluster.identity(5)["workers"]) == 2, "they belong to somebody else and go on"


@pytest.mark.slow
def test_memory_of_a_run_is_given_free(cluster, tmp_path):
    run, job = toy_run(tmp_path / "run", toy_spec(save_blobs(tmp_path / "x.npy", blobs())))
    engine = engine_on(cluster, run, job)
    list(engine.each("ibpdist.engine.work:survey"))
    held = cluster.client.run(lambda: [key[1] for key in remote._benches])
    assert run.nonce in {nonce for nonces in held.values() for nonce in nonces}
    engine.close()
    held = cluster.client.run(lambda: [key[1] for key in remote._benches])
    assert run.nonce not in {nonce for nonces in held.values() for nonce in nonces}
    run.close()


@pytest.mark.slow
def test_workers_do_not_hear_ctrl_c_and_we_do(cluster):
    found = cluster.client.run(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    assert all(signal.SIGINT in blocked for blocked in found.values())
    assert all(signal.SIGTERM not in blocked for blocked in found.values())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.slow
def test_the_environment_is_as_it_was(monkeypatch):
    """Also after a worker was started again, which writes it once more."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    for name in ("MALLOC_ARENA_MAX", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with local(1, memory=1 << 30, patience=IMPATIENT) as made:
        (address,) = made.client.run(os.getpid)
        made.client.restart_workers([address], timeout=60)
        worker = made.client.run(lambda: dict(os.environ))
    assert [environment["MALLOC_ARENA_MAX"] for environment in worker.values()] == ["1"]
    assert dict(os.environ) == before


@pytest.mark.slow
def test_workers_that_cannot_start_are_an_error_at_once_and_leave_nothing(monkeypatch):
    monkeypatch.setitem(clusters.SETTINGS, "distributed.worker.preload", ["ibpdist.nothing"])
    before, children = dict(os.environ), set(worker_pids())
    with pytest.raises(RuntimeError, match="Nanny failed to start"), local(1, memory=1 << 30):
        raise AssertionError
    assert dict(os.environ) == before
    assert set(worker_pids()) <= children


def test_no_scheduler_at_the_address(monkeypatch):
    monkeypatch.setattr(clusters, "ANSWER", 0.5)
    with (
        pytest.raises(ClusterLost, match=r"scheduler tcp://127\.0\.0\.1:9: cannot be reached"),
        attached("tcp://127.0.0.1:9"),
    ):
        raise AssertionError


def test_blind_workers_are_named_with_what_they_saw(tmp_path):
    found = {"a": FACTS, "b": FACTS | {"probe": "cannot be read: No such file or directory"}}
    with pytest.raises(StorageError, match=r"worker b does not see .* No such file"):
        _refuse_blind(tmp_path, found, "word")
    _refuse_blind(tmp_path, {"a": FACTS}, "word")


@pytest.mark.parametrize(
    "difference", [{"kernels": [("openblas", "SkylakeX")]}, {"versions": {"numpy": "2.1"}}]
)
def test_workers_that_differ_are_refused(difference):
    said = []
    with pytest.raises(UsageError, match=f"different {next(iter(difference))}"):
        _refuse_mixed({"a": FACTS, "b": FACTS | difference}, said.append)


def test_workers_unlike_this_process_are_told_of():
    said = []
    _refuse_mixed({"a": FACTS | {"kernels": [("other", "kind")]}}, said.append)
    assert "other BLAS kernels" in said[0]
    ours = sorted({(lib["internal_api"], lib["architecture"]) for lib in kernels()})
    said.clear()
    _refuse_mixed({"a": FACTS | {"kernels": ours}}, said.append)
    assert said == []


class Answers:
    """A client of two workers, one of which dies the first few times that it is asked."""

    def __init__(self, times, error):
        self.times, self.error, self.asked = times, error, 0

    def _run(self, *arguments, **options):
        raise AssertionError("only asked by way of sync")

    def sync(self, function, *arguments, **options):
        self.asked += 1
        late = self.error if self.asked <= self.times else {"probe": "there"}
        return {"tcp://a": {"probe": "there"}, "tcp://b": late}


@pytest.mark.parametrize(("times", "asked", "there"), [(0, 1, 2), (2, 3, 2), (99, ASKED, 1)])
def test_a_worker_that_dies_while_it_is_asked_is_asked_again(monkeypatch, times, asked, there):
    monkeypatch.setattr(clusters.time, "sleep", lambda seconds: None)
    client = Answers(times, CommClosedError("Stream is closed"))
    found = Cluster(client, 2, Patience())._reports("probe")
    assert client.asked == asked
    assert found == {key: {"probe": "there"} for key in ["tcp://a", "tcp://b"][:there]}


def test_what_is_wrong_with_a_worker_is_not_asked_twice():
    client = Answers(1, ModuleNotFoundError("No module named 'ibpdist'"))
    with pytest.raises(ModuleNotFoundError):
        Cluster(client, 2, Patience())._reports("probe")
    assert client.asked == 1


def test_a_report_says_what_a_process_is(tmp_path, monkeypatch):
    (tmp_path / "probe").write_text("word")
    for name in remote.MALLOC:
        monkeypatch.delenv(name, raising=False)
    found = remote.report(str(tmp_path / "probe"))
    assert found["probe"] == "word"
    assert found["kernels"]
    assert not found["malloc"]
    for name, value in remote.MALLOC.items():
        monkeypatch.setenv(name, value)
    assert remote.report(str(tmp_path / "none"))["malloc"]
    assert "No such file" in remote.report(str(tmp_path / "none"))["probe"]


def test_a_process_keeps_few_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_benches", type(remote._benches)())
    for nonce in ("a", "b", "c"):
        assert (
            remote.call("tests.support.toy:build_name", "run", nonce, 0, False, "tests.support.toy:same")
            == "run"
        )
    assert [key[1] for key in remote._benches] == ["b", "c"]
    remote.forget("c")
    assert [key[1] for key in remote._benches] == ["b"]


def test_a_script_without_a_guard_is_told_so(monkeypatch):
    process = clusters.multiprocessing.current_process()
    monkeypatch.setattr(process, "_inheriting", True, raising=False)
    with pytest.raises(UsageError, match="__main__"):
        _refuse_in_child()
