"""Telling a person how far the work is: a bar on a terminal, a line now and then otherwise.

Both functions give a callback for the library and write to standard error, so that results
can be piped. A `quiet` job gets a callback that says nothing.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ibpdist.streams import informing
from ibpdist.words import duration


class Snapshot(Protocol):
    """What is shown of a step."""

    @property
    def step(self) -> int: ...
    @property
    def trace(self) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Running:
    """Where a fit of a campaign is that runs now."""

    name: str
    step: int
    limit: int
    objective: float
    active: int


@dataclass(frozen=True)
class Standing:
    """Where a campaign is: fits that ended, of all; those that run; the most seconds that steps still take.

    With `to_score` fits are scored when all have ended; `scoring` is which of how many is scored now.
    """

    ended: int
    fits: int
    failed: int
    running: Sequence[Running] = ()
    left: float | None = None
    to_score: bool = False
    scoring: tuple[int, int] | None = None


Count = Callable[[int, int | None], None]
"""Called with what is done and the whole, None when the whole is not known."""
Sweep = Callable[[Standing], None]
"""Called with how a campaign stands."""
Step = Callable[[Snapshot], None]
"""Called after each step; the trace has at least `objective` and `active`."""

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
    quiet: bool = False,
    verbose: bool = False,
) -> Iterator[Step]:
    """Progress of a fit of at most `steps` steps, if that is known; `verbose` prints every step as a line.

    Steps that begin again are another start, or of several fits, whose `names` are given, the next one.
    """
    named = _Starts(title, names)
    if quiet:
        yield lambda now: None
    elif verbose or not informing(sys.stderr).isatty():
        yield _StepLines(named, steps, verbose)
    else:
        with _bar("steps") as bar:
            task = bar.add_task(title, total=steps, note="looking at the data")
            yield lambda now: bar.update(
                task, description=named.at(now.step), completed=now.step, note=_note(now.trace, digits=1)
            )


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
    """Whether it is time to say something again: some seconds have passed, or fits have ended, or scores
    are begun."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.last, self.known = seconds, -math.inf, (-1, False)

    def due(self, now: Standing) -> bool:
        clock, known = time.monotonic(), (now.ended, now.scoring is not None)
        if known == self.known and clock - self.last < self.seconds:
            return False
        self.last, self.known = clock, known
        return True


class _SweepLines:
    def __init__(self, title: str, verbose: bool) -> None:
        self.title, self.verbose, self.clock = title, verbose, _Clock(SECONDS_BETWEEN_LINES)

    def __call__(self, now: Standing) -> None:
        if self.verbose or self.clock.due(now):
            for line in standing(self.title, now, None if self.verbose else 0):
                _say(line)


class _SweepPicture:
    def __init__(self, title: str, live: Any) -> None:
        self.title, self.live, self.clock = title, live, _Clock(SECONDS_BETWEEN_PICTURES)

    def __call__(self, now: Standing) -> None:
        from rich.text import Text

        if self.clock.due(now):
            lines = standing(self.title, now, width=self.live.console.width)
            self.live.update(Text("\n".join(lines), no_wrap=True), refresh=True)


def standing(title: str, now: Standing, most: int | None = SHOWN, width: int | None = None) -> Iterator[str]:
    """A line for each of so many fits, then one for all. Where lines have a width, names give way."""
    shown = now.running[:most]
    for one in shown:
        level = _level(one.objective, one.active, 4 if width is None else 1)
        where = f": step {one.step} of at most {one.limit}, {level}"
        name = one.name if width is None else shortened(one.name, width - len(where) - 2)
        yield f"  {name}{where}"
    if shown and len(now.running) > len(shown):
        yield f"  and {len(now.running) - len(shown)} more"
    failed = f", {now.failed} failed" if now.failed else ""
    if now.scoring is not None:
        number, of = now.scoring
        yield f"{title}: {now.ended} of {now.fits} fits ended{failed}, scoring {number} of {of} fits"
        return
    some = "of steps left, then scores" if now.to_score else "left"
    left = f", at most {duration(now.left)} {some}" if now.left is not None else ""
    yield f"{title}: {now.ended} of {now.fits} fits ended{failed}, {len(now.running)} running{left}"


def shortened(name: str, room: int) -> str:
    """At most so many characters of a name, if that is not too few: its middle is left out, since names of
    fits differ at their ends."""
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


class _Starts:
    """The title of a fit, with its name if it has one, else with the number of its start but the first."""

    def __init__(self, title: str, names: Sequence[str]) -> None:
        self.title, self.names, self.start, self.last = title, names, 1, 0

    def at(self, step: int) -> str:
        self.start += step <= self.last
        self.last = step
        if self.start <= len(self.names):
            return f"{self.title}, {self.names[self.start - 1]}"
        return self.title if self.start == 1 else f"{self.title}, start {self.start}"


class _StepLines:
    def __init__(self, title: _Starts, steps: int | None, verbose: bool) -> None:
        self.title, self.steps, self.verbose = title, steps, verbose
        self.start = self.last = time.monotonic()

    def __call__(self, now: Snapshot) -> None:
        clock, title = time.monotonic(), self.title.at(now.step)
        due = clock - self.last >= SECONDS_BETWEEN_LINES
        if self.verbose or due or now.step in (1, self.steps):
            self.last = clock
            where = f"step {now.step}" + (f" of at most {self.steps}" if self.steps else "")
            _say(f"{title}: {where}, {_note(now.trace)}, {clock - self.start:.1f} s")


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
    left = [] if unit == "steps" else [TextColumn("left"), TimeRemainingColumn()]
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=12 if unit == "steps" else 24),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        *left,
        console=Console(file=informing(sys.stderr)),
        transient=True,
    )
