"""Telling a person how far the work is: a bar on a terminal, a line now and then otherwise.

Both functions give a callback for the library and write to standard error, so that results
can be piped. A `quiet` job gets a callback that says nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol


class Snapshot(Protocol):
    """What is shown of a step."""

    @property
    def step(self) -> int: ...
    @property
    def trace(self) -> Mapping[str, float]: ...


Count = Callable[[int, int | None], None]
"""Called with what is done and the whole, None when the whole is not known."""
Step = Callable[[Snapshot], None]
"""Called after each step; the trace has at least `objective` and `active`."""

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def counting(title: str, unit: str = "rows", *, quiet: bool = False) -> Iterator[Count]:
    """Progress of a job that counts towards a known or unknown whole."""
    if quiet:
        yield lambda done, whole: None
    elif not sys.stderr.isatty():
        yield _CountLines(title, unit)
    else:
        with _bar(unit) as bar:
            task = bar.add_task(title, total=None, note="")
            yield lambda done, whole: bar.update(task, completed=done, total=whole)


@contextmanager
def stepping(
    title: str, steps: int | None = None, *, quiet: bool = False, verbose: bool = False
) -> Iterator[Step]:
    """Progress of a fit of at most `steps` steps, if that is known; `verbose` prints every step as a line.

    Steps that begin again are another start.
    """
    named = _Starts(title)
    if quiet:
        yield lambda now: None
    elif verbose or not sys.stderr.isatty():
        yield _StepLines(named, steps, verbose)
    else:
        with _bar("steps") as bar:
            task = bar.add_task(title, total=steps, note="looking at the data")
            yield lambda now: bar.update(
                task, description=named.at(now.step), completed=now.step, note=_note(now.trace, digits=1)
            )


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
    """The title of a fit, with the number of its start from the second on."""

    def __init__(self, title: str) -> None:
        self.title, self.start, self.last = title, 1, 0

    def at(self, step: int) -> str:
        self.start += step <= self.last
        self.last = step
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
    return f"objective {level:,.{digits}f}, {trace['active']:.0f} active{trying}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


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
        console=Console(stderr=True),
        transient=True,
    )
