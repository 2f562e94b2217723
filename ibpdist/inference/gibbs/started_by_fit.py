"""A sampler that begins where a fit has settled.

The first steps are those of the fit. When its objective flattens, or after a number of steps, the sampler
takes its parameters and draws from what it found of the rows. Which of the two is at work is in the
parameters, so row state that was lost is made again through both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Array, Named, Nothing, dims, replace, struct
from ibpdist.data._base import Chunk
from ibpdist.inference._base import AnyParallel, Info, Known, RowInference
from ibpdist.inference.ascent.coordinate import by_prevalence
from ibpdist.model.observations._base import RowState, Survey
from ibpdist.model.observations.row_noise import RowPrecision

FLAT = 1e-6
"""Relative gain of a step below which the fit has settled."""


@struct("started-by-fit-params", since=1)
class StartedByFitParams:
    """Of the fit, of the sampler, or of both when rows have to be handed over in the next step.

    `last` is the objective of the fit's last step; `survey` is kept until the sampler has begun.
    """

    fit: Any
    sampler: Any
    survey: Any
    last: Array = dims()


Hand = Callable[[AnyParallel, Chunk, Any, Any, Draws], Any]
"""(fit, chunk, row state and parameters of the fit, draws) -> row state of a sampler."""


def hand_entries(fit: AnyParallel, chunk: Chunk, local: Any, params: Any, draws: Draws) -> RowState:
    """z drawn from what the fit says of the rows, its weights and the precisions of the rows."""
    named, found = fit.describe_rows(local, params), fit.handover_params(params)
    z = named["z"][1]
    on = draws.uniform("hand over", chunk.start, chunk.rows, len(z)) < z
    w = named["w"][1] if "w" in named else np.zeros((0, chunk.rows), z.dtype)
    precision = RowPrecision(named["precision"][1]) if "precision" in named else NOTHING
    ids = found.ids[by_prevalence(found)]
    return RowState(ids=ids, z=on.astype(z.dtype), w=w, precision=precision)


@dataclass(frozen=True)
class StartedByFit:
    """At most `steps` steps of the fit, then the sampler, to which `hand` gives what the fit says of rows.
    Both are of the same observation and weights. Without a step of the fit the sampler begins by
    itself."""

    fit: AnyParallel
    sampler: AnyParallel
    steps: int = 200
    hand: Hand = hand_entries

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise UsageError(f"steps is {self.steps}; expected a whole number of at least 0")

    @property
    def first(self) -> AnyParallel:
        """What makes the first step."""
        return self.fit if self.steps else self.sampler

    def summarise(self, chunk: Chunk) -> Survey:
        found: Survey = self.first.summarise(chunk)
        return found

    def ask(self, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return self.first.ask(survey, known, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.first.look(chunk, question, draws)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> StartedByFitParams:
        params, level = self.first.init(survey, draws, known), np.asarray(np.nan)
        if self.steps:
            return StartedByFitParams(params, NOTHING, survey, level)
        return StartedByFitParams(NOTHING, params, NOTHING, level)

    def adopt(self, params: Any, survey: Survey) -> StartedByFitParams:
        """Parameters of another fit need no warming."""
        return StartedByFitParams(NOTHING, self.sampler.adopt(params, survey), NOTHING, np.asarray(np.nan))

    def start(self, chunk: Chunk, params: StartedByFitParams, draws: Draws) -> Any:
        algorithm, own = self._of_rows(params)
        return algorithm.start(chunk, own, draws)

    def local(self, chunk: Chunk, local: Any, params: StartedByFitParams, draws: Draws) -> tuple[Any, Any]:
        if isinstance(params.sampler, Nothing):
            return self.fit.local(chunk, local, params.fit, draws)
        if not isinstance(params.fit, Nothing):
            local = self.hand(self.fit, chunk, local, params.fit, draws)
        return self.sampler.local(chunk, local, params.sampler, draws)

    def update(self, params: StartedByFitParams, sums: Any, draws: Draws) -> tuple[StartedByFitParams, Info]:
        """A step of the fit, or of the sampler once the fit has converged."""
        if not isinstance(params.sampler, Nothing):
            sampler, info = self.sampler.update(params.sampler, sums, draws)
            return replace(params, fit=NOTHING, sampler=sampler), dataclasses.replace(info, warming=0.0)
        fit, info = self.fit.update(params.fit, sums, draws)
        now = replace(params, fit=fit, last=np.asarray(info.objective))
        if self._converged(float(params.last), info, draws.step):
            sampler = self.sampler.adopt(self.fit.handover_params(fit), params.survey)
            now = replace(now, sampler=sampler, survey=NOTHING)
        return now, dataclasses.replace(info, warming=1.0)

    def _converged(self, last: float, info: Info, step: int) -> bool:
        flat = 0 <= info.objective - last < FLAT * abs(info.objective)
        return step >= self.steps or (flat and info.finished)

    def _of_rows(self, params: StartedByFitParams) -> tuple[AnyParallel, Any]:
        """What the row state after the last step belongs to, and its parameters."""
        if isinstance(params.fit, Nothing):
            return self.sampler, params.sampler
        return self.fit, params.fit

    def rescale_old_sums(self, params: StartedByFitParams, sums: Any) -> Any:
        algorithm, own = self._of_rows(params)
        return algorithm.rescale_old_sums(own, sums)

    def additive(self, params: StartedByFitParams) -> bool:
        algorithm, own = self._of_rows(params)
        return algorithm.additive(own)

    def monotone(self) -> bool:
        return False

    def handover_params(self, params: StartedByFitParams) -> Any:
        algorithm, own = self._of_rows(params)
        return algorithm.handover_params(own)

    def row_inference(self) -> RowInference:
        return self.sampler.row_inference()

    def describe(self, params: StartedByFitParams) -> Named:
        algorithm, own = self._of_rows(params)
        return algorithm.describe(own)

    def describe_rows(self, local: Any, params: StartedByFitParams) -> Named:
        algorithm, own = self._of_rows(params)
        return algorithm.describe_rows(local, own)
