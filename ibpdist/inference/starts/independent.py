"""Independent components of the scores of rows, and where a component is off (starts-and-moves.md 21).

Features with weights that few rows have are far from normal in their scores. The rotation of the leading
principal scores whose components are most so (symmetric FastICA, Hyvarinen 1999) separates them; a feature
is off where most rows are, at the mode of its scores, which need not be their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts.contrast import tanh
from ibpdist.inference.starts.symmetric import fixed_point, random_rotation

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ABOVE = 1.2
"""Eigenvalues above this multiple of the median one are signal."""
ROUNDS = 200
ROWS_PER_COMPONENT = 5
"""With fewer rows rotations of the scores do not come back when some of the rows are left out."""
MOST_ROWS = 20_000
"""Rows from which the rotation is found."""


@dataclass(frozen=True)
class Components:
    """`turn` (component, component_) of the scores, and the score at which each is off (component)."""

    turn: Matrix
    off: Vector


def signal_components(values: Vector, trace: float, rows: int, columns: int, most: int) -> int:
    """How many leading components to turn: at least 2, at most `most`; 0 where rows are too few for it.

    `values` are leading eigenvalues, falling, of a matrix with this trace; where not all of them are known
    the mean of the others stands for the median.
    """
    free = max(min(rows - 1, columns), 1)
    known = values[:free]
    rest = max(trace - float(known.sum()), 0.0) / max(free - len(known), 1)
    typical = float(np.median(known)) if len(known) == free else rest
    count = max(int((known > ABOVE * typical).sum()), 2)
    count = min(count, most, len(known))
    return count if count > 0 and rows >= ROWS_PER_COMPONENT * count else 0


def independent(scores: Matrix, rng: np.random.Generator) -> Components:
    """Components of centred scores (component, row) of unit variance, each with a positive third moment."""
    few = scores[:, :MOST_ROWS]
    turn = fixed_point(few, random_rotation(len(few), rng), tanh, ROUNDS)
    found = turn @ scores
    sign = np.where((found**3).mean(axis=1) < 0, -1.0, 1.0)
    return Components(
        sign[:, None] * turn, np.array([half_sample_mode(s * f) for s, f in zip(sign, found, strict=True)])
    )


def half_sample_mode(values: Vector) -> float:
    """The mode of a sample: the shortest half, of its half, and so on (Robertson and Cryer 1974)."""
    ordered = np.sort(values)
    while len(ordered) > 2:
        half = (len(ordered) + 1) // 2
        at = int(np.argmin(ordered[half - 1 :] - ordered[: len(ordered) - half + 1]))
        ordered = ordered[at : at + half]
    return float(ordered.mean())
