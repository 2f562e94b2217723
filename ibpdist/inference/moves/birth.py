"""Birth: features that are missing, found in what the others leave (starts-and-moves.md 14).

A feature that is missing shows in the residuals as two clouds of rows, a mean apart. Candidates
begin at single residual rows far from zero and at the best splits of the leading residual
directions; a few rounds set the mean of the members and the members given the mean. Frequent ones
show in a uniform sample of rows, rare ones among the rows that are explained worst. What a
candidate promises is the gain of its normal factor less the price of its pattern,

    q / 2 - 1/2 sum_d log(1 + m / c_d) - N H(m / N),   q = sum_d |sum of members|_d^2 / (m + c_d),

with columns in units of their noise and c = noise / scale. A trial decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.inference.ascent.params import OFF, GaussianModel, GaussianModelParams
from ibpdist.inference.moves._base import Proposal, Residuals, Situation, pattern_cost
from ibpdist.inference.starts.contrast import split
from ibpdist.model.observations.dictionary import known
from ibpdist.model.observations.gaussian_params import LOG_2PI, GaussianParams
from ibpdist.model.priors._base import PriorSums

Float = NDArray[np.float64]
Members = NDArray[np.bool_]

PASSES = 30
ROWS, DIRECTIONS, ROUNDS = 30, 4, 6
ALIKE = 0.5
"""Correlation from which two patterns count as one."""
FEWEST = 2
"""Members of a candidate."""
SHARE = 5
"""Features for each birth that is allowed at a time."""


@dataclass(frozen=True)
class Newborn:
    """Features to add: `dictionary` (feature, column) and `prevalence` (feature)."""

    dictionary: Float
    prevalence: Float


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """Up to a fifth more features, found in a sample of residuals; none when it is only noise."""
    room = situation.room
    if situation.residuals is None or room < 1 or not situation.turnable:
        return None
    most = int(min(room, max(1, len(situation.params.ids) // SHARE)))
    found = newborn(situation.residuals, situation.params.observation, most, rng)
    if found is None:
        return None
    made = born(situation.model, situation.params, found, situation.next_id)
    return Proposal("birth", made, passes=PASSES)


def newborn(
    residuals: Residuals, params: GaussianParams, most: int, rng: np.random.Generator
) -> Newborn | None:
    """The most promising features, no two of them alike; None where nothing promises a gain."""
    white, weights = residuals.rows / np.sqrt(params.noise), residuals.weights
    ridge = params.noise / np.median(params.scale)
    members = among_worst(white, residuals, ridge)
    directions, largest = leading(white[: residuals.sampled], rng)
    if largest > residuals.edge:
        frequent = np.concatenate([near_rows(white, rng), splits(white, directions)])
        members = np.concatenate([refined(white, frequent, weights, ridge), members])
    promised = gains(white, members, weights, ridge)
    taken = chosen(members, promised, most)
    if not taken:
        return None
    shares = members[taken] @ weights / weights.sum()
    return Newborn(means(white, members[taken], ridge) * np.sqrt(params.noise), shares)


def leading(white: Float, rng: np.random.Generator) -> tuple[Float, float]:
    """(direction, column) leading right singular vectors, and the largest eigenvalue of R'R / n."""
    rows, least = len(white), min(white.shape)
    if least <= 4 * DIRECTIONS:
        _, values, vectors = np.linalg.svd(white, full_matrices=False)
        vectors, largest = vectors[:DIRECTIONS], values.max(initial=0.0)
    else:
        start = rng.standard_normal(least)
        from scipy.sparse.linalg import svds  # 20 MB that a worker can do without

        _, values, vectors = svds(white, k=DIRECTIONS, v0=start, tol=1e-3)
        vectors, largest = vectors[::-1], values.max()
    return vectors, float(largest**2 / max(rows, 1))


def near_rows(white: Float, rng: np.random.Generator) -> Members:
    """(candidate, row) rows on the side of a row drawn by the square of its excess over noise."""
    excess = np.maximum((white**2).sum(axis=1) - white.shape[1], 0.0)
    count = min(ROWS, int((excess > 0).sum()))
    if not count:
        return np.zeros((0, len(white)), np.bool_)
    drawn = rng.choice(len(white), count, replace=False, p=excess**2 / (excess**2).sum())
    # A member's product with the drawn row is the squared length of the mean, that of others zero.
    near: Members = white[drawn] @ white.T > 0.5 * excess[drawn, None]
    return near


def among_worst(white: Float, residuals: Residuals, ridge: Float) -> Members:
    """(candidate, row) sets of worst-explained rows, begun at each of them and the most promising refined.

    Of rows that were drawn none is a member: what is promised would be multiplied by their weights, and of
    those that stand for many others some are like any direction.
    """
    weights, worst = residuals.weights, residuals.worst
    excess = (white[worst] ** 2).sum(axis=1) - white.shape[1]
    near = (white[worst] @ white.T > 0.5 * np.maximum(excess, 0.0)[:, None]) & worst
    begun = chosen(near, gains(white, near, weights, ridge), ROWS, least=-np.inf)
    return refined(white, near[begun], weights, ridge, among=worst)


def splits(white: Float, directions: Float) -> Members:
    """(candidate, row) both sides of the best split along each direction."""
    high = split(directions @ white.T)[0]
    return np.concatenate([high, ~high])


def refined(
    white: Float, members: Members, weights: Float, ridge: Float, among: Members | bool = True
) -> Members:
    """A few rounds of the mean of the members and the members given the mean, with prior log odds."""
    rows = weights.sum()
    for _ in range(ROUNDS):
        mean, count = means(white, members, ridge), members @ weights
        odds = np.log((count + 0.5) / (rows - count + 0.5))
        middle = 0.5 * (mean**2).sum(axis=1) - odds
        members = (mean @ white.T > middle[:, None]) & among
    return members


def means(white: Float, members: Members, ridge: Float) -> Float:
    """(candidate, column) posterior means of the members."""
    on = members.astype(np.float64)
    found: Float = (on @ white) / (on.sum(axis=1)[:, None] + ridge)
    return found


def gains(white: Float, members: Members, weights: Float, ridge: Float) -> Float:
    """(candidate) what each promises for all rows, of which these stand for `weights` each.

    Exact where all members stand for themselves.
    """
    on, rows = members * weights, weights.sum()
    count, drawn = on.sum(axis=1), members @ np.where(weights > 1, weights, 0.0)
    # Noise in the sum has the sum of the squares of the weights for its variance, in all rows their number.
    surplus = members @ (weights * (weights - 1))
    total = (on @ white) ** 2
    total = np.maximum(total - surplus[:, None], drawn[:, None])
    fit = total / (count[:, None] + ridge) - np.log1p(count[:, None] / ridge)
    found: Float = 0.5 * fit.sum(axis=1) - rows * pattern_cost(count / rows)
    return np.where(members.sum(axis=1) >= FEWEST, found, -np.inf)


def chosen(members: Members, promised: Float, most: int, least: float = 0.0) -> list[int]:
    """Candidates that promise more than `least`, best first, none too much like one before."""
    on = members - members.mean(axis=1, keepdims=True)
    size = np.sqrt((on**2).sum(axis=1))
    taken: list[int] = []
    for at in np.argsort(-promised, kind="stable"):
        if not promised[at] > least or len(taken) == most:
            break
        if size[at] == 0:
            continue
        likeness = np.abs(on[taken] @ on[at]) / (size[taken] * size[at])
        if (likeness < ALIKE).all():
            taken.append(int(at))
    return taken


def born(
    model: GaussianModel, params: GaussianModelParams, found: Newborn, next_id: int
) -> GaussianModelParams:
    """Parameters with the features added; rows begin without them."""
    new, old = len(found.prevalence), len(params.ids)
    on = np.append(params.on, found.prevalence * float(params.rows))
    prior = model.prior.update(
        model.prior.resized(params.prior, old + new, np.append(np.arange(old), np.full(new, OFF))),
        PriorSums(on=on, rows=params.rows),
        model.rules.prior,
        Draws(0).generator("prior"),
    )
    return replace(
        params,
        prior=prior,
        observation=with_rows(params.observation, found),
        ids=np.append(params.ids, next_id + np.arange(new)),
        parents=np.concatenate([params.parents, np.full((2, new), OFF)], axis=1),
        flip=np.append(params.flip, np.zeros(new, params.flip.dtype)),
        on=on,
    )


def with_rows(params: GaussianParams, found: Newborn) -> GaussianParams:
    """q(A) with rows of these means, independent of the others given their counts.

    The basis is block diagonal: sqrt(scale) and spectrum scale * count for a new row, so that
    its variance is (1 / scale + count / noise)^-1 in every group of columns (linear-gaussian.md 6).
    """
    new, old = len(found.prevalence), len(params.scale)
    scale = np.full(new, np.median(params.scale))
    spectrum = scale * found.prevalence * params.cells[params.spectra_at()][:, None]
    basis = np.zeros((len(params.basis), old + new, old + new))
    basis[:, :old, :old] = params.basis
    basis[:, np.arange(old, old + new), np.arange(old, old + new)] = np.sqrt(scale)
    mean = np.concatenate([params.mean, found.dictionary])
    made = replace(
        known(params, mean, np.append(params.scale, scale)),
        basis=basis,
        spectrum=np.concatenate([params.spectrum, spectrum], axis=1),
    )
    shrink = np.log1p(made.spectra()[:, old:] / params.noise[:, None])
    return replace(
        made,
        entropy=params.entropy + 0.5 * ((LOG_2PI + 1 + np.log(scale)) - shrink).sum(),
        stretch=np.append(params.stretch, np.ones(new)),
    )
