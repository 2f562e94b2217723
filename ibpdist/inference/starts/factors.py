"""The start of factors with weights: principal axes with all features, turned to be simple.

See starts-and-moves.md 8. Which rotation a fit of weighted features ends in hardly depends on where it
begins, but features that are not there at the start do not come back: so it begins with as many as are
provided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_LEAST_SHARE, _LEAST_NOISE = 1e-3, 0.02
_TURNS, _STILL = 50, 1e-6


@dataclass(frozen=True)
class Loadings:
    """A dictionary (feature, column) and the noise (column) that it leaves."""

    mean: Matrix
    noise: Vector


def most(rows: int, columns: int, features: int) -> int:
    """How many features can begin: the last directions of the data hold their noise."""
    return max(1, min(features, rows - 2, columns - 2))


def loadings(values: Vector, axes: Matrix, variances: Vector) -> Loadings:
    """From leading eigenvalues (feature, falling) and eigenvectors (column, feature) of the second
    moments X'X / N of the data, and their diagonal (column).

    The part of an eigenvalue that the noise explains, the mean of those left out, is taken off.
    """
    left = max(float(variances.sum() - values.sum()), 0.0) / max(len(variances) - len(values), 1)
    size = np.sqrt(np.maximum(values - left, _LEAST_SHARE * values))
    noise = np.maximum(variances - np.square(axes) @ values, _LEAST_NOISE * variances)
    noise = np.where(noise > 0, noise, 1.0)
    root = np.sqrt(noise)
    return Loadings(varimax(size[:, None] * axes.T / root) * root, noise)


def varimax(loading: Matrix) -> Matrix:
    """(feature, column) turned to where the squares of each feature's entries vary most (Kaiser 1958)."""
    b = loading.T
    turn, reached = np.eye(b.shape[1]), 0.0
    for _ in range(_TURNS):
        y = b @ turn
        u, s, v = np.linalg.svd(b.T @ (y**3 - y * np.square(y).mean(axis=0)))
        turn = u @ v
        if s.sum() <= reached * (1 + _STILL):
            break
        reached = float(s.sum())
    made: Matrix = turn.T @ loading
    return made


def leading(products: Matrix, probe: Matrix, count: int) -> tuple[Vector, Matrix]:
    """`count` leading eigenvalues, falling, and eigenvectors (column, feature) of a symmetric matrix in the
    span of an orthonormal `probe` (column, component), from its products with it (Rayleigh and Ritz)."""
    square = probe.T @ products
    values, turn = np.linalg.eigh((square + square.T) / 2)
    return np.maximum(values[::-1][:count], 0.0), probe @ turn[:, ::-1][:, :count]
