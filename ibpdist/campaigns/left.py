"""How long a campaign still takes, from the steps of its fits and the time that they took.

The work of a step of a fit is counted in units, one for each feature that it may have; how long a unit
takes is measured for each system. Steps that a fit still makes are predicted from its own gains
(timeleft.py). A fit that waits is expected to make as many steps as those of the same system do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ibpdist.base.timeleft import NINETY, SPREAD, AllSteps, Stopping, TimeLeft

ANY = ""
"""Stands for every system."""
SHARED = 0.25
"""Share of the variance of predictions that fits of the same data have in common."""
WRITING = 0.25
"""Seconds that a result takes, before one was written."""
GUESSED = 0.1
"""Share of all scores that guesses count for, once scores are made."""
DOUBT = 1.5
"""Times as long as they are guessed that scores take at most."""
TRIALS = 0.03
"""Share of the time that trials of scores may take."""
LEAST, TINY = 0.1, 1e-9
"""Share of a step that is work at least, and a time that can be divided by."""


@dataclass(frozen=True)
class Plan:
    """A fit as it is planned: its system, the units of a step, when it stops, and whether it is scored."""

    system: str
    units: float
    stopping: Stopping
    scored: bool = False


@dataclass
class Made:
    """The progress of a fit."""

    step: int = 0
    levels: list[float] = field(default_factory=list)
    ended: bool = False


@dataclass
class Spent:
    """Seconds, and what was done in them."""

    seconds: float = 0.0
    done: float = 0.0

    def add(self, seconds: float, done: float) -> None:
        self.seconds += seconds
        self.done += done

    def each(self, other: float) -> float:
        """Seconds for one; `other` when none was done."""
        return self.seconds / self.done if self.done else other


@dataclass(frozen=True)
class Scoring:
    """When the first score began, which of how many fits is scored, and the share of it that is done."""

    began: float
    number: int
    of: int
    share: float


@dataclass
class Ledger:
    """What the groups of a campaign have done, by fit, and the seconds that it took.

    A group begins, makes steps, and writes its results. Groups may do so side by side: seconds are those
    of groups, and a second of the clock may have several.
    """

    plans: Mapping[str, Plan]
    overhead: float = 0.0
    """Seconds of a step of a group, whatever its fits are."""
    made: dict[str, Made] = field(default_factory=dict)
    steps: dict[str, Spent] = field(default_factory=dict)
    """By system, in units."""
    starts: Spent = field(default_factory=Spent)
    writes: Spent = field(default_factory=Spent)
    guesses: dict[str, float] = field(default_factory=dict)
    """Seconds of the score of a fit."""
    scoring: Scoring | None = None
    """The scores, once they are made."""
    written: set[str] = field(default_factory=set)
    last: dict[tuple[str, ...], float] = field(default_factory=dict)
    """By group, when it was heard of."""
    began: float | None = None

    def begin(self, group: Sequence[str], now: float) -> None:
        """Note that a group begins or continues; none of its steps count yet."""
        self.began = now if self.began is None else self.began
        self.last[tuple(group)] = now
        for fit in group:
            self.made.pop(fit, None)

    def step(self, group: Sequence[str], step: int, levels: Mapping[str, float], now: float) -> None:
        """Note a step of a group: the objectives of the fits that made it, by id."""
        known = [fit for fit in levels if fit in self.plans]
        self.began = now if self.began is None else self.began
        seconds = now - self.last.get(tuple(group), now)
        if all(fit not in self.made for fit in group):
            self.starts.add(seconds, len(known))
        else:
            self._share(known, max(seconds - self.overhead, LEAST * seconds))
        self.last[tuple(group)] = now
        for fit in known:
            one = self.made.setdefault(fit, Made())
            one.step = step
            one.levels.append(levels[fit])

    def _share(self, fits: Sequence[str], seconds: float) -> None:
        whole = sum(self.plans[fit].units for fit in fits)
        for fit in fits:
            plan = self.plans[fit]
            self.steps.setdefault(plan.system, Spent()).add(seconds * plan.units / whole, plan.units)

    def end(self, fit: str) -> None:
        """Note that a fit makes no more steps."""
        if fit in self.plans:
            self.made.setdefault(fit, Made()).ended = True

    def write(self, group: Sequence[str], now: float) -> None:
        """Note that the results of a group are written."""
        began = self.last.pop(tuple(group), now)
        if any(fit in self.made for fit in group):
            self.writes.add(now - began, len(group))
        self.written |= set(group)

    def score(self, number: int, of: int, share: float, now: float) -> None:
        """Note the share that is done of the score of one of `of` fits."""
        began = now if self.scoring is None else self.scoring.began
        self.scoring = Scoring(began, number, of, share)

    def left(self, now: float) -> TimeLeft | None:
        """The time from now to the end; None when it is not known yet."""
        usual = self._usual()
        groups = [self._group_left(group, usual) for group in self._groups()]
        if self.began is None or any(one is None for one in groups) or self._is_untimed():
            return None
        known = [one for one in groups if one is not None]
        spent = [*self.steps.values(), self.starts, self.writes]
        beside = max(1.0, sum(one.seconds for one in spent) / max(now - self.began, TINY))
        about, scoring = max([sum(known) / beside, *known]), self._scores_left(now)
        running = max(1, sum(not self._has_ended(fit) for fit in self.plans))
        spread = SPREAD * math.sqrt(SHARED + (1 - SHARED) / running)
        return TimeLeft(about + scoring, about * math.exp(NINETY * spread) + DOUBT * scoring)

    def _is_untimed(self) -> bool:
        """Whether there are steps to come and none was timed."""
        return not self.steps and any(not self._has_ended(fit) for fit in self.plans)

    def _groups(self) -> list[list[str]]:
        """Fits that are not written yet: by group, and alone where they wait for theirs."""
        here = [[fit for fit in group if fit in self.plans] for group in self.last]
        taken = {fit for group in here for fit in group}
        return here + [[fit] for fit in self.plans if fit not in taken and fit not in self.written]

    def _group_left(self, group: Sequence[str], usual: Mapping[str, float]) -> float | None:
        """Seconds of a group to its end."""
        steps = {fit: self._steps_left(fit, usual) for fit in group if not self._has_ended(fit)}
        if any(count is None for count in steps.values()):
            return None
        known = {fit: count for fit, count in steps.items() if count is not None}
        work = sum(count * self.plans[fit].units * self._unit(fit) for fit, count in known.items())
        passes = max(known.values(), default=0.0) * self.overhead
        begin = sum(fit not in self.made for fit in known) * self.starts.each(0.0)
        return begin + work + passes + len(group) * self.writes.each(WRITING)

    def _scores_left(self, now: float) -> float:
        """Seconds that scores still take, as they were guessed; once scores are made, in proportion to those,
        of which the guesses count for some, since those of other systems may be worse."""
        usual = sum(self.guesses.values()) / max(len(self.guesses), 1)
        guesses = [self.guesses.get(fit, usual) for fit, plan in self.plans.items() if plan.scored]
        if self.scoring is None:
            return sum(guesses)
        at, guesses = self.scoring.number - 1, guesses[-self.scoring.of :]
        done = sum(guesses[:at]) + self.scoring.share * guesses[at]
        prior = GUESSED * sum(guesses)
        pace = (now - self.scoring.began + prior) / (done + prior) if prior else 1.0
        return (sum(guesses) - done) * pace

    def _has_ended(self, fit: str) -> bool:
        return fit in self.written or (fit in self.made and self.made[fit].ended)

    def _unit(self, fit: str) -> float:
        """Seconds of a unit of its system, or of all when it has made no step."""
        known = self.steps.get(self.plans[fit].system)
        if known is not None and known.done:
            return known.each(0.0)
        whole = sum(one.done for one in self.steps.values())
        return sum(one.seconds for one in self.steps.values()) / whole if whole else 0.0

    def _steps_left(self, fit: str, usual: Mapping[str, float]) -> float | None:
        """Steps that a fit is still expected to make; for a waiting fit the usual number."""
        plan, made = self.plans[fit], self.made.get(fit)
        if made is not None:
            return expected(plan.stopping, made)
        if isinstance(plan.stopping, AllSteps):
            return float(plan.stopping.limit)
        known = usual.get(plan.system, usual.get(ANY))
        return None if known is None else min(plan.stopping.limit, known)

    def _usual(self) -> dict[str, float]:
        """Steps that fits make, by system and for any of them: of those that have begun, with the steps that
        are expected."""
        counts: dict[str, list[float]] = {}
        for fit, made in self.made.items():
            left = 0.0 if made.ended else expected(self.plans[fit].stopping, made)
            if made.step and left is not None:
                for system in (ANY, self.plans[fit].system):
                    counts.setdefault(system, []).append(made.step + left)
        return {system: sum(steps) / len(steps) for system, steps in counts.items()}


def expected(stopping: Stopping, made: Made) -> float | None:
    """The mean number of steps to come, where a prediction is that of the middle of a log-normal."""
    left = stopping.steps_left(made.levels, made.step)
    if left is None:
        return None
    about, most = left
    room = max(0, stopping.limit - made.step)
    if about == most:
        return about
    points = (-1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645)
    return sum(min(room, about * math.exp(SPREAD * z)) for z in points) / len(points)


class ScoreTimes:
    """How long the score of a fit takes, by trials for each system and number of active features.

    The cost of a score jumps with that number, so each fit that has ended is tried with its own. One that
    runs is tried while trials take a small share of the time; else the nearest number stands for it.
    """

    def __init__(self, trial: Callable[[str, int], float], clock: Callable[[], float]) -> None:
        self._trial, self._clock = trial, clock
        self._began, self._spent = clock(), 0.0
        self._known: dict[str, dict[int, float]] = {}

    def of(self, fit: str, system: str, active: int, ended: bool) -> float:
        """Seconds of the score of a fit with this number of active features; kept once the fit has ended."""
        known = self._known.setdefault(system, {})
        began = self._clock()
        cheap = self._spent <= TRIALS * (began - self._began)
        if not known or (active not in known and (ended or cheap)):
            known[active] = self._trial(fit, active)
            self._spent += self._clock() - began
        return known[min(known, key=lambda tried: (abs(tried - active), tried))]
