"""Which moves a model gets."""

from __future__ import annotations

from ibpdist.inference.ascent.move_schedule import MoveSchedule, ScheduledMove
from ibpdist.inference.moves import absorb, birth, delete, rebase, reorient, trial_delete
from ibpdist.model.model import AnyModel
from ibpdist.model.observations.gaussian import Gaussian

PRESENCE = MoveSchedule(
    exact=(("delete", delete.propose), ("reorient", reorient.propose)),
    turns=(
        ScheduledMove("renew rows", None, patience=4),
        ScheduledMove("birth", birth.propose, patience=2, residuals=True),
        ScheduledMove("trial delete", trial_delete.propose, patience=trial_delete.TRIALS),
        ScheduledMove("re-basis", rebase.propose),
        ScheduledMove("absorb", absorb.propose, patience=absorb.TRIALS),
    ),
)
"""For features that are present or absent."""

AMOUNTS = MoveSchedule(exact=(("delete", delete.propose),))
"""For features with weights, where a complement is no feature."""


WHOLE = MoveSchedule()
"""For rows that have every feature: their weights have one factor, and no sums without a feature."""


def moves_for(model: AnyModel) -> MoveSchedule | None:
    """The moves of a model; None where its observation has none: those here know Gaussian sums."""
    if not isinstance(model.observation, Gaussian):
        return None
    if model.prior.dense:
        return WHOLE
    return AMOUNTS if model.weights.has_weights else PRESENCE
