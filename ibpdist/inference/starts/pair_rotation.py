"""Features that most rows have, turned in pairs to where most rows lack them (starts-and-moves.md 22).

A feature that rows have or lack has a peak in its scores: all rows without it lie within the noise of one
value. Fits that have mixed two such features, or that take the wrong value for none, have them in nearly
every row. Each pair is turned in its plane to where the two peaks are highest. That also separates features
whose scores are no less normal alone than mixed, which independent components (independent.py) do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from ibpdist.inference.starts.independent import Components

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ANGLES = 60
"""Angles of a half turn that are tried for a pair; the first is the present one."""
ROUNDS = 3
MOST_ROWS = 1000
"""Rows from which angles are found."""
WIDTH = 4.0
"""Width of a peak in standard deviations of the noise of scores."""
LEAST_WIDTH = 0.1
BINS = 4
"""Bins of a histogram in the width of a peak."""
GAIN = 1e-3
"""Gain of the squares of the two heights below which a pair stays as it is."""
CLEAR = 2.0
"""A peak is higher than this multiple of what a normal component has within its width."""


@dataclass(frozen=True)
class Peaked:
    """Components that have peaks, each with a mean above the value at which it is off, and the heights of the
    peaks (component): zero without a clear one, and then a component is off at its mean."""

    components: Components
    heights: Vector

    @property
    def clear(self) -> NDArray[np.bool_]:
        """(component) whether it has a clear peak."""
        found: NDArray[np.bool_] = self.heights > 0
        return found


def peaked(scores: Matrix, noise: Vector) -> Peaked:
    """Of centred scores (component, row) of unit variance, whose noise has standard deviations `noise`
    (component)."""
    few, width = scores[:, :MOST_ROWS], max(WIDTH * float(np.median(noise)), LEAST_WIDTH)
    turn = np.eye(len(scores))
    for _ in range(ROUNDS):
        if not _turn_pairs(few, width, turn):
            break
    high = heights(turn @ few, width)
    off = np.where(high > 0, peaks(turn @ few, width)[1], 0.0)
    sign = np.where(off > 0, -1.0, 1.0)
    return Peaked(Components(sign[:, None] * turn, sign * off), high)


def _turn_pairs(few: Matrix, width: float, turn: Matrix) -> bool:
    """Turn each pair of rows of `turn` to its best angle; whether any was turned."""
    angles, changed = np.pi * np.arange(ANGLES) / ANGLES, False
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    for i in range(len(turn)):
        for j in range(i + 1, len(turn)):
            a, b = turn[i] @ few, turn[j] @ few
            value = heights(cos * a + sin * b, width) ** 2 + heights(cos * b - sin * a, width) ** 2
            best = int(np.argmax(value))
            if value[best] > value[0] + GAIN:
                c, s = cos[best, 0], sin[best, 0]
                turn[[i, j]] = np.array([[c, s], [-s, c]]) @ turn[[i, j]]
                changed = True
    return changed


def heights(values: Matrix, width: float) -> Vector:
    """Heights of the peaks of rows of `values`, zero where a normal component is nearly as high."""
    share = peaks(values, width)[0]
    found: Vector = np.where(share > CLEAR * erf(width / np.sqrt(8)), share, 0.0)
    return found


def peaks(values: Matrix, width: float) -> tuple[Vector, Vector]:
    """The largest share of each row of `values` that lies within a `width`, and the mean of these."""
    bins = np.floor((values - values.min()) * (BINS / width)).astype(np.intp)
    count, size = int(bins.max()) + BINS, values.shape[1]
    flat = bins + count * np.arange(len(values))[:, None]
    held = np.bincount(flat.ravel(), minlength=count * len(values)).reshape(len(values), count)
    total = np.cumsum(np.pad(held, ((0, 0), (1, 0))), axis=1)
    inside = total[:, BINS:] - total[:, :-BINS]
    first = np.argmax(inside, axis=1)
    most = np.take_along_axis(inside, first[:, None], axis=1)[:, 0]
    near = (bins >= first[:, None]) & (bins < first[:, None] + BINS)
    return most / size, np.where(near, values, 0.0).sum(axis=1) / most
