"""The squared residuals of rows that were swept, and the precisions that follow from them (factors.md 10)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Nothing
from ibpdist.data._base import Chunk
from ibpdist.kernels.row_squares import explained, row_squares, weighted_columns
from ibpdist.model.observations.gaussian_params import (
    GaussianParams,
    intercept_mean,
    precision_gram,
    precision_law,
)
from ibpdist.model.observations.patterns import Rows
from ibpdist.model.observations.row_noise import Posterior, RowNoiseSums, WeightedTotals

Matrix = NDArray[Any]
Float = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Swept:
    """A tile after the sweeps: E y and E y^2 (feature, row), the latter of no feature where rows have no
    precisions, the sums of z and w (5, run, feature); and where the weights of a row are correlated, their
    variance along the Gram matrix of its run (row), and the precisions that they were found with."""

    y: Matrix
    square: Matrix
    sums: Float
    spread: Float | None = None
    before: Float | None = None


@dataclass(frozen=True)
class Tile:
    """Rows of a chunk in runs that share a Gram matrix: x, products with the dictionary `pull` (feature,
    row), Gram matrices `gamma` (run, feature, feature), and `masks` of the groups that runs see."""

    chunk: Chunk
    rows: Rows
    x: Matrix
    pull: Matrix
    gamma: Float
    starts: Index
    masks: Float

    @property
    def seen(self) -> Matrix:
        """Which cells are seen, as numbers; empty where all are."""
        none = np.zeros((0, 0), self.x.dtype)
        return none if self.chunk.observed is None else self.chunk.observed[self.rows].astype(self.x.dtype)


@dataclass(frozen=True)
class Squares:
    """What squared residuals need of the parameters, in the precision of the data: of a row without features
    they are sum_d weight (x - origin)^2, and `fixed` (group). `cells` (group) counts columns."""

    origin: Matrix
    weight: Matrix
    fixed: Float
    cells: Float


_made: WeakKeyDictionary[GaussianParams, dict[np.dtype[Any], Squares]] = WeakKeyDictionary()


def squares_of(params: GaussianParams, dtype: np.dtype[Any]) -> Squares:
    """Made once for all chunks of a step, and kept for as long as the parameters are."""
    held = _made.setdefault(params, {})
    if dtype not in held:
        held[dtype] = _squares_of(params, dtype)
    return held[dtype]


def _squares_of(params: GaussianParams, dtype: np.dtype[Any]) -> Squares:
    """With y taken from the centre c, rows are seen from o - c A, the intercept, whose uncertainty is left:
    c Gamma c' less the squares of c A, and the error of o (linear-gaussian.md 13)."""
    groups, columns = len(params.spectra_at()), params.noise.size
    cells = np.bincount(params.group, minlength=groups).astype(np.float64)
    weight, none = 1 / params.noise, np.zeros(columns)
    if isinstance(params.intercept, Nothing):
        return Squares(none.astype(dtype), weight.astype(dtype), np.zeros(groups), cells)
    centre, gamma = params.intercept.centre, precision_gram(params)
    origin = intercept_mean(params)
    moved = params.intercept.origin - origin
    fixed = np.einsum("gk,gkl,gl->g", centre, gamma, centre)
    fixed += np.bincount(params.group, params.intercept.error - weight * moved**2, groups)
    return Squares(origin.astype(dtype), weight.astype(dtype), fixed, cells)


class ChunkPrecisions:
    """The precisions of the rows of a chunk, found tile by tile, and what their sums are made of."""

    def __init__(self, params: GaussianParams, chunk: Chunk) -> None:
        self.params, self.tables = params, squares_of(params, chunk.x.dtype)
        self.law = precision_law(params)
        self.squares, self.cells = np.empty((2, chunk.rows))
        self.drawn: Float | None = None
        self.weight = np.zeros(len(self.tables.cells))
        self.totals = np.zeros((2, chunk.x.shape[1]))

    def of(self, tile: Tile, swept: Swept, chances: Float | None) -> Matrix:
        """E tau of the rows of a tile, or a draw with `chances` (row)."""
        tables, seen, long = self.tables, tile.seen, np.diff(tile.starts)
        fixed, cells = (np.repeat(tile.masks @ table, long) for table in (tables.fixed, tables.cells))
        left = row_squares(tile.x, seen, tables.origin, tables.weight) + fixed
        left += _explained(tile, swept)
        self.squares[tile.rows], self.cells[tile.rows] = left, cells
        times = self._precisions(tile, cells, left, chances).astype(tile.x.dtype)
        weighted_columns(tile.x, seen, tables.origin, times, self.totals)
        self.weight += tile.masks.T @ np.add.reduceat(times, tile.starts[:-1], dtype=np.float64)
        return times

    def _precisions(self, tile: Tile, cells: Float, left: Float, chances: Float | None) -> Float:
        if chances is None:
            return self.law.mean(cells, left)
        if self.drawn is None:
            self.drawn = np.empty(self.cells.size)
        self.drawn[tile.rows] = Posterior.of(self.law, cells, left, chances).mean
        return np.asarray(self.drawn[tile.rows])

    def sums(self) -> RowNoiseSums:
        """Sums over all rows of the chunk."""
        first, second = self.totals
        total = first + self.tables.origin.astype(np.float64) * self.weight[self.params.group]
        squares = second + self.tables.origin * (first + total)
        if self.drawn is None:
            found = Posterior.of(self.law, self.cells, self.squares)
        else:
            found = Posterior.known(self.drawn)
        return found.sums(self.cells, WeightedTotals(self.weight, total, squares))


def _explained(tile: Tile, swept: Swept) -> Float:
    """(row) E y Gamma y' - 2 y pull."""
    y, made = swept.y, np.empty(swept.y.shape[1])
    for gamma, (a, b) in zip(tile.gamma, pairwise(tile.starts), strict=True):
        some, gram = y[:, a:b], gamma.astype(y.dtype)
        square = swept.square[: len(y) if swept.spread is None else 0, a:b]
        made[a:b] = explained(some, gram @ some, tile.pull[:, a:b], square, np.diagonal(gram).copy())
    return made if swept.spread is None else made + swept.spread
