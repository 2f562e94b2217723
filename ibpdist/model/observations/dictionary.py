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

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.model.observations.gaussian_params import (
    GaussianParams,
    intercept_mean,
)
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.intercept import Intercept
from ibpdist.model.observations.rotation import Columns, Family, Rotation

Float = NDArray[np.float64]


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
        intercept=_known_intercept(params, features),
    )


def _known_intercept(params: GaussianParams, features: int) -> Intercept | Nothing:
    """The mean of the intercept, whatever features there are."""
    if isinstance(params.intercept, Nothing):
        return NOTHING
    centre, error = np.zeros((len(params.basis), features)), np.zeros(params.noise.size)
    return replace(params.intercept, origin=intercept_mean(params), centre=centre, error=error)


def residual(params: GaussianParams, sums: GaussianSums) -> Float:
    """(column) E |x_d - Y A_d|^2 over the cells that count, from the sums alone (linear-gaussian.md 7)."""
    made, sums = np.array(sums.squares(params), dtype=np.float64), sums.about_means(params)
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
    weight, squares, sums = 1 / params.noise, sums.squares(params), sums.about_means(params)
    pulled = np.einsum("kd,kd->d", params.mean, sums.cross) @ weight
    found = squares @ weight - 2 * pulled
    return max(float(found + sums.spread(params)), 0.0)


def _joined(parts: list[tuple[Columns, Float]]) -> Float:
    """(feature, column) from the columns of each group."""
    if len(parts) == 1:
        return parts[0][1]
    made = np.empty((len(parts[0][1]), sum(part.shape[1] for _, part in parts)))
    for columns, part in parts:
        made[:, columns] = part
    return made


def _entropy(params: GaussianParams) -> float:
    """Entropy of q(A): log|Sigma_d| = sum log s_k - sum log(1 + e_j / noise_d)."""
    total = params.entropy_of_basis()
    for group in params.groups():
        total += 0.5 * float(np.log(group.shrink).sum(axis=0) @ group.count)
    return total
