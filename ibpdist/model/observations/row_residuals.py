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
from ibpdist.kernels.row_squares import row_squares, weighted_columns
from ibpdist.model.observations.gaussian_params import (
    GaussianParams,
    freedom_of,
    precision_gram,
    pseudo_cells,
)
from ibpdist.model.observations.patterns import Rows
from ibpdist.model.observations.row_noise import Posterior, RowNoiseSums, WeightedTotals

Matrix = NDArray[Any]
Float = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Swept:
    """A tile after the sweeps: E y and E y^2 (feature, row), the latter of no feature where rows have no
    precisions, the sums of z and w (4, run, feature); and where the weights of a row are correlated, their
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
    """What squared residuals need of the parameters, in the precision of the data: with o the `origin` of the
    intercept they are sum_d weight (x - o)^2 + slope (x - o), and `fixed` (group), less what the features
    explain. `cells` (group) counts columns."""

    origin: Matrix
    weight: Matrix
    slope: Matrix
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
    """With y taken from the centre c, 2 c A (x - o) / psi + c Gamma c' is left beside the products of rows
    with the dictionary about the intercept (linear-gaussian.md 13), and its error in every cell."""
    groups, columns = len(params.spectra_at()), params.noise.size
    cells = np.bincount(params.group, minlength=groups).astype(np.float64)
    weight, none = 1 / params.noise, np.zeros(columns)
    if isinstance(params.intercept, Nothing):
        flat = none.astype(dtype)
        return Squares(flat, weight.astype(dtype), flat, np.zeros(groups), cells)
    centre, gamma = params.intercept.centre, precision_gram(params)
    slope = 2 * np.einsum("dk,kd->d", centre[params.group], params.mean) * weight
    fixed = np.einsum("gk,gkl,gl->g", centre, gamma, centre)
    fixed += np.bincount(params.group, params.intercept.error, groups)
    origin = params.intercept.origin
    return Squares(origin.astype(dtype), weight.astype(dtype), slope.astype(dtype), fixed, cells)


def precisions(params: GaussianParams, tile: Tile, swept: Swept) -> tuple[Matrix, RowNoiseSums]:
    """E tau of the rows of a tile, and the sums of their precisions."""
    tables, seen = squares_of(params, tile.x.dtype), tile.seen
    long = np.diff(tile.starts)
    fixed, cells = (np.repeat(tile.masks @ table, long) for table in (tables.fixed, tables.cells))
    left = row_squares(tile.x, seen, tables.origin, tables.weight, tables.slope) + fixed
    squares = left + _explained(tile, swept)
    found = Posterior.of(freedom_of(params), cells, squares, pseudo_cells(params))
    times = found.mean.astype(tile.x.dtype)
    sums = np.zeros((2, tile.x.shape[1]))
    weighted_columns(tile.x, seen, tables.origin, times, sums)
    weight = tile.masks.T @ np.add.reduceat(times, tile.starts[:-1], dtype=np.float64)
    moved = tables.origin.astype(np.float64) * weight[params.group]
    total = sums[0] + moved
    moments = WeightedTotals(weight, total, sums[1] + tables.origin * (sums[0] + total))
    return times, found.sums(cells, moments)


def _explained(tile: Tile, swept: Swept) -> Float:
    """(row) E y Gamma y' - 2 y pull."""
    y, made = swept.y, np.empty(swept.y.shape[1])
    for gamma, (a, b) in zip(tile.gamma, pairwise(tile.starts), strict=True):
        some, gram = y[:, a:b], gamma.astype(y.dtype)
        slope = gram @ some
        slope -= 2 * tile.pull[:, a:b]
        made[a:b] = np.einsum("kn,kn->n", some, slope, dtype=np.float64)
        if swept.spread is None:
            made[a:b] += np.diagonal(gram) @ (swept.square[:, a:b] - some * some)
    return made if swept.spread is None else made + swept.spread
