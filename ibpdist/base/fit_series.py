"""What is told of fits that are made one after the other: which of them runs, how far all are, and the
time that is left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from ibpdist.base.timeleft import Course
from ibpdist.base.timetable import PlannedFit, Timetable


class Snapshot(Protocol):
    """What is shown of a step."""

    @property
    def step(self) -> int: ...
    @property
    def trace(self) -> Mapping[str, float]: ...


class Series(Protocol):
    """Fits that are made one after the other."""

    @property
    def title(self) -> str:
        """What runs."""
        ...

    @property
    def limit(self) -> int | None:
        """The most steps of the fit that runs, if that is known of each fit."""
        ...

    def begin(self) -> None:
        """Note that what comes is before the first step of a fit."""
        ...

    def step(self, now: Snapshot) -> None:
        """Note a step."""
        ...

    def left(self) -> str:
        """Words after a step."""
        ...

    def before(self) -> str:
        """Words before the first step of a fit."""
        ...

    def after(self, share: float) -> str:
        """Words after the last step of a fit, when a share of what comes after it is done."""
        ...

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> Series:
        """The same when all fits are known, of which the first `ended` have ended."""
        ...


class FitSeries:
    """Fits of the same size. A fit has its name, if there are names, and fits after the last of those have
    that one; else the number of its start, but for the first. Fits with names also have the share that is
    done told."""

    limit = None

    def __init__(self, title: str, names: Sequence[str], course: Course | None) -> None:
        self._title, self._names, self._course = title, names, course
        self._start, self._last = 1, 0

    @property
    def title(self) -> str:
        if self._names:
            return f"{self._title}, {self._names[min(self._start, len(self._names)) - 1]}"
        return self._title if self._start == 1 else f"{self._title}, start {self._start}"

    def begin(self) -> None:
        self._start += self._last > 0
        self._last = 0

    def step(self, now: Snapshot) -> None:
        self._start += now.step <= self._last
        self._last = now.step
        if self._course is not None:
            self._course.add(now.step, now.trace["objective"])

    def left(self) -> str:
        """The time left, and of fits with names the share that is done."""
        time_left = None if self._course is None else self._course.left()
        left = "" if time_left is None else f"left: {time_left}"
        share = self._course.share() if self._names and self._course is not None else None
        return _joined("" if share is None else self._done(0.5 * share), left)

    def before(self) -> str:
        return self._done(0.0)

    def after(self, share: float) -> str:
        """A fit and what comes after it count alike."""
        return self._done(0.5 + 0.5 * share)

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> Series:
        return PlannedSeries(self._title).plan(fits, ended)

    def _done(self, share: float) -> str:
        """The share of all fits that is done, with so much of the present one; of fits with names only."""
        return _percent(min(1.0, (self._start - 1 + share) / len(self._names))) if self._names else ""


class PlannedSeries:
    """Fits of different sizes, each with its score: share done and time left are those of all."""

    def __init__(self, title: str) -> None:
        self._title, self._times = title, Timetable(time.monotonic)
        self._start, self._last = 1, 0

    @property
    def title(self) -> str:
        """The fit that runs, with the number of its start but for the first."""
        present = self._times.present
        name = "" if present is None else f", {present.name}"
        return f"{self._title}{name}" + ("" if self._start == 1 else f", start {self._start}")

    @property
    def limit(self) -> int | None:
        present = self._times.present
        return None if present is None else present.stopping.limit

    def begin(self) -> None:
        self._start += self._last > 0
        self._last = 0

    def step(self, now: Snapshot) -> None:
        self._start += now.step <= self._last
        self._last = now.step
        self._times.step(now.step, now.trace["objective"])

    def left(self) -> str:
        left = self._times.left()
        return _joined(_percent(self._times.share()), "" if left is None else f"left: {left}")

    def before(self) -> str:
        return self.left()

    def after(self, share: float) -> str:
        self._times.score(share)
        return self.left()

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> Series:
        if self._times.plan(fits, ended):
            self._start, self._last = 1, 0
        return self


def _percent(share: float) -> str:
    return f"{100 * share:.0f} % done"


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))
