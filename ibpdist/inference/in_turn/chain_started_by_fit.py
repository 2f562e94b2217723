"""A chain of rows in turn that begins where a variational fit of the same data ends.

The fit is part of the start of the chain, a pure function of the data and the draws of step 0, so a chain
that was lost is made again with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference._base import AnyParallel, Info
from ibpdist.inference.ascent.coordinate import align
from ibpdist.inference.ascent.params import GaussianModel, GaussianModelParams
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.inference.starts.start_questions import initial
from ibpdist.inference.stopping import Converged, Snapshot
from ibpdist.model.observations._base import RowState, Survey

LIMIT = 200
"""Steps after which a fit that begins a chain is good enough."""
SETTLED = Converged(1e-6)


class Startable(Protocol):
    """A sampler that can begin anywhere."""

    @property
    def model(self) -> GaussianModel: ...

    def start_from(
        self, data: Chunk, survey: Survey, params: GaussianModelParams, state: RowState, draws: Draws
    ) -> Chain: ...

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Info]: ...


@dataclass(frozen=True)
class ChainStartedByFit:
    """`fit` finds the features, `sampler` goes on from there."""

    sampler: Startable
    fit: AnyParallel
    steps: int = LIMIT

    @property
    def model(self) -> GaussianModel:
        return self.sampler.model

    def start(self, data: Chunk, survey: Survey, draws: Draws) -> Chain:
        params, state = fitted(self.fit, data, draws, self.steps)
        return self.sampler.start_from(data, survey, params, state, draws)

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Info]:
        return self.sampler.sweep(data, chain, draws)


def fitted(fit: AnyParallel, data: Chunk, draws: Draws, steps: int) -> tuple[GaussianModelParams, RowState]:
    """Parameters and row state of a fit of one chunk that has converged, or has made `steps` steps."""

    def answer(_: int, question: Any) -> Any:
        return fit.look(data, question, draws)

    params = initial(fit, fit.summarise(data), draws, answer)
    state, before = fit.start(data, params, draws), None
    for step in range(1, steps + 1):
        state, sums = fit.local(data, state, params, draws.at(step))
        params, info = fit.update(params, sums, draws.at(step))
        now = Snapshot(step, params, info)
        if SETTLED(before, now):
            break
        before = now
    final = fit.handover_params(params)
    rows = fit.describe_rows(state, params)["z"][1]
    order = fit.describe(params)["id"][1]
    return final, align(RowState(ids=order, z=rows, w=rows[:0]), final)
