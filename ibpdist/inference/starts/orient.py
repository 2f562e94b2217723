"""Which sources are complements of features: the ones that leave no intercept (starts-and-moves.md 6).

x = b0 + sum_k z_k a_k with the columns as found; complementing the set f turns a_k into -a_k
there and b0 into b0 + sum_{k in f} a_k, which is zero for the true set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts.flips import descend, first_guess

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Sets = NDArray[np.bool_]

_STARTS = 10


def regression(x: Matrix, z: Matrix) -> tuple[Matrix, Vector]:
    """Dictionary (feature, column) and intercept (column) of x (column, row) on z (feature, row)."""
    mean, share = x.mean(1), z.mean(1)
    centred = z - share[:, None]
    gram = centred @ centred.T
    a = np.linalg.lstsq(gram, centred @ (x - mean[:, None]).T, rcond=None)[0]
    return a, mean - share @ a


def orientations(a: Matrix, intercept: Vector, rng: np.random.Generator, best: int = 3) -> Sets:
    """(set, feature) the sets f with the least |b0 + sum_{k in f} a_k|^2 found, the least first.

    Descent from the first guess and from random sets.
    """
    gram, linear = a @ a.T, a @ intercept
    starts = [first_guess(gram, linear), *(rng.random((_STARTS, len(a))) < 0.5)]
    found = np.unique(np.array([descend(gram, linear, f) for f in starts]), axis=0)
    order = np.argsort([objective(a, intercept, f) for f in found], kind="stable")
    made: Sets = found[order[:best]]
    return made


def objective(a: Matrix, intercept: Vector, f: Sets) -> float:
    """|b0 + sum_{k in f} a_k|^2."""
    rest = intercept + f @ a
    return float(rest @ rest)
