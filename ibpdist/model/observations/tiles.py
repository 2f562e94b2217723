"""One pass over a chunk, tile by tile: two products, one sweep over features, and the sums.

A tile is a block of rows that stays in cache. Products run in the data's precision within
a tile, sums over tiles in float64 (linear-gaussian.md 11). The tile size depends on the shape alone; it
decides the bits and is recorded with the run.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.data._base import Chunk
from ibpdist.kernels import respond
from ibpdist.kernels.sweep import sweep
from ibpdist.model.observations._base import RowState, RowSums
from ibpdist.model.observations.entries import Entries, Numbers
from ibpdist.model.observations.gaussian_params import GaussianParams, precision_gram
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.intercept import RowTotals
from ibpdist.model.observations.patterns import Runs, runs_of
from ibpdist.model.observations.row_residuals import ChunkPrecisions, Swept, Tile
from ibpdist.model.weights._base import EntryPrior, Weights

Matrix = NDArray[Any]
Float = NDArray[np.float64]
Index = NDArray[np.intp]
TILE_BYTES = 2 << 20
RULES = {Rule.MEAN: respond.Mean(), Rule.MODE: respond.Mode(), Rule.DRAW: respond.Draw()}


def tile_rows(columns: int, itemsize: int) -> int:
    """Rows of a tile: a multiple of 64 between 512 and 4096, with about 2 MB of data in between."""
    return int(np.clip(TILE_BYTES // (columns * itemsize) // 64 * 64, 512, 4096))


@dataclass(frozen=True)
class Globals:
    """What a step needs of the parameters, in the precision of the data. `offset` (group, feature) is what
    the intercept takes off the products with the dictionary; without one there are none."""

    params: GaussianParams
    loadings: Matrix
    gamma: Float
    offset: Float


_made: WeakKeyDictionary[GaussianParams, dict[np.dtype[Any], tuple[Matrix, Float, Float]]] = (
    WeakKeyDictionary()
)


def globals_of(params: GaussianParams, dtype: np.dtype[Any]) -> Globals:
    """Made once for all chunks of a step, and kept for as long as the parameters are."""
    held = _made.setdefault(params, {})
    if dtype not in held:
        loadings = np.empty(params.mean.shape, dtype)
        np.divide(params.mean, params.noise, out=loadings, casting="same_kind")
        gamma = precision_gram(params)
        held[dtype] = loadings, gamma, _offset(params, loadings, gamma)
    return Globals(params, *held[dtype])


def _offset(params: GaussianParams, loadings: Matrix, gamma: Float) -> Float:
    """(group, feature) what the products of rows with the dictionary owe to the intercept
    (linear-gaussian.md 13); of no group where there is none."""
    if isinstance(params.intercept, Nothing):
        return np.zeros((0, len(params.mean)))
    origin, centre = params.intercept.origin, params.intercept.centre
    made: Float = -np.einsum("gkl,gl->gk", gamma, centre)
    for g in range(len(gamma)):
        columns = slice(None) if len(gamma) == 1 else np.flatnonzero(params.group == g)
        made[g] += loadings[:, columns].astype(np.float64) @ origin[columns]
    return made


def pulled(made: Globals, tile: Matrix, starts: Index, masks: Float) -> Matrix:
    """(feature, row) products of the rows of a tile, about the intercept, with the dictionary."""
    pull: Matrix = made.loadings @ tile.T
    if len(made.offset):
        for offset, (first, last) in zip(masks @ made.offset, pairwise(starts), strict=True):
            pull[:, first:last] -= offset[:, None].astype(pull.dtype)
    return pull


@dataclass(frozen=True)
class TileSums:
    """Sums over the rows of a tile: of z and w (5, feature), Gram matrices (group, feature, feature), of E y
    over the rows in which a group is seen (group, feature) and over all rows (feature). Gram matrices and
    `first` count rows by their precision."""

    entries: Float
    gram: Float
    first: Float
    on: Float


class Totals:
    """Sums over the tiles of a chunk, in float64. A product with x that is not added to another keeps the
    precision of x: it is the largest of all, and reductions are in float64 (structs.py)."""

    def __init__(self, params: GaussianParams) -> None:
        groups, features = params.spectrum.shape
        self.entries = np.zeros((5, features))
        self.gram = np.zeros((groups, features, features))
        self.first = np.zeros((groups, features))
        self.on = np.zeros(features)
        self.cross: Matrix | None = None
        self.shape = params.mean.shape

    def add(self, tile: TileSums, cross: Matrix) -> None:
        self.entries += tile.entries
        self.gram += tile.gram
        self.first += tile.first
        self.on += tile.on
        if self.cross is None:
            self.cross = cross
        else:
            out = self.cross if self.cross.dtype == np.float64 else None
            self.cross = np.add(self.cross, cross, out=out, dtype=np.float64)


@dataclass(frozen=True)
class Pass:
    """Everything a pass over one chunk needs."""

    made: Globals
    weights: Weights
    rules: Rules
    inner: int
    runs: Runs
    chunk: Chunk
    entries: Entries

    @classmethod
    def of(
        cls,
        chunk: Chunk,
        made: Globals,
        prior: EntryPrior,
        weights: Weights,
        rules: Rules,
        state: RowState,
        draws: Draws,
        inner: int,
    ) -> Pass:
        runs = runs_of(chunk.observed, chunk.rows, made.params.group)
        numbers = Numbers.of(chunk, state, draws, inner) if rules.z is Rule.DRAW else None
        entries = Entries.of(prior, state, chunk.x.dtype, numbers, made.params.row_noise)
        return cls(made, weights, rules, inner, runs, chunk, entries)

    def run(self, ids: Matrix) -> tuple[RowState, RowSums, GaussianSums]:
        """All tiles: the new row state, and the sums."""
        rows, columns = self.chunk.x.shape
        totals, step = Totals(self.made.params), tile_rows(columns, self.chunk.x.itemsize)
        even = self.entries.precision is None
        noise = None if even else ChunkPrecisions(self.made.params, self.chunk)
        for first in range(0, rows, step):
            totals.add(*self._tile(first, min(first + step, rows), noise))
        on, entropy, cost, second, sizes = totals.entries
        sums = GaussianSums(
            rows=np.asarray(float(rows)),
            gram=totals.gram,
            cross=np.zeros(totals.shape) if totals.cross is None else totals.cross,
            first=RowTotals(totals.first) if len(self.made.offset) else NOTHING,
            precisions=NOTHING if noise is None else noise.sums(),
        )
        amounts = sizes if self.weights.two_sided else totals.on
        entries = RowSums(on=on, first=amounts, second=second, entropy=entropy, cost=cost)
        return self.entries.state(ids), entries, sums

    def _tile(self, first: int, last: int, noise: ChunkPrecisions | None) -> tuple[TileSums, Matrix]:
        """The sums of a tile, and y x."""
        rows, (starts, masks) = self.runs.rows(first, last), self.runs.cut(first, last)
        x, part, made = self.chunk.x[rows], self.entries.take(rows), self.made
        groups, features, _ = made.gamma.shape
        gamma = (masks @ made.gamma.reshape(groups, -1)).reshape(len(masks), features, features)
        tile = Tile(self.chunk, rows, x, pulled(made, x, starts, masks), gamma, starts, masks)
        swept, times = self.swept(tile, part), None
        if noise is not None:
            times = noise.of(tile, swept, part.chances)
            part = replace(part, precision=times)
        self.entries.put(rows, part)
        counted = swept.y if times is None else swept.y * times
        grams = self.grams(tile, swept, times)
        by_group = (masks.T @ grams.reshape(len(grams), -1)).reshape(groups, features, features)
        by_run = np.array([counted[:, a:b].sum(axis=1, dtype=np.float64) for a, b in pairwise(starts)])
        on = by_run.sum(axis=0) if times is None else swept.y.sum(axis=1, dtype=np.float64)
        shape = (features, x.shape[1])
        out = np.empty(shape, x.dtype) if first == 0 else scratch("cross", shape, x.dtype)
        found = TileSums(swept.sums.sum(axis=1), by_group, masks.T @ by_run, on)
        return found, np.matmul(counted, x, out=out)

    def swept(self, tile: Tile, part: Entries) -> Swept:
        """Set z and w of a tile from its products with the dictionary (feature, row)."""
        square = np.empty_like(part.z1 if part.precision is not None else part.z1[:0])
        sums = sweep(
            tile.pull,
            tile.gamma.astype(tile.pull.dtype),
            tile.starts,
            part.prior,
            part.tilt,
            part.precision,
            (part.z0, part.w0),
            self.weights.respond(),
            RULES[self.rules.z],
            part.noise,
            self.inner,
            (part.z1, part.w1, square),
        )
        return Swept(self.weights.combine(part.z1, part.w1), square, sums)

    def grams(self, tile: Tile, swept: Swept, times: Matrix | None) -> Float:
        """sum E[y' y] (run, feature, feature) of the rows of a tile, each counted `times` (row)."""
        if times is None:
            return run_grams(swept.y, tile.starts, swept.sums[3])
        runs = pairwise(tile.starts)
        second = np.array([swept.square[:, a:b] @ times[a:b] for a, b in runs], dtype=np.float64)
        return run_grams(swept.y, tile.starts, second, swept.y * times)


def run_grams(y: Matrix, starts: Index, second: Float, counted: Matrix | None = None) -> Float:
    """sum E[y' y] (run, feature, feature): products of means off the diagonal, `second` on it; `counted` is y
    with each row as often as it counts."""
    features = y.shape[0]
    grams = np.empty((starts.size - 1, features, features))
    for i, (a, b) in enumerate(pairwise(starts)):
        left = y if counted is None else counted
        grams[i] = left[:, a:b] @ y[:, a:b].T
        np.fill_diagonal(grams[i], second[i])
    return grams


_thread = threading.local()


def scratch(name: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> Matrix:
    """A table of this thread for what is used up at once: fresh memory for every tile takes as long as
    some of its sums."""
    held: Matrix | None = getattr(_thread, name, None)
    if held is None or held.shape != shape or held.dtype != dtype:
        held = np.empty(shape, dtype)
        setattr(_thread, name, held)
    return held
