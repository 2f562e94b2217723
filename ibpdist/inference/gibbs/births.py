"""Births and deaths of the features that one row alone has, their dictionary rows integrated out.

Of the singletons of a row with marks w (one for unit weights) only S = sum w^2 matters: with r the row
less what its shared features explain, r_d ~ N(0, psi_d + s S) for each observed column (samplers.md 5). The
number of singletons of a row is Poisson(rate), rate = mass / N, so with l(S) the density of r

    A_birth = l(S + w^2) / l(S) * rate / (kappa + 1) * (1 - offer) / offer
    A_death = l(S - w^2) / l(S) * kappa / rate * offer / (1 - offer)

where a turn offers a birth with probability `offer` and else the death of one of kappa singletons
(samplers.md 5). Few births are offered among many rows, as many at any N, and the
singletons that there are are asked at every turn: nothing depends on the state but which rows have
something to do. When anything was accepted the whole block is drawn anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing, replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.model.observations._base import RowState
from ibpdist.model.weights._base import Weights

Float = NDArray[np.float64]
MOST_OFFERED = 0.5


@dataclass(frozen=True)
class BirthPrior:
    """`offer` is the chance that a turn is a birth, `rate` mass / N, `noise` (column). `base` (column) is
    the intercept, zero without one."""

    weights: Weights
    offer: float
    rate: float
    noise: Float
    scale: float
    base: Float

    def of_row(self, state: RowState, place: int) -> BirthPrior:
        """With the noise of a row."""
        if isinstance(state.precision, Nothing):
            return self
        return dataclasses.replace(self, noise=self.noise / float(state.precision.mean[place]))


@dataclass(frozen=True)
class Block:
    """The singletons of a row: `marks` (feature) and rows of the dictionary `mean` (feature, column)."""

    marks: Float
    mean: Float


@dataclass(frozen=True)
class RowChange:
    """A row whose singletons changed: its place in the chunk, the features that died, the block that was
    born, and what the log likelihood gained and the weights cost more."""

    place: int
    died: NDArray[np.intp]
    born: Block
    likelihood: float
    cost: float


def birth_chance(births: float, turns: int, rows: float) -> float:
    """The chance that a turn of a row is a birth, so that a step offers about `births` of them."""
    return min(MOST_OFFERED, births / (turns * max(rows, 1.0)))


def row_changes(
    chunk: Chunk, state: RowState, now: GaussianModelParams, prior: BirthPrior, turns: int, draws: Draws
) -> Iterator[RowChange]:
    """The rows of a chunk whose singletons change in `turns` turns."""
    numbers = draws.uniform("births", chunk.start, chunk.rows, 3 * turns)
    single = np.flatnonzero(now.on == 1)
    which, holder = np.nonzero(state.z[single])
    for place in np.union1d(holder, np.flatnonzero((numbers[:turns] < prior.offer).any(axis=0))):
        own = single[which[holder == place]]
        found = _row(chunk, state, now, int(place), own, prior, numbers[:, place].reshape(3, turns).T, draws)
        if found is not None:
            yield found


def without_dead_features(state: RowState, changed: Sequence[RowChange]) -> RowState:
    """Row state in which no feature that died is on."""
    if not any(c.died.size for c in changed):
        return state
    z = state.z.copy()
    for c in changed:
        z[c.died, c.place] = 0
    return replace(state, z=z)


def _row(
    chunk: Chunk,
    state: RowState,
    now: GaussianModelParams,
    place: int,
    own: NDArray[np.intp],
    prior: BirthPrior,
    numbers: Float,
    draws: Draws,
) -> RowChange | None:
    """The row at a place of the chunk, if its singletons `own` change."""
    mean, prior = now.observation.mean, prior.of_row(state, place)
    y = prior.weights.combine(state.z[:, place], state.w[:, place]).astype(np.float64)
    old = Block(y[own], mean[own])
    y[own] = 0.0
    rest = chunk.x[place] - prior.base - y @ mean
    seen = np.ones(rest.size, np.bool_) if chunk.observed is None else chunk.observed[place]
    means = draws.uniform("birth means", chunk.start + place, 1, len(numbers))
    numbers = np.column_stack([numbers, means])
    marks = propose_marks(old.marks, rest[seen], prior.noise[seen], prior, numbers)
    if marks is old.marks:
        return None
    normals = draws.normal("singletons", chunk.start + place, 1, (marks.size + 1) * rest.size)
    new = sample_block(marks, rest, seen, prior, normals.reshape(marks.size + 1, rest.size))
    gain = _misfit(old, rest, seen, prior) - _misfit(new, rest, seen, prior)
    cost = prior.weights.neg_log_prior(new.marks).sum() - prior.weights.neg_log_prior(old.marks).sum()
    return RowChange(place, own, new, gain, float(cost))


def propose_marks(marks: Float, rest: Float, noise: Float, prior: BirthPrior, numbers: Float) -> Float:
    """Marks after turns with these uniforms (turn, 4); the same object when none was accepted. A newborn's
    mark is drawn with the mean of its weights, which is then forgotten (samplers.md 5)."""
    odds = np.log(prior.rate) + np.log1p(-prior.offer) - np.log(prior.offer)
    level = log_evidence(marks, rest, noise, prior.scale)
    for kind, pick, chance, mean in numbers:
        size = marks.size
        if kind < prior.offer:
            slab = prior.weights.newborn(np.array([mean]))
            trial = np.append(marks, prior.weights.sample(1, 1, ndtri(np.array([[pick]])), slab)[0])
            ratio = odds - np.log(size + 1)
        elif size:
            trial = np.delete(marks, int(pick * size))
            ratio = np.log(size) - odds
        else:
            continue
        reached = log_evidence(trial, rest, noise, prior.scale)
        if np.log(chance) < reached - level + ratio:
            marks, level = trial, reached
    return marks


def log_evidence(marks: Float, rest: Float, noise: Float, scale: float) -> float:
    """log l(S) less log l(0), over the observed columns."""
    ratio = scale * float(marks @ marks) / noise
    return float(0.5 * (ratio / (1 + ratio) * rest**2 / noise - np.log1p(ratio)).sum())


def sample_block(
    marks: Float, rest: Float, seen: NDArray[np.bool_], prior: BirthPrior, normals: Float
) -> Block:
    """A block with these marks given the row: prior draws corrected by the gap that they leave (Matheron);
    columns that are not observed keep them."""
    mean = np.sqrt(prior.scale) * normals[:-1]
    gap = rest - marks @ mean - np.sqrt(prior.noise) * normals[-1]
    share = np.where(seen, gap / (prior.noise + prior.scale * float(marks @ marks)), 0.0)
    return Block(marks, mean + prior.scale * np.outer(marks, share))


def _misfit(block: Block, rest: Float, seen: NDArray[np.bool_], prior: BirthPrior) -> float:
    """Half the squares that a block leaves, in units of the noise."""
    left = (rest - block.marks @ block.mean)[seen]
    return float(0.5 * (left**2 / prior.noise[seen]).sum())
