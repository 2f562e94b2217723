"""A chain of rows in turn that begins where a variational fit of the same data ends.

The fit is part of the start of the chain, a pure function of the data and the draws of step 0, so a chain
that was lost is made again with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Trace
from ibpdist.inference.ascent.coordinate import align
from ibpdist.inference.ascent.params import ModelParams
from ibpdist.inference.ascent.search import Search
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.inference.starts.start_questions import begun
from ibpdist.inference.stopping import Converged, Snapshot
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState, Survey

LIMIT = 200
"""Steps after which a fit that begins a chain is good enough."""
SETTLED = Converged(1e-6)


class Startable(Protocol):
    """A sampler that can begin anywhere."""

    @property
    def model(self) -> Model: ...

    def start_from(
        self, data: Chunk, survey: Survey, params: ModelParams, state: RowState, draws: Draws
    ) -> Chain: ...

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Trace]: ...


@dataclass(frozen=True)
class Prefit:
    """`fit` finds the features, `sampler` goes on from there."""

    sampler: Startable
    fit: Search
    steps: int = LIMIT

    @property
    def model(self) -> Model:
        return self.sampler.model

    def start(self, data: Chunk, survey: Survey, draws: Draws) -> Chain:
        params, state = fitted(self.fit, data, draws, self.steps)
        return self.sampler.start_from(data, survey, params, state, draws)

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Trace]:
        return self.sampler.sweep(data, chain, draws)


def fitted(fit: Search, data: Chunk, draws: Draws, steps: int) -> tuple[ModelParams, RowState]:
    """Parameters and row state of a fit of one chunk that has converged, or made so many steps."""

    def answer(_: int, question: Any) -> Any:
        return fit.look(data, question, draws)

    params = begun(fit, fit.survey(data), draws, answer)
    state, before = fit.start(data, params, draws), None
    for step in range(1, steps + 1):
        state, sums = fit.local(data, state, params, draws.at(step))
        params, trace = fit.update(params, sums, draws.at(step))
        now = Snapshot(step, params, trace)
        if SETTLED(before, now):
            break
        before = now
    final = fit.final(params)
    rows = fit.describe_rows(state, params)["z"][1]
    order = fit.describe(params)["id"][1]
    return final, align(RowState(ids=order, z=rows, w=rows[:0]), final)
