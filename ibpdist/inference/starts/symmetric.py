"""All sources at once by symmetric fixed points: right when there are many rows (starts-and-moves.md 3).

W <- g(U) Y'/N - diag(mean g'(U)) W S,  U = W Y,  S = Y Y'/N, then the nearest rotation. With
the total covariance S the step is unbiased under normal noise (Stein's identity). Each of
three contrasts leads to the two-valued one; two rotations with one likelihood are an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts import contrast
from ibpdist.inference.starts.contrast import Mixture

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ORDER = ("skew", "tanh", "cube", "skew", "tanh")
_FIRST, _SECOND = 40, 60
_STILL = 1e-4
_AGREE = 2e-3


@dataclass(frozen=True)
class Rotation:
    """Directions (component, component_), their mixtures, and the sum of mean log likelihoods."""

    directions: Matrix
    mixture: Mixture
    score: float


def separate(y: Matrix, rng: np.random.Generator, order: tuple[str, ...] = ORDER) -> Rotation:
    """The most likely rotation of y (component, row), centred, of unit signal covariance.

    Stops as soon as the two best of the starts in `order` agree.
    """
    found: list[Rotation] = []
    for name in order:
        w = fixed_point(y, random_rotation(len(y), rng), contrast.CONTRASTS[name], _FIRST)
        found.append(refine(y, w))
        found.sort(key=lambda one: -one.score)
        if len(found) > 1 and found[0].score - found[1].score < _AGREE * len(y):
            break
    return found[0]


def refine(y: Matrix, w: Matrix) -> Rotation:
    """The fixed point of the two-valued contrast from rotation w (component, component_)."""
    state = contrast.start(w @ y)

    def two_valued(u: Matrix) -> tuple[Matrix, Vector]:
        nonlocal state
        state = contrast.fit(u, state, 2)
        return contrast.two_valued(u, state)

    w = fixed_point(y, w, two_valued, _SECOND)
    u = w @ y
    state = contrast.fit(u, state, 2)
    return Rotation(w, state, float(contrast.log_likelihood(u, state).sum()))


def fixed_point(y: Matrix, w: Matrix, kind: Callable[[Matrix], tuple[Matrix, Vector]], most: int) -> Matrix:
    cov = y @ y.T / y.shape[1]
    for _ in range(most):
        g, slope = kind(w @ y)
        new = nearest_rotation(g @ y.T / y.shape[1] - slope[:, None] * (w @ cov))
        moved = float(np.max(np.abs(1 - np.abs(np.einsum("ij,ij->i", new, w)))))
        w = new
        if moved < _STILL:
            break
    return w


def nearest_rotation(w: Matrix) -> Matrix:
    """(W W')^-1/2 W."""
    left, _, right = np.linalg.svd(w, full_matrices=False)
    made: Matrix = left @ right
    return made


def random_rotation(size: int, rng: np.random.Generator) -> Matrix:
    return nearest_rotation(rng.standard_normal((size, size)))
