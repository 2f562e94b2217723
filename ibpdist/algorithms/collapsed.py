"""The collapsed turn: a row is drawn with the dictionary integrated out (vibp 5.2).

Missing cells are drawn given the dictionary and the noise of the last draw when a sweep begins, rows
move on completed data, and then the dictionary and the variances are drawn from the observed cells
alone. That is exact: cells drawn from their conditional extend the chain by a variable, the rows move
within the law that includes it, and forgetting it again passes to the law of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ibpdist.algorithms.in_turn import SPARE, Given, padded
from ibpdist.data._base import Chunk
from ibpdist.draws import Draws
from ibpdist.errors import UsageError
from ibpdist.kernels.buffet import Law
from ibpdist.kernels.collapsed import Scratch, Tables, sweep_rows
from ibpdist.model import Model
from ibpdist.observations._base import RowState
from ibpdist.observations.dictionary import GaussianParams

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Collapsed:
    """One noise and one scale, drawn or fixed: then one matrix (feature, feature) serves all columns."""

    def check(self, model: Model) -> None:
        for name, several in (("noise", "column"), ("scale", "feature")):
            if getattr(model.observation, name) == several:
                raise UsageError(f"{name} is {several}: a collapsed sampler has one {name}; set {name}=one")

    def table(self, data: Chunk, state: RowState, given: Given) -> CollapsedTable:
        x = completed(data, state, given.params.observation, given.draws)
        return CollapsedTable(x, state.z, state.ids, given.law, given.first)


class CollapsedTable:
    """Rows x (row, column) in float64, and the running tables of kernels/collapsed.py."""

    def __init__(self, x: Float, z: NDArray[Any], ids: NDArray[Any], law: Law, first: int) -> None:
        features, self.x, self.law = len(ids), x, law
        slots = features + SPARE
        sizes = np.array([features, first])
        self.tables = Tables(
            inverse=np.zeros((slots, slots)),
            mean=np.zeros((slots, x.shape[1])),
            inner=np.zeros((slots, slots)),
            pairs=padded(z.astype(np.float64) @ z.T.astype(np.float64), (slots, slots)),
            cross=padded(z.astype(np.float64) @ x, (slots, x.shape[1])),
            z=padded(z.T.astype(np.int8), (len(x), slots)),
            ids=padded(ids.astype(np.int64), (slots,)),
            sizes=sizes,
        )
        self.scratch = _scratch(slots, x.shape[1])

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
        """Lambda^-1 and Abar from their definitions; rank-one steps drift."""
        t, size = self.tables, self.features
        ridge = self.law.noise / self.law.scale * np.eye(size)
        factor = cho_factor(t.pairs[:size, :size] + ridge, lower=True)
        t.inverse[:size, :size] = cho_solve(factor, np.eye(size))
        t.mean[:size] = cho_solve(factor, t.cross[:size])
        t.inner[:size, :size] = t.mean[:size] @ t.mean[:size].T

    def advance(self, first: int, logits: Float, births: Float) -> int:
        rows = self.x[first : first + len(births)]
        return int(sweep_rows(rows, logits, births, self.law, self.tables, self.scratch, first))

    def grow(self) -> None:
        """Half as many slots again, and then some."""
        t, slots = self.tables, self.ids.size + self.ids.size // 2 + SPARE
        square, wide = (slots, slots), (slots, self.x.shape[1])
        self.tables = Tables(
            inverse=padded(t.inverse, square),
            mean=padded(t.mean, wide),
            inner=padded(t.inner, square),
            pairs=padded(t.pairs, square),
            cross=padded(t.cross, wide),
            z=padded(t.z, (len(t.z), slots)),
            ids=padded(t.ids, (slots,)),
            sizes=t.sizes,
        )
        self.scratch = _scratch(slots, self.x.shape[1])


def completed(data: Chunk, state: RowState, params: GaussianParams, draws: Draws) -> Float:
    """The rows in float64, missing cells drawn given everything else."""
    x = data.x.astype(np.float64)
    if data.observed is None:
        return x
    guess = state.z.T.astype(np.float64) @ params.mean
    guess += np.sqrt(params.noise) * draws.normal("missing", data.start, data.rows, x.shape[1]).T
    return np.where(data.observed, x, guess)


def _scratch(slots: int, columns: int) -> Scratch:
    shapes = (2 * [(slots, slots)], 6 * [(slots,)], 2 * [(columns,)])
    room: list[Any] = [np.zeros(shape) for part in shapes for shape in part]
    return Scratch(*room)
