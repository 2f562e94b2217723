"""What a lower bound of b_k = E log(1 - pi_k) tells the climb: value, slopes and curvature.

Slopes and curvature are those of sum_k off_k b_k in log tau, (feature, side) flattened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ibpdist.model.priors._beta import Sticks, Vector


@dataclass(frozen=True)
class Bend:
    """Minus second derivatives: the lower triangle of left right', plus a block for each stick.

    `left`, `right` (feature, side, term), `blocks` (feature, side, side). The triangle is
    enough: later sticks hold all the earlier ones, so an entry depends on the later of its two
    sticks through one sum only, which `left` carries.
    """

    left: Vector
    right: Vector
    blocks: Vector

    def dense(self) -> Vector:
        """(2 feature, 2 feature); only the lower triangle means anything."""
        size = 2 * len(self.blocks)
        made: Vector = self.left.reshape(size, -1) @ self.right.reshape(size, -1).T
        add_blocks(made, self.blocks)
        return made


@dataclass(frozen=True)
class Bound:
    """`value` (feature,): the bounds.

    What is left of sum_k off_k b_k is split: `weight` (feature, side) are factors of log moments
    (constant by the envelope theorem, or truly), `slope` and `bend` belong to the rest.
    `bend` also holds how the weights change, when they do.
    """

    value: Vector
    weight: Vector
    slope: Vector
    bend: Callable[[], Bend]


Lower = Callable[[Sticks, Vector], Bound]
"""(sticks, off) -> the bounds."""


def add_blocks(dense: Vector, blocks: Vector) -> None:
    """Add 2 x 2 blocks to the lower triangle, in place."""
    flat, size = dense.reshape(-1), len(dense)
    step = 2 * (size + 1)
    flat[::step] += blocks[:, 0, 0]
    flat[size::step] += blocks[:, 1, 0]
    flat[size + 1 :: step] += blocks[:, 1, 1]


def from_here(values: Vector) -> Vector:
    """Sums over this stick and the later ones."""
    found: Vector = np.cumsum(values[::-1], axis=0)[::-1]
    return found
