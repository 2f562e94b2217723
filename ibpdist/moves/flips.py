"""Which signs bring a sum of vectors near zero: the search for an orientation, on a Gram matrix.

A set f of features complemented leaves the intercept b + sum_{k in f} a_k (starts.md 2 D). Its
squared length is |b|^2 + 2 v'f + f'Gf with G the Gram matrix of the a_k and v_k = b'a_k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Set = NDArray[np.bool_]


def descend(gram: Float, lean: Float, start: Set) -> tuple[Set, float]:
    """A set that no change of one or two members improves, from `start`; and 2 v'f + f'Gf there."""
    chosen, step = start.copy(), 0
    while step < 20 * len(lean):
        pair, gain = _best_change(gram, lean, chosen)
        if not gain < -1e-12 * float(np.trace(gram)):
            break
        chosen[list(pair)] ^= True
        step += 1
    return chosen, length(gram, lean, chosen)


def length(gram: Float, lean: Float, chosen: Set) -> float:
    """2 v'f + f'Gf."""
    return float(2 * lean[chosen].sum() + gram[np.ix_(chosen, chosen)].sum())


def first_guess(gram: Float, lean: Float) -> Set:
    """Members where the least squares solution of b + sum w_k a_k = 0 is above a half."""
    floor = 1e-10 * float(np.trace(gram)) + np.finfo(float).tiny
    found: Set = np.linalg.solve(gram + floor * np.eye(len(lean)), -lean) > 0.5
    return found


def _best_change(gram: Float, lean: Float, chosen: Set) -> tuple[set[int], float]:
    """One or two members whose change shortens the sum most, and by how much."""
    turn = 1.0 - 2.0 * chosen
    one = np.diagonal(gram) + 2 * turn * (lean + gram @ chosen)
    two = one[:, None] + one[None, :] + 2 * np.outer(turn, turn) * gram
    np.fill_diagonal(two, one)
    k, j = np.unravel_index(int(np.argmin(two)), two.shape)
    return {int(k), int(j)}, float(two[k, j])
