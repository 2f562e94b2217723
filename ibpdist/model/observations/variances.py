"""Noise and scale at the optimum of the bound, with q(A) following them, by EM in the eigenbasis.

Each turn sets both variances given q(A), then q(A) given both, in closed form from the
spectrum (rotation.py), so the objective rises at every turn (linear-gaussian.md 8). One noise needs O(K)
a turn and is solved to convergence; a noise for each column needs O(K D) and gets few turns. Columns may
share one level of noise, noise_d = level ratio_d: then the level is what is solved for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibpdist.kernels.column_squares import column_squares
from ibpdist.model.observations.rotation import Columns, Rotation

Float = NDArray[np.float64]
PSEUDO = 2.0
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Evidence:
    """What is known of a variance besides q(A): cells, sum of squares, the pseudo cell's variance (one,
    or one for each column), and the least value that it may take."""

    cells: Float
    squares: Float
    at: float | Float
    least: float | Float = 0.0

    def mode(self, squares: float | Float) -> Float:
        """The variance given a sum of squares, or one for each column; above `least` the objective falls."""
        found = (squares + PSEUDO * self.at) / (self.cells + PSEUDO)
        return np.asarray(np.maximum(found, self.least), dtype=np.float64)


@dataclass(frozen=True)
class Levels:
    """A rotated group, its columns collapsed to levels of noise: `power` (feature, level) sums R^2. `own` is
    (feature, 1), or (feature, column) where columns have covariances of their own."""

    columns: Columns
    spectrum: Float
    own: Float
    power: Float
    count: float

    @classmethod
    def of(cls, rotation: Rotation, one: bool) -> Levels:
        cross, count = rotation.cross, 1.0
        if one:
            count, power = float(cross.shape[1]), np.einsum("jd,jd->j", cross, cross)[:, None]
        else:
            power = cross**2
        power *= rotation.lift**2
        own = rotation.own_spectrum
        if own.ndim == 1:
            own = own[:, None]
        else:
            count = 1.0
        return cls(rotation.columns, rotation.spectrum, own, power, count)

    def explained(self, noise: Float) -> Float:
        """(level) what q(A) takes off the sum of squares, minus its own spread."""
        if noise.size > 1:
            return np.asarray(column_squares(self.power, self.spectrum, self.own, noise))
        both = noise + self.spectrum[:, None]
        fit = (self.power / both * (1 + noise / both)).sum(axis=0)
        spread: Float = (self.own * noise / (noise + self.own)).sum(axis=0)
        return np.asarray(fit - self.count * spread.sum(keepdims=True))

    def second(self, noise: Float) -> float:
        """sum E A_kd^2 / scale."""
        mean = (self.power / (noise + self.spectrum[:, None]) ** 2).sum()
        return float(mean + self.count * (noise / (noise + self.own)).sum())

    def rescaled(self, ratio: float) -> Levels:
        return replace(self, spectrum=self.spectrum * ratio, own=self.own * ratio, power=self.power * ratio)


def fit(
    rotations: Sequence[Rotation],
    noise: Float,
    scale: float,
    data: Evidence | None,
    prior: Evidence | None,
    ratios: Float | None,
    turns: int,
) -> tuple[Float, float]:
    """New noise (column) and the ratio of the new scale to the old.

    `data` (None: the noise is fixed) has cells and squares by column; `prior` (None: the scale
    is not common) the number of entries of A and the pseudo cell of the scale. `ratios` (column) are those
    of the noise to its level; None: each column has a noise of its own.
    """
    one = ratios is not None and bool((ratios == 1).all())
    groups, started = [Levels.of(r, one) for r in rotations], scale
    level = noise[:1] if one else noise
    for _ in range(turns):
        before = np.append(level, scale)
        new_level = level if data is None else _noise(groups, level, data, ratios)
        if prior is not None:
            second = scale * sum(g.second(_at(level, g, one)) for g in groups)
            new = float(prior.mode(second))
            groups, scale = [g.rescaled(new / scale) for g in groups], new
        level = new_level
        if np.all(np.abs(np.log(np.append(level, scale) / before)) < TOLERANCE):
            break
    return np.broadcast_to(level, noise.shape).copy(), scale / started


def log_prior(value: Float, at: float | Float) -> float:
    """PSEUDO cells of variance `at` (one, or one for each value): log density of log v, plus a constant."""
    return float(-0.5 * PSEUDO * (np.log(value) + at / value).sum())


def drawn(cells: Float, squares: Float, at: float | Float, rng: np.random.Generator) -> Float:
    """A variance given `cells` squared deviations that sum to `squares`, and the pseudo cells."""
    half = 0.5 * (squares + PSEUDO * at)
    return np.asarray(half / rng.gamma(0.5 * (cells + PSEUDO)), dtype=np.float64)


def _noise(groups: Sequence[Levels], level: Float, data: Evidence, ratios: Float | None) -> Float:
    """New noise of each column, or where all have the same of one."""
    if level.size == 1:
        misfit = np.maximum(data.squares.sum() - sum(g.explained(level) for g in groups), 0.0)
        return replace(data, cells=data.cells.sum()).mode(misfit)
    misfit = data.squares.copy()
    for g in groups:
        misfit[g.columns] -= g.explained(level[g.columns])
    if ratios is None:
        return data.mode(np.maximum(misfit, 0.0))
    shared = np.maximum((misfit / ratios).sum(), 0.0)
    return np.asarray(ratios * replace(data, cells=data.cells.sum()).mode(shared))


def _at(level: Float, group: Levels, one: bool) -> Float:
    """Noise of the group's levels."""
    return level if one else np.asarray(level[group.columns])
