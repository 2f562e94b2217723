"""How long a fit still takes: a range, from the steps that it made and the gain of its last ones.

The gain of a fit does not fall geometrically. It lies on plateaus while features separate, and steps
that try moves come after it has flattened. Over 67 fits of linear-Gaussian and factor systems (200 to
5,000 rows, 15 to 200 columns, K from 3 to 40), looked at after 10 to 90 % of their steps, the number
of steps left of a fit of K features after t steps with the relative gain g a step is, by least squares,

    0.4 t^0.48 (g / rtol)^0.23 K^0.73.

The logarithm of its error has the standard deviation 1.0; with a geometric fall, from the first gain or
over the later half of the steps, it is 1.7 or 1.9. Moves are in it, since these fits made them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ibpdist.base.words import duration

FACTOR, LENGTH, EXCESS, SIZE = 0.4, 0.48, 0.23, 0.73
"""Of the prediction: the factor, and the powers of the steps made, of the gain over the tolerance, of K."""
SPREAD = 1.0
"""Standard deviation of its error, in logarithms."""
NINETY = 1.28
"""Standard deviations of a normal variable below which it lies in 90 of 100 cases."""
FEWEST = 3
"""Steps whose gains are known, without which nothing is predicted."""
RECENT = 0.25
"""Share of the steps made whose mean gain is taken for the present one."""


@dataclass(frozen=True)
class TimeLeft:
    """Seconds left: the estimate, and a bound that holds in nine of ten cases."""

    about: float
    most: float

    def __str__(self) -> str:
        """As in: about 2 min, at most 9."""
        about, most = duration(self.about), duration(self.most)
        if about == most:
            return f"about {about}"
        shared = about.count(" ") == most.count(" ") == 1 and about.split()[1] == most.split()[1]
        return f"about {about}, at most {most.split()[0] if shared else most}"


class Stopping(Protocol):
    """What is known of when a fit stops."""

    @property
    def limit(self) -> int:
        """The most steps that it makes."""
        ...

    def steps_left(self, levels: Sequence[float], step: int) -> tuple[float, float] | None:
        """About how many steps come after `step`, and at most how many; None when that is not known yet.

        `levels` are the objectives after the last steps, the newest last.
        """
        ...


@dataclass(frozen=True)
class AllSteps:
    """A sampler makes all of its steps."""

    limit: int

    def steps_left(self, levels: Sequence[float], step: int) -> tuple[float, float] | None:
        left = float(max(0, self.limit - step))
        return left, left


@dataclass(frozen=True)
class Converging:
    """A fit stops when the relative gain of a step is below `rtol`, or at the limit of steps."""

    limit: int
    rtol: float
    features: int

    def steps_left(self, levels: Sequence[float], step: int) -> tuple[float, float] | None:
        room = float(max(0, self.limit - step))
        if self.rtol <= 0 or room == 0:
            return room, room
        if len(levels) <= FEWEST:
            return None
        excess = max(1.0, gain(levels, max(1, int(RECENT * len(levels)))) / self.rtol)
        about = FACTOR * step**LENGTH * excess**EXCESS * self.features**SIZE
        return min(room, about), min(room, about * math.exp(NINETY * SPREAD))


def gain(levels: Sequence[float], steps: int) -> float:
    """The mean relative gain of the last steps, never less than nothing."""
    rise = max(0.0, levels[-1] - levels[-1 - steps])
    return rise / steps / max(abs(levels[-1]), sys.float_info.min)


def stopping(sampler: bool, steps: int, rtol: float, features: int) -> Stopping:
    """How a fit with these settings stops."""
    return AllSteps(steps) if sampler else Converging(steps, rtol, features)


class Course:
    """The steps of `fits` fits that are made one after the other, and when each was made.

    `clock` gives seconds.
    """

    def __init__(self, stopping: Stopping, clock: Callable[[], float], fits: int = 1) -> None:
        self._stopping, self._clock, self._fits = stopping, clock, fits
        self._ended: list[float] = []  # seconds of each fit
        self._levels: list[float] = []
        self._step = self._first = 0
        self._began = self._last = clock()

    def add(self, step: int, objective: float) -> None:
        """A step was made; one that is not after the last belongs to the next fit."""
        now = self._clock()
        if self._levels and step <= self._step:
            self._ended.append(self._last - self._began)
            self._began, self._first, self._levels = self._last, step - 1, []
        elif not self._levels:  # what comes before the first step of all is no measure of a step
            self._began, self._first = now, step
        self._levels.append(objective)
        self._step, self._last = step, now

    def left(self) -> TimeLeft | None:
        """Until the last of the fits has ended; None when that is not known yet."""
        present, made = self._present(), self._last - self._began
        others = self._fits - len(self._ended) - 1
        if present is None or others <= 0:
            return present
        usual = (sum(self._ended) + made + present.about) / (len(self._ended) + 1)
        longest = max(usual, made + present.most)
        return TimeLeft(present.about + others * usual, present.most + others * longest)

    def share(self) -> float | None:
        """The share of the time of the present fit that has passed; None when that is not known yet."""
        present, made = self._present(), self._last - self._began
        return None if present is None else made / max(made + present.about, sys.float_info.min)

    def _present(self) -> TimeLeft | None:
        """Until the fit that runs has ended."""
        steps = self._stopping.steps_left(self._levels, self._step)
        if steps is None or self._step <= self._first:
            return None
        each = (self._last - self._began) / (self._step - self._first)
        return TimeLeft(each * steps[0], each * steps[1])
