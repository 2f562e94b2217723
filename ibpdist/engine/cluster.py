"""Worker processes: our own on this machine, or those of a cluster that is there already."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.comm.core import connect
from distributed.core import send_recv

from ibpdist.base.errors import ClusterLost, StorageError, UsageError
from ibpdist.base.threads import kernels
from ibpdist.base.words import command
from ibpdist.engine import remote
from ibpdist.engine.dask import DaskEngine
from ibpdist.engine.memory import Plan
from ibpdist.engine.tls import security
from ibpdist.engine.watch import Patience, Watch

log = logging.getLogger("ibpdist")
_local_cluster: Any = LocalCluster  # neither class has types for all that is used here
_client_class: Any = Client
_connect: Any = connect
_send: Any = send_recv
START = 120.0
"""Seconds for workers to start."""
ANSWER = 10.0
"""Seconds for a scheduler to answer before anything is begun."""
REPORT_AFTER = 1.0
"""Seconds after which a wait for an answer or for workers is reported."""
REPORT_EVERY = 10.0
"""Seconds from one report of a wait for workers to the next."""
ASKED = 5
"""Times that workers are asked what they are, if some die meanwhile."""
ONE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 10,
    "distributed.scheduler.no-workers-timeout": "60s",
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.comm.timeouts.tcp": "30s",
    "distributed.nanny.pre-spawn-environ": remote.MALLOC | ONE,
}

LEFT_BEHIND = ("PYTHONHASHSEED", "__DASK_PARENT_PID")
"""Variables that a nanny sets for a worker, and leaves when the worker does not start."""
KEEP = {"distributed.deploy.lost-worker-timeout": "365 days"}
"""Otherwise, 15 s after a worker was lost, Dask closes its nanny for good if the nanny happens to be
starting the next one; with a second loss at that time capacity is gone, silently. Read while it runs."""


class _Client(_client_class):  # type: ignore[misc]
    """A client that is gone at once when its start was ended: Dask's waits for 240 s in its finaliser."""

    def start(self, **options: Any) -> None:
        try:
            super().start(**options)
        except BaseException:
            self.status = "closed"
            raise


@dataclass(frozen=True)
class Cluster:
    """A client of `size` workers; `revive` asks for those that are missing, where that is up to us."""

    client: Any
    size: int
    patience: Patience
    revive: Callable[[], None] = lambda: None
    halt: threading.Event = field(default_factory=threading.Event)
    """Set when whoever waits for results in another thread is to stop."""

    def engine(
        self,
        run: Path,
        nonce: str,
        build: str,
        chunks: int,
        plan: Plan,
        tell: Callable[[str], None] = log.warning,
    ) -> DaskEngine:
        """The engine of a run, after a look at whether these workers can do it."""
        self._check(run, tell)
        watch = Watch(self.identity, self.size, self.patience, tell)
        return DaskEngine(self, run, nonce, build, chunks, plan, watch)

    def identity(self, deadline: float) -> dict[str, Any]:
        """The scheduler's own view of its workers, not the client's copy of it."""
        identity: dict[str, Any] = self.client.sync(self.client.scheduler.identity, callback_timeout=deadline)
        return identity

    def _check(self, run: Path, tell: Callable[[str], None]) -> None:
        """Every worker sees the run; all have the same kernels and versions."""
        probe, word = run / f"probe-{secrets.token_hex(4)}.partial", secrets.token_hex(16)
        probe.write_text(word)
        try:
            reports = self._reports(str(probe))
        except TimeoutError:
            way = command("resume", run)
            raise ClusterLost(f"the workers do not answer; continue with: {way}") from None
        finally:
            probe.unlink(missing_ok=True)
        _refuse_blind(run, reports, word)
        _refuse_mixed(reports, tell)
        if not all(facts["malloc"] for facts in reports.values()):
            settings = " ".join(f"{name}={value}" for name, value in remote.MALLOC.items())
            tell(f"workers run up to three times slower than they could; start them with {settings}")

    def _reports(self, probe: str) -> dict[str, Any]:
        """What each worker says of itself; one that dies while it is asked is asked for again, and in the
        end done without, since the run will look for who is there."""
        for _ in range(ASKED):
            asked = {"on_error": "return", "callback_timeout": START}
            answers = self.client.sync(self.client._run, remote.report, probe, **asked)
            failed = [answer for answer in answers.values() if isinstance(answer, Exception)]
            for error in failed:
                if not isinstance(error, OSError):
                    raise error
            if not failed:
                break
            time.sleep(1.0)
        return {address: answer for address, answer in answers.items() if not isinstance(answer, Exception)}


@contextmanager
def local(
    workers: int,
    memory: int | None = None,
    patience: Patience | None = None,
    tell: Callable[[str], None] = log.warning,
) -> Iterator[Cluster]:
    """`workers` processes of one thread on this machine, reachable from this machine only.

    They come after the cluster: an interrupt while they start finds something that it can close. `tell` is
    called with the state of a wait that takes long.
    """
    _refuse_in_child()
    with ExitStack() as stack:
        with dask.config.set(SETTINGS):
            stack.enter_context(_environment_kept())
            with _interrupts_held():
                hosted: Any = _local_cluster(
                    n_workers=0,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                    memory_limit=memory or "auto",
                    silence_logs=logging.CRITICAL,
                )
                stack.callback(_close, hosted)
            hosted.sync(_start, hosted, workers)
        stack.enter_context(dask.config.set(KEEP))
        client = stack.enter_context(_client(hosted, hosted.scheduler_address, workers, tell))
        yield Cluster(client, workers, patience or Patience(), lambda: hosted.scale(workers))


@contextmanager
def attached(
    address: str, patience: Patience | None = None, tell: Callable[[str], None] = log.warning
) -> Iterator[Cluster]:
    """The workers of a scheduler that runs already, met with Dask's certificates for `tls://`.

    `tell` is called with the state of a wait for its workers.
    """
    probe(address)
    with _client(address, address, 1, tell, security=security(address)) as client:
        size = len(client.sync(client.scheduler.identity, callback_timeout=START)["workers"])
        yield Cluster(client, size, patience or Patience())


def probe(address: str) -> None:
    """ClusterLost unless a scheduler answers within `ANSWER` seconds; the wait is told, and a signal ends it
    at once, since another thread asks."""
    asked: Future[None] = Future()
    threading.Thread(target=_ask, args=(address, security(address), asked), daemon=True).start()
    if not wait([asked], min(REPORT_AFTER, ANSWER)).done:
        log.warning("waiting for the scheduler at %s", address)
        wait([asked], ANSWER - REPORT_AFTER)
    error = asked.exception() if asked.done() else TimeoutError()
    if error is not None:
        silent = f"no answer within {ANSWER:g} s"
        reason = silent if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise ClusterLost(f"scheduler {address}: cannot be reached: {reason}") from error


def _ask(address: str, certificates: Any, asked: Future[None]) -> None:
    """Have a scheduler say who it is."""

    async def identity() -> None:
        arguments = certificates.get_connection_args("client") if certificates else {}
        comm = await _connect(address, timeout=2 * ANSWER, **arguments)
        try:
            await _send(comm, op="identity", n_workers=0)
        finally:
            comm.abort()

    try:
        asked.set_result(asyncio.run(asyncio.wait_for(identity(), ANSWER)))
    except BaseException as error:  # noqa: BLE001  (anything may listen there)
        asked.set_exception(error)


async def _start(hosted: Any, workers: int) -> None:
    """Start workers; who stops waiting for them does not stop them half way, where they cannot be closed."""
    for _ in range(workers):
        hosted.worker_spec.update(hosted.new_worker_spec())
    await asyncio.shield(hosted._correct_state())


def _close(hosted: Any) -> None:
    with suppress(Exception):
        hosted.close(timeout=10)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Threads that begin here never see SIGINT, nor do the processes that they start, from birth on.

    Ctrl-C goes to all processes of a terminal, but workers are closed by this one. For the thread
    that is here it waits until the end. The resource tracker of Python must be there before: it
    lets signals through again in the thread that starts it.
    """
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Put back what nannies overwrite in the environment of this process each time they start a worker."""
    names = [*dask.config.get("distributed.nanny.pre-spawn-environ"), *LEFT_BEHIND]
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _client(
    target: Any, address: str, workers: int, tell: Callable[[str], None], **options: Any
) -> Iterator[Any]:
    """A client of the scheduler at `address`, once it has this number of workers."""
    try:
        client = _Client(target, timeout=START, set_as_default=False, **options)
    except (OSError, TimeoutError) as error:
        raise ClusterLost(f"scheduler {address}: cannot be reached: {error}") from error
    try:
        _await_workers(client, address, workers, tell)
        yield client
    except TimeoutError as error:
        raise ClusterLost(f"scheduler {address}: does not answer: {error}") from error
    finally:
        with suppress(Exception):
            client.close(timeout=5)


def _await_workers(client: Any, address: str, workers: int, tell: Callable[[str], None]) -> None:
    """Wait for workers, with reports of the wait, one at least; ClusterLost after `START` seconds.

    A signal ends the wait at once, since another thread asks.
    """
    counts: SimpleQueue[int | BaseException] = SimpleQueue()
    deadline, told = time.monotonic() + START, False
    threading.Thread(target=_count_workers, args=(client, workers, deadline, counts), daemon=True).start()
    while (running := counts.get()) != workers:
        if isinstance(running, BaseException):
            raise ClusterLost(f"scheduler {address}: does not answer: {running}") from running
        left = max(deadline - time.monotonic(), 0.0)
        if left > 0 or not told:
            tell(f"waiting for workers of {address}: {running or 'none'} yet, giving up in {left:.0f} s")
            told = True
        if left <= 0:
            raise ClusterLost(f"scheduler {address}: {running} of {workers} workers came within {START:g} s")


def _count_workers(
    client: Any, workers: int, deadline: float, counts: SimpleQueue[int | BaseException]
) -> None:
    """Put how many workers run, at most `workers`, until these are there or the deadline has passed."""
    pause, running = REPORT_AFTER, 0
    try:
        while running < workers and (left := deadline - time.monotonic()) > 0:
            with suppress(TimeoutError):
                client.wait_for_workers(workers, timeout=min(pause, left))
            there = client.sync(client.scheduler.identity, callback_timeout=ANSWER)["workers"]
            running = min(workers, sum(facts["status"] == "running" for facts in there.values()))
            counts.put(running)
            pause = REPORT_EVERY
    except BaseException as error:  # noqa: BLE001  (the thread that waits raises it)
        counts.put(error)


def _refuse_blind(run: Path, reports: dict[str, Any], word: str) -> None:
    for address, facts in reports.items():
        if facts["probe"] != word:
            raise StorageError(
                f"{run}: worker {address} does not see what is written there ({facts['probe'][:80]}); "
                "put the run and the data on storage that all workers share"
            )


def _refuse_mixed(reports: dict[str, Any], tell: Callable[[str], None]) -> None:
    """The bits depend on kernels and versions: workers that differ would give neither result."""
    for what in ("kernels", "versions"):
        kinds = {str(facts[what]): address for address, facts in reports.items()}
        if len(kinds) > 1:
            (kind, first), (other, second) = list(kinds.items())[:2]
            raise UsageError(
                f"workers {first} and {second} have different {what} ({kind}; {other}): "
                "use workers that are alike, or set OPENBLAS_CORETYPE alike for all of them"
            )
    ours = sorted({(lib["internal_api"], lib["architecture"]) for lib in kernels()})
    if any([tuple(pair) for pair in facts["kernels"]] != ours for facts in reports.values()):
        tell("workers have other BLAS kernels than this process; the result is reproducible on them only")


def _refuse_in_child() -> None:
    """A script that starts workers is run again by each of them, up to the same line."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            'put the call of fit under `if __name__ == "__main__":`, since workers import the script'
        )
