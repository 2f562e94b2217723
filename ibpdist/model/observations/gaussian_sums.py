"""Sums over rows that the parameters of the Gaussian observation are updated from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Array, dims, replace, struct
from ibpdist.model.observations.gaussian_params import GaussianParams, Group, columns_of, precision_gram
from ibpdist.model.observations.rotation import Family, Rotation, Scattered

Float = NDArray[np.float64]


@struct
class GaussianSums:
    """Sums of a block of rows.

    `gram` is sum E[y' y] over the rows in which a group of columns is observed, `cross` is sum E[y]' x.
    """

    rows: Array = dims()
    gram: Array = dims("group feature feature_")
    cross: Array = dims("feature column")

    def squares(self, params: GaussianParams) -> Float:
        """(column) sums of squares of x."""
        return np.asarray(params.squares, dtype=np.float64)

    def totals(self, seen: Float) -> Float:
        """(column) sums of x, from those of the observed cells."""
        return seen

    def cells(self, params: GaussianParams) -> Float:
        """(column) number of cells that count."""
        return np.asarray(params.cells)

    def rotations(self, params: GaussianParams, family: Family) -> list[Rotation]:
        """Each group of columns in the eigenbasis of its Gram matrix."""
        made = []
        for g, columns in enumerate(columns_of(params)):
            squares = self.squares(params)[columns]
            made.append(
                Rotation.of(columns, self.gram[g], self.cross[:, columns], squares, params.scale, family)
            )
        return made

    def spread(self, params: GaussianParams) -> float:
        """sum_d tr(G_d Sigma_d) / noise_d plus the squares of the mean in G, from the sums alone."""
        return float(np.vdot(self.gram, precision_gram(params)))

    def uncertain(self, g: int, group: Group, params: GaussianParams) -> Float:
        """(level) tr(G_d Sigma_d) of the columns of group g."""
        spread: Float = np.einsum("kj,kj->j", group.basis, self.gram[g] @ group.basis) @ group.shrink
        return spread

    def edited(self, gram: Float, cross: Float, linear: Float, params: GaussianParams) -> GaussianSums:
        """Sums of other features, which are `linear` (feature, old feature + 1) in these and 1."""
        return replace(self, gram=gram, cross=cross)

    def rescaled(self, lengths: Float) -> GaussianSums:
        """Sums when weights are divided by `lengths` (feature)."""
        return replace(self, gram=self.gram / np.outer(lengths, lengths), cross=self.cross / lengths[:, None])


@struct
class ScatteredSums(GaussianSums):
    """Sums of rows with hidden cells that are taken to be E y E A, or are drawn: `gram` is that of all rows,
    `cross`, `squared` and `total` (column) are of x with its hidden cells filled, `drawn` (column) counts
    those that were drawn. Over visible cells `second` sums E y^2, and `spectra` E (y B)_j^2 for the `bases`
    B of the pass.
    """

    squared: Array = dims("column")
    total: Array = dims("column")
    drawn: Array = dims("column")
    second: Array = dims("feature column")
    bases: Array = dims("basis feature feature_", reduce="same")
    spectra: Array = dims("basis feature column")

    def squares(self, params: GaussianParams) -> Float:
        return np.asarray(self.squared)

    def totals(self, seen: Float) -> Float:
        return np.asarray(self.total)

    def cells(self, params: GaussianParams) -> Float:
        return np.asarray(params.cells + self.drawn)

    def rotations(self, params: GaussianParams, family: Family) -> list[Rotation]:
        (whole,) = super().rotations(params, family)
        bases = np.concatenate([self.bases, np.eye(len(self.second))[None]])
        spectra = np.concatenate([self.spectra, self.second[None]])
        known = 0 if self.drawn.any() else len(bases)  # with cells drawn, nothing is hidden
        return [Scattered.best(whole, params.noise, bases[:known], spectra[:known])]

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
        second = linear @ np.concatenate([self.second, params.cells[None]])
        none = {"bases": np.zeros((0, features, features)), "spectra": np.zeros((0, features, columns))}
        return replace(self, gram=gram, cross=cross, second=np.maximum(second, 0.0), **none)

    def rescaled(self, lengths: Float) -> GaussianSums:
        made = super().rescaled(lengths)
        return replace(made, bases=self.bases * lengths[:, None], second=self.second / lengths[:, None] ** 2)
