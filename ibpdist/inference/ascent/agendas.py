"""Which moves a model gets."""

from __future__ import annotations

from ibpdist.inference.ascent.agenda import Agenda, Turn
from ibpdist.inference.moves import absorb, birth, delete, order, rebase, reorient
from ibpdist.model.model import Model

PRESENCE = Agenda(
    exact=(("delete", delete.propose), ("reorient", reorient.propose)),
    turns=(
        Turn("renew rows", None, patience=4),
        Turn("birth", birth.propose, patience=2, residuals=True),
        Turn("trial delete", order.propose, patience=order.TRIALS),
        Turn("re-basis", rebase.propose),
        Turn("absorb", absorb.propose, patience=absorb.TRIALS),
    ),
)
"""For features that are present or absent."""

AMOUNTS = Agenda(exact=(("delete", delete.propose),))
"""For features with weights, where a complement is no feature."""


WHOLE = Agenda()
"""For rows that have every feature: their weights have one factor, and no sums without a feature."""


def agenda_for(model: Model) -> Agenda:
    if model.prior.dense:
        return WHOLE
    return AMOUNTS if model.weights.has_weights else PRESENCE
