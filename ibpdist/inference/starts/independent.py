"""Independent components of the scores of rows, and where a component is off (starts-and-moves.md 21).

Features with weights that few rows have are far from normal in their scores. The rotation of the leading
principal scores whose components are most so (symmetric FastICA, Hyvarinen 1999) separates them; a feature
is off where most rows are, at the mode of its scores, which need not be their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts.contrast import fourth_power, tanh
from ibpdist.inference.starts.rank import leading_spectrum
from ibpdist.inference.starts.symmetric import fixed_point, random_rotation

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ABOVE = 1.2
"""Eigenvalues above this multiple of the median one are signal."""
ROUNDS = 200
NORMAL_LOG_COSH = 0.374567
"""Mean of log cosh of a standard normal."""
ROWS_PER_COMPONENT = 5
"""With fewer rows rotations of the scores do not come back when some of the rows are left out."""
TINY = 1e-9
"""Share of the largest variance of scores below which one is nothing."""
MOST_ROWS = 20_000
"""Rows from which the rotation is found."""


@dataclass(frozen=True)
class Components:
    """`turn` (component, component_) of the scores, and the score at which each is off (component)."""

    turn: Matrix
    off: Vector


def above_median(values: Vector, trace: float, rows: int, columns: int) -> int:
    """How many leading components may be signal: those well above the median.

    `values` are leading eigenvalues, falling, of a matrix with this trace; where not all of them are known
    the mean of the others stands for the median.
    """
    free = max(min(rows - 1, columns), 1)
    known = values[:free]
    rest = max(trace - float(known.sum()), 0.0) / max(free - len(known), 1)
    typical = float(np.median(known)) if len(known) == free else rest
    return int((known > ABOVE * typical).sum())


def above_edge(values: Vector, trace: float, rows: int, columns: int) -> int:
    """How many leading components stand out of noise that is the same in all columns."""
    return leading_spectrum(values, trace, rows, columns, len(values)).rank


def whitened(values: Matrix) -> tuple[Matrix, Matrix]:
    """Values (component, row) about their means with the covariance I, and the symmetric root of their
    covariance, which leads back."""
    away = values - values.mean(axis=1, keepdims=True)
    size, axes = np.linalg.eigh(away @ away.T / values.shape[1])
    lengths = np.sqrt(np.maximum(size, TINY * size[-1]))
    return axes @ ((axes / lengths).T @ away), (axes * lengths) @ axes.T


def independent(scores: Matrix, rng: np.random.Generator, tries: int = 1) -> Components:
    """Components of centred scores (component, row) of unit variance, each with a positive third moment: the
    least normal of those that some tries end in."""
    few = scores[:, :MOST_ROWS]
    turns = [fixed_point(few, random_rotation(len(few), rng), tanh, ROUNDS) for _ in range(tries)]
    turn = max(turns, key=lambda one: negentropy(one @ few))
    found = turn @ scores
    sign = np.where((found**3).mean(axis=1) < 0, -1.0, 1.0)
    return Components(
        sign[:, None] * turn, np.array([half_sample_mode(s * f) for s, f in zip(sign, found, strict=True)])
    )


def largest_fourth_moments(scores: Matrix, rng: np.random.Generator, tries: int = 1) -> Matrix:
    """The rotation (component, component_) of scores (component, row) with the largest sum of fourth powers
    of those that some tries end in."""
    few = scores[:, :MOST_ROWS]
    turns = [fixed_point(few, random_rotation(len(few), rng), fourth_power, ROUNDS) for _ in range(tries)]
    return max(turns, key=lambda one: float(np.square(np.square(one @ few)).sum()))


def negentropy(components: Matrix) -> float:
    """How far components (component, row) of unit variance are from normal (Hyvarinen 1999)."""
    size = np.abs(components)
    log_cosh = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    return float(np.square(log_cosh.mean(axis=1) - NORMAL_LOG_COSH).sum())


def half_sample_mode(values: Vector) -> float:
    """The mode of a sample: the shortest half, of its half, and so on (Robertson and Cryer 1974)."""
    ordered = np.sort(values)
    while len(ordered) > 2:
        half = (len(ordered) + 1) // 2
        at = int(np.argmin(ordered[half - 1 :] - ordered[: len(ordered) - half + 1]))
        ordered = ordered[at : at + half]
    return float(ordered.mean())
