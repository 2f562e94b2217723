"""The collapsed turn: a row is drawn with the dictionary integrated out (samplers.md 7).

Missing cells are drawn given the dictionary and the noise of the last draw when a sweep begins, rows
move on completed data, and then the dictionary and the variances are drawn from the observed cells
alone. That is exact: cells drawn from their conditional extend the chain by a variable, the rows move
within the law that includes it, and forgetting it again passes to the law of the others.
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
from ibpdist.kernels.collapsed import Scratch, Tables, renew, sweep_rows
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Collapsed:
    """One noise and one scale, drawn or fixed: then one matrix (feature, feature) serves all columns."""

    def check(self, observation: Gaussian) -> None:
        for name, several in (("noise", ("column", "auto")), ("scale", ("feature",))):
            if (given := getattr(observation, name)) in several:
                raise UsageError(f"{name} is {given}: a collapsed sampler has one {name}; set {name}=one")

    def table(self, data: Chunk, state: RowState, given: Given) -> CollapsedTable:
        params = given.params.observation
        x = impute(data, state.z, params.mean, params.noise, given.draws)
        return CollapsedTable(x, state.z.astype(np.float64), state.ids, given.law, given.first)


class CollapsedTable(GrowableTables):
    """Rows x (row, column) in float64, and the running tables of kernels/collapsed.py."""

    axes: ClassVar = {
        "inverse": (0, 1),
        "mean": (0,),
        "inner": (0, 1),
        "pairs": (0, 1),
        "cross": (0,),
        "z": (1,),
        "ids": (0,),
    }

    def __init__(self, x: Float, z: Float, ids: NDArray[Any], law: Law, first: int) -> None:
        features, self.x, self.law = len(ids), x, law
        square = np.zeros((features, features))
        self.tables = Tables(
            inverse=square,
            mean=np.zeros((features, x.shape[1])),
            inner=square,
            pairs=z @ z.T,
            cross=z @ x,
            z=z.T.astype(np.int8),
            ids=ids.astype(np.int64),
            sizes=np.array([features, first]),
        )
        self.grow()

    def renew(self) -> None:
        """Lambda^-1 and Abar from their definitions; rank-one steps drift."""
        renew(self.tables, np.full(self.ids.size, self.law.noise / self.law.scale))

    def advance(self, first: int, logits: Float, births: Float) -> int:
        rows = self.x[first : first + len(births)]
        return int(sweep_rows(rows, logits, births, self.law, self.tables, self.scratch, first))

    def whole(self, data: Chunk, z: Float, noise: Float, draws: Draws) -> tuple[Float, Float]:
        return self.x, self.tables.cross[: len(z)].copy()

    def grow(self) -> None:
        super().grow()
        slots, columns = self.ids.size, self.x.shape[1]
        shapes = (2 * [(slots, slots)], 8 * [(slots,)], 2 * [(columns,)])
        room: list[Any] = [np.zeros(shape) for part in shapes for shape in part]
        self.scratch = Scratch(*room)
