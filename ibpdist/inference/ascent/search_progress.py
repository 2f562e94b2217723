"""The records of a search: where it stands between two steps, and the ways it continues.

During a trial `objective`, `bound` and `active` of a step are those of the fit so far.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np

from ibpdist.base.structs import Array, Nothing, dims, replace, struct
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.params import GaussianModelParams, GaussianModelSums
from ibpdist.model.observations._base import RowState

KEPT = ("objective", "bound", "active")


class Order(IntEnum):
    """What rows do when they next meet the parameters."""

    GO = 0
    TRY = 1
    """Keep the state they have, then go on."""
    BACK = 2
    """Return to the state they kept."""
    TAKE = 3
    """Forget the state they kept."""
    RENEW = 4
    """Infer each row anew, keep what is better."""


class Phase(IntEnum):
    SETTLING = 0
    ASKING = 1
    RENEWING = 2
    TRYING = 3
    DONE = 4


@struct("search-progress", since=1)
class SearchProgress:
    """`turn` is the move whose turn it is, `tries` how often it was refused since it last succeeded,
    `rounds` how many times all had their turn, `left` the passes left of a trial, `objective`, `bound`
    and `active` those of the fit so far, `last` the objective of the last step, `fresh` the next unused
    id, `checked` whether the moves without a pass have nothing more to offer, `idle` how many turns ended
    since a move last succeeded, `share` the share of rows whose residuals are asked for."""

    phase: Array = dims()
    order: Array = dims()
    turn: Array = dims()
    tries: Array = dims()
    rounds: Array = dims()
    left: Array = dims()
    objective: Array = dims()
    bound: Array = dims()
    active: Array = dims()
    last: Array = dims()
    fresh: Array = dims()
    checked: Array = dims()
    idle: Array = dims()
    share: Array = dims()


@struct("search-params", since=1)
class SearchParams:
    """`now` is what rows are swept against; during a trial `kept` is the fit so far, else nothing.

    `total` is the sum of the observed cells of each column.
    """

    now: GaussianModelParams
    kept: GaussianModelParams | Nothing
    stand: SearchProgress
    total: Array = dims("column")


@struct("search-row-state", since=1)
class SearchState:
    """Row state under `now`, and during a trial that of the fit so far."""

    now: RowState
    kept: RowState | Nothing


@struct
class WorstRows:
    """Residuals of the rows that are explained worst: number of the row, its squared residual in units of
    the noise less its observed cells, worst first, of equal rows the earlier. Where there are fewer rows
    than are kept the rest is filled up with a misfit of -inf."""

    row: Array = dims("kept", reduce="top", along="kept", by="misfit")
    misfit: Array = dims("kept", reduce="top", along="kept", by="misfit")
    residuals: Array = dims("kept column", reduce="top", along="kept", by="misfit")


@struct
class RowResiduals:
    """What is left of some rows: of a uniform sample with the numbers of its rows, and of the rows that are
    explained worst."""

    worst: WorstRows
    row: Array = dims("sampled", reduce="concat", along="sampled")
    residuals: Array = dims("sampled column", reduce="concat", along="sampled")


@struct
class SearchSums:
    """Sums of the model, and residuals of rows in steps that ask for them."""

    model: GaussianModelSums
    rows: RowResiduals | Nothing


def initial(fresh: int) -> SearchProgress:
    """Before the first step."""
    none: dict[str, Any] = dict.fromkeys(("phase", "order", "turn", "tries", "rounds", "left"), 0)
    none |= dict.fromkeys(("checked", "idle"), 0) | dict.fromkeys(("share", "active"), 0.0)
    low = dict.fromkeys(("objective", "bound", "last"), -np.inf)
    return SearchProgress(
        **{name: np.asarray(value) for name, value in (none | low | {"fresh": fresh}).items()}
    )


Kept = TypeVar("Kept")


def kept_of(record: Kept | Nothing) -> Kept:
    """What was kept of the fit so far, during a trial."""
    if isinstance(record, Nothing):
        raise TypeError("nothing is kept outside a trial")
    return record


@dataclass(frozen=True)
class Decision:
    """A move decided on: its number, what it gained, whether it was accepted."""

    move: int = 0
    gain: float = 0.0
    accepted: bool = False


NO_DECISION = Decision()


@dataclass(frozen=True)
class Next:
    """What is published: `kept` is the fit so far, during a trial only."""

    now: GaussianModelParams
    kept: GaussianModelParams | None
    stand: SearchProgress
    info: Info


def advanced(stand: SearchProgress, **values: Any) -> SearchProgress:
    """The stand with some values changed and the order to just go on, unless it is given."""
    given = {"order": Order.GO, "share": 0.0} | values
    return replace(stand, **{name: np.asarray(value) for name, value in given.items()})


def fit_so_far(
    stand: SearchProgress,
    now: GaussianModelParams,
    info: Info,
    decision: Decision = NO_DECISION,
    **changes: Any,
) -> Next:
    """Go on with `now`, which is the fit so far."""
    levels: dict[str, Any] = {name: float(info.terms[name]) for name in KEPT}
    levels |= {"last": info.objective} | changes
    made = advanced(stand, **levels)
    return Next(now, None, made, traced(info, made, info.objective, decision))


def on_trial(
    stand: SearchProgress, now: GaussianModelParams, kept: GaussianModelParams, info: Info, **changes: Any
) -> Next:
    """Go on with `now` on trial while `kept` is the fit so far."""
    tried = info.objective
    made = advanced(stand, **({"last": tried} | changes))
    return Next(now, kept, made, traced(info, made, tried, NO_DECISION))


def gone_back(
    stand: SearchProgress, kept: GaussianModelParams, info: Info, decision: Decision, **changes: Any
) -> Next:
    """Return to the fit so far."""
    made = advanced(stand, order=Order.BACK, phase=Phase.SETTLING, last=float(stand.objective), **changes)
    return Next(kept, None, made, traced(info, made, info.objective, decision))


def traced(info: Info, stand: SearchProgress, tried: float, decision: Decision) -> Info:
    """What a step says, as the search sees it."""
    kept = {name: float(getattr(stand, name)) for name in KEPT}
    return dataclasses.replace(
        info,
        terms={**info.terms, **kept},
        trial=tried,
        move=float(decision.move),
        gain=decision.gain,
        accepted=float(decision.accepted),
        settled=float(int(stand.phase) == Phase.DONE),
    )
