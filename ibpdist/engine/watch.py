"""Watching a cluster: who is there, who is silent, and the name of what went wrong.

Silence is how clusters fail: without workers, with a frozen one, or without a scheduler, everything
just waits. So the scheduler is asked again and again, with a deadline, while work is under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ibpdist.base.errors import ClusterLost

Clock = Callable[[], float]
Identity = dict[str, Any]


@dataclass(frozen=True)
class Patience:
    """Seconds. Named after `named`, given up after the others."""

    named: float = 5.0
    worker: float = 60.0
    """A worker silent or paused for so long is treated as lost."""
    cluster: float = 60.0
    """Time for workers to come back when there is none."""
    scheduler: float = 3.0
    """Time for an answer of the scheduler; it has three tries."""
    stall: float = 600.0
    """Time without any finished task, though workers seem well."""


@dataclass
class Watch:
    """What is known of the workers, by their address. `ask` gives the scheduler's view or raises."""

    ask: Callable[[float], Identity]
    asked_for: int
    patience: Patience
    tell: Callable[[str], None]
    clock: Clock = time.monotonic
    _seen: dict[str, tuple[float, float]] = field(default_factory=dict)
    _paused: dict[str, float] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)
    _empty_since: float | None = None

    def look(self) -> list[str]:
        """Addresses of workers that can be given work; raises ClusterLost when none will come."""
        now = self.clock()
        workers: dict[str, Any] = self._identity()["workers"]
        for address in set(self._seen) - set(workers):
            del self._seen[address]
            self._report(f"gone {address}", f"worker {address} is gone")
        well = [address for address, facts in workers.items() if self._is_well(address, facts, now)]
        self._count(len(workers), now)
        self._judge(well, workers, now)
        return well

    def heard(self) -> None:
        """Note that a result came, so a worker works: the time without workers starts again at zero."""
        self._empty_since = None

    def _identity(self) -> Identity:
        for _ in range(3):
            try:
                return self.ask(self.patience.scheduler)
            except TimeoutError:
                continue
            except Exception as error:
                raise ClusterLost(f"the scheduler is gone: {str(error) or type(error).__name__}") from error
        raise ClusterLost(f"the scheduler does not answer within {3 * self.patience.scheduler:g} s")

    def _is_well(self, address: str, facts: dict[str, Any], now: float) -> bool:
        """Heard of lately and not paused; clocks of other machines are compared with themselves only."""
        beat, heard = self._seen.get(address, (None, now))
        if beat != facts["last_seen"]:
            heard = now
        self._seen[address] = (facts["last_seen"], heard)
        silent = now - heard
        if silent > self.patience.named:
            self._report(f"silent {address}", f"worker {address} has been silent for {silent:.0f} s")
        else:
            self._reported.discard(f"silent {address}")
        paused = self._pause(address, facts, now)
        return max(silent, paused) <= self.patience.worker

    def _pause(self, address: str, facts: dict[str, Any], now: float) -> float:
        if facts["status"] != "paused":
            self._paused.pop(address, None)
            return 0.0
        since = now - self._paused.setdefault(address, now)
        if since > self.patience.named:
            used = facts.get("metrics", {}).get("memory", 0) / 2**20
            self._report(f"paused {address}", f"worker {address} is paused: it uses {used:,.0f} MB of memory")
        return since

    def _count(self, workers: int, now: float) -> None:
        if workers < self.asked_for:
            self._report(f"count {workers}", f"{workers} of {self.asked_for} workers are there")
        else:
            self._reported = {key for key in self._reported if not key.startswith("count")}

    def _judge(self, well: list[str], workers: dict[str, Any], now: float) -> None:
        if well:
            self._empty_since = None
            return
        if self._empty_since is None:
            self._empty_since = now
        if now - self._empty_since >= self.patience.cluster or (workers and self._empty_since == now):
            raise ClusterLost(self._cause(workers))

    def _cause(self, workers: dict[str, Any]) -> str:
        if not workers:
            return f"no workers for {self.patience.cluster:g} s, {self.asked_for} were asked for"
        if all(facts["status"] == "paused" for facts in workers.values()):
            return (
                "all workers are paused because their memory is full; give them more, or use smaller chunks"
            )
        return f"all workers have been silent for {self.patience.worker:g} s"

    def _report(self, key: str, sentence: str) -> None:
        if key not in self._reported:
            self._reported.add(key)
            self.tell(sentence)
