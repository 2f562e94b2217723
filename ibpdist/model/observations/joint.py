"""Rows that have every feature: all weights of a row at once, with one normal factor (factors.md 5).

Where z = 1 everywhere, q(w_n) = N(S (T F_n + mu), S) with S = (I + T Gamma)^-1 is the exact conditional
given q(A) and the precision T of the row: no sweep over features, and no trace of where the rows began.
With a factor for each weight alone the fit would be another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.model.observations.entries import Entries
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.row_residuals import Swept, Tile
from ibpdist.model.observations.tiles import Pass

Matrix = NDArray[Any]
Float = NDArray[np.float64]


def _eigen(gamma: Float) -> tuple[Float, Float]:
    """Eigenvalues, none below zero, and eigenvectors of a Gram matrix."""
    e, turn = np.linalg.eigh(gamma)
    return np.maximum(e, 0.0), turn


class JointPass(Pass):
    """A pass that solves for the weights of a row instead of sweeping over them."""

    def swept(self, tile: Tile, part: Entries) -> Swept:
        """In the eigenbasis of the Gram matrix of each run, in which S of every row is diagonal."""
        features, rows = tile.pull.shape
        sums, spread = np.zeros((5, len(tile.gamma), features)), np.empty(rows)
        even = part.precision is None
        square = np.empty((features, rows))
        times = np.ones(rows) if even else np.array(part.precision, np.float64)
        part.z1[:] = 1
        for i, (a, b) in enumerate(pairwise(tile.starts)):
            e, turn = _eigen(tile.gamma[i])
            left = 1 / (1 + e[:, None] * times[a:b])
            pull = times[a:b] * tile.pull[:, a:b] + part.tilt[:, None]
            mean = turn @ (left * (turn.T @ pull))
            part.w1[:, a:b], square[:, a:b] = mean, mean**2 + turn**2 @ left
            spread[a:b] = e @ left
            # -log |S| belongs to all features together: an equal share for each.
            share = float(np.log(left).sum()) / features
            second = square[:, a:b].sum(axis=1)
            sums[0, i], sums[2, i], sums[3, i] = b - a, 0.5 * (second - (b - a) - share), second
        return Swept(part.w1, square, sums, spread, times)

    def grams(self, tile: Tile, swept: Swept, times: Matrix | None) -> Float:
        grams, even = np.empty(tile.gamma.shape), np.ones(swept.y.shape[1])
        counted = even if times is None else times.astype(np.float64)
        before = even if swept.before is None else swept.before
        for i, (a, b) in enumerate(pairwise(tile.starts)):
            mean, (e, turn) = swept.y[:, a:b].astype(np.float64), _eigen(tile.gamma[i])
            left = (counted[a:b] / (1 + e[:, None] * before[a:b])).sum(axis=1)
            grams[i] = (mean * counted[a:b]) @ mean.T + (turn * left) @ turn.T
        return grams


@dataclass(frozen=True)
class Joint(Gaussian):
    """The Gaussian observation, for rows that have every feature."""

    name: ClassVar[str] = "gaussian_joint"
    dense: ClassVar[bool] = True
    passes: ClassVar[type[Pass]] = JointPass
    by_rows: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
    # An intercept says what means of weights would.
    fit_settings: ClassVar[Mapping[str, object]] = {"mu": 0.0}
