"""The uncollapsed turn: a row is drawn given the dictionary, its own features apart (vibp 5.3).

The part of the dictionary that belongs to features of one row alone is integrated out while that row is
drawn, and drawn with their number. Cells that are missing are left out of every sum, and every
column may have a noise of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.algorithms.in_turn import SPARE, Given, padded
from ibpdist.data._base import Chunk
from ibpdist.errors import UsageError
from ibpdist.kernels.buffet import Law
from ibpdist.kernels.uncollapsed import Facts, Scratch, Tables, sweep_rows
from ibpdist.model import Model
from ibpdist.observations._base import RowState

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Uncollapsed:
    """One scale, drawn or fixed; any noise."""

    def check(self, model: Model) -> None:
        if getattr(model.observation, "scale", None) == "feature":
            raise UsageError(
                "scale is feature: rows in turn need the scale of features to come; set scale=one"
            )

    def table(self, data: Chunk, state: RowState, given: Given) -> UncollapsedTable:
        noise, level = np.unique(given.params.observation.noise, return_inverse=True)
        seen = np.ones(data.x.shape, np.int8) if data.observed is None else data.observed.astype(np.int8)
        key = given.draws.key("own dictionary")
        facts = Facts(data.x.astype(np.float64), seen, noise, level, data.start, key)
        return UncollapsedTable(facts, state, given.params.observation.mean, given.law, given.first)


class UncollapsedTable:
    """The running tables of kernels/uncollapsed.py."""

    def __init__(self, facts: Facts, state: RowState, mean: Float, law: Law, first: int) -> None:
        features, self.facts, self.law = len(state.ids), facts, law
        rows, columns = facts.x.shape
        slots = features + SPARE
        made = padded(np.asarray(mean, np.float64), (slots, columns))
        self.tables = Tables(
            mean=made,
            square=made**2,
            on=padded(state.z.sum(axis=1, dtype=np.float64), (slots,)),
            z=padded(state.z.T.astype(np.int8), (rows, slots)),
            ids=padded(state.ids.astype(np.int64), (slots,)),
            sizes=np.array([features, first]),
        )
        self.scratch = _scratch(slots, columns, facts.noise.size)

    @property
    def z(self) -> NDArray[np.int8]:
        made: NDArray[np.int8] = self.tables.z
        return made

    @property
    def ids(self) -> NDArray[np.int64]:
        made: NDArray[np.int64] = self.tables.ids
        return made

    @property
    def features(self) -> int:
        return int(self.tables.sizes[0])

    def renew(self) -> None:
        """Residuals are made for each row: nothing drifts."""

    def advance(self, first: int, logits: Float, births: Float) -> int:
        return int(sweep_rows(self.facts, logits, births, self.law, self.tables, self.scratch, first))

    def grow(self) -> None:
        """Half as many slots again, and then some."""
        t, slots = self.tables, self.ids.size + self.ids.size // 2 + SPARE
        rows, columns = self.facts.x.shape
        self.tables = Tables(
            mean=padded(t.mean, (slots, columns)),
            square=padded(t.square, (slots, columns)),
            on=padded(t.on, (slots,)),
            z=padded(t.z, (rows, slots)),
            ids=padded(t.ids, (slots,)),
            sizes=t.sizes,
        )
        self.scratch = _scratch(slots, columns, self.facts.noise.size)


def _scratch(slots: int, columns: int, levels: int) -> Scratch:
    sizes = (4 * [slots], 3 * [columns], 2 * [levels])
    vectors: list[Any] = [np.zeros(size) for part in sizes for size in part]
    return Scratch(*vectors)
