"""z, w and precisions of the rows of a chunk or tile, as a pass reads and writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws, Stream
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.data._base import Chunk
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.patterns import Rows
from ibpdist.model.observations.row_noise import RowNoise, RowPrecision
from ibpdist.model.weights._base import EntryPrior

Matrix = NDArray[Any]
Float = NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """What the draw rule needs of a chunk that starts at global row `start`, made tile by tile: `width`
    uniforms a row, and as many normals where there are weights."""

    uniform: Stream
    normal: Stream | None
    precision: Stream
    start: int
    width: int

    @classmethod
    def of(cls, chunk: Chunk, state: RowState, draws: Draws, inner: int) -> Numbers:
        normal = draws.stream("w") if state.w.shape[0] else None
        width = inner * state.z.shape[0]
        return cls(draws.stream("z"), normal, draws.stream("precision"), chunk.start, width)

    def tables(self, rows: Rows, dtype: np.dtype[Any]) -> tuple[Matrix, Matrix]:
        """(inner * feature, row) each."""
        named = self._named(rows)
        uniform, none = self.uniform.uniform(named, self.width), np.zeros((0, named.size), dtype)
        return uniform, none if self.normal is None else self.normal.normal(named, self.width).astype(dtype)

    def chances(self, rows: Rows) -> Float:
        """(row) uniforms that the precisions of rows are drawn with."""
        return np.asarray(self.precision.uniform(self._named(rows), 1)[0])

    def _named(self, rows: Rows) -> NDArray[np.intp]:
        return self.start + (np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows)


@dataclass(frozen=True)
class Entries:
    """z and w of the rows of a chunk or tile, (feature, row) each, before and after a pass.

    `prior` holds log odds, (feature,) or (feature, row), and `tilt` (feature) the linear evidence of the
    prior of the weights. `numbers` makes for a tile the tables of `noise`, uniforms and normals
    (inner * feature, row), which are empty where nothing is drawn. `precision` (row) is that of rows with a
    noise of their own, written over by a pass, and `chances` (row) the uniforms that it is drawn with.
    """

    prior: Matrix
    tilt: Matrix
    z0: Matrix
    w0: Matrix
    z1: Matrix
    w1: Matrix
    numbers: Numbers | None
    noise: tuple[Matrix, Matrix]
    precision: Matrix | None
    chances: Float | None = None

    @classmethod
    def of(
        cls,
        prior: EntryPrior,
        state: RowState,
        dtype: np.dtype[Any],
        numbers: Numbers | None,
        row_noise: RowNoise | Nothing,
    ) -> Entries:
        fresh, none = (np.empty_like(state.z), np.empty_like(state.w)), np.zeros((0, 0), dtype)
        odds = prior.log_odds.astype(dtype, copy=False)
        tilt = prior.tilt.astype(dtype)  # a copy: kernels would be compiled again for what cannot be written
        precision = None if isinstance(row_noise, Nothing) else _precision(state, dtype)
        return cls(odds, tilt, state.z, state.w, *fresh, numbers, (none, none), precision)

    def take(self, rows: Rows) -> Entries:
        """Contiguous copies for some rows: long runs that the processor can foresee, unlike strips."""
        z0, w0 = (np.array(t[:, rows], order="C") for t in (self.z0, self.w0))
        prior = self.prior if self.prior.ndim == 1 else np.array(self.prior[:, rows], order="C")
        noise = self.noise if self.numbers is None else self.numbers.tables(rows, prior.dtype)
        own = None if self.precision is None else np.array(self.precision[rows])
        chances = None if own is None or self.numbers is None else self.numbers.chances(rows)
        fresh = np.empty_like(z0), np.empty_like(w0)
        return Entries(prior, self.tilt, z0, w0, *fresh, None, noise, own, chances)

    def put(self, rows: Rows, part: Entries) -> None:
        self.z1[:, rows], self.w1[:, rows] = part.z1, part.w1
        if self.precision is not None:
            self.precision[rows] = part.precision

    def state(self, ids: Matrix) -> RowState:
        """Row state after the pass."""
        precision = NOTHING if self.precision is None else RowPrecision(self.precision)
        return RowState(ids=ids, z=self.z1, w=self.w1, precision=precision)


def _precision(state: RowState, dtype: np.dtype[Any]) -> Matrix:
    """(row) of which nothing is known at first."""
    if isinstance(state.precision, Nothing):
        return np.ones(state.z.shape[1], dtype)
    return np.array(state.precision.mean, dtype)
