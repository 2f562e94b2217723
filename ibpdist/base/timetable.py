"""How long a series of fits of different sizes still takes, each with its score.

A fit that waits takes as long as the fit of the same kind with the nearest number of features K that has
ended, times the 0.8th power of the ratio of their K. Over 25 doublings of K from 5 to 80 for sparse and dense
factors on four planted sets (150 to 2,500 rows, 40 to 200 columns) the logarithm of the error of that has the
mean -0.1 and the standard deviation 0.6; sparse and dense factors of the same data differ by up to 60 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ibpdist.base.timeleft import NINETY, Course, Stopping, TimeLeft

GROWTH = 0.8
"""The power of K with which the time of a fit and its score grows."""
SPREAD = 0.6
"""Standard deviation of the logarithm of its error."""


@dataclass(frozen=True)
class PlannedFit:
    """A fit that is made after others: its name, the kind of fits that are about as fast with the same
    number of features, when it stops, and its number of starts."""

    name: str
    kind: str
    features: int
    stopping: Stopping
    starts: int = 1


class Timetable:
    """Fits that are made one after the other, and the time of each. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._fits: Sequence[PlannedFit] = ()
        self._ended: list[float] = []  # seconds of each fit
        self._began = self._last = clock()
        self._course: Course | None = None
        self._scoring: float | None = None  # when scores began
        self._scored = self._told = 0.0

    @property
    def present(self) -> PlannedFit | None:
        """The fit that runs."""
        return self._fits[len(self._ended)] if self._fits else None

    def plan(self, fits: Sequence[PlannedFit], ended: int) -> bool:
        """Note all fits, of which the first `ended` have ended and the next one runs; whether it is another
        one than before."""
        begins = self._course is None or ended > len(self._ended)
        now = self._clock()
        if begins and self._course is not None:
            self._ended.append(now - self._began)
        self._fits = tuple(fits)
        if begins:
            self._began = now
            self._course = Course(fits[ended].stopping, self._clock, fits[ended].starts)
            self._scoring, self._scored = None, 0.0
        self._last = now
        return begins

    def step(self, step: int, objective: float) -> None:
        """The fit that runs made a step."""
        self._last = self._clock()
        if self._course is not None:
            self._course.add(step, objective)

    def score(self, share: float) -> None:
        """A share of the score of the fit that runs is done."""
        self._last = self._clock()
        self._scoring = self._last if self._scoring is None else self._scoring
        self._scored = share

    def left(self) -> TimeLeft | None:
        """Until the last fit is scored; None when that is not known yet."""
        present = self._present_left()
        waiting = [self._expected(fit, present) for fit in self._fits[len(self._ended) + 1 :]]
        known = [seconds for seconds in waiting if seconds is not None]
        if present is None or len(known) < len(waiting):
            return None
        others = sum(known)
        return TimeLeft(present.about + others, present.most + others * math.exp(NINETY * SPREAD))

    def share(self) -> float:
        """The share of the time of all fits that has passed; it never falls."""
        left, passed = self.left(), sum(self._ended) + self._last - self._began
        if left is not None and passed + left.about > 0:
            self._told = max(self._told, passed / (passed + left.about))
        return self._told

    def _present_left(self) -> TimeLeft | None:
        """Until the fit that runs is scored: by its score, by other fits, or else by its own steps."""
        if self._scored:
            each = (self._last - (self._scoring or self._last)) / self._scored
            return TimeLeft(each * (1 - self._scored), each * (1 - self._scored))
        whole = None if self.present is None else self._expected(self.present, None)
        passed = self._last - self._began
        if whole is not None and whole > passed:
            return TimeLeft(whole - passed, whole * math.exp(NINETY * SPREAD) - passed)
        steps = None if self._course is None or self._scoring is not None else self._course.left()
        # Nothing is known of the score of the first fit, and little of one that takes longer than others.
        return TimeLeft(0.0, passed) if steps is None and whole is not None else steps

    def _expected(self, fit: PlannedFit, present: TimeLeft | None) -> float | None:
        """Seconds of a fit: by the ended one nearest to it, or by the present one when none has ended."""
        made = list(zip(self._fits, self._ended, strict=False))
        if present is not None and self.present is not None:
            made.append((self.present, self._last - self._began + present.about))
        same = [one for one in made if one[0].kind == fit.kind] or made
        if not same:
            return None
        near, seconds = min(same, key=lambda one: abs(math.log(one[0].features / fit.features)))
        return float(seconds * (fit.features / near.features) ** GROWTH)
