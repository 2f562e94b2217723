"""One pass over a chunk, tile by tile: two products, one sweep over features, and the sums.

A tile is a block of rows that stays in cache. Products run in the data's precision within
a tile, sums over tiles in float64 (linear-gaussian.md 11). The tile size depends on the shape alone; it
decides the bits and is recorded with the run.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws, Stream
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.data._base import Chunk
from ibpdist.kernels import respond
from ibpdist.kernels.sweep import sweep
from ibpdist.model.observations._base import RowState, RowSums
from ibpdist.model.observations.gaussian_params import GaussianParams, precision_gram
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.intercept import RowTotals
from ibpdist.model.observations.patterns import Rows, Runs, runs_of
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
class Numbers:
    """What the draw rule needs of a chunk that starts at global row `start`, made tile by tile: `width`
    uniforms a row, and as many normals where there are weights."""

    uniform: Stream
    normal: Stream | None
    start: int
    width: int

    @classmethod
    def of(cls, chunk: Chunk, state: RowState, draws: Draws, inner: int) -> Numbers:
        normal = draws.stream("w") if state.w.shape[0] else None
        return cls(draws.stream("z"), normal, chunk.start, inner * state.z.shape[0])

    def tables(self, rows: Rows, dtype: np.dtype[Any]) -> tuple[Matrix, Matrix]:
        """(inner * feature, row) each."""
        named = self.start + (np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows)
        uniform, none = self.uniform.uniform(named, self.width), np.zeros((0, named.size), dtype)
        return uniform, none if self.normal is None else self.normal.normal(named, self.width).astype(dtype)


@dataclass(frozen=True)
class Entries:
    """z and w of the rows of a chunk or tile, (feature, row) each, before and after a pass.

    `prior` holds log odds, (feature,) or (feature, row), and `tilt` (feature) the linear evidence of the
    prior of the weights. `numbers` makes for a tile the tables of `noise`, uniforms and normals
    (inner * feature, row), which are empty where nothing is drawn.
    """

    prior: Matrix
    tilt: Matrix
    z0: Matrix
    w0: Matrix
    z1: Matrix
    w1: Matrix
    numbers: Numbers | None
    noise: tuple[Matrix, Matrix]

    @classmethod
    def of(cls, prior: EntryPrior, state: RowState, dtype: np.dtype[Any], numbers: Numbers | None) -> Entries:
        fresh, none = (np.empty_like(state.z), np.empty_like(state.w)), np.zeros((0, 0), dtype)
        odds, tilt = prior.log_odds.astype(dtype, copy=False), prior.tilt.astype(dtype, copy=False)
        return cls(odds, tilt, state.z, state.w, *fresh, numbers, (none, none))

    def take(self, rows: Rows) -> Entries:
        """Contiguous copies for some rows: long runs that the processor can foresee, unlike strips."""
        z0, w0 = (np.array(t[:, rows], order="C") for t in (self.z0, self.w0))
        prior = self.prior if self.prior.ndim == 1 else np.array(self.prior[:, rows], order="C")
        noise = self.noise if self.numbers is None else self.numbers.tables(rows, prior.dtype)
        return Entries(prior, self.tilt, z0, w0, np.empty_like(z0), np.empty_like(w0), None, noise)

    def put(self, rows: Rows, part: Entries) -> None:
        self.z1[:, rows], self.w1[:, rows] = part.z1, part.w1


class Totals:
    """Sums over the tiles of a chunk, in float64. A product with x that is not added to another keeps the
    precision of x: it is the largest of all, and reductions are in float64 (structs.py)."""

    def __init__(self, params: GaussianParams) -> None:
        groups, features = params.spectrum.shape
        self.entries = np.zeros((4, features))
        self.gram = np.zeros((groups, features, features))
        self.first = np.zeros((groups, features))
        self.on = np.zeros(features)
        self.cross: Matrix | None = None
        self.shape = params.mean.shape

    def add(self, entries: Float, gram: Float, first: Float, on: Float, cross: Matrix) -> None:
        self.entries += entries.sum(axis=1)
        self.gram += gram
        self.first += first
        self.on += on
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
    x: Matrix
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
        entries = Entries.of(prior, state, chunk.x.dtype, numbers)
        return cls(made, weights, rules, inner, runs, chunk.x, entries)

    def run(self, ids: Matrix) -> tuple[RowState, RowSums, GaussianSums]:
        """All tiles: the new row state, and the sums."""
        rows, columns = self.x.shape
        totals, step = Totals(self.made.params), tile_rows(columns, self.x.itemsize)
        for first in range(0, rows, step):
            totals.add(*self._tile(first, min(first + step, rows)))
        on, entropy, cost, second = totals.entries
        sums = GaussianSums(
            rows=np.asarray(float(rows)),
            gram=totals.gram,
            cross=np.zeros(totals.shape) if totals.cross is None else totals.cross,
            first=RowTotals(totals.first) if len(self.made.offset) else NOTHING,
        )
        state = RowState(ids=ids, z=self.entries.z1, w=self.entries.w1)
        entries = RowSums(on=on, first=totals.on, second=second, entropy=entropy, cost=cost)
        return state, entries, sums

    def _tile(self, first: int, last: int) -> tuple[Float, Float, Float, Float, Matrix]:
        """Sums of z and w (4, run, feature), Gram matrices (group, feature, feature), sums of y (group,
        feature) and over all rows, y x."""
        rows, made = self.runs.rows(first, last), self.made
        tile, part = self.x[rows], self.entries.take(rows)
        starts, masks = self.runs.cut(first, last)
        groups, features, _ = made.gamma.shape
        gamma = (masks @ made.gamma.reshape(groups, -1)).reshape(len(masks), features, features)
        sums, grams, y = self.entries_of(pulled(made, tile, starts, masks), gamma, starts, part)
        self.entries.put(rows, part)
        by_group = (masks.T @ grams.reshape(len(grams), -1)).reshape(groups, features, features)
        shape = (features, tile.shape[1])
        out = np.empty(shape, tile.dtype) if first == 0 else scratch("cross", shape, tile.dtype)
        by_run = np.array([y[:, a:b].sum(axis=1, dtype=np.float64) for a, b in pairwise(starts)])
        return sums, by_group, masks.T @ by_run, by_run.sum(axis=0), np.matmul(y, tile, out=out)

    def entries_of(
        self, pull: Matrix, gamma: Float, starts: Index, part: Entries
    ) -> tuple[Float, Float, Matrix]:
        """Set z and w of a tile from its products with the dictionary (feature, row): sums of z and w
        (4, run, feature), Gram matrices (run, feature, feature), and E y (feature, row)."""
        sums = sweep(
            pull,
            gamma.astype(pull.dtype),
            starts,
            part.prior,
            part.tilt,
            None,
            (part.z0, part.w0),
            self.weights.respond(),
            RULES[self.rules.z],
            part.noise,
            self.inner,
            (part.z1, part.w1, part.w1[:0]),
        )
        y = self.weights.combine(part.z1, part.w1)
        return sums, run_grams(y, starts, sums[3]), y


_thread = threading.local()


def scratch(name: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> Matrix:
    """A table of this thread for what is used up at once: fresh memory for every tile takes as long as
    some of its sums."""
    held: Matrix | None = getattr(_thread, name, None)
    if held is None or held.shape != shape or held.dtype != dtype:
        held = np.empty(shape, dtype)
        setattr(_thread, name, held)
    return held


def run_grams(y: Matrix, starts: Index, second: Float) -> Float:
    """sum E[y' y] (run, feature, feature): products of means off the diagonal, `second` on it."""
    features = y.shape[0]
    grams = np.empty((starts.size - 1, features, features))
    for i, (a, b) in enumerate(pairwise(starts)):
        grams[i] = y[:, a:b] @ y[:, a:b].T
        np.fill_diagonal(grams[i], second[i])
    return grams
