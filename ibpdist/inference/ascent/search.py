"""Coordinate ascent that leaves local optima: moves are tried when the objective flattens.

Most moves are decided from the sums alone. Those that need passes are trials: rows keep the
state they had (`kept`) and go back to it when the trial does not raise the objective, so what
counts as the fit never falls. What rows have to do is an order in the parameters, so row state
that was lost is made again through every move (moves/ has the mathematics, agenda.py decides).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Array, Named, dims, replace, struct, top
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Known, Parallel, Trace
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.move_schedule import MoveSchedule, Step, worst_rows
from ibpdist.inference.ascent.params import ModelParams
from ibpdist.inference.ascent.search_progress import Order, begun
from ibpdist.model.observations._base import RowState, Survey


@struct("nothing", since=1)
class Nothing:
    """Stands where there is no record."""


NOTHING = Nothing()


@struct("search-params", since=1)
class SearchParams:
    """`now` is what rows are swept against; during a trial `kept` is the fit so far, else nothing.

    `total` is the sum of the observed cells of each column.
    """

    now: Any
    kept: Any
    stand: Any
    total: Array = dims("column")


@struct("search-row-state", since=1)
class SearchState:
    """Row state under `now`, and during a trial that of the fit so far."""

    now: Any
    kept: Any


@struct
class WorstRows:
    """Residuals of the rows that are explained worst: number of the row, its squared residual in units of
    the noise less its observed cells, worst first, of equal rows the earlier. Where there are fewer rows
    than are kept the rest is filled up with a misfit of -inf."""

    row: Array = dims("kept", reduce="top", along="kept", by="misfit")
    misfit: Array = dims("kept", reduce="top", along="kept", by="misfit")
    residuals: Array = dims("kept column", reduce="top", along="kept", by="misfit")


@struct
class SearchSums:
    """Sums of the model, and what is left of some rows where it was asked for: of a uniform sample with
    the numbers of its rows, and of the rows that are explained worst."""

    model: Any
    worst: WorstRows
    row: Array = dims("sampled", reduce="concat", along="sampled")
    residuals: Array = dims("sampled column", reduce="concat", along="sampled")


@dataclass(frozen=True)
class Search:
    """A parallel fit and the agenda of its moves."""

    fit: Coordinate
    agenda: MoveSchedule

    def survey(self, chunk: Chunk) -> Survey:
        return self.fit.survey(chunk)

    def ask(self, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return self.fit.ask(survey, known, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.fit.look(chunk, question, draws)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> SearchParams:
        return self._begun(self.fit.init(survey, draws, known), survey)

    def adopt(self, params: ModelParams, survey: Survey) -> SearchParams:
        return self._begun(self.fit.adopt(params, survey), survey)

    def start(self, chunk: Chunk, params: SearchParams, draws: Draws) -> SearchState:
        return SearchState(self.fit.start(chunk, params.now, draws), NOTHING)

    def local(
        self, chunk: Chunk, local: SearchState, params: SearchParams, draws: Draws
    ) -> tuple[SearchState, SearchSums]:
        order = Order(int(params.stand.order))
        now = local.kept if order is Order.BACK else local.now
        kept = {Order.TRY: local.now, Order.GO: local.kept}.get(order, NOTHING)
        if order is Order.RENEW:
            now = self.fit.renew(chunk, now, params.now, draws)
        now, sums = self.fit.local(chunk, now, params.now, draws)
        return SearchState(now, kept), self._with_residuals(sums, chunk, now, params, draws)

    def update(self, params: SearchParams, sums: SearchSums, draws: Draws) -> tuple[SearchParams, Trace]:
        now, trace = self.fit.update(params.now, sums.model, draws)
        found = self.agenda.next(Step(self.fit, params, now, sums, trace, draws))
        kept = NOTHING if found.kept is None else found.kept
        return replace(params, now=found.now, kept=kept, stand=found.stand), found.trace

    def carried(self, params: SearchParams, sums: SearchSums) -> SearchSums:
        return replace(sums, model=self.fit.carried(params.now, sums.model))

    def additive(self, params: SearchParams) -> bool:
        return self.fit.additive(params.now)

    def monotone(self) -> bool:
        return self.fit.monotone()

    def final(self, params: SearchParams) -> ModelParams:
        """The fit so far."""
        return self.fit.final(self._so_far(params))

    def plain(self) -> Parallel:
        return self.fit.plain()

    def describe(self, params: SearchParams) -> Named:
        return self.fit.describe(self._so_far(params))

    def describe_rows(self, local: SearchState, params: SearchParams) -> Named:
        """Rows that still hold what they had before a trial that was not accepted show that."""
        back = not isinstance(params.kept, Nothing) or int(params.stand.order) == Order.BACK
        held = isinstance(local.kept, RowState)
        return self.fit.describe_rows(local.kept if back and held else local.now, self._so_far(params))

    def _so_far(self, params: SearchParams) -> ModelParams:
        found: ModelParams = params.now if isinstance(params.kept, Nothing) else params.kept
        return found

    def _begun(self, now: ModelParams, survey: Survey) -> SearchParams:
        return SearchParams(now, NOTHING, begun(int(np.max(now.ids, initial=-1)) + 1), survey.total)

    def _with_residuals(
        self, sums: Any, chunk: Chunk, state: RowState, params: SearchParams, draws: Draws
    ) -> SearchSums:
        """The sums, and where they are asked for residuals of a sample and of the worst-explained rows."""
        share, columns = float(params.stand.share), chunk.x.shape[1]
        if share <= 0:
            nothing = np.zeros((0, columns), chunk.x.dtype)
            none = np.zeros(0, np.intp)
            return SearchSums(sums, WorstRows(none, np.zeros(0), nothing), none, nothing)
        taken = np.flatnonzero(draws.uniform("residuals", chunk.start, chunk.rows, 1)[0] < share)
        sample = self._residuals(chunk, state, params, taken)
        worst = self._worst(chunk, state, params, worst_rows(share, columns))
        return SearchSums(sums, worst, chunk.start + taken, sample)

    def _worst(self, chunk: Chunk, state: RowState, params: SearchParams, most: int) -> WorstRows:
        """The worst-explained rows of a chunk."""
        if not most:
            return WorstRows(
                np.zeros(0, np.intp), np.zeros(0), np.zeros((0, chunk.x.shape[1]), chunk.x.dtype)
            )
        left = self._residuals(chunk, state, params, np.arange(chunk.rows))
        precision = 1 / params.now.observation.noise
        seen = chunk.x.shape[1] if chunk.observed is None else chunk.observed.sum(axis=1)
        misfit = np.einsum("nd,nd,d->n", left, left, precision) - seen
        found = top(misfit, most)
        short = most - len(found)
        return WorstRows(
            row=np.pad(chunk.start + found, (0, short), constant_values=-1),
            misfit=np.pad(misfit[found], (0, short), constant_values=-np.inf),
            residuals=np.pad(left[found], ((0, short), (0, 0))),
        )

    def _residuals(self, chunk: Chunk, state: RowState, params: SearchParams, taken: NDArray[np.intp]) -> Any:
        """Some rows less what the features explain, zero where a cell is missing."""
        y = self.fit.model.weights.combine(state.z[:, taken], state.w[:, taken])
        left = chunk.x[taken] - (y.T @ params.now.observation.mean).astype(chunk.x.dtype)
        return left if chunk.observed is None else np.where(chunk.observed[taken], left, 0)
