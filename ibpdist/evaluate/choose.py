"""Which of several systems to take, without a look at the rows that are to be predicted.

The objective does not tell: with few rows it is higher for sparse factors where dense ones predict
better (factors.md 12). So a share of the rows is held out of a fit of each system, every half of the
columns is predicted from the other, and the system with the better score is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ibpdist.base.errors import UsageError
from ibpdist.base.progress import Stage, after
from ibpdist.data.arrays import as_source
from ibpdist.data.splits import HeldRows, describe
from ibpdist.evaluate.heldout import evaluate
from ibpdist.runs.fit import fit

SYSTEMS = ("fa-vi-infinite", "fa-vi-dense")
"""Features that some rows have, and features that all rows have."""
HALVES = ("even", "odd")
"""Columns that are visible."""


@dataclass(frozen=True)
class Choice:
    """The system to take, and the nats per hidden cell of each."""

    system: str
    scores: dict[str, float]

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value:.4f}" for name, value in self.scores.items())
        return f"{self.system} (held-out rows, nats per cell: {told})"


def choose(
    data: Any,
    *,
    K: int,
    systems: Sequence[str] = SYSTEMS,
    share: float = 0.1,
    seed: int = 0,
    **options: Any,
) -> Choice:
    """Fit each system to the data without a `share` of the rows and score it on those.

    `options` are those of `fit`. The choice is a function of the data and the seed; fit it then to
    all rows: `fit(data, system=choose(data, K=80).system, K=80)`.
    """
    if not systems:
        raise UsageError("systems: empty; expected at least one name of the catalog")
    held = HeldRows(share=share, seed=seed)
    scores = {name: _score(data, name, K, held, options) for name in systems}
    return Choice(max(scores, key=lambda name: scores[name]), scores)


def _scored(tell: Stage, half: int, done: int, whole: int | None) -> None:
    """The rows that are scored with one half of the columns visible, of those of both halves."""
    rows = whole or 0
    tell("scoring rows", half * rows + done, len(HALVES) * rows)


def _score(data: Any, system: str, features: int, held: HeldRows, options: dict[str, Any]) -> float:
    """Mean over both halves of the columns."""
    result = fit(data, system=system, K=features, seed=held.seed, holdout=describe(held), **options)
    rows = held.test(as_source(data, judged=False))
    halves = []
    for at, half in enumerate(HALVES):
        scored = partial(_scored, after(options.get("progress")), at)
        halves.append(evaluate(result, rows, visible=half, seed=held.seed, progress=scored))
    total = sum(float(half.score[1] * half.cells.sum()) for half in halves)
    return total / sum(int(half.cells.sum()) for half in halves)
