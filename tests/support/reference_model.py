"""Reference: the record of the model and q, the moments of y and A, the statistics.

Letters are those of the mathematics: n row, k and j feature, d column;

    nu (N, K)     q(z_nk = 1)
    m, s2 (N, K)  q(w_nk | z_nk = 1) = N(m, s2); m = 1 and s2 = 0 are unit weights
    phi (K, D), sigma (D, K, K)   q(A_.d) = N(phi_.d, sigma_d)
    tau (K, 2)    Beta factor of each prevalence (finite) or stick (infinite)
    psi (D,)      noise variances;  s (K,) prior variances of the rows of A
    mask (N, D)   True where a cell of x is observed

When z = 0 the factor of w is its prior, so E y = nu m and E y^2 = nu (m^2 + s2) for y = z w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class State:
    """Data, hyperparameters and every parameter of q.

    `prior` is "finite" or "sticks"; `log_off` says what stands for E log(1 - pi) of the sticks:
    "convex" (with `terms` exact terms), "multinomial" or "exact"; `tail` adds the features
    beyond K of the Indian buffet process. With `fill_mean` and `fill_var` (N, D) missing cells
    are latent with factors N(fill_mean, fill_var); without, they are left out. `cost` (N, K) is what
    q(w | z = 1) costs where it is not normal, and `size` (N, K) is E[|w| | z = 1] there.
    """

    x: Floats
    mask: Bools
    nu: Floats
    m: Floats
    s2: Floats
    phi: Floats
    sigma: Floats
    tau: Floats
    psi: Floats
    s: Floats
    mass: float
    prior: str = "finite"
    weights: str = "unit"
    log_off: str = "convex"
    terms: int = 50
    tail: bool = False
    fill_mean: Floats | None = None
    fill_var: Floats | None = None
    cost: Floats | None = None
    size: Floats | None = None


def cells(state: State) -> tuple[Floats, Floats, Bools]:
    """E x, Var x and which cells enter the likelihood: all of them when missing ones are latent."""
    if state.fill_mean is None or state.fill_var is None:
        return np.where(state.mask, state.x, 0.0), np.zeros(state.x.shape), state.mask
    mean = np.where(state.mask, state.x, state.fill_mean)
    variance = np.where(state.mask, 0.0, state.fill_var)
    return mean, variance, np.ones(state.mask.shape, dtype=bool)


def mean_y(nu: Floats, m: Floats) -> Floats:
    """(N, K) E y."""
    return nu * m


def square_y(nu: Floats, m: Floats, s2: Floats) -> Floats:
    """(N, K) E y^2."""
    return nu * (m**2 + s2)


def pair_y(nu: Floats, m: Floats, s2: Floats, n: int, k: int, j: int) -> float:
    """E y_nk y_nl; different features of a row are independent under q."""
    if k == j:
        return float(nu[n, k] * (m[n, k] ** 2 + s2[n, k]))
    return float(nu[n, k] * m[n, k] * nu[n, j] * m[n, j])


def pair_a(phi: Floats, sigma: Floats, d: int, k: int, j: int) -> float:
    """E A_kd A_ld."""
    return float(phi[k, d] * phi[j, d] + sigma[d, k, j])


def counts(nu: Floats) -> Floats:
    """(K,) sum_n E z_nk."""
    return np.array([sum(nu[n, k] for n in range(nu.shape[0])) for k in range(nu.shape[1])])


def gram(nu: Floats, m: Floats, s2: Floats, mask: Bools) -> Floats:
    """(D, K, K) G^(d) = sum over rows observed in column d of E y_n' y_n (linear-gaussian.md 9)."""
    (rows, features), columns = nu.shape, mask.shape[1]
    out = np.zeros((columns, features, features))
    for d in range(columns):
        for k in range(features):
            for j in range(features):
                out[d, k, j] = sum(pair_y(nu, m, s2, n, k, j) for n in range(rows) if mask[n, d])
    return out


def cross(nu: Floats, m: Floats, x: Floats, mask: Bools) -> Floats:
    """(K, D) P_kd = sum over rows observed in column d of E y_nk x_nd."""
    (rows, features), columns = nu.shape, mask.shape[1]
    out = np.zeros((features, columns))
    for k in range(features):
        for d in range(columns):
            out[k, d] = sum(nu[n, k] * m[n, k] * x[n, d] for n in range(rows) if mask[n, d])
    return out


def cell_error(state: State, n: int, d: int) -> float:
    """E (x_nd - sum_k y_nk A_kd)^2, with the variance of a latent x_nd."""
    x, variance, _ = cells(state)
    features = state.nu.shape[1]
    total = x[n, d] ** 2 + variance[n, d]
    for k in range(features):
        total -= 2 * x[n, d] * state.nu[n, k] * state.m[n, k] * state.phi[k, d]
        for j in range(features):
            moment = pair_y(state.nu, state.m, state.s2, n, k, j)
            total += moment * pair_a(state.phi, state.sigma, d, k, j)
    return float(total)


def column_error(state: State) -> Floats:
    """(D,) E_d = sum over the cells of column d of E (x_nd - y_n A_.d)^2."""
    mask = cells(state)[2]
    rows, columns = mask.shape
    return np.array(
        [sum(cell_error(state, n, d) for n in range(rows) if mask[n, d]) for d in range(columns)], dtype=float
    )


def column_cells(state: State) -> Floats:
    """(D,) number of cells of each column that enter the likelihood."""
    return cells(state)[2].sum(axis=0).astype(float)
