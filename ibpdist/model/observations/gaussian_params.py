"""Parameters of the Gaussian observation: q(A), the noise and the scale, with the moments of q(A).

How q(A) is represented is told in dictionary.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import NOTHING, Array, Named, Nothing, dims, record, replace, struct
from ibpdist.model.observations.covariance import shrink, variance_along
from ibpdist.model.observations.intercept import Intercept
from ibpdist.model.observations.rotation import Columns, Rotation
from ibpdist.model.observations.row_noise import PrecisionLaw, RowNoise

Float = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


@struct("gaussian-params", since=1)
class GaussianParams:
    """Global parameters of the Gaussian observation.

    `group` (column) maps columns to groups. `cells`, `squares` (column): number of observed cells, and
    the sum of their squares. `unit` is the typical variance of a cell, `spread` (column) that of each
    column. `entropy` is that of q(A). `stretch` (feature): by how much the last update rescaled each feature;
    what rows have of it must be divided by that before it is used again. `common` (column) is the share of
    the most frequent value.
    """

    mean: Array = dims("feature column")
    basis: Array = dims("group feature feature_")
    spectrum: Array = dims("group feature")
    entropy: Array = dims()
    noise: Array = dims("column")
    scale: Array = dims("feature")
    group: Array = dims("column")
    cells: Array = dims("column")
    squares: Array = dims("column")
    unit: Array = dims()
    spread: Array = dims("column")
    stretch: Array = dims("feature")
    common: Array = dims("column", default=0.0)
    intercept: Intercept | Nothing = record(default=NOTHING, kw_only=True)
    row_noise: RowNoise | Nothing = record(default=NOTHING, kw_only=True)

    def groups(self) -> list[Group]:
        """The columns that share a Gram matrix."""
        made = []
        for g, columns in enumerate(columns_of(self)):
            noise, level, count = _levels(self.noise[columns])
            left = shrink(self.spectrum[g][:, None], noise)
            made.append(Group(columns, self.basis[g], noise, level, count, left))
        return made

    def spectra(self) -> Float:
        """(column, feature) the spectrum of each column."""
        return np.asarray(self.spectrum[self.group])

    def spectra_at(self) -> NDArray[np.intp]:
        """(spectrum) a column that each spectrum belongs to."""
        return np.unique(self.group, return_index=True)[1]

    def describe(self, order: NDArray[np.intp]) -> Named:
        """The covariance of q(A) for a result, features in this order."""
        return {
            "basis": (("group", "feature", "component"), self.basis[:, order]),
            "spectrum": (("group", "component"), self.spectrum),
            "group": (("column",), self.group),
            **self._described_centre("group", order),
        }

    def _described_centre(self, dim: str, order: NDArray[np.intp]) -> Named:
        if isinstance(self.intercept, Nothing):
            return {}
        return {"centre": ((dim, "feature"), self.intercept.centre[:, order])}

    def rows_seen(self, rows: float) -> Float:
        """(group) number of rows that a Gram matrix sums over, of `rows` in all."""
        return np.asarray(self.cells[self.spectra_at()])

    def entropy_of_basis(self) -> float:
        """Entropy of q(A) if its covariances were B B'."""
        return 0.5 * self.noise.size * float((LOG_2PI + 1 + np.log(self.scale)).sum())

    def covariance(self, rotated: Sequence[Rotation]) -> dict[str, Float]:
        """The fields that hold the covariance of q(A)."""
        return {
            "basis": np.stack([r.basis() for r in rotated]),
            "spectrum": np.stack([r.own_spectrum for r in rotated]),
        }

    def certain(self, features: int) -> dict[str, Float]:
        """The same fields for a dictionary known exactly."""
        groups = len(self.basis)
        return {
            "basis": np.zeros((groups, features, features)),
            "spectrum": np.zeros((groups, features)),
        }

    def longer(self, lengths: Float) -> dict[str, Any]:
        """The fields that change when features are longer by `lengths` (feature)."""
        made: dict[str, Any] = {"basis": self.basis * lengths[:, None]}
        if not isinstance(self.intercept, Nothing):
            made["intercept"] = replace(self.intercept, centre=self.intercept.centre / lengths)
        return made


@struct("scattered-params", since=1)
class ScatteredParams(GaussianParams):
    """Parameters where cells are missing in no pattern: one group of columns, which share their basis and
    have spectra of their own. The next pass measures the spectra in the basis `ahead` too, for it to be
    taken where it is better; one of zeros is not measured."""

    spectrum: Array = dims("column feature")
    ahead: Array = dims("feature feature_", default=0.0)

    def groups(self) -> list[Group]:
        every, left = np.arange(self.noise.size), shrink(self.spectrum.T, self.noise)
        return [Group(slice(None), self.basis[0], self.noise, every, np.ones(self.noise.size), left)]

    def spectra(self) -> Float:
        return np.asarray(self.spectrum)

    def spectra_at(self) -> NDArray[np.intp]:
        return np.arange(self.noise.size)

    def describe(self, order: NDArray[np.intp]) -> Named:
        """Every column is a group, and there is one basis for all of them."""
        return {
            "basis": (("basis", "feature", "component"), self.basis[:, order]),
            "spectrum": (("group", "component"), self.spectrum),
            "group": (("column",), np.arange(self.noise.size)),
            **self._described_centre("basis", order),
        }

    def rows_seen(self, rows: float) -> Float:
        return np.asarray([rows])

    def entropy_of_basis(self) -> float:
        each = 0.5 * len(self.scale) * (LOG_2PI + 1) + np.linalg.slogdet(self.basis[0])[1]
        return self.noise.size * float(each)

    def covariance(self, rotated: Sequence[Rotation]) -> dict[str, Float]:
        (only,) = rotated
        return {"basis": only.basis()[None], "spectrum": only.own_spectrum.T, "ahead": only.ahead()}

    def certain(self, features: int) -> dict[str, Float]:
        none = np.zeros((features, features))
        return {"basis": none[None], "spectrum": np.zeros((self.noise.size, features)), "ahead": none}

    def longer(self, lengths: Float) -> dict[str, Any]:
        return {**super().longer(lengths), "ahead": self.ahead * lengths[:, None]}


def freedom_of(params: GaussianParams) -> float:
    """Degrees of freedom of the row noise; infinite without it."""
    return np.inf if isinstance(params.row_noise, Nothing) else float(params.row_noise.freedom)


def precision_law(params: GaussianParams) -> PrecisionLaw:
    """The law of the precisions of rows, with the pseudo cells that belong to them."""
    if isinstance(params.row_noise, Nothing):
        return PrecisionLaw(np.inf)
    return params.row_noise.law(params.noise, params.cells)


def from_scores(params: GaussianParams, rows: float) -> GaussianParams:
    """The same with the covariance of a dictionary that was found from this many rows with uncorrelated
    scores of variance one, so that rows begin from hot to cold (linear-gaussian.md 10)."""
    basis, spectrum = np.empty_like(params.basis), np.empty_like(params.spectrum)
    basis[:], spectrum[:] = np.diag(np.sqrt(params.scale)), rows * params.scale
    return replace(params, basis=basis, spectrum=spectrum)


def intercept_mean(params: GaussianParams) -> Float:
    """(column) the mean of the intercept; zero where there is none."""
    if isinstance(params.intercept, Nothing):
        return np.zeros(params.noise.size)
    made = np.array(params.intercept.origin, dtype=np.float64)
    for g, columns in enumerate(columns_of(params)):
        made[columns] -= params.intercept.centre[g] @ params.mean[:, columns]
    return made


def adopted_intercept(params: GaussianParams, blank: Intercept | Nothing, alike: bool) -> Intercept | Nothing:
    """The intercept of a fit that begins with these parameters: where they say it is."""
    if isinstance(blank, Nothing):
        return NOTHING
    if alike and not isinstance(params.intercept, Nothing):
        return replace(params.intercept, total=blank.total)
    return replace(blank, origin=intercept_mean(params))


def intercept_variance(params: GaussianParams) -> Float:
    """(column) the variance of the intercept."""
    if isinstance(params.intercept, Nothing):
        return np.zeros(params.noise.size)
    made = params.intercept.error * params.noise
    for g, group in enumerate(params.groups()):
        made[group.columns] += ((params.intercept.centre[g] @ group.basis) ** 2 @ group.shrink)[group.level]
    return made


@dataclass(frozen=True)
class Moments:
    """Moments of q(A) that a step needs more than once.

    `gram` (group, feature, feature) sums E[A_d' A_d] / noise_d over the columns of a group
    (linear-gaussian.md 4), `second` (feature) sums E A_kd^2 over all columns.
    """

    gram: Float
    second: Float


_last: tuple[tuple[Array, ...], Moments] | None = None


def moments(params: GaussianParams) -> Moments:
    """The moments, kept for as long as q(A) and the noise are the same: the update of a step, its score and
    the rows of the next one need them."""
    global _last  # replaced as a whole: threads at worst compute it twice
    told = (params.mean, params.basis, params.spectrum, params.noise, params.group)
    held = _last
    if held is None or any(one is not other for one, other in zip(held[0], told, strict=True)):
        held = _last = told, _moments(params)
    return held[1]


def _moments(params: GaussianParams) -> Moments:
    gamma, second = np.empty_like(params.basis), np.einsum("kd,kd->k", params.mean, params.mean)
    for g, group in enumerate(params.groups()):
        a, b = params.mean[:, group.columns], group.basis
        one = len(group.noise) == 1
        gamma[g] = a @ a.T / group.noise if one else (a / params.noise[group.columns]) @ a.T
        gamma[g] += (b * (group.shrink @ (group.count / group.noise))) @ b.T
        second += variance_along(b, group.shrink @ group.count)
    return Moments(gamma, second)


def precision_gram(params: GaussianParams) -> Float:
    """Gamma (group, feature, feature): sum_d E[A_d' A_d] / noise_d over a group's columns."""
    return moments(params).gram


def variance(params: GaussianParams) -> Float:
    """(feature, column) variances of the entries of A under q."""
    made = np.empty_like(params.mean)
    for group in params.groups():
        made[:, group.columns] = variance_along(group.basis, group.shrink)[:, group.level]
    return made


def second_moment(params: GaussianParams) -> Float:
    """(feature) sum over columns of E A_kd^2."""
    return moments(params).second


@dataclass(frozen=True)
class Group:
    """Columns that share a Gram matrix; they differ in their noise, which takes few values or many.

    `shrink` (feature, level) is 1 / (1 + e / noise); column i is at `level[i]`.
    """

    columns: Columns
    basis: Float
    noise: Float
    level: NDArray[np.intp]
    count: Float
    shrink: Float


def columns_of(params: GaussianParams) -> list[Columns]:
    """The columns of each group; a slice when there is one, which copies nothing."""
    if len(params.basis) == 1:
        return [slice(None)]
    return [np.flatnonzero(params.group == g) for g in range(len(params.spectrum))]


def _levels(noise: Float) -> tuple[Float, NDArray[np.intp], Float]:
    """Distinct values of the noise, which of them each column has, and how many columns have it."""
    if (noise == noise[:1]).all():
        return noise[:1], np.zeros(noise.size, np.intp), np.asarray([float(noise.size)])
    found, level, count = np.unique(noise, return_inverse=True, return_counts=True)
    return found, level, count.astype(np.float64)
