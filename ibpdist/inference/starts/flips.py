"""Sets of features to complement, by the length of the intercept that they leave (starts-and-moves.md 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Set = NDArray[np.bool_]


def descend(gram: Float, lean: Float, start: Set) -> Set:
    """A set whose |b + sum_{k in f} a_k|^2 no change of one or two members shortens, from `start`.

    `gram` holds the products of the a_k, `lean` those with b; it is 2 v'f + f'Gf up to |b|^2.
    """
    chosen = start.copy()
    for _ in range(20 * len(lean)):
        pair, gain = _best_change(gram, lean, chosen)
        if not gain < -1e-12 * float(np.trace(gram)):
            break
        chosen[list(pair)] ^= True
    return chosen


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
