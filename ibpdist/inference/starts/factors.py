"""The start of factors with weights: principal axes with all features, turned to be simple.

See starts-and-moves.md 8. Which rotation a fit of weighted features ends in hardly depends on where it
begins, but features that are not there at the start do not come back: so it begins with as many as are
provided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts.independent import whitened

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_LEAST_SHARE, _LEAST_NOISE = 1e-3, 0.02
_TURNS, _STILL = 50, 1e-6
_NUMBERS = 1 << 22
"""Numbers in the matrices of rows that are solved at once."""


@dataclass(frozen=True)
class Loadings:
    """A dictionary (feature, column) and the noise (column) that it leaves."""

    mean: Matrix
    noise: Vector


@dataclass(frozen=True)
class Axes:
    """Leading eigenvalues (feature, falling) and eigenvectors (column, feature) of the second moments of the
    data about `origin` in units that are multiplied by `unit`, their diagonal `variances` (column), and all
    eigenvalues that are `known`."""

    values: Vector
    vectors: Matrix
    variances: Vector
    unit: Vector
    origin: Vector
    known: Vector

    def simple(self) -> Loadings:
        """Turned to be simple; in the units of the axes."""
        return loadings(self.values, self.vectors, self.variances)

    def turned(self, turn: Matrix, off: Vector) -> tuple[Loadings, Vector]:
        """The first axes turned by `turn` (component, component_), and where rows are whose scores are `off`
        (component); in the units of the data."""
        plain, count = unturned(self.values, self.vectors, self.variances), len(turn)
        first = turn @ plain.mean[:count]
        mean = np.concatenate([first, plain.mean[count:]])
        origin = self.origin + (off @ first) / self.unit
        return Loadings(mean / self.unit, plain.noise / self.unit**2), origin

    def quiet(self, x: Matrix, observed: Matrix) -> NDArray[np.bool_]:
        """(row) whether a row is in the half that leaves the least beside the axes, cell by cell."""
        away = np.where(observed, (x - self.origin) * self.unit, 0.0)
        left = np.square(away).sum(axis=1) - np.square(away @ self.vectors).sum(axis=1)
        each = left / np.maximum(observed.sum(axis=1), 1)
        found: NDArray[np.bool_] = each <= np.median(each)
        return found

    def scores(self, x: Matrix, observed: Matrix, count: int) -> Matrix:
        """(component, row) scores of rows on the first axes, centred and of covariance I."""
        away = np.where(observed, (x - self.origin) * self.unit, 0.0)
        if observed.all():
            found = away @ self.vectors[:, :count]
        else:
            plain = unturned(self.values, self.vectors, self.variances)
            found = regressed_scores(plain.mean[:count], plain.noise, away, observed)
        return whitened(found.T)[0]


def most(rows: int, columns: int, features: int) -> int:
    """How many features can begin: the last directions of the data hold their noise."""
    return max(1, min(features, rows - 2, columns - 2))


def loadings(values: Vector, axes: Matrix, variances: Vector) -> Loadings:
    """From leading eigenvalues (feature, falling) and eigenvectors (column, feature) of the second
    moments X'X / N of the data, and their diagonal (column), turned to be simple."""
    plain = unturned(values, axes, variances)
    root = np.sqrt(plain.noise)
    return Loadings(varimax(plain.mean / root) * root, plain.noise)


def unturned(values: Vector, axes: Matrix, variances: Vector) -> Loadings:
    """The same along the axes.

    The part of an eigenvalue that the noise explains, the mean of those left out, is taken off.
    """
    left = max(float(variances.sum() - values.sum()), 0.0) / max(len(variances) - len(values), 1)
    size = np.sqrt(np.maximum(values - left, _LEAST_SHARE * values))
    noise = np.maximum(variances - np.square(axes) @ values, _LEAST_NOISE * variances)
    return Loadings(size[:, None] * axes.T, np.where(noise > 0, noise, 1.0))


def regressed_scores(loading: Matrix, noise: Vector, x: Matrix, observed: Matrix) -> Matrix:
    """(row, feature) mean of standard normal scores given the observed cells of each row."""
    features, scaled = len(loading), loading / noise
    pairs = (scaled[:, None] * loading[None]).reshape(features**2, -1).T
    made, step = np.empty((len(x), features)), max(1, _NUMBERS // max(features**2, 1))
    for at in range(0, len(x), step):
        rows = slice(at, at + step)
        inner = np.eye(features) + (observed[rows] @ pairs).reshape(-1, features, features)
        made[rows] = np.linalg.solve(inner, (x[rows] @ scaled.T)[:, :, None])[:, :, 0]
    return made


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
