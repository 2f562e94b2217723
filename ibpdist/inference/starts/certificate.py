"""Whether a binary column lies in the signal space: its regression leaves only the known noise.

For a true column z = mean + c (y - noise), so the residual of regressing z on y has mean
square sum_i n_i c_i^2; a wrong split leaves much more (starts-and-moves.md 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ibpdist.inference.starts.contrast import split

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Binary = NDArray[np.bool_]

RATIO, ERROR, _LEAST_ROWS = 2.0, 0.06, 2
_ROUNDS = 10


@dataclass(frozen=True)
class Space:
    """Centred quasi-whitened rows y (component, row), their noise (component), and Y Y' factored."""

    y: Matrix
    noise: Vector
    factor: tuple[Matrix, bool]

    @property
    def rows(self) -> int:
        return int(self.y.shape[1])


@dataclass(frozen=True)
class Columns:
    """Binary columns z (column, row), their directions (column, component), and how they pass."""

    z: Binary
    directions: Matrix
    ratio: Vector
    certified: Binary

    def take(self, which: NDArray[np.intp] | Binary) -> Columns:
        return Columns(self.z[which], self.directions[which], self.ratio[which], self.certified[which])


def space(y: Matrix, noise: Vector) -> Space:
    """Centre rows and prepare regression on them."""
    y = y - y.mean(1, keepdims=True)
    gram = y @ y.T
    ridge = np.finfo(float).eps * max(float(np.trace(gram)), 1.0)
    return Space(y, noise, cho_factor(gram + ridge * np.eye(len(y)), lower=True))


def regress(z: Binary | Matrix, into: Space) -> Matrix:
    """(column, component) coefficients of columns z (column, row) on y and a constant."""
    cross = into.y @ z.T.astype(float)
    made: Matrix = cho_solve(into.factor, cross).T
    return made


def certify(z: Binary, into: Space) -> Columns:
    """Ratio of the residual to its expectation, and whether each column passes."""
    rows, share = into.rows, z.mean(1)
    c = regress(z, into)
    explained = np.einsum("kc,kc->k", c, (into.y @ z.T.astype(float)).T)
    error = np.maximum(rows * share * (1 - share) - explained, 0.0)
    expected = (rows - 1 - len(into.y)) * (c**2 @ into.noise)
    ratio = np.divide(error, expected, out=np.full(len(z), np.inf), where=expected > 0)
    count = z.sum(1)
    enough = (count >= _LEAST_ROWS) & (rows - count >= _LEAST_ROWS)
    return Columns(z, c, ratio, (ratio < RATIO) & (error / rows < ERROR) & enough)


def harden(directions: Matrix, into: Space) -> Binary:
    """Split along each direction and regress the split, until the splits stay (at most 10 rounds)."""
    z = split(directions @ into.y)[0]
    open_ = np.arange(len(z))
    for _ in range(_ROUNDS):
        new = split(regress(z[open_], into) @ into.y)[0]
        moved = np.any(new != z[open_], axis=1)
        z[open_] = new
        open_ = open_[moved]
        if open_.size == 0:
            break
    return z


def distinct(z: Binary) -> NDArray[np.intp]:
    """First places of the columns that differ up to complement, in rising order."""
    same = np.packbits(z ^ z[:, :1], axis=1)
    return np.sort(np.unique(same, axis=0, return_index=True)[1])
