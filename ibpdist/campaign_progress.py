"""How a campaign stands, told after each step of a group and before each score."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ibpdist.algorithms.batch import terms_of
from ibpdist.algorithms.sweeps import Snapshot
from ibpdist.campaign_spec import in_words
from ibpdist.progress import Running, Standing, Sweep
from ibpdist.runs.campaign import Fit, failure, is_finished


@dataclass
class Teller:
    """Tells of the fits of a grid; what else a group has that goes on is left out.

    A fit either runs or has ended or waits; groups that advance side by side tell of it in turn.
    """

    path: Path
    fits: Sequence[Fit]
    progress: Sweep | None
    running: dict[str, Running] = field(default_factory=dict)
    """By fit."""
    ended: set[str] = field(default_factory=set)
    failed: int = 0
    begun: tuple[float, float] | None = None
    """When the first of the groups that run made its first step, and how many fits were made then."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def rest(self, fits: Sequence[Fit] = ()) -> None:
        """None of these fits runs now, and those among them without a result or a failure wait."""
        with self.lock:
            for fit in fits:
                self.running.pop(fit.id, None)
                self.ended.discard(fit.id)
            failed = {fit.id for fit in self.fits if failure(self.path, fit.id)}
            self.failed = len(failed)
            self.ended |= failed | {fit.id for fit in self.fits if is_finished(self.path, fit.id)}
            self._tell()

    def step(self, fits: Sequence[Fit], now: Snapshot) -> None:
        """A group made a step."""
        ours = {fit.id for fit in self.fits}
        with self.lock:
            for at, fit in enumerate(fits):
                if fit.id not in ours:
                    continue
                terms = terms_of(at, now.trace)
                if terms and now.params.members[at].stop is None:
                    level, active = terms["objective"], int(terms["active"])
                    name, limit = in_words(fit.labels), fit.spec.steps
                    self.running[fit.id] = Running(name, now.step, limit, level, active)
                else:
                    self.running.pop(fit.id, None)
                    self.ended.add(fit.id)
            self._tell()

    def scoring(self, number: int, of: int) -> None:
        """All fits have ended, and one of them is scored."""
        with self.lock:
            self._tell((number, of))

    def _tell(self, scoring: tuple[int, int] | None = None) -> None:
        if self.progress is None:
            return
        running, scored = list(self.running.values()), any(fit.spec.holdout for fit in self.fits)
        counts = (len(self.ended), len(self.fits), self.failed)
        self.progress(Standing(*counts, running, self._left(), scored, scoring))

    def _left(self) -> float | None:
        """The most seconds that steps take at the pace of those that run: each fit as if it came to its
        limit."""
        if not self.running:
            self.begun = None
            return None
        steps = sum(one.step / one.limit for one in self.running.values())
        now, made = time.monotonic(), len(self.ended) + steps
        if self.begun is None or made < self.begun[1]:  # what broke is made again
            self.begun = now, made
        began, before = self.begun
        return (now - began) * (len(self.fits) - made) / (made - before) if made > before else None
