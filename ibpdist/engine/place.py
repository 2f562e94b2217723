"""Where a fit runs: in this process, in local processes, or on a cluster that is there already."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ibpdist.base.errors import UsageError
from ibpdist.data._base import Source
from ibpdist.engine.memory import Plan, available, plan

if TYPE_CHECKING:
    from ibpdist.engine.cluster import Cluster

SMALL = 64 << 20
"""Data of fewer bytes are fitted in this process: starting others takes longer than the fit."""


@dataclass(frozen=True)
class Place:
    """`workers` local processes, or a `scheduler`; neither means this process.

    `memory` is the limit of a process in bytes, `cache` the bytes of data it may keep.
    """

    workers: int = 0
    scheduler: str | None = None
    memory: int | None = None
    cache: int | None = None

    @property
    def distributed(self) -> bool:
        return self.workers > 0 or self.scheduler is not None

    @property
    def words(self) -> str:
        """Where that is."""
        here = f"{self.workers} local processes" if self.workers else "this process"
        return f"the cluster at {self.scheduler}" if self.scheduler else here

    def plan(self, source: Source, features: int, processes: int | None = None, *, entries: int = 1) -> Plan:
        """The memory of each process; refuses what does not fit."""
        count = processes or max(1, self.workers)
        limit = self.memory or available(count)
        return plan(source, features, count, limit, self.cache, entries=entries)

    def refuse_silent(self) -> None:
        """ClusterLost, before anything is written, when there is a scheduler and it does not answer."""
        if self.scheduler:
            from ibpdist.engine.cluster import probe

            probe(self.scheduler)

    @contextmanager
    def cluster(self) -> Iterator[Cluster | None]:
        """The processes, for as long as they are needed; None for this one."""
        if not self.distributed:
            yield None
            return
        from ibpdist.engine.cluster import attached, local

        made = attached(self.scheduler) if self.scheduler else local(self.workers, self.memory)
        with made as cluster:
            yield cluster


def place_for(
    source: Source,
    kept: bool,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    cache: int | None = None,
) -> Place:
    """The place that was asked for; else this process, unless the data are large and the run is `kept`."""
    counts: dict[str, object] = {"workers": workers, "memory": memory, "cache": cache}
    for name, value in counts.items():
        if value is not None and not isinstance(value, Integral):
            raise UsageError(f"{name} is {value!r}: expected a whole number, of bytes where it is memory")
    if sum((bool(workers), bool(serial), bool(scheduler))) > 1:
        raise UsageError("workers, serial and scheduler exclude each other; give one of them")
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}: expected 1 or more")
    if memory is not None and memory < 1:
        raise UsageError(f"memory is {memory}: expected 1 byte or more, such as 1GB")
    if scheduler:
        refuse_open(scheduler)
        return Place(0, scheduler, memory, cache)
    if workers or serial or not kept:
        return Place(workers or 0, None, memory, cache)
    size = source.rows * source.columns * source.dtype.itemsize
    cores = os.cpu_count() or 1
    return Place(cores if size >= SMALL and cores > 1 else 0, None, memory, cache)


def refuse_open(address: str) -> None:
    """Refuse a scheduler beyond this machine without TLS: whoever reaches its port runs code there."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme == "tls" or _is_loopback(parts.hostname or ""):
        return
    raise UsageError(
        f"scheduler {address}: not on this machine and without TLS, so anyone who reaches its port could "
        "run code on it; start it with certificates and give tls://HOST:PORT"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
