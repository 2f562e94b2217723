"""The uncollapsed turn: a row is drawn given the dictionary, its own features apart (samplers.md 8).

The part of the dictionary that belongs to features of one row alone is integrated out while that row is
drawn, and drawn with their number; or, with `candidates`, it is drawn together with it from the prior, and
what the row has competes with so many of these. Cells that are missing are left out of every sum, and every
column may have a noise of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference.in_turn.growable_tables import GrowableTables
from ibpdist.inference.in_turn.in_turn import Given
from ibpdist.inference.missing_cells import impute
from ibpdist.kernels.buffet import Law
from ibpdist.kernels.uncollapsed import Facts, Scratch, Tables, sweep_rows
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Uncollapsed:
    """One scale, drawn or fixed; any noise. Without `candidates` the infinite sampler is the report's
    partially collapsed one, with them its uncollapsed one."""

    candidates: int = 0

    def check(self, observation: Gaussian) -> None:
        if self.candidates < 0:
            raise UsageError(f"candidates is {self.candidates}; expected a whole number of at least 0")
        if observation.scale == "feature":
            raise UsageError(
                "scale is feature: rows in turn need the scale of features to come; set scale=one"
            )

    def table(self, data: Chunk, state: RowState, given: Given) -> UncollapsedTable:
        noise, level = np.unique(given.params.observation.noise, return_inverse=True)
        seen = np.ones(data.x.shape, np.int8) if data.observed is None else data.observed.astype(np.int8)
        key = given.draws.key("own dictionary")
        facts = Facts(data.x.astype(np.float64), seen, noise, level, data.start, key, self.candidates)
        return UncollapsedTable(facts, state, given.params.observation.mean, given.law, given.first)


class UncollapsedTable(GrowableTables):
    """The running tables of kernels/uncollapsed.py."""

    axes: ClassVar = {"mean": (0,), "square": (0,), "on": (0,), "z": (1,), "ids": (0,)}

    def __init__(self, facts: Facts, state: RowState, mean: Float, law: Law, first: int) -> None:
        self.facts, self.law = facts, law
        self.tables = Tables(
            mean=mean,
            square=mean**2,
            on=state.z.sum(axis=1, dtype=np.float64),
            z=state.z.T.astype(np.int8),
            ids=state.ids.astype(np.int64),
            sizes=np.array([len(state.ids), first]),
        )
        self.grow()

    def renew(self) -> None:
        """Residuals are made for each row: nothing drifts."""

    def advance(self, first: int, logits: Float, births: Float) -> int:
        return int(sweep_rows(self.facts, logits, births, self.law, self.tables, self.scratch, first))

    def whole(self, data: Chunk, z: Float, noise: Float, draws: Draws) -> tuple[Float, Float]:
        x = impute(data, z, self.tables.mean[: len(z)], noise, draws)
        return x, z @ x

    def grow(self) -> None:
        super().grow()
        sizes = (6 * [self.ids.size], 4 * [self.facts.x.shape[1]], 2 * [self.facts.noise.size])
        room: list[Any] = [np.zeros(size) for part in sizes for size in part]
        self.scratch = Scratch(*room)
