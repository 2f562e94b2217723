"""Progress of the work: a bar on a terminal, a line now and then otherwise.

Both functions give a callback for the library and write to standard error, so that results
can be piped. A `quiet` job gets a callback that prints nothing.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ibpdist.base.fit_series import FitSeries, Series, Snapshot
from ibpdist.base.streams import informing
from ibpdist.base.timeleft import Course, Stopping, TimeLeft
from ibpdist.base.timetable import PlannedFit


@dataclass(frozen=True)
class Running:
    """Where a fit of a campaign is that runs now."""

    name: str
    step: int
    limit: int
    objective: float
    active: int


@dataclass(frozen=True)
class CampaignStatus:
    """Where a campaign is: fits that ended, of all; those that run; the time that it still takes, if known.

    `scoring` is which of how many fits is scored now, `waiting` what the campaign waits for.
    """

    ended: int
    fits: int
    failed: int
    running: Sequence[Running] = ()
    left: TimeLeft | None = None
    scoring: tuple[int, int] | None = None
    waiting: str = ""


Count = Callable[[int, int | None], None]
"""Called with what is done and the whole, None when the whole is not known."""
Sweep = Callable[[CampaignStatus], None]
"""Called with the status of a campaign."""
Step = Callable[[Snapshot], None]
"""Called after each step; the trace has at least `objective` and `active`."""


@runtime_checkable
class Stages(Protocol):
    """A `Step` that is also told what happens before the first step of a fit and after the last.

    `what` is done in words, with how much of it is done and the whole. Without a whole it takes a while
    and cannot be counted.
    """

    def before(self, what: str, done: int = 0, whole: int | None = None) -> None: ...

    def after(self, what: str, done: int = 0, whole: int | None = None) -> None: ...


class Stage(Protocol):
    """One of the two."""

    def __call__(self, what: str, done: int = 0, whole: int | None = None) -> None: ...


def before(progress: object) -> Stage:
    """Who is told what happens before the first step: nobody, unless the progress wants to know."""
    return progress.before if isinstance(progress, Stages) else _nobody


def after(progress: object) -> Stage:
    """Who is told what happens after the last step."""
    return progress.after if isinstance(progress, Stages) else _nobody


@runtime_checkable
class Planned(Protocol):
    """A `Step` that is also told which fits are made one after the other, before each of them and whenever
    their number changes: the first `ended` have ended, and the next one runs."""

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> None: ...


def planned(progress: object) -> Callable[[Sequence[PlannedFit], int], None]:
    """Who is told of all fits that are made one after the other."""
    return progress.plan if isinstance(progress, Planned) else lambda fits, ended: None


def _nobody(what: str, done: int = 0, whole: int | None = None) -> None:
    """Nobody wants to know."""


SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_PICTURES = 0.2
SHOWN = 16
"""Fits of a campaign that have a line each on a terminal."""
LEAST_NAME = 12
"""Characters that are left of the name of a fit."""


@contextmanager
def counting(title: str, unit: str = "rows", *, quiet: bool = False) -> Iterator[Count]:
    """Progress of a job that counts towards a known or unknown whole."""
    if quiet:
        yield lambda done, whole: None
    elif not informing(sys.stderr).isatty():
        yield _CountLines(title, unit)
    else:
        with _bar(unit) as bar:
            task = bar.add_task(title, total=None, note="")
            yield lambda done, whole: bar.update(task, completed=done, total=whole)


@contextmanager
def stepping(
    title: str,
    steps: int | None = None,
    *,
    names: Sequence[str] = (),
    stopping: Stopping | None = None,
    fits: int = 1,
    quiet: bool = False,
    verbose: bool = False,
) -> Iterator[Step]:
    """Progress of a fit of at most `steps` steps, if that is known; `verbose` prints every step as a line.

    Steps that begin again are those of another start, or of another fit where fits have `names`. With
    `stopping` and the number of `fits` the time left is estimated.
    """
    course = None if stopping is None else Course(stopping, time.monotonic, fits)
    fit = FitSeries(title, names, course)
    if quiet:
        yield lambda now: None
    elif verbose or not informing(sys.stderr).isatty():
        yield _StepLines(fit, steps, verbose)
    else:
        with _bar("steps") as bar:
            task = bar.add_task(title, total=steps, note="looking at the data", left="")
            yield _StepBar(fit, bar, task)


@contextmanager
def sweeping(title: str, *, quiet: bool = False, verbose: bool = False) -> Iterator[Sweep]:
    """Progress of a campaign: a line for each fit that runs, and one for all; `verbose` prints them all."""
    if quiet:
        yield lambda now: None
    elif verbose or not informing(sys.stderr).isatty():
        yield _SweepLines(title, verbose)
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(file=informing(sys.stderr)), transient=True, auto_refresh=False) as live:
            yield _SweepPicture(title, live)


class _Clock:
    """Whether it is time to print the status again: some seconds have passed, fits have ended, scoring has
    begun, or the campaign waits for something."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.last, self.known = seconds, -math.inf, (-1, False, "")

    def due(self, now: CampaignStatus) -> bool:
        clock, known = time.monotonic(), (now.ended, now.scoring is not None, now.waiting)
        if known == self.known and clock - self.last < self.seconds:
            return False
        self.last, self.known = clock, known
        return True


class _SweepLines:
    def __init__(self, title: str, verbose: bool) -> None:
        self.title, self.verbose, self.clock = title, verbose, _Clock(SECONDS_BETWEEN_LINES)

    def __call__(self, now: CampaignStatus) -> None:
        if self.verbose or self.clock.due(now):
            for line in status_lines(self.title, now, None if self.verbose else 0):
                _say(line)


class _SweepPicture:
    def __init__(self, title: str, live: Any) -> None:
        self.title, self.live, self.clock = title, live, _Clock(SECONDS_BETWEEN_PICTURES)

    def __call__(self, now: CampaignStatus) -> None:
        from rich.text import Text

        if self.clock.due(now):
            lines = status_lines(self.title, now, width=self.live.console.width)
            self.live.update(Text("\n".join(lines), no_wrap=True), refresh=True)


def status_lines(
    title: str, now: CampaignStatus, most: int | None = SHOWN, width: int | None = None
) -> Iterator[str]:
    """A line for each of at most `most` running fits, then one for all; names are shortened to the width."""
    shown = now.running[:most]
    for one in shown:
        level = _level(one.objective, one.active, 4 if width is None else 1)
        where = f": step {one.step} of at most {one.limit}, {level}"
        name = one.name if width is None else shortened(one.name, width - len(where) - 2)
        yield f"  {name}{where}"
    if shown and len(now.running) > len(shown):
        yield f"  and {len(now.running) - len(shown)} more"
    failed = f", {now.failed} failed" if now.failed else ""
    left = f", left: {now.left}" if now.left is not None else ""
    if now.scoring is not None:
        number, of = now.scoring
        scoring = f", scoring {number} of {of} fits{left}"
        yield f"{title}: {now.ended} of {now.fits} fits ended{failed}{scoring}"
        return
    waiting = f", {now.waiting}" if now.waiting else ""
    yield f"{title}: {now.ended} of {now.fits} fits ended{failed}, {len(now.running)} running{left}{waiting}"


def shortened(name: str, room: int) -> str:
    """A name of at most `room` characters, but of at least LEAST_NAME: its middle is left out, since names
    of fits differ at their ends."""
    room = max(room, LEAST_NAME)
    if len(name) <= room:
        return name
    end = room // 2
    return f"{name[: room - end - 1]}…{name[-end:]}"


class _CountLines:
    def __init__(self, title: str, unit: str) -> None:
        self.title, self.unit = title, unit
        self.start = self.last = time.monotonic()

    def __call__(self, done: int, whole: int | None) -> None:
        now = time.monotonic()
        if done != whole and now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        of = f" of {whole:,}" if whole else ""
        _say(f"{self.title}: {done:,}{of} {self.unit}, {now - self.start:.1f} s")


class _StepLines:
    def __init__(self, fit: Series, steps: int | None, verbose: bool) -> None:
        self.fit, self.steps, self.verbose, self.silent = fit, steps, verbose, True
        self.start = self.last = time.monotonic()

    def __call__(self, now: Snapshot) -> None:
        self.fit.step(now)
        steps = self.fit.limit or self.steps
        if self._due(now.step in (1, steps)):
            where = f"step {now.step}" + (f" of at most {steps}" if steps else "")
            self._say(where, _note(now.trace), left=self.fit.left())

    def before(self, what: str, done: int = 0, whole: int | None = None) -> None:
        if done == 0:
            self.fit.begin()
        self._stage(what, done, whole, self.fit.before())

    def after(self, what: str, done: int = 0, whole: int | None = None) -> None:
        self._stage(what, done, whole, self.fit.after(done / max(whole or 1, 1)))

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> None:
        self.fit = self.fit.plan(fits, ended)

    def _stage(self, what: str, done: int, whole: int | None, left: str) -> None:
        """Something is told at once, unless a single chunk is all that is to be done."""
        if self._due(whole is None or (self.silent and whole > 1)):
            self._say(part_of(what, done, whole), left=left)

    def _due(self, now: bool) -> bool:
        clock = time.monotonic()
        due = self.verbose or now or clock - self.last >= SECONDS_BETWEEN_LINES
        if due:
            self.last, self.silent = clock, False
        return due

    def _say(self, *words: str, left: str) -> None:
        passed = f"{time.monotonic() - self.start:.1f} s"
        _say(f"{self.fit.title}: {', '.join(filter(None, (*words, passed, left)))}")


class _StepBar:
    def __init__(self, fit: Series, bar: Any, task: Any) -> None:
        self.fit, self.bar, self.task = fit, bar, task

    def __call__(self, now: Snapshot) -> None:
        self.fit.step(now)
        note, left = _note(now.trace, digits=1), self.fit.left()
        of = {} if self.fit.limit is None else {"total": self.fit.limit}
        self.bar.update(self.task, description=self.fit.title, completed=now.step, note=note, left=left, **of)

    def before(self, what: str, done: int = 0, whole: int | None = None) -> None:
        if done == 0:
            self.fit.begin()
        self._stage(what, done, whole, self.fit.before())

    def after(self, what: str, done: int = 0, whole: int | None = None) -> None:
        self._stage(what, done, whole, self.fit.after(done / max(whole or 1, 1)))

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> None:
        self.fit = self.fit.plan(fits, ended)

    def _stage(self, what: str, done: int, whole: int | None, left: str) -> None:
        note = part_of(what, done, whole)
        self.bar.update(self.task, description=self.fit.title, note=note, left=left)


def part_of(what: str, done: int, whole: int | None) -> str:
    """What is done in words, with how much of it is done if that can be counted."""
    return f"{what}, {100 * done / whole:.0f} %" if whole else what


def _note(trace: Mapping[str, float], digits: int = 4) -> str:
    """The fit so far, which never falls; while a change is on trial, what it has come to is not shown."""
    level = trace["objective"]
    trying = ", trying" if trace.get("trial", level) != level else ""
    return f"{_level(level, trace['active'], digits)}{trying}"


def _level(objective: float, active: float, digits: int = 4) -> str:
    return f"objective {objective:,.{digits}f}, {active:.0f} active"


def _say(line: str) -> None:
    print(line, file=informing(sys.stderr), flush=True)


def _bar(unit: str) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    # The limit of steps says nothing about when a fit converges.
    steps = unit == "steps"
    left = [TextColumn("{task.fields[left]}")] if steps else [TextColumn("left"), TimeRemainingColumn()]
    return Progress(
        TextColumn("{task.description}"),
        *([] if steps else [BarColumn(bar_width=24)]),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        *left,
        console=Console(file=informing(sys.stderr)),
        transient=True,
    )
