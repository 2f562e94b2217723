"""q(A), the normal factor of the dictionary (feature matrix), and its moments.

Column d of A has q = N(mean_d, Sigma_d). Columns that are missing in the same rows form a
group and share the Gram matrix G_g = sum_n E[y_n' y_n], so with noise psi_d and prior
variances s (feature), Sigma_d = (G_g / psi_d + diag(1/s))^-1 for all columns of a group
comes from one eigendecomposition: with r = sqrt(s) and r G_g r = U diag(e) U',

    Sigma_d = B diag(1 / (1 + e / psi_d)) B',   B = diag(r) U.

`basis` holds B and `spectrum` e, per group. A basis of zeros is a dictionary known exactly.
"""

from __future__ import annotations

from ibpdist.structs import Array, dims, struct


@struct
class GaussianParams:
    """Global parameters of the Gaussian observation.

    `group` (column) maps columns to groups; `cells` and `squares` (column) are the number of
    observed cells and their sum of squares.
    """

    mean: Array = dims("feature column")
    basis: Array = dims("group feature feature_")
    spectrum: Array = dims("group feature")
    noise: Array = dims("column")
    scale: Array = dims("feature")
    group: Array = dims("column")
    cells: Array = dims("column")
    squares: Array = dims("column")


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
