"""Sums over rows that the parameters of the Gaussian observation are updated from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import NOTHING, Array, Nothing, dims, record, replace, struct
from ibpdist.model.observations import gaussian_params, row_noise
from ibpdist.model.observations.gaussian_params import (
    LOG_2PI,
    GaussianParams,
    Group,
    columns_of,
    intercept_mean,
    precision_gram,
)
from ibpdist.model.observations.intercept import Intercept, RowTotals, VisibleTotals
from ibpdist.model.observations.rotation import Family, Rotation, Scattered
from ibpdist.model.observations.row_noise import RowNoise, RowNoiseSums, WeightedTotals

Float = NDArray[np.float64]
TINY = 1e-300


@struct
class GaussianSums:
    """Sums of a block of rows.

    `gram` is sum E[y' y] over the rows in which a group of columns is observed, `cross` is sum E[y]' x. Where
    rows have `precisions` every row is counted so often.
    """

    rows: Array = dims()
    gram: Array = dims("group feature feature_")
    cross: Array = dims("feature column")
    first: RowTotals | Nothing = record(default=NOTHING, kw_only=True)
    precisions: RowNoiseSums | Nothing = record(default=NOTHING, kw_only=True)

    @property
    def weighted(self) -> WeightedTotals | Nothing:
        """Sums over rows that are counted by their precision, where there are such."""
        return NOTHING if isinstance(self.precisions, Nothing) else self.precisions.weighted

    def squares(self, params: GaussianParams) -> Float:
        """(column) sums of squares of x, about the mean where there is an intercept."""
        found = self.raw_squares(params)
        if isinstance(params.intercept, Nothing):
            return found
        about = found - self.totals(params.intercept.total) ** 2 / at_least_one(self.counted(params))
        return np.maximum(about, 0.0)

    def cells(self, params: GaussianParams) -> Float:
        """(column) number of cells that the noise is learned from: an intercept takes one."""
        found = self.raw_cells(params)
        return found if isinstance(params.intercept, Nothing) else np.maximum(found - 1, 0.0)

    def raw_squares(self, params: GaussianParams) -> Float:
        """(column) sums of squares of x."""
        held = self.weighted
        return np.asarray(params.squares if isinstance(held, Nothing) else held.squares, dtype=np.float64)

    def raw_cells(self, params: GaussianParams) -> Float:
        """(column) number of cells that count."""
        return np.asarray(params.cells)

    def totals(self, seen: Float) -> Float:
        """(column) sums of x, from those of the observed cells."""
        held = self.weighted
        return seen if isinstance(held, Nothing) else np.asarray(held.total)

    def counted(self, params: GaussianParams) -> Float:
        """(column) number of rows that the sums are over."""
        return (
            np.asarray(params.cells)
            if isinstance(self.weighted, Nothing)
            else self._seen(params)[params.group]
        )

    def _seen(self, params: GaussianParams) -> Float:
        """(group) number of rows that a Gram matrix sums over."""
        held = self.weighted
        return params.rows_seen(float(self.rows)) if isinstance(held, Nothing) else np.asarray(held.weight)

    def best_row_noise(self, params: GaussianParams) -> RowNoise | Nothing:
        """The law of the precisions of rows where the objective is highest."""
        if isinstance(self.precisions, Nothing):
            return params.row_noise
        if isinstance(params.row_noise, Nothing):
            return NOTHING
        best = row_noise.best_freedom(float(self.rows), self.precisions)
        return replace(params.row_noise, freedom=np.asarray(best))

    def typical_precision(self, params: GaussianParams) -> float:
        """Mean over visible cells of the precisions of their rows; one where rows are even."""
        if isinstance(self.precisions, Nothing):
            return 1.0
        return float(self.precisions.seen) / max(float(params.cells.sum()), 1.0)

    def drawn_row_noise(self, params: GaussianParams, rng: np.random.Generator) -> RowNoise | Nothing:
        """The law of the precisions of rows drawn given these."""
        if isinstance(self.precisions, Nothing):
            return params.row_noise
        if isinstance(params.row_noise, Nothing):
            return NOTHING
        before = gaussian_params.freedom_of(params)
        drawn = row_noise.drawn_freedom(float(self.rows), before, self.precisions, rng)
        return replace(params.row_noise, freedom=np.asarray(drawn), share=np.zeros(()))

    def row_noise_score(self, params: GaussianParams) -> dict[str, float]:
        """What the precisions of rows add to the objective."""
        if isinstance(self.precisions, Nothing):
            return {} if isinstance(params.row_noise, Nothing) else {"row noise": 0.0}
        law, total = gaussian_params.precision_law(params), float(params.cells.sum())
        return {"row noise": row_noise.score(float(self.rows), law, self.precisions, total)}

    def intercept_cells(self, params: GaussianParams) -> Float:
        """(column) how precise the intercept is, in units of the noise."""
        even = isinstance(self.precisions, Nothing)
        return at_least_one(self.raw_cells(params) if even else self.counted(params))

    def constant(self, params: GaussianParams) -> float:
        """-2 times the log likelihood, less the squared residuals about the means in units of the noise."""
        log_noise = LOG_2PI + np.log(params.noise)
        if isinstance(params.intercept, Nothing):
            return float(self.cells(params) @ log_noise)
        precise = self.intercept_cells(params)
        if not params.intercept.known:
            return float(self.cells(params) @ log_noise + np.log(precise).sum())
        best = intercept_mean(replace(params, intercept=self.intercept(params)))
        away = (intercept_mean(params) - best) ** 2 / params.noise
        return float(self.raw_cells(params) @ log_noise + precise @ away)

    def about_means(self, params: GaussianParams) -> GaussianSums:
        """Sums of y and x about their means, which is what q(A) sees where there is an intercept."""
        if isinstance(params.intercept, Nothing) or isinstance(self.first, Nothing):
            return self
        on, seen = self.first.on, at_least_one(self._seen(params))
        mean = self.totals(params.intercept.total) / at_least_one(self.counted(params))
        return replace(
            self,
            gram=self.gram - on[:, :, None] * on[:, None, :] / seen[:, None, None],
            cross=self.cross - on[params.group].T * mean,
            first=NOTHING,
        )

    def intercept(self, params: GaussianParams) -> Intercept | Nothing:
        """The posterior of the intercept given A."""
        if isinstance(params.intercept, Nothing) or isinstance(self.first, Nothing):
            return NOTHING
        counted, seen = at_least_one(self.counted(params)), at_least_one(self._seen(params))
        return Intercept(
            total=params.intercept.total,
            origin=self.totals(params.intercept.total) / counted,
            centre=self.first.on / seen[:, None],
            error=1 / self.intercept_cells(params),
        )

    def rotations(self, params: GaussianParams, family: Family) -> list[Rotation]:
        """Each group of columns in the eigenbasis of its Gram matrix."""
        sums, squares = self.about_means(params), self.squares(params)
        return [
            Rotation.of(columns, sums.gram[g], sums.cross[:, columns], squares[columns], params.scale, family)
            for g, columns in enumerate(columns_of(params))
        ]

    def spread(self, params: GaussianParams) -> float:
        """sum_d tr(G_d Sigma_d) / noise_d plus the squares of the mean in G, from the sums alone."""
        return float(np.vdot(self.gram, precision_gram(params)))

    def uncertain(self, g: int, group: Group, params: GaussianParams) -> Float:
        """(level) tr(G_d Sigma_d) of the columns of group g."""
        spread: Float = np.einsum("kj,kj->j", group.basis, self.gram[g] @ group.basis) @ group.shrink
        return spread

    def edited(self, gram: Float, cross: Float, linear: Float, params: GaussianParams) -> GaussianSums:
        """Sums of other features, which are `linear` (feature, old feature + 1) in these and 1."""
        return replace(self, gram=gram, cross=cross, first=self._first_of(linear, params))

    def _first_of(self, linear: Float, params: GaussianParams) -> RowTotals | Nothing:
        if isinstance(self.first, Nothing):
            return NOTHING
        seen = self._seen(params)
        return RowTotals(np.column_stack([self.first.on, seen]) @ linear.T)

    def rescaled(self, lengths: Float) -> GaussianSums:
        """Sums when weights are divided by `lengths` (feature)."""
        first = self.first if isinstance(self.first, Nothing) else RowTotals(self.first.on / lengths)
        gram, cross = self.gram / np.outer(lengths, lengths), self.cross / lengths[:, None]
        return replace(self, gram=gram, cross=cross, first=first)


def at_least_one(count: Float) -> Float:
    """Counts of rows to divide by: where there is no row nothing is divided."""
    return np.where(count > 0, count, 1.0)


@struct
class ScatteredSums(GaussianSums):
    """Sums of rows with hidden cells that are taken to be E y E A, or are drawn: `gram` is that of all rows,
    `cross`, `squared` and `total` (column) are of x with its hidden cells filled, `drawn` (column) counts
    those that were drawn. Over visible cells `second` sums E y^2, and `spectra` E (y B)_j^2 for the `bases`
    B of the pass; with an intercept of y less its centre.
    """

    squared: Array = dims("column")
    total: Array = dims("column")
    drawn: Array = dims("column")
    second: Array = dims("feature column")
    bases: Array = dims("basis feature feature_", reduce="same")
    spectra: Array = dims("basis feature column")
    visible: VisibleTotals | Nothing = record(default=NOTHING, kw_only=True)

    def raw_squares(self, params: GaussianParams) -> Float:
        return np.asarray(self.squared)

    def counted(self, params: GaussianParams) -> Float:
        return np.full(params.noise.size, self._rows())

    def _seen(self, params: GaussianParams) -> Float:
        return np.asarray([self._rows()])

    def _cells(self, params: GaussianParams) -> Float:
        """(column) number of visible cells, each counted by the precision of its row."""
        return np.asarray(params.cells if isinstance(self.visible, Nothing) else self.visible.cells)

    def _rows(self) -> float:
        """Number of rows, each counted by its precision."""
        return float(self.rows if isinstance(self.precisions, Nothing) else self.precisions.precision)

    def totals(self, seen: Float) -> Float:
        return np.asarray(self.total)

    def raw_cells(self, params: GaussianParams) -> Float:
        return np.asarray(params.cells + self.drawn)

    def rotations(self, params: GaussianParams, family: Family) -> list[Rotation]:
        (whole,) = super().rotations(params, family)
        bases = np.concatenate([self.bases, np.eye(len(self.second))[None]])
        measured, second = self._spectra_about_means(params)
        spectra = np.concatenate([measured, second[None]])
        known = 0 if self.drawn.any() else len(bases)  # with cells drawn, nothing is hidden
        return [Scattered.best(whole, params.noise, bases[:known], spectra[:known])]

    def _spectra_about_means(self, params: GaussianParams) -> tuple[Float, Float]:
        """`spectra` and `second` of y less its mean over all rows, where there is an intercept."""
        if isinstance(self.first, Nothing) or isinstance(self.visible, Nothing):
            return self.spectra, self.second
        mean, cells = self.first.on[0] / max(self._rows(), TINY), self._cells(params)
        old, on = self.visible.centre, self.visible.on
        step, pull = (mean - old) @ self.bases, self.bases.transpose(0, 2, 1) @ (on - np.outer(old, cells))
        spectra = self.spectra - 2 * step[:, :, None] * pull + step[:, :, None] ** 2 * cells
        second = self.second - 2 * mean[:, None] * on + np.outer(mean**2, cells)
        return np.maximum(spectra, 0.0), np.maximum(second, 0.0)

    def spread(self, params: GaussianParams) -> float:
        """Of the covariance from its spectra, which are sums themselves."""
        a = params.mean
        mean = np.vdot(self.gram[0], (a / params.noise) @ a.T)
        return float(mean + (params.spectra() / (params.noise[:, None] + params.spectra())).sum())

    def uncertain(self, g: int, group: Group, params: GaussianParams) -> Float:
        return np.asarray((params.spectra().T * group.shrink).sum(axis=0))

    def edited(self, gram: Float, cross: Float, linear: Float, params: GaussianParams) -> GaussianSums:
        """Counts are linear too; in other bases nothing is known of the new features."""
        features, columns = cross.shape
        second = linear @ np.concatenate([self.second, self._cells(params)[None]])
        none = {"bases": np.zeros((0, features, features)), "spectra": np.zeros((0, features, columns))}
        about = {"first": self._first_of(linear, params), "visible": self._visible_of(linear, params)}
        return replace(self, gram=gram, cross=cross, second=np.maximum(second, 0.0), **about, **none)

    def _visible_of(self, linear: Float, params: GaussianParams) -> VisibleTotals | Nothing:
        if isinstance(self.visible, Nothing):
            return NOTHING
        on = linear @ np.concatenate([self.visible.on, self._cells(params)[None]])
        return VisibleTotals(on, np.zeros(len(linear)), self._cells(params))

    def rescaled(self, lengths: Float) -> GaussianSums:
        made, visible = super().rescaled(lengths), self.visible
        if not isinstance(visible, Nothing):
            on, centre = visible.on / lengths[:, None], visible.centre / lengths
            visible = replace(visible, on=on, centre=centre)
        second = self.second / lengths[:, None] ** 2
        return replace(made, bases=self.bases * lengths[:, None], second=second, visible=visible)
