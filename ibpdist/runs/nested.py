"""Fits within a run that together make its result: several starts of all rows, and fits of subsamples.

Each is a run of its own, in RUN/restarts/NNN or RUN/subsamples/NNN, so one that has finished is not fitted
again when RUN is resumed. Starts are made one after the other; subsamples advance together (side_by_side.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibpdist.base.words import counted
from ibpdist.catalog.spec import FitSpec
from ibpdist.data.splits import SomeRows
from ibpdist.runs import restarts
from ibpdist.runs.job import Job, rows_of

ALL_ROWS = "all rows"


@dataclass(frozen=True)
class Nested:
    """A fit within a run: where it lies, its name in words, its spec, and the event when it has ended."""

    place: str
    words: str
    spec: FitSpec
    kind: str
    facts: dict[str, Any]

    def folder(self, run: Path) -> Path:
        return run / self.place

    @property
    def of_all_rows(self) -> bool:
        return self.spec.member is None

    def job(self, whole: Job) -> Job:
        """The job of one of several starts; `whole` is that of the run."""
        return Job(self.spec, whole.algorithm, whole.source)

    def rows(self, whole: Job) -> SomeRows:
        """The rows of a subsample; their values are not centred."""
        return rows_of(self.spec, whole.source)


def nested_fits(spec: FitSpec) -> list[Nested]:
    """Fits within a run, in the order in which they are made; none when the run itself is the only fit."""
    if spec.restarts == 1 and spec.stability is None:
        return []
    return [*_starts(spec), *_subsamples(spec)]


def _starts(spec: FitSpec) -> Iterator[Nested]:
    for restart in range(spec.restarts):
        own = restarts.spec_of(spec, restart)
        words = names_of(spec.restarts, 0)[restart]
        place = restarts.folder(Path(), restart).as_posix()
        yield Nested(place, words, own, "restart", {"restart": restart, "seed": own.seed})


def _subsamples(spec: FitSpec) -> Iterator[Nested]:
    """Each has the seed and the settings of the run, and makes a single start."""
    for member in range(spec.stability or 0):
        own = spec.model_copy(update={"restarts": 1, "stability": None, "member": member})
        words = names_of(0, spec.stability or 0)[member]
        yield Nested(place(member), words, own, "subsample", {"subsample": member})


def names_of(starts: int, parts: int) -> list[str]:
    """The fits of a run in words: those of all rows, then those of subsamples."""
    every = [f"start {at + 1} of {starts}" for at in range(starts)] if starts > 1 else [ALL_ROWS] * starts
    return every + [f"subsample {at + 1} of {parts}" for at in range(parts)]


def together(parts: int) -> list[str]:
    """Subsamples that advance together, in words; none without any."""
    return [f"{counted(parts, 'subsample')}{' together' if parts > 1 else ''}"] if parts else []


def place(member: int) -> str:
    """Where in a run the fit of a subsample lies."""
    return f"subsamples/{member:03d}"
