"""When which move is tried, and what becomes of it: the decisions of a search, one step at a time.

    settling   plain steps until the objective flattens; then the moves that need no pass
    asking     one step that also brings residuals of some rows
    renewing   one step that infers each row anew, from hot to cold, kept where that is better
    trying     passes of a trial; then it is accepted, or everything goes back
    done       plain steps to the end

Everything is a function of the stand, the parameters and the sums; nothing is remembered elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.inference.ascent.search_progress import (
    Decision,
    Next,
    Order,
    Phase,
    SearchParams,
    SearchProgress,
    SearchSums,
    fit_so_far,
    gone_back,
    kept_of,
    on_trial,
)
from ibpdist.inference.moves._base import Proposal, Residuals, Situation
from ibpdist.inference.moves.renew import GaussianFit
from ibpdist.inference.starts.rank import noise_edge

Move = Callable[[Situation, np.random.Generator], Proposal | None]

FLAT = 1e-5
"""Relative gain of a step below which a fit has settled enough for moves."""
WORTH = 1e-7
"""Least relative gain for which a trial is accepted."""
RENEWED = 1e-6
"""Least relative gain for which rows are renewed once more."""
ROUNDS = 4
SAMPLE_ROWS, SAMPLE_CELLS = 2000, 8_000_000
"""Most rows, and most cells, of a sample of residuals."""


@dataclass(frozen=True)
class ScheduledMove:
    """A move that takes passes; without a `move` of its own, rows are renewed. It is left alone after
    `patience` refusals in a row. `residuals`: it wants a sample of them."""

    name: str
    move: Move | None
    patience: int = 1
    residuals: bool = False


@dataclass(frozen=True)
class Step:
    """One step of the fit under way: parameters before it, after it, and its sums."""

    fit: GaussianFit
    params: SearchParams
    now: GaussianModelParams
    sums: SearchSums
    info: Info
    draws: Draws

    @property
    def stand(self) -> SearchProgress:
        return self.params.stand

    @property
    def objective(self) -> float:
        return self.info.objective

    @property
    def flat(self) -> bool:
        gain = self.objective - float(self.stand.last)
        return self.info.cold and abs(gain) < FLAT * abs(self.objective)

    @property
    def fresh(self) -> int:
        """An id that was never used."""
        return max(int(self.stand.fresh), int(np.max(self.now.ids, initial=-1)) + 1)

    def situation(self, tries: int = 0) -> Situation:
        return Situation(
            model=self.fit.model,
            params=self.now,
            sums=self.sums.model,
            total=self.params.total,
            objective=self.objective,
            next_id=self.fresh,
            residuals=self._residuals(),
            limit=self.fit.features,
            tries=tries,
        )

    def _residuals(self) -> Residuals | None:
        found = self.sums.rows
        if isinstance(found, Nothing) or len(found.row) < 2:
            return None
        sample, worst = found.residuals, found.worst
        real, alone = np.isfinite(worst.misfit), ~np.isin(found.row, worst.row)
        more = real & ~np.isin(worst.row, found.row)
        many = (float(self.now.rows) - real.sum()) / max(alone.sum(), 1)
        return Residuals(
            rows=np.concatenate([sample, worst.residuals[more]]).astype(np.float64),
            weights=np.append(np.where(alone, many, 1.0), np.ones(more.sum())),
            sampled=len(sample),
            edge=noise_edge(1.0, len(sample), sample.shape[1], 0),
        )


@dataclass(frozen=True)
class MoveSchedule:
    """`exact` moves need no pass and are made whenever the fit has settled; then the `turns` are taken
    in their order, again and again, until each had its turn since a move last succeeded."""

    exact: Sequence[tuple[str, Move]] = ()
    turns: Sequence[ScheduledMove] = ()

    @property
    def names(self) -> list[str]:
        """Names of the moves in the order of their numbers in the trace, which count from 1."""
        return [name for name, _ in self.exact] + [turn.name for turn in self.turns]

    def next(self, step: Step) -> Next:
        handle = {
            Phase.SETTLING: self._settling,
            Phase.ASKING: self._moving,
            Phase.RENEWING: self._renewed,
            Phase.TRYING: self._trying,
            Phase.DONE: self._done,
        }
        return handle[Phase(int(step.stand.phase))](step)

    def _settling(self, step: Step) -> Next:
        if not step.flat:
            return fit_so_far(step.stand, step.now, step.info)
        found = None if int(step.stand.checked) else self._improved(step)
        if found is None:
            return self._moving(step)
        made, info, number = found
        gain = Decision(number, info.objective - step.objective, True)
        news = {"fresh": fresh_after(step, made), "last": -np.inf, "idle": 0}
        return fit_so_far(step.stand, made, info, gain, **news)

    def _improved(self, step: Step) -> tuple[GaussianModelParams, Info, int] | None:
        """Parameters after all moves that need no pass, what the step then says of itself, and the number of
        the last; None if nothing helps."""
        situation, number = step.situation(), 0
        for at, (name, move) in enumerate(self.exact, 1):
            found = move(situation, step.draws.generator(name))
            if found is None or found.sums is None or found.objective is None:
                continue
            situation, number = (
                replace(
                    situation,
                    params=found.params,
                    sums=found.sums,
                    objective=found.objective,
                    next_id=max(situation.next_id, found.next_id),
                ),
                at,
            )
        if not number:
            return None
        sums = step.fit.rescale_old_sums(situation.params, situation.sums)
        scored = step.fit.score(situation.params, sums)
        terms = {**step.info.terms, **scored.terms}
        return situation.params, replace(step.info, terms=terms, magnitude=scored.magnitude), number

    def _moving(self, step: Step) -> Next:
        """Begin the next move that has something to offer; what was refused is not tried again before
        something else has changed."""
        stand = step.stand
        turn, tries, idle = int(stand.turn), int(stand.tries), int(stand.idle)
        asked = Phase(int(stand.phase)) is Phase.ASKING
        while turn < len(self.turns) and idle < len(self.turns):
            item, at = self.turns[turn], {"turn": turn, "tries": tries, "idle": idle, "checked": 1}
            if item.move is None:
                return self._go(step, phase=Phase.RENEWING, order=Order.RENEW, **at)
            if item.residuals and not asked:
                return self._go(step, phase=Phase.ASKING, share=sample_share(step), **at)
            found = item.move(step.situation(tries), step.draws.generator(f"{item.name} {tries}"))
            if found is not None:
                return self._attempt(step, found, **at)
            turn, tries, idle, asked = turn + 1, 0, idle + 1, False
        rounds = int(stand.rounds) + 1
        if idle < len(self.turns) and rounds < ROUNDS:
            again = {"turn": 0, "tries": 0, "rounds": rounds, "idle": idle, "checked": 1}
            return self._go(step, phase=Phase.SETTLING, **again)
        return self._go(step, phase=Phase.DONE, turn=turn, tries=0, idle=idle)

    def _go(self, step: Step, **changes: Any) -> Next:
        return fit_so_far(step.stand, step.now, step.info, **changes)

    def _attempt(self, step: Step, found: Proposal, **at: Any) -> Next:
        stand = self._go(step).stand
        left, fresh = max(found.passes, 1), fresh_after(step, found.params)
        order = {"phase": Phase.TRYING, "order": Order.TRY, "left": left, "fresh": fresh, "last": -np.inf}
        return on_trial(stand, found.params, step.now, step.info, **order, **at)

    def _renewed(self, step: Step) -> Next:
        stand, item = step.stand, self.turns[int(step.stand.turn)]
        gain, tries = step.objective - float(stand.objective), int(stand.tries) + 1
        again = gain > RENEWED * abs(step.objective) and tries < item.patience
        at = {"tries": tries} if again else over(stand)
        decision = Decision(self._number(stand), gain, gain > 0)
        return fit_so_far(stand, step.now, step.info, decision, phase=Phase.SETTLING, **at)

    def _trying(self, step: Step) -> Next:
        stand = step.stand
        left = int(stand.left) - 1
        if left > 0 and not step.flat:
            return on_trial(stand, step.now, kept_of(step.params.kept), step.info, left=left)
        made, info, _ = self._improved(step) or (step.now, step.info, 0)
        gain = info.objective - float(stand.objective)
        if gain > WORTH * abs(float(stand.objective)):
            decision, fresh = Decision(self._number(stand), gain, True), fresh_after(step, made)
            order = {"phase": Phase.SETTLING, "order": Order.TAKE, "last": -np.inf}
            news = {"tries": 0, "idle": 0, "checked": 0, "fresh": fresh}
            return fit_so_far(stand, made, info, decision, **order, **news)
        tries = int(stand.tries) + 1
        patient = tries < self.turns[int(stand.turn)].patience
        at = {"tries": tries} if patient else over(stand)
        decision = Decision(self._number(stand), gain, False)
        return gone_back(stand, kept_of(step.params.kept), info, decision, fresh=step.fresh, **at)

    def _done(self, step: Step) -> Next:
        return self._go(step)

    def _number(self, stand: SearchProgress) -> int:
        return len(self.exact) + int(stand.turn) + 1


def over(stand: SearchProgress) -> dict[str, int]:
    """The turn is over, and nothing has changed in it since its move began to be refused."""
    return {"turn": int(stand.turn) + 1, "tries": 0, "idle": int(stand.idle) + 1}


def fresh_after(step: Step, made: GaussianModelParams) -> int:
    return max(step.fresh, int(np.max(made.ids, initial=-1)) + 1)


def sample_share(step: Step) -> float:
    """Share of the rows whose residuals are worth asking for."""
    rows, size = max(float(step.now.rows), 1.0), sample_size(len(step.params.total))
    return 1.0 if size >= rows else size / 2 / rows


def sample_size(columns: int) -> float:
    """Most rows of a sample of residuals."""
    return min(SAMPLE_ROWS, SAMPLE_CELLS / max(columns, 1))


def worst_rows(share: float, columns: int) -> int:
    """Rows of the other half, those that are explained worst; none where all rows are in the sample."""
    return 0 if share >= 1 else int(sample_size(columns) / 2)
