"""Why and when a fit stops: what a step leaves behind, and rules that look at it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from ibpdist.base.errors import IbpError
from ibpdist.base.words import PREDICTION
from ibpdist.inference._base import Info

Params_co = TypeVar("Params_co", covariant=True)


@dataclass(frozen=True)
class Snapshot(Generic[Params_co]):
    """The state of a fit after a step; what its terms are called is up to the algorithm."""

    step: int
    params: Params_co
    info: Info
    seconds: float = 0.0
    replayed: int = 0

    @property
    def trace(self) -> dict[str, float]:
        """Numbers of the step by name."""
        return self.info.trace()


class StopCode(StrEnum):
    """Why fits end; the values are what results and logs hold."""

    CONVERGED = "converged"
    STEP_LIMIT = "step limit"
    COMPLETE = "complete"
    """A chain made all of its steps."""
    ENDED = "ended"
    """Every fit of a batch has ended."""
    FAILED = "failed"


@dataclass(frozen=True)
class Stop:
    """Why a fit ended: a code for programs, a sentence for people."""

    code: StopCode
    sentence: str


AnySnapshot = Snapshot[Any]
StopRule = Callable[[AnySnapshot | None, AnySnapshot], Stop | None]


WINDOW, SLACK = 10, 10.0
"""Steps over which an objective that may fall is looked at, and how much more than a bound it must gain: a
part of its gains is noise."""


@dataclass(frozen=True)
class Converged:
    """The objective gains less than `rtol` of its size in a step, and nothing else is to be tried."""

    rtol: float = 1e-6

    def __call__(self, before: AnySnapshot | None, now: AnySnapshot) -> Stop | None:
        if before is None or not now.info.finished:
            return None
        level = now.info.objective
        gain = level - before.info.objective
        if not 0 <= gain < self.rtol * abs(level):
            return None
        return Stop(
            StopCode.CONVERGED,
            f"converged: the objective gained {gain:.3g} in step {now.step}, "
            f"less than {self.rtol:g} of {abs(level):.6g}",
        )


@dataclass(frozen=True)
class Steady:
    """An objective that may fall gains less than `SLACK` rtol of its size in a step, on average over the last
    `WINDOW` steps."""

    rtol: float = 1e-6

    def __call__(self, before: AnySnapshot | None, now: AnySnapshot) -> Stop | None:
        slope, level = now.info.slope, abs(now.info.objective)
        if slope is None or slope > SLACK * self.rtol * level:
            return None
        what = PREDICTION if "prediction" in now.info.terms else "objective"
        return Stop(
            StopCode.CONVERGED,
            f"converged: the {what} gained {slope:.3g} nats a step over the last {WINDOW} steps, "
            f"at most {SLACK * self.rtol:g} of {level:.6g}",
        )


@dataclass(frozen=True)
class StepLimit:
    """So many steps, counted from the start of the run."""

    steps: int

    def __call__(self, before: AnySnapshot | None, now: AnySnapshot) -> Stop | None:
        if now.step < self.steps:
            return None
        return Stop(StopCode.STEP_LIMIT, f"stopped at the limit of {self.steps} steps")


@dataclass(frozen=True)
class AllSteps:
    """The steps that a chain was to make."""

    steps: int

    def __call__(self, before: AnySnapshot | None, now: AnySnapshot) -> Stop | None:
        if now.step < self.steps:
            return None
        return Stop(StopCode.COMPLETE, f"made all of its {self.steps} steps")


@dataclass(frozen=True)
class Rising:
    """Guard against bugs: the objective is finite and, for a monotone algorithm, never falls.

    Never stops a fit; raises when the mathematics cannot be right. `tolerance` is relative
    to |objective| + cells + the magnitude of what cancels in it.
    """

    cells: int
    tolerance: float
    monotone: bool

    def __call__(self, before: AnySnapshot | None, now: AnySnapshot) -> Stop | None:
        level = now.info.objective
        wrong = [f"{name} = {value}" for name, value in now.info.trace().items() if not math.isfinite(value)]
        if wrong:
            raise IbpError(f"step {now.step}: {', '.join(wrong)} is not a finite number; this is a bug")
        if before is None or not self.monotone:
            return None
        if not before.info.cold or not now.info.cold:
            return None
        fall = before.info.objective - level
        if fall > self.tolerance * (abs(level) + self.cells + (now.info.magnitude or 0.0)):
            raise IbpError(
                f"step {now.step}: the objective fell by {fall:.6g} to {level:.12g}, "
                "although no step of this algorithm can lower it; this is a bug"
            )
        return None


def tolerance(itemsize: int) -> float:
    """Rounding allowed to the objective, relative, for data of this width in bytes."""
    return 1e-9 if itemsize >= 8 else 1e-6


def until(
    steps: Iterator[Snapshot[Params_co]], rules: list[StopRule], before: AnySnapshot | None = None
) -> Iterator[tuple[Snapshot[Params_co], Stop | None]]:
    """The steps up to and with the first at which a rule stops."""
    for now in steps:
        stop = next((found for rule in rules if (found := rule(before, now)) is not None), None)
        yield now, stop
        if stop is not None:
            return
        before = now
