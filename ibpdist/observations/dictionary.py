"""q(A), the normal factor of the dictionary (feature matrix): its records, solution and moments.

Column d of A has q = N(mean_d, Sigma_d). Columns that are missing in the same rows form a
group and share the Gram matrix G_g = sum_n E[y_n' y_n], so with noise psi_d and prior
variances s (feature), Sigma_d = (G_g / psi_d + diag(1/s))^-1 for all columns of a group
comes from one eigendecomposition: with r = sqrt(s) and r G_g r = U diag(e) U',

    Sigma_d = B diag(1 / (1 + e / psi_d)) B',   B = diag(r) U      (vibp 9.2, factors.md 2)
    mean_d  = B diag(1 / (psi_d + e)) B' P_d.

`basis` holds B and `spectrum` e, per group. The factorised family (vibp 2.2) has the same mean
and U = I, e = diag(r G r). A basis of zeros is a dictionary known exactly.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ibpdist.structs import Array, dims, replace, struct

Float = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


class Family(StrEnum):
    """What q(A) may depend on: all features of a column jointly, or each alone."""

    STRUCTURED = "structured"
    FACTORISED = "factorised"


@struct
class GaussianParams:
    """Global parameters of the Gaussian observation.

    `group` (column) maps columns to groups. `cells`, `squares` (column): number of cells that
    count, and the sum of squares of the observed ones. `latent` is 1 when missing cells carry
    a factor of their own. `unit` is the typical variance of a cell. `entropy` is that of q(A).
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


def solve(params: GaussianParams, sums: GaussianSums, family: Family) -> GaussianParams:
    """The exact maximiser of the bound over q(A), given the sums and the variances."""
    root = np.sqrt(params.scale)
    groups, features = params.spectrum.shape
    basis, spectrum = np.empty((groups, features, features)), np.empty((groups, features))
    mean, entropy = np.empty_like(params.mean), 0.0
    for g in range(groups):
        columns = np.flatnonzero(params.group == g)
        psi = params.noise[columns]
        scaled = root[:, None] * sums.gram[g] * root
        e, u = np.linalg.eigh(scaled)
        e, b = np.maximum(e, 0.0), root[:, None] * u
        mean[:, columns] = b @ ((b.T @ sums.cross[:, columns]) / (psi + e[:, None]))
        if family is Family.FACTORISED:
            e, b = np.diagonal(scaled), np.diag(root)
        basis[g], spectrum[g] = b, e
        entropy -= 0.5 * np.log1p(e[:, None] / psi).sum()
    entropy += 0.5 * params.noise.size * float((LOG_2PI + 1 + np.log(params.scale)).sum())
    return replace(params, mean=mean, basis=basis, spectrum=spectrum, entropy=np.asarray(entropy))


def draw(params: GaussianParams, rng: np.random.Generator) -> GaussianParams:
    """A dictionary drawn from q(A), known exactly from then on."""
    normals = rng.standard_normal(params.mean.shape)
    mean = params.mean.copy()
    for g, columns, shrink in _by_group(params):
        mean[:, columns] += params.basis[g] @ (np.sqrt(shrink) * normals[:, columns])
    none = np.zeros_like(params.basis)
    return replace(
        params, mean=mean, basis=none, spectrum=np.zeros_like(params.spectrum), entropy=np.zeros(())
    )


def precision_gram(params: GaussianParams) -> Float:
    """Gamma (group, feature, feature): sum_d E[A_d' A_d] / noise_d over a group's columns (vibp 9.1)."""
    gamma = np.empty_like(params.basis)
    for g, columns, shrink in _by_group(params):
        a, psi, b = params.mean[:, columns], params.noise[columns], params.basis[g]
        gamma[g] = (a / psi) @ a.T + (b * (shrink / psi).sum(axis=1)) @ b.T
    return gamma


def variance(params: GaussianParams) -> Float:
    """(feature, column) variances of the entries of A under q."""
    made = np.empty_like(params.mean)
    for g, columns, shrink in _by_group(params):
        made[:, columns] = params.basis[g] ** 2 @ shrink
    return made


def residual(params: GaussianParams, sums: GaussianSums) -> Float:
    """(column) E |x_d - Y A_d|^2 over the cells that count, from the sums alone (vibp 9.1)."""
    made = np.asarray(params.squares + sums.filled, dtype=np.float64)
    for g, columns, shrink in _by_group(params):
        a, b, gram = params.mean[:, columns], params.basis[g], sums.gram[g]
        fit = np.einsum("kd,kd->d", a, gram @ a - 2 * sums.cross[:, columns])
        spread = np.einsum("kj,kj->j", b, gram @ b)
        made[columns] += fit + spread @ shrink
    return np.maximum(made, 0.0)


def _by_group(params: GaussianParams) -> list[tuple[int, NDArray[np.intp], Float]]:
    """For each group: its index, its columns and 1 / (1 + e / psi_d) (feature, column of group)."""
    made = []
    for g in range(params.spectrum.shape[0]):
        columns = np.flatnonzero(params.group == g)
        made.append((g, columns, 1.0 / (1.0 + params.spectrum[g][:, None] / params.noise[columns])))
    return made
