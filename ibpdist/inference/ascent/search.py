"""Coordinate ascent that leaves local optima: moves are tried when the objective flattens.

Most moves are decided from the sums alone. Those that need passes are trials: rows keep the
state they had (`kept`) and go back to it when the trial does not raise the objective, so what
counts as the fit never falls. What rows have to do is an order in the parameters, so row state
that was lost is made again through every move (moves/ has the mathematics, move_schedule.py decides).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Named, Nothing, combine, replace, top
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info, Known, RowInference
from ibpdist.inference.ascent.move_schedule import MoveSchedule, Step, worst_rows
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.inference.ascent.search_progress import (
    Order,
    RowResiduals,
    SearchParams,
    SearchState,
    SearchSums,
    WorstRows,
    initial,
    kept_of,
)
from ibpdist.inference.moves.renew import GaussianFit, renewed
from ibpdist.model.observations._base import RowState, Survey
from ibpdist.model.observations.gaussian_params import intercept_mean
from ibpdist.model.observations.tiles import tile_rows


@dataclass(frozen=True)
class Search:
    """A parallel fit and the agenda of its moves."""

    fit: GaussianFit
    agenda: MoveSchedule

    def summarise(self, chunk: Chunk) -> Survey:
        return self.fit.summarise(chunk)

    def ask(self, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return self.fit.ask(survey, known, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.fit.look(chunk, question, draws)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> SearchParams:
        return self._initial(self.fit.init(survey, draws, known), survey)

    def adopt(self, params: GaussianModelParams, survey: Survey) -> SearchParams:
        return self._initial(self.fit.adopt(params, survey), survey)

    def start(self, chunk: Chunk, params: SearchParams, draws: Draws) -> SearchState:
        return SearchState(self.fit.start(chunk, params.now, draws), NOTHING)

    def local(
        self, chunk: Chunk, local: SearchState, params: SearchParams, draws: Draws
    ) -> tuple[SearchState, SearchSums]:
        order = Order(int(params.stand.order))
        now = kept_of(local.kept) if order is Order.BACK else local.now
        kept = {Order.TRY: local.now, Order.GO: local.kept}.get(order, NOTHING)
        if order is Order.RENEW:
            now = renewed(self.fit, chunk, now, params.now, draws)
        now, sums = self.fit.local(chunk, now, params.now, draws)
        return SearchState(now, kept), SearchSums(sums, self._residuals(chunk, now, params, draws))

    def update(self, params: SearchParams, sums: SearchSums, draws: Draws) -> tuple[SearchParams, Info]:
        now, info = self.fit.update(params.now, sums.model, draws)
        found = self.agenda.next(Step(self.fit, params, now, sums, info, draws))
        kept = NOTHING if found.kept is None else found.kept
        return replace(params, now=found.now, kept=kept, stand=found.stand), found.info

    def rescale_old_sums(self, params: SearchParams, sums: SearchSums) -> SearchSums:
        return replace(sums, model=self.fit.rescale_old_sums(params.now, sums.model))

    def additive(self, params: SearchParams) -> bool:
        return self.fit.additive(params.now)

    def monotone(self) -> bool:
        return self.fit.monotone()

    def handover_params(self, params: SearchParams) -> GaussianModelParams:
        """The fit so far."""
        return self.fit.handover_params(self._so_far(params))

    def row_inference(self) -> RowInference:
        return self.fit.row_inference()

    def describe(self, params: SearchParams) -> Named:
        return self.fit.describe(self._so_far(params))

    def describe_rows(self, local: SearchState, params: SearchParams) -> Named:
        """Rows that still hold what they had before a trial that was not accepted show that."""
        back = not isinstance(params.kept, Nothing) or int(params.stand.order) == Order.BACK
        shown = local.now if isinstance(local.kept, Nothing) or not back else local.kept
        return self.fit.describe_rows(shown, self._so_far(params))

    def _so_far(self, params: SearchParams) -> GaussianModelParams:
        return params.now if isinstance(params.kept, Nothing) else params.kept

    def _initial(self, now: GaussianModelParams, survey: Survey) -> SearchParams:
        return SearchParams(now, NOTHING, initial(int(np.max(now.ids, initial=-1)) + 1), survey.total)

    def _residuals(
        self, chunk: Chunk, state: RowState, params: SearchParams, draws: Draws
    ) -> RowResiduals | Nothing:
        """Residuals of a sample and of the worst-explained rows, where they are asked for."""
        share = float(params.stand.share)
        if share <= 0:
            return NOTHING
        taken = np.flatnonzero(draws.uniform("residuals", chunk.start, chunk.rows, 1)[0] < share)
        worst = self._worst(chunk, state, params, worst_rows(share, chunk.x.shape[1]))
        return RowResiduals(worst, chunk.start + taken, self._left(chunk, state, params, taken))

    def _worst(self, chunk: Chunk, state: RowState, params: SearchParams, most: int) -> WorstRows:
        """The worst-explained rows of a chunk, tile by tile: all of its residuals at once would take more
        memory than the chunk."""
        rows, columns = chunk.x.shape
        step = tile_rows(columns, chunk.x.itemsize)
        every = (np.arange(first, min(first + step, rows)) for first in range(0, rows, step))
        tiles = every if most else [np.zeros(0, np.intp)]
        return reduce(combine, (self._worst_of(chunk, state, params, tile, most) for tile in tiles))

    def _worst_of(
        self, chunk: Chunk, state: RowState, params: SearchParams, rows: NDArray[np.intp], most: int
    ) -> WorstRows:
        """The worst-explained of some rows."""
        left = self._left(chunk, state, params, rows)
        precision = 1 / params.now.observation.noise
        seen = chunk.x.shape[1] if chunk.observed is None else chunk.observed[rows].sum(axis=1)
        misfit = np.einsum("nd,nd,d->n", left, left, precision) - seen
        found = top(misfit, most)
        short = most - len(found)
        return WorstRows(
            row=np.pad(chunk.start + rows[found], (0, short), constant_values=-1),
            misfit=np.pad(misfit[found], (0, short), constant_values=-np.inf),
            residuals=np.pad(left[found], ((0, short), (0, 0))),
        )

    def _left(self, chunk: Chunk, state: RowState, params: SearchParams, taken: NDArray[np.intp]) -> Any:
        """Some rows less what the features explain, zero where a cell is missing."""
        y = self.fit.model.weights.combine(state.z[:, taken], state.w[:, taken])
        observed = params.now.observation
        left = chunk.x[taken] - (y.T @ observed.mean).astype(chunk.x.dtype)
        if not isinstance(observed.intercept, Nothing):
            left -= intercept_mean(observed).astype(chunk.x.dtype)
        return left if chunk.observed is None else np.where(chunk.observed[taken], left, 0)
