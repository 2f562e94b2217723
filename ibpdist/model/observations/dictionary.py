"""q(A), the normal factor of the dictionary (feature matrix): its records, solution and moments.

Column d of A has q = N(mean_d, Sigma_d). Columns that are missing in the same rows form a
group and share the Gram matrix G_g = sum_n E[y_n' y_n], so with noise psi_d and prior
variances s (feature), Sigma_d = (G_g / psi_d + diag(1/s))^-1 for all columns of a group
comes from one eigendecomposition: with r = sqrt(s) and r G_g r = U diag(e) U',

    Sigma_d = B diag(1 / (1 + e / psi_d)) B',   B = diag(r) U      (linear-gaussian.md 6)
    mean_d  = B diag(1 / (psi_d + e)) B' P_d.

`basis` holds B and `spectrum` e, per group. The factorised family (linear-gaussian.md 2) has the same mean
and U = I, e = diag(r G r). A basis of zeros is a dictionary known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Array, dims, replace, struct
from ibpdist.model.observations.rotation import Columns, Family, Rotation

Float = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


@struct("gaussian-params", since=1)
class GaussianParams:
    """Global parameters of the Gaussian observation.

    `group` (column) maps columns to groups. `cells`, `squares` (column): number of cells that
    count, and the sum of squares of the observed ones. `latent` is 1 when missing cells carry
    a factor of their own. `unit` is the typical variance of a cell, `spread` (column) that of each
    column. `entropy` is that of q(A). `stretch` (feature): the last update stretched the dictionary by
    so much, and what rows have of a feature must be divided by it before it is used again.
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
    latent: Array = dims()
    unit: Array = dims()
    spread: Array = dims("column")
    stretch: Array = dims("feature")


@struct
class GaussianSums:
    """Sums of a block of rows.

    `gram` is sum E[y' y] over the rows in which a group of columns is observed, `cross` is
    sum E[y]' x. Cells that are missing and carry a factor of their own add their second
    moments to `filled` and their entropy to `filled_entropy`.
    """

    rows: Array = dims()
    gram: Array = dims("group feature feature_")
    cross: Array = dims("feature column")
    filled: Array = dims("column")
    filled_entropy: Array = dims()


def rotations(params: GaussianParams, sums: GaussianSums, family: Family) -> list[Rotation]:
    """Each group of columns in the eigenbasis of its Gram matrix."""
    made = []
    for g, columns in enumerate(_columns(params)):
        squares = (params.squares + sums.filled)[columns]
        made.append(Rotation.of(columns, sums.gram[g], sums.cross[:, columns], squares, params.scale, family))
    return made


def solve(params: GaussianParams, rotated: list[Rotation]) -> GaussianParams:
    """The exact maximiser of the bound over q(A), given the sums and the variances (linear-gaussian.md 6)."""
    made = replace(
        params,
        mean=_joined([(r.columns, r.mean(params.noise[r.columns])) for r in rotated]),
        basis=np.stack([r.basis() for r in rotated]),
        spectrum=np.stack([r.own_spectrum for r in rotated]),
    )
    return replace(made, entropy=np.asarray(_entropy(made)))


def draw(params: GaussianParams, rng: np.random.Generator) -> GaussianParams:
    """A dictionary drawn from q(A), known exactly from then on."""
    normals = rng.standard_normal(params.mean.shape)
    mean = params.mean.copy()
    for group in _groups(params):
        shrunk = np.sqrt(group.shrink)[:, group.level] * normals[:, group.columns]
        mean[:, group.columns] += group.basis @ shrunk
    return known(params, mean, params.scale)


def known(params: GaussianParams, mean: Float, scale: Float) -> GaussianParams:
    """A dictionary (feature, column) known exactly, whatever features there were; variances as they were."""
    groups, features = len(params.spectrum), len(mean)
    return replace(
        params,
        mean=mean,
        basis=np.zeros((groups, features, features)),
        spectrum=np.zeros((groups, features)),
        entropy=np.zeros(()),
        scale=scale,
        stretch=np.ones(features),
    )


@lru_cache(maxsize=1)
def precision_gram(params: GaussianParams) -> Float:
    """Gamma (group, feature, feature): sum_d E[A_d' A_d] / noise_d over a group's columns.

    See linear-gaussian.md 4. Kept, since the score of a step and the rows of the next one need the same.
    """
    gamma = np.empty_like(params.basis)
    for g, group in enumerate(_groups(params)):
        a, b = params.mean[:, group.columns], group.basis
        one = len(group.noise) == 1
        gamma[g] = a @ a.T / group.noise if one else (a / params.noise[group.columns]) @ a.T
        gamma[g] += (b * (group.shrink @ (group.count / group.noise))) @ b.T
    return gamma


def variance(params: GaussianParams) -> Float:
    """(feature, column) variances of the entries of A under q."""
    made = np.empty_like(params.mean)
    for group in _groups(params):
        made[:, group.columns] = (group.basis**2 @ group.shrink)[:, group.level]
    return made


def second_moment(params: GaussianParams) -> Float:
    """(feature) sum over columns of E A_kd^2."""
    made: Float = np.einsum("kd,kd->k", params.mean, params.mean)
    for group in _groups(params):
        made += group.basis**2 @ (group.shrink @ group.count)
    return made


def residual(params: GaussianParams, sums: GaussianSums) -> Float:
    """(column) E |x_d - Y A_d|^2 over the cells that count, from the sums alone (linear-gaussian.md 7)."""
    made = np.asarray(params.squares + sums.filled, dtype=np.float64)
    for g, group in enumerate(_groups(params)):
        a, b, gram = params.mean[:, group.columns], group.basis, sums.gram[g]
        slope = gram @ a
        for _ in range(2):  # in place: the tables are large
            slope -= sums.cross[:, group.columns]
        fit = np.einsum("kd,kd->d", a, slope)
        spread = np.einsum("kj,kj->j", b, gram @ b) @ group.shrink
        made[group.columns] += fit + spread[group.level]
    return np.maximum(made, 0.0)


def misfit(params: GaussianParams, sums: GaussianSums) -> float:
    """sum_d E |x_d - Y A_d|^2 / noise_d, as `residual` has it, without a table of residuals."""
    weight = 1 / params.noise
    pulled = np.einsum("kd,kd->d", params.mean, sums.cross) @ weight
    found = (params.squares + sums.filled) @ weight - 2 * pulled
    return max(float(found + np.vdot(sums.gram, precision_gram(params))), 0.0)


@dataclass(frozen=True)
class _Group:
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
    if len(params.spectrum) == 1:
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


def _groups(params: GaussianParams) -> list[_Group]:
    made = []
    for g, columns in enumerate(_columns(params)):
        noise, level, count = _levels(params.noise[columns])
        shrink = 1.0 / (1.0 + params.spectrum[g][:, None] / noise)
        made.append(_Group(columns, params.basis[g], noise, level, count, shrink))
    return made


def _levels(noise: Float) -> tuple[Float, NDArray[np.intp], Float]:
    """Distinct values of the noise, which of them each column has, and how many columns have it."""
    if (noise == noise[:1]).all():
        return noise[:1], np.zeros(noise.size, np.intp), np.asarray([float(noise.size)])
    found, level, count = np.unique(noise, return_inverse=True, return_counts=True)
    return found, level, count.astype(np.float64)


def _entropy(params: GaussianParams) -> float:
    """Entropy of q(A): log|Sigma_d| = sum log s_k - sum log(1 + e_j / noise_d)."""
    total = 0.5 * params.noise.size * float((LOG_2PI + 1 + np.log(params.scale)).sum())
    for group in _groups(params):
        total += 0.5 * float(np.log(group.shrink).sum(axis=0) @ group.count)
    return total
