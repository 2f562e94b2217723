"""Where a search stands between two steps, and the ways it goes on from there.

The trace has, besides the terms of the model: `trial`, the objective of what is being tried;
`move`, the number of the move that was decided on in this step, counted from 1 (0: none), `gain`
and `accepted` of it; `settled`, 1 when nothing more is to be tried. During a trial `objective`,
`bound` and `active` are those of the fit so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from ibpdist.base.structs import Array, dims, replace, struct
from ibpdist.inference._base import Trace

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


def begun(fresh: int) -> SearchProgress:
    """Before the first step."""
    none: dict[str, Any] = dict.fromkeys(("phase", "order", "turn", "tries", "rounds", "left"), 0)
    none |= dict.fromkeys(("checked", "idle"), 0) | dict.fromkeys(("share", "active"), 0.0)
    low = dict.fromkeys(("objective", "bound", "last"), -np.inf)
    return SearchProgress(
        **{name: np.asarray(value) for name, value in (none | low | {"fresh": fresh}).items()}
    )


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

    now: Any
    kept: Any | None
    stand: SearchProgress
    trace: Trace


def moved(stand: SearchProgress, **values: Any) -> SearchProgress:
    """The stand with some values changed and the order to just go on, unless it is given."""
    given = {"order": Order.GO, "share": 0.0} | values
    return replace(stand, **{name: np.asarray(value) for name, value in given.items()})


def fit_so_far(
    stand: SearchProgress, now: Any, trace: Trace, decision: Decision = NO_DECISION, **changes: Any
) -> Next:
    """Go on with `now`, which is the fit so far."""
    levels: dict[str, Any] = {name: float(trace[name]) for name in KEPT}
    levels |= {"last": float(trace["objective"])} | changes
    made = moved(stand, **levels)
    return Next(now, None, made, noted(trace, made, float(trace["objective"]), decision))


def on_trial(stand: SearchProgress, now: Any, kept: Any, trace: Trace, **changes: Any) -> Next:
    """Go on with `now` on trial while `kept` is the fit so far."""
    tried = float(trace["objective"])
    made = moved(stand, **({"last": tried} | changes))
    return Next(now, kept, made, noted(trace, made, tried, NO_DECISION))


def gone_back(stand: SearchProgress, kept: Any, trace: Trace, decision: Decision, **changes: Any) -> Next:
    """Return to the fit so far."""
    made = moved(stand, order=Order.BACK, phase=Phase.SETTLING, last=float(stand.objective), **changes)
    return Next(kept, None, made, noted(trace, made, float(trace["objective"]), decision))


def noted(trace: Trace, stand: SearchProgress, tried: float, decision: Decision) -> Trace:
    kept = {name: float(getattr(stand, name)) for name in KEPT}
    return {
        **trace,
        **kept,
        "trial": tried,
        "move": float(decision.move),
        "gain": decision.gain,
        "accepted": float(decision.accepted),
        "settled": float(int(stand.phase) == Phase.DONE),
    }
