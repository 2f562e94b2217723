"""A pass over rows that each have a Gram matrix of their own, as cells are missing in no pattern.

With v_nd 1 in visible cells and 0 in hidden ones (any known weight would do), a = E A / sqrt(noise) and
C_n = sum_d v_nd den_d / noise_d, the Gram matrix a diag(v_n) a' + B diag(C_n) B' of a row is that of columns
with weights: the directions of the basis B are K more columns without data (kernels/cells.py).

Hidden cells say nothing of z and w. In the sums that the dictionary is updated from they are what the row
expects after its sweep, E y E A (linear-gaussian.md 9): the bound with them filled is that of the visible
cells at the old dictionary, and lower at any other. Draws fill them with draws, which extends the chain by a
variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import NOTHING, Nothing, combine
from ibpdist.data._base import Chunk
from ibpdist.kernels.cells import BLOCK, PAIR, leave, moments, sweep_cells
from ibpdist.model.observations._base import RowState, RowSums
from ibpdist.model.observations.entries import Entries, Numbers
from ibpdist.model.observations.gaussian_params import (
    ScatteredParams,
    intercept_mean,
    precision_law,
)
from ibpdist.model.observations.gaussian_sums import ScatteredSums
from ibpdist.model.observations.imputed import drawn_sums, seen_of, tiles
from ibpdist.model.observations.intercept import RowTotals, VisibleTotals
from ibpdist.model.observations.row_noise import Posterior, RowNoiseSums
from ibpdist.model.observations.tiles import RULES, scratch
from ibpdist.model.weights._base import EntryPrior, Weights

Matrix = NDArray[Any]
Float = NDArray[np.float64]


@dataclass(frozen=True)
class Tables:
    """What a step needs of the parameters, in the precision of the data.

    `root` (column) of the noise. `a` (feature, wide): E A over it, then B, then zeros up to whole blocks.
    `forms` (column, 2 feature): variances of A along B over the noise, then the squares of E A over it;
    `spread` (feature, feature) the squares of B, directions first.
    `bases` (basis, feature, feature) to measure spectra in. `centre` (feature) is what y is taken from, and
    `base` (wide) what is expected without features but for it; of no columns without an intercept.
    """

    root: Matrix
    a: Matrix
    forms: Matrix
    spread: Matrix
    bases: Matrix
    centre: Matrix
    base: Matrix

    @classmethod
    def of(cls, params: ScatteredParams, dtype: np.dtype[Any]) -> Tables:
        features, columns = params.mean.shape
        a = np.zeros((features, -(-(columns + features) // BLOCK) * BLOCK), dtype)
        root = np.sqrt(params.noise)
        a[:, :columns] = params.mean / root
        a[:, columns : columns + features] = params.basis[0]
        centre, base = _about(params, a, root)
        den = 1 / (params.noise[:, None] + params.spectrum)
        known = [basis for basis in (params.basis[0], params.ahead) if basis.any()]
        return cls(
            root.astype(dtype),
            a,
            np.concatenate(
                [den, (params.mean**2 / params.noise).T], axis=1, dtype=dtype, casting="same_kind"
            ),
            np.square(params.basis[0].T, dtype=dtype, casting="same_kind"),
            np.asarray(known, dtype).reshape(len(known), features, features),
            centre.astype(dtype),
            base.astype(dtype),
        )


def _about(params: ScatteredParams, a: Matrix, root: Float) -> tuple[Float, Float]:
    """The centre of the intercept (feature), zero without one, and `base`."""
    if isinstance(params.intercept, Nothing):
        return np.zeros(len(a)), np.zeros(0)
    centre = np.asarray(params.intercept.centre[0], np.float64)
    base = -centre @ a.astype(np.float64)
    base[: root.size] += params.intercept.origin / root
    return centre, base


_made: WeakKeyDictionary[ScatteredParams, dict[np.dtype[Any], Tables]] = WeakKeyDictionary()


def tables_of(params: ScatteredParams, dtype: np.dtype[Any]) -> Tables:
    """Made once for all chunks of a step, and kept for as long as the parameters are."""
    held = _made.setdefault(params, {})
    if dtype not in held:
        held[dtype] = Tables.of(params, dtype)
    return held[dtype]


@dataclass(frozen=True)
class Tile:
    """Rows with their weights, as the sweep takes them: in pairs, with a row of zeros after an odd number.

    `left_pairs` (row, wide) is what the cells have left over the root of the noise, `seen_pairs` (row, wide)
    the weights, `own` (row, feature) the diagonal of the Gram matrix of each row.
    """

    left_pairs: Matrix
    seen_pairs: Matrix
    own: Matrix

    @property
    def left(self) -> Matrix:
        return self.left_pairs[: len(self.own)]

    @property
    def seen(self) -> Matrix:
        return self.seen_pairs[: len(self.own)]

    def weighted(self, times: Matrix) -> Tile:
        """The same with the weights of each row multiplied."""
        for table in (self.left, self.seen, self.own):
            table *= times[:, None]
        return self

    @classmethod
    def of(cls, x: Matrix, observed: NDArray[np.bool_], tables: Tables, y: Matrix) -> Tile:
        """Of x (row, column), and y (feature, row) as it is before the sweep."""
        (features, wide), (rows, columns) = tables.a.shape, x.shape
        pairs = [scratch(name, (rows + rows % PAIR, wide), x.dtype) for name in ("left", "seen")]
        for table in pairs:
            table[rows:] = 0
        left, seen = (table[:rows] for table in pairs)
        np.matmul(y.T, tables.a, out=left)
        if tables.base.size:
            left += tables.base
        leave(x, observed, tables.root, left, seen)
        forms, more = seen[:, :columns] @ tables.forms, slice(columns, columns + features)
        seen[:, more], own = forms[:, :features], forms[:, features:]
        left[:, more] *= -seen[:, more]
        seen[:, more.stop :] = 0
        return cls(pairs[0], pairs[1], own + forms[:, :features] @ tables.spread)


@dataclass(frozen=True)
class ScatteredPass:
    """Everything a pass over one chunk needs."""

    chunk: Chunk
    params: ScatteredParams
    weights: Weights
    rules: Rules
    inner: int
    entries: Entries
    draws: Draws

    @classmethod
    def of(
        cls,
        chunk: Chunk,
        params: ScatteredParams,
        prior: EntryPrior,
        weights: Weights,
        rules: Rules,
        state: RowState,
        draws: Draws,
        inner: int,
    ) -> ScatteredPass:
        numbers = Numbers.of(chunk, state, draws, inner) if rules.z is Rule.DRAW else None
        entries = Entries.of(prior, state, chunk.x.dtype, numbers, params.row_noise)
        return cls(chunk, params, weights, rules, inner, entries, draws)

    def run(self, ids: Matrix) -> tuple[RowState, RowSums, ScatteredSums]:
        """All tiles: the new row state, and the sums."""
        entries, first = np.zeros((5, len(ids))), np.zeros(len(ids))
        drawn = self.rules.z is Rule.DRAW
        totals = Totals.of(self.params, tables_of(self.params, self.chunk.x.dtype))
        for rows in tiles(self.chunk):
            swept = self._swept(rows)
            entries += swept.sums
            first += swept.y.sum(axis=1, dtype=np.float64)
            if not drawn:
                totals.add(swept)
        state = self.entries.state(ids)
        on, entropy, cost, square, size = entries
        first = size if self.weights.two_sided else first
        rows_sums = RowSums(on=on, first=first, second=square, entropy=entropy, cost=cost)
        if drawn:
            return state, rows_sums, self._drawn(state, square)
        return state, rows_sums, totals.sums(self.params, float(self.chunk.rows))

    def _drawn(self, state: RowState, second: Float) -> ScatteredSums:
        y = self.weights.combine(state.z, state.w)
        return drawn_sums(self.chunk, self.params, y, second, state, self.draws)

    def _swept(self, rows: slice) -> Swept:
        part, x = self.entries.take(rows), self.chunk.x[rows]
        tables, observed = tables_of(self.params, x.dtype), seen_of(self.chunk, rows)
        tile = Tile.of(x, observed, tables, self.weights.combine(part.z0, part.w0))
        if part.precision is not None:
            tile.weighted(part.precision)
        second = np.empty_like(part.z1)
        sums = sweep_cells(
            tile.left_pairs,
            tile.seen_pairs,
            tile.own,
            tables.a,
            part.prior,
            part.tilt,
            (part.z0, part.w0),
            self.weights.respond(),
            RULES[self.rules.z],
            part.noise,
            self.inner,
            (part.z1, part.w1, second),
        )
        swept = Swept(tile, self.weights.combine(part.z1, part.w1), second, sums, None, None)
        if part.precision is not None:
            swept = self._precise(swept, tables, observed, part.precision, part.chances)
        self.entries.put(rows, part)
        return swept

    def _precise(
        self,
        swept: Swept,
        tables: Tables,
        observed: NDArray[np.bool_],
        precision: Matrix,
        chances: Float | None,
    ) -> Swept:
        """With the precisions of the rows, which are written over those before the sweep."""
        tile, y, cells = swept.tile, swept.y, observed.sum(axis=1).astype(np.float64)
        squares = squared(tile, tables, y, swept.second - y**2, self.params, precision)
        if not isinstance(self.params.intercept, Nothing):
            squares += observed @ self.params.intercept.error
        found = Posterior.of(precision_law(self.params), cells, squares, chances)
        times = found.mean.astype(precision.dtype)
        tile.weighted(times / precision)
        precision[:] = times
        return replace(swept, precision=times, precisions=found.sums(cells, NOTHING))


@dataclass(frozen=True)
class Swept:
    """A tile after the sweeps, with E y and E y^2 (feature, row), sums of z and w (5, feature), and the
    precisions of rows, where they have some, with their sums."""

    tile: Tile
    y: Matrix
    second: Matrix
    sums: Float
    precision: Matrix | None
    precisions: RowNoiseSums | None


def squared(
    tile: Tile, tables: Tables, y: Matrix, spread: Matrix, params: ScatteredParams, precision: Matrix | None
) -> Float:
    """(row) expected squared residuals of the visible cells in units of the noise, for y (feature, row) of
    variance `spread`; the error of the intercept apart. Tiles of rows with a `precision` are weighted."""
    columns, features = params.noise.size, len(params.mean)
    more = slice(columns, columns + features)
    turned = (y.T - tables.centre) @ params.basis[0].astype(y.dtype)
    cells = np.einsum("nd,nd->n", tile.left[:, :columns], tile.left[:, :columns], dtype=np.float64)
    rest = np.einsum("nj,nj,nj->n", tile.seen[:, more], turned, turned, dtype=np.float64)
    rest += np.einsum("nk,kn->n", tile.own, spread, dtype=np.float64)
    made: Float = cells + rest if precision is None else (cells / precision + rest) / precision
    return made


@dataclass(frozen=True)
class Totals:
    """Sums over the tiles of a chunk, in float64; products are in the precision of x (linear-gaussian.md 11).

    `on` and `second` (feature) sum E y and E y^2, `outer` (feature, feature) E y' E y, `pull` (feature,
    column) E y times what is left. `measured` (number, column) sums over visible cells E y^2, Var y and
    (E y B)_j^2 for each basis.
    `left` (2, column) sums what is left, and its squares. With an intercept `measured` has E y over visible
    cells as well, and 1, and the spectra are those of y less the centre. Rows count by their precision, of
    which `precisions` has the sums.
    """

    tables: Tables
    on: Float
    second: Float
    outer: Float
    pull: Float
    measured: Float
    left: Float
    precisions: list[RowNoiseSums]

    @classmethod
    def of(cls, params: ScatteredParams, tables: Tables) -> Totals:
        features, columns = params.mean.shape
        intercept = bool(tables.base.size)
        measured = np.zeros(((len(tables.bases) + 2 + intercept) * features + intercept, columns))
        square, flat, none = np.zeros((features, features)), np.zeros((features, columns)), np.zeros(features)
        return cls(tables, none, none.copy(), square, flat, measured, np.zeros((2, columns)), [])

    def add(self, swept: Swept) -> None:
        columns, tile, y, second = self.left.shape[1], swept.tile, swept.y, swept.second
        times = swept.precision
        counted, squares_counted = (y, second) if times is None else (y * times, second * times)
        away = y - self.tables.centre[:, None] if self.tables.base.size else y
        squares = [(basis.T @ away) ** 2 for basis in self.tables.bases]
        means = [y, np.ones((1, y.shape[1]), y.dtype)] if self.tables.base.size else []
        measured = np.concatenate([second, np.maximum(second - y**2, 0), *means, *squares])
        np.add(self.on, counted.sum(axis=1, dtype=np.float64), out=self.on)
        np.add(self.second, squares_counted.sum(axis=1, dtype=np.float64), out=self.second)
        np.add(self.outer, counted @ y.T, out=self.outer)
        for of, table, total in ((y, tile.left, self.pull), (measured, tile.seen, self.measured)):
            product = scratch("product", (len(of), columns), table.dtype)
            np.add(total, np.matmul(of, table[:, :columns], out=product), out=total)
        moments(tile.left, times, self.left)
        if swept.precisions is not None:
            self.precisions.append(swept.precisions)

    def sums(self, params: ScatteredParams, rows: float) -> ScatteredSums:
        """The sums of a chunk, with hidden cells filled by their expectation E y E A."""
        mean, root, gram, second = params.mean, np.sqrt(params.noise), self.outer.copy(), self.second
        np.fill_diagonal(gram, second)
        features, bases = len(mean), self.tables.bases.astype(np.float64)
        precisions = reduce(combine, self.precisions) if self.precisions else NOTHING
        count = rows if isinstance(precisions, Nothing) else float(precisions.precision)
        measured, cells = self.measured, np.zeros(0)
        if self.tables.base.size:
            at = 3 * features
            measured, cells = np.delete(measured, at, axis=0), measured[at]
        seen, varied, *squares = measured.reshape(-1, features, mean.shape[1])
        hidden = (second - np.diagonal(self.outer))[:, None] - varied
        cross = self.outer @ mean + self.pull * root + hidden * mean
        left = self.left[1] * params.noise + (varied * mean**2).sum(axis=0)
        squared = left + (mean * (2 * cross - gram @ mean)).sum(axis=0)
        total = self.on @ mean + self.left[0] * root
        about: dict[str, Any] = {}
        if self.tables.base.size:
            visible, *squares = squares
            b = intercept_mean(params)
            cross += np.outer(self.on, b)
            total += count * b
            squared = left + 2 * (b * total + (mean * cross).sum(axis=0)) - (mean * (gram @ mean)).sum(axis=0)
            squared -= count * b**2 + 2 * b * (self.on @ mean)
            about["first"] = RowTotals(self.on[None].copy())
            about["visible"] = VisibleTotals(visible.copy(), self.tables.centre.astype(np.float64), cells)
        spectra = [square + (basis**2).T @ varied for square, basis in zip(squares, bases, strict=True)]
        return ScatteredSums(
            rows=np.asarray(rows),
            gram=gram[None],
            cross=cross,
            squared=squared,
            total=total,
            drawn=np.zeros(len(root)),
            second=seen.copy(),
            bases=bases,
            spectra=np.asarray(spectra).reshape(len(bases), *mean.shape),
            precisions=precisions,
            **about,
        )


def evidence(chunk: Chunk, params: ScatteredParams, z: Matrix) -> Float:
    """(row) expected log likelihood of the visible cells for z (feature, row), up to a constant."""
    tables, found = tables_of(params, chunk.x.dtype), np.empty(chunk.rows)
    for rows in tiles(chunk):
        now = z[:, rows].astype(chunk.x.dtype)
        tile = Tile.of(chunk.x[rows], seen_of(chunk, rows), tables, now)
        found[rows] = -0.5 * squared(tile, tables, now, now - now**2, params, None)
    return found
