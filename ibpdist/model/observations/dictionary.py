"""q(A), the normal factor of the dictionary (feature matrix): its records, solution and moments.

Column d of A has q = N(mean_d, Sigma_d). Columns that are missing in the same rows form a
group and share the Gram matrix G_g = sum_n E[y_n' y_n], so with noise psi_d and prior
variances s (feature), Sigma_d = (G_g / psi_d + diag(1/s))^-1 for all columns of a group
comes from one eigendecomposition: with r = sqrt(s) and r G_g r = U diag(e) U',

    Sigma_d = B diag(1 / (1 + e / psi_d)) B',   B = diag(r) U      (linear-gaussian.md 6)
    mean_d  = B diag(1 / (psi_d + e)) B' P_d.

`basis` holds B and `spectrum` e, per group. The factorised family (linear-gaussian.md 2) has the same mean
and U = I, e = diag(r G r). A basis of zeros is a dictionary known exactly.

Where cells are missing in no pattern, every row has a Gram matrix of its own and so would every column
(`ScatteredParams`, linear-gaussian.md 9). There all columns share one basis, with a spectrum for each,
Sigma_d = B diag(1 / (1 + e_d / psi_d)) B', where e_dj is the sum of E (y B)_j^2 over the rows in which d is
visible; that is the optimum among the matrices with this basis. For the mean hidden cells are taken to be
what was expected of them before the step: then all columns have the Gram matrix of all rows, and the solution
is that above. What it scores is a lower bound of the objective that touches it at the old mean, so neither
ever falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Array, Named, dims, replace, struct
from ibpdist.model.observations.covariance import shrink, variance_along
from ibpdist.model.observations.rotation import Columns, Family, Rotation, Scattered

Float = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


@struct("gaussian-params", since=1)
class GaussianParams:
    """Global parameters of the Gaussian observation.

    `group` (column) maps columns to groups. `cells`, `squares` (column): number of observed cells, and
    the sum of their squares. `unit` is the typical variance of a cell, `spread` (column) that of each
    column. `entropy` is that of q(A). `stretch` (feature): by how much the last update rescaled each feature;
    what rows have of it must be divided by that before it is used again.
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

    def groups(self) -> list[Group]:
        """The columns that share a Gram matrix."""
        made = []
        for g, columns in enumerate(_columns(self)):
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
        }

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

    def longer(self, lengths: Float) -> dict[str, Float]:
        """The fields that change when features are longer by `lengths` (feature)."""
        return {"basis": self.basis * lengths[:, None]}


@struct("scattered-params", since=1)
class ScatteredParams(GaussianParams):
    """Parameters where cells are missing in no pattern: one group of columns, which share their basis and
    have spectra of their own. The next pass measures the spectra in the basis `ahead` too, for it to be
    taken where it is better; one of zeros is not measured."""

    spectrum: Array = dims("column feature")
    ahead: Array = dims("feature feature_")

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

    def longer(self, lengths: Float) -> dict[str, Float]:
        return {**super().longer(lengths), "ahead": self.ahead * lengths[:, None]}


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
        for g, columns in enumerate(_columns(params)):
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


def rotations(params: GaussianParams, sums: GaussianSums, family: Family) -> list[Rotation]:
    """Each group of columns in the eigenbasis of its Gram matrix."""
    return sums.rotations(params, family)


def solve(params: GaussianParams, rotated: list[Rotation]) -> GaussianParams:
    """The exact maximiser of the bound over q(A), given the sums and the variances (linear-gaussian.md 6)."""
    made = replace(
        params,
        mean=_joined([(r.columns, r.mean(params.noise[r.columns])) for r in rotated]),
        **params.covariance(rotated),
    )
    return replace(made, entropy=np.asarray(_entropy(made)))


def draw(params: GaussianParams, rng: np.random.Generator) -> GaussianParams:
    """A dictionary drawn from q(A), known exactly from then on."""
    normals = rng.standard_normal(params.mean.shape)
    mean = params.mean.copy()
    for group in params.groups():
        shrunk = np.sqrt(group.shrink)[:, group.level] * normals[:, group.columns]
        mean[:, group.columns] += group.basis @ shrunk
    return known(params, mean, params.scale)


def known(params: GaussianParams, mean: Float, scale: Float) -> GaussianParams:
    """A dictionary (feature, column) known exactly, whatever features there were; variances as they were."""
    features = len(mean)
    return replace(
        params,
        mean=mean,
        **params.certain(features),
        entropy=np.zeros(()),
        scale=scale,
        stretch=np.ones(features),
    )


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


def residual(params: GaussianParams, sums: GaussianSums) -> Float:
    """(column) E |x_d - Y A_d|^2 over the cells that count, from the sums alone (linear-gaussian.md 7)."""
    made = np.array(sums.squares(params), dtype=np.float64)
    for g, group in enumerate(params.groups()):
        a = params.mean[:, group.columns]
        slope = sums.gram[g] @ a
        for _ in range(2):  # in place: the tables are large
            slope -= sums.cross[:, group.columns]
        fit = np.einsum("kd,kd->d", a, slope)
        made[group.columns] += fit + sums.uncertain(g, group, params)[group.level]
    return np.maximum(made, 0.0)


def misfit(params: GaussianParams, sums: GaussianSums) -> float:
    """sum_d E |x_d - Y A_d|^2 / noise_d, as `residual` has it, without a table of residuals."""
    weight = 1 / params.noise
    pulled = np.einsum("kd,kd->d", params.mean, sums.cross) @ weight
    found = sums.squares(params) @ weight - 2 * pulled
    return max(float(found + sums.spread(params)), 0.0)


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


def _columns(params: GaussianParams) -> list[Columns]:
    """The columns of each group; a slice when there is one, which copies nothing."""
    if len(params.basis) == 1:
        return [slice(None)]
    return [np.flatnonzero(params.group == g) for g in range(len(params.spectrum))]


def _joined(parts: list[tuple[Columns, Float]]) -> Float:
    """(feature, column) from the columns of each group."""
    if len(parts) == 1:
        return parts[0][1]
    made = np.empty((len(parts[0][1]), sum(part.shape[1] for _, part in parts)))
    for columns, part in parts:
        made[:, columns] = part
    return made


def _levels(noise: Float) -> tuple[Float, NDArray[np.intp], Float]:
    """Distinct values of the noise, which of them each column has, and how many columns have it."""
    if (noise == noise[:1]).all():
        return noise[:1], np.zeros(noise.size, np.intp), np.asarray([float(noise.size)])
    found, level, count = np.unique(noise, return_inverse=True, return_counts=True)
    return found, level, count.astype(np.float64)


def _entropy(params: GaussianParams) -> float:
    """Entropy of q(A): log|Sigma_d| = sum log s_k - sum log(1 + e_j / noise_d)."""
    total = params.entropy_of_basis()
    for group in params.groups():
        total += 0.5 * float(np.log(group.shrink).sum(axis=0) @ group.count)
    return total
