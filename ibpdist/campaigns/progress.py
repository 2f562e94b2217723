"""The status of a campaign, reported after each step of a group and before each score."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ibpdist.base.progress import CampaignStatus, Running, Sweep
from ibpdist.base.timeleft import stopping
from ibpdist.campaigns.directory import Fit, failure, is_finished, whole_of
from ibpdist.campaigns.left import Ledger, Plan, ScoreTimes
from ibpdist.catalog import systems
from ibpdist.inference.batch import terms_of
from ibpdist.inference.stopping import AnySnapshot
from ibpdist.runs.planning import features, share_of_rows

log = logging.getLogger("ibpdist")
OVERHEAD = 0.02
"""Seconds of a step of a group on a cluster, whatever its fits are; in one process nothing to speak of."""
Trial = Callable[[Fit, int], float]
"""Seconds that the score of a fit with this number of active features takes."""


def free(fit: Fit, active: int) -> float:
    """Scores take no time."""
    return 0.0


@dataclass
class CampaignProgress:
    """Reports the status of the fits of a grid; fits of a continued group outside the grid are left out.

    A fit runs, has ended, or waits. Groups that advance side by side report in turn.
    """

    path: Path
    fits: Sequence[Fit]
    progress: Sweep | None
    trial: Trial = free
    distributed: bool = False
    running: dict[str, Running] = field(default_factory=dict)
    """By fit."""
    ended: set[str] = field(default_factory=set)
    failed: int = 0
    ledger: Ledger = field(init=False)
    scores: ScoreTimes = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        by_id = {fit.id: fit for fit in self.fits}
        plans = {fit.id: plan_of(fit) for fit in self.fits}
        self.ledger = Ledger(plans, OVERHEAD if self.distributed else 0.0)
        self.scores = ScoreTimes(lambda fit, active: self.trial(by_id[fit], active), time.monotonic)

    def rest(self, fits: Sequence[Fit] = ()) -> None:
        """Note that none of these fits runs now; those without a result or a failure wait."""
        with self.lock:
            for fit in fits:
                self.running.pop(fit.id, None)
                self.ended.discard(fit.id)
            failed = {fit.id for fit in self.fits if failure(self.path, fit.id)}
            self.failed = len({whole_of(fit) for fit in failed})
            self.ended |= failed | {fit.id for fit in self.fits if self._is_made(fit)}
            self._note(fits)
            self._report()

    def _is_made(self, fit: Fit) -> bool:
        """Whether its result is there, or that of the fit that it is a part of."""
        return is_finished(self.path, fit.id) or is_finished(self.path, whole_of(fit.id))

    def _note(self, fits: Sequence[Fit]) -> None:
        """Note that a group has ended, if its fits of the grid have, or begins or waits."""
        group, now = [fit.id for fit in fits], time.monotonic()
        if fits and any(fit in self.ledger.plans and fit not in self.ended for fit in group):
            self.ledger.begin(group, now)
        elif fits:
            self.ledger.write(group, now)
        self.ledger.written |= self.ended

    def step(self, fits: Sequence[Fit], now: AnySnapshot) -> None:
        """Report a step of a group."""
        ours = {fit.id for fit in self.fits}
        levels = {}
        with self.lock:
            for at, fit in enumerate(fits):
                if fit.id not in ours:
                    continue
                terms = terms_of(at, now.trace)
                if terms:
                    levels[fit.id] = terms["objective"]
                    ended = now.params.members[at].stop is not None
                    self._guess(fit, int(terms["active"]), ended)
                if terms and not ended:
                    level, active = terms["objective"], int(terms["active"])
                    self.running[fit.id] = Running(fit.name, now.step, fit.spec.steps, level, active)
                else:
                    self.running.pop(fit.id, None)
                    self.ended.add(fit.id)
            self.ledger.step([fit.id for fit in fits], now.step, levels, time.monotonic())
            for fit in fits:
                if fit.id in self.ended:
                    self.ledger.end(fit.id)
            self._report()

    def _guess(self, fit: Fit, active: int, ended: bool) -> None:
        """Estimate how long its score will take, unless there is no progress to report."""
        if fit.is_scored and self.progress is not None:
            self.ledger.guesses[fit.id] = self.scores.of(fit.id, fit.spec.system, active, ended)

    def scoring(self, number: int, of: int, share: float = 0.0) -> None:
        """Report that fit `number` of `of` is being scored; `share` of it is done."""
        with self.lock:
            self.ledger.score(number, of, share, time.monotonic())
            self._report((number, of))

    def wait(self, what: str) -> None:
        """Report what the campaign waits for: to the log when there is no progress."""
        if self.progress is None:
            log.warning("%s", what)
        with self.lock:
            self._report(waiting=what)

    def _report(self, scoring: tuple[int, int] | None = None, waiting: str = "") -> None:
        if self.progress is None:
            return
        left = self.ledger.left(time.monotonic()) if self.running or scoring else None
        counts = (len(self.ended), len(self.fits), self.failed)
        self.progress(CampaignStatus(*counts, list(self.running.values()), left, scoring, waiting))


def plan_of(fit: Fit) -> Plan:
    """The plan of a fit before it begins; its work grows with the number of its features."""
    spec, sampler = fit.spec, systems.find(fit.spec.system).sampler
    count = features(spec)
    units = float(spec.chains * spec.inner * count) * share_of_rows(spec)
    return Plan(spec.system, units, stopping(sampler, spec.steps, spec.rtol, count), fit.is_scored)
