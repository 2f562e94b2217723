"""Where a fit runs: in this process, in local processes, or on a cluster that is there already."""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ibpdist.base.errors import UsageError
from ibpdist.data._base import Source
from ibpdist.data.dense_rows import by_entries
from ibpdist.data.sizes import ENTRY, data_bytes
from ibpdist.engine.memory import Plan, available, plan

if TYPE_CHECKING:
    from ibpdist.engine.cluster import Cluster

log = logging.getLogger("ibpdist")
SMALL, SMALL_ENTRIES = 64 << 20, 1 << 20
"""Data of fewer bytes, or counts of fewer entries, are fitted in this process: it begins sooner."""


@dataclass(frozen=True)
class Place:
    """Where work runs: in `workers` local processes, in this one (`serial`), or on a `scheduler`.

    With none of the three `for_data` decides. `memory` is the limit of a process in bytes, `cache` the
    bytes of data that it may keep. A place that makes no sense is refused when it is made.
    """

    workers: int | None = None
    serial: bool | None = None
    scheduler: str | None = None
    memory: int | None = None
    cache: int | None = None

    def __post_init__(self) -> None:
        self._refuse_fractions()
        if sum((bool(self.workers), bool(self.serial), bool(self.scheduler))) > 1:
            raise UsageError("workers, serial and scheduler exclude each other; give one of them")
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers is {self.workers}: expected 1 or more")
        if self.memory is not None and self.memory < 1:
            raise UsageError(f"memory is {self.memory}: expected 1 byte or more, such as 1GB")
        if self.scheduler:
            refuse_open(self.scheduler)

    def _refuse_fractions(self) -> None:
        counts: dict[str, object] = {"workers": self.workers, "memory": self.memory, "cache": self.cache}
        for name, value in counts.items():
            if value is not None and not isinstance(value, Integral):
                raise UsageError(f"{name} is {value!r}: expected a whole number, of bytes where it is memory")

    def for_data(self, source: Source, kept: bool) -> Place:
        """This place when it was chosen; else one process a core when data are large and the run is `kept`,
        and this process otherwise."""
        cores = os.cpu_count() or 1
        if self.distributed or self.serial or not kept or not are_large(source) or cores == 1:
            return self
        return replace(self, workers=cores)

    @property
    def distributed(self) -> bool:
        return bool(self.workers or self.scheduler)

    @property
    def processes(self) -> int:
        """Processes of this machine that share the work."""
        return self.workers or 1

    def threads(self, source: Source) -> int:
        """Threads of work that stays in one process: as chosen, else one a core when data are large."""
        if self.scheduler:
            raise UsageError("this runs in one process; give workers (threads) instead of a scheduler")
        return 1 if self.serial else self.workers or (os.cpu_count() or 1 if are_large(source) else 1)

    def options(self) -> dict[str, Any]:
        """The values that were given, as keywords of the functions of the library."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def words(self) -> str:
        """This place in words."""
        here = f"{self.workers} local processes" if self.workers else "this process"
        return f"the cluster at {self.scheduler}" if self.scheduler else here

    def plan(
        self, source: Source, features: int, processes: int | None = None, *, entries: int = 1, held: int = 0
    ) -> Plan:
        """The memory of each process; refuses what does not fit."""
        count = processes or self.processes
        limit = self.memory or available(count)
        return plan(source, features, count, limit, self.cache, entries=entries, held=held)

    def refuse_silent(self) -> None:
        """ClusterLost, before anything is written, when there is a scheduler and it does not answer."""
        if self.scheduler:
            from ibpdist.engine.cluster import probe

            probe(self.scheduler)

    @contextmanager
    def cluster(self, tell: Callable[[str], None] = log.warning) -> Iterator[Cluster | None]:
        """The processes, for as long as they are needed; None for this one. `tell` is called with the state
        of a wait for workers."""
        if not self.distributed:
            yield None
            return
        from ibpdist.engine.cluster import attached, local

        if self.scheduler:
            workers = attached(self.scheduler, tell=tell)
        else:
            workers = local(self.processes, self.memory, tell=tell)
        with workers as cluster:
            yield cluster


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


def are_large(source: Source) -> bool:
    """Whether several processes are worth their start."""
    return data_bytes(source) >= (SMALL_ENTRIES * ENTRY if by_entries(source) else SMALL)
