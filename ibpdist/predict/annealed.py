r"""log p(hidden | visible) of rows with too many features to enumerate, by annealed importance sampling.

Of a law with certain dictionary, p(hidden | visible) = Z(visible and hidden) / Z(visible), where
Z(cells) = sum_z p(z) p(cells | z). A chain starts at the prior, where all modes are, and the likelihood of
the visible cells comes in level by level, then that of the hidden cells (kernels/annealing.py). With the
log weights u_c and v_c of chain c at the end of either leg,

    Z(visible) = E exp u_c,    Z(visible and hidden) = E exp v_c,

whatever the number of levels, and the score is the log of the ratio of their means over chains.

**Two directions.** When the hidden cells come in, chains stay where the visible cells left them. A mode of
all cells that none of them visited is missing, and the score is low. Chains that go from the prior to all
cells at once, and then let the hidden cells leave, stay where all cells took them, and their score is
high. The distance of the two shows modes that no chain of one direction has visited.

**How many chains.** Half as many chains as asked for go ahead on trial, and as many go back. Where the
standard error of the chains ahead, or a quarter of the distance of the directions, is above STAGES[0] nats, a
row gets twice the chains and twice the levels, above STAGES[1] four times as many of both. The
chains that count go ahead and are others than those on trial: a row that stopped when its chains agreed
would be one whose chains missed the same mode. With unit weights they may jump between the modes in which
chains on trial ended, of either direction, and so have modes that they would seldom find.

**The error** of a row is the largest of the jackknife's over chains (estimates.py), of half of the distance
of the directions where their errors do not explain it, so that two errors reach from one to the other,
and of LEAST: eight chains seldom visit a mode of probability LEAST, which adds as much to a score. Rows
whose directions are so far apart, and those with fewer than two effective chains, are counted as rows whose
chains disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ibpdist.base.randomness import Draws
from ibpdist.predict.estimates import LogRatio, Numbers, Sampled, Sampling, jackknife, row_numbers
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.predict import CERTAIN, LOG_2PI, Mask, Matrix, Predictor, Vector
from ibpdist.predict.walks import Kept, Legs, Walk

Lift = Callable[[Matrix, NDArray[np.intp], int], Vector]
"""(row) log of the density of the cells of a leg under the law that counts over that of the chains, given
z (row, feature) of the rows with these places."""

LEVELS = 30
"""Levels of a leg."""
STAGES = (0.5, 2.0)
"""Errors on trial, in nats, above which a row gets more chains and levels."""
APART, ERRORS = 0.5, 3.0
"""Directions disagree where they differ by more than this many nats and this many errors."""
LEAST = 0.01
"""Least error of a row, in nats."""


@dataclass(frozen=True)
class Law:
    """`mean` (feature, column), `psi` (column), `odds` and `tilt`, the mean of the weights (feature)."""

    mean: Matrix
    psi: Vector
    odds: Vector
    tilt: Vector

    @classmethod
    def of(cls, predictor: Predictor) -> Law:
        """psi_d = noise_d + E y Sigma_d y', with the variance of the intercept."""
        odds = np.clip(predictor.log_odds, -CERTAIN, CERTAIN)
        return cls(predictor.mean, predictor.typical_noise(), odds, predictor.tilt)

    def gram(self, seen: Mask) -> Matrix:
        found: Matrix = (self.mean * (seen / self.psi)) @ self.mean.T
        return found

    def pull(self, x: Matrix, seen: Mask) -> Matrix:
        """(row, feature) what the cells and the prior say of the weights."""
        found: Matrix = (x * (seen / self.psi)) @ self.mean.T + self.tilt
        return found

    def rest(self, x: Matrix, cells: Mask) -> Vector:
        """(row) what does not depend on the features: x of `cells` under the noise alone."""
        fixed = (np.log(self.psi) + LOG_2PI)[cells].sum()
        made: Vector = -0.5 * (fixed + np.square(x) @ (cells / self.psi))
        return made

    def rest_of(self, x: Matrix, cells: Mask) -> Vector:
        """(row) the same of the cells (row, column) of each row."""
        fixed = cells @ (np.log(self.psi) + LOG_2PI)
        made: Vector = -0.5 * (fixed + np.square(np.where(cells, x, 0.0)) @ (1 / self.psi))
        return made


def typical(of: Predictor) -> Predictor:
    """A predictor with certain dictionary, whose cells are as much noisier as its variance makes them."""
    return replace(of.plug_in(), noise=Law.of(of).psi, extra=0.0, precision=1.0)


def patterns(visible: Mask, hidden: Mask) -> list[tuple[NDArray[np.intp], Mask, Mask]]:
    """Rows with the same visible and hidden cells, and these."""
    both = np.concatenate([visible, hidden], axis=1)
    found, which = np.unique(both, axis=0, return_inverse=True)
    columns = visible.shape[1]
    return [(np.flatnonzero(which.ravel() == i), one[:columns], one[columns:]) for i, one in enumerate(found)]


@dataclass(frozen=True)
class Chains:
    """Log weights (chain, row) of chains when the visible cells have come in, and all cells, under the law
    of the chains, and what is added to them for the law that counts."""

    visible: Matrix
    both: Matrix
    lift_visible: Matrix | float = 0.0
    lift_both: Matrix | float = 0.0

    def ratio(self) -> LogRatio:
        return jackknife(self.both, self.visible)

    def lifted(self) -> LogRatio:
        return jackknife(self.both + self.lift_both, self.visible + self.lift_visible)

    def evidence(self) -> LogRatio:
        """Of the visible cells, but for what does not depend on the features."""
        return jackknife(self.visible + self.lift_visible, np.zeros_like(self.visible))


@dataclass(frozen=True)
class Runner:
    """Runs chains of rows x (row, column) with these global `numbers`."""

    law: Law
    walk: Walk
    x: Matrix
    visible: Mask
    hidden: Mask
    numbers: NDArray[np.intp]

    @property
    def least(self) -> float:
        """The least error of a row: none where nothing is left to chance."""
        return LEAST if (np.abs(self.law.odds) < CERTAIN).any() else 0.0

    def __call__(
        self,
        rows: NDArray[np.intp],
        chains: int,
        levels: int,
        keep: int,
        draws: Draws,
        modes: Kept,
        ahead: bool = True,
    ) -> tuple[Chains, Kept]:
        """Chains of some rows, and their draws (row, chain, leg, draw, feature). Chains may jump between
        `modes` (row, mode, feature)."""
        key, features = draws.key("annealed"), len(self.law.odds)
        ends = np.ascontiguousarray(modes[:, : self.walk.modes])
        logs = np.empty((len(rows), chains, 2))
        kept: Kept = np.empty((len(rows), chains, 2, keep, features), self.walk.kept)
        for some, seen, asked in patterns(self.visible[rows], self.hidden[rows]):
            x, cells = self.x[rows[some]], [seen, seen | asked] if ahead else [seen | asked, seen]
            grams = np.array([self.law.gram(one) for one in cells])
            pulls = np.array([self.law.pull(x, one) for one in cells])
            law = self.law
            legs = Legs(grams, pulls, grams[int(ahead)], law.odds, law.tilt, self.numbers[rows[some]])
            logs[some], kept[some] = self.walk(legs, ends[some], chains, levels, keep, key)
            logs[some, :, int(ahead)] += self.law.rest(x, asked)[:, None]
        visible, both = (logs[:, :, leg].T for leg in ((0, 1) if ahead else (1, 0)))
        return Chains(visible, both), kept


def annealed(
    of: Predictor,
    x: Matrix,
    visible: Mask,
    hidden: Mask,
    plan: Sampling,
    start: Numbers,
    lift: Lift | None = None,
) -> Sampled:
    """Scores of rows under the typical law of a predictor, or under one to which `lift` leads from there."""
    walk = kind_of(of).walk(of)
    law, numbers = Law.of(of), row_numbers(start, len(x))
    run = Runner(law, walk, np.where(visible | hidden, x, 0.0), visible, hidden, numbers)
    rows = np.flatnonzero(hidden.any(axis=1))
    trial, made = _trial(run, rows, plan), np.zeros((6, len(x)))
    for i in np.unique(trial.stage):
        some, more = np.flatnonzero(trial.stage == i), 2 ** int(i)
        keep, draws, modes = plan.draws if lift else 1, Draws(plan.seed), trial.modes[some]
        found, kept = run(rows[some], more * plan.chains, more * LEVELS, keep, draws, modes)
        if lift:
            found = _lifted(found, kept, rows[some], lift)
        made[:4, rows[some]] = _scored(found, trial.back.score[some], trial.back.error[some], run.least)
        evidence = found.evidence()
        made[4:, rows[some]] = evidence.score, np.hypot(evidence.error, evidence.bias)
    made[4, rows] += law.rest_of(run.x[rows], visible[rows])
    return Sampled(made[0], made[1], None, *made[2:])


@dataclass(frozen=True)
class Trial:
    """What chains on trial say of rows, in both directions, and where they ended (row, mode, feature)."""

    ahead: LogRatio
    back: LogRatio
    modes: Kept

    @property
    def stage(self) -> NDArray[np.intp]:
        """(row) how often chains and levels are to be doubled."""
        distance = np.abs(self.back.score - self.ahead.score)
        made: NDArray[np.intp] = np.searchsorted(STAGES, np.maximum(self.ahead.error, distance / 4))
        return made


def _trial(run: Runner, rows: NDArray[np.intp], plan: Sampling) -> Trial:
    """Chains that go back may jump between the modes of those that went ahead."""
    chains, features = max(2, plan.chains // 2), len(run.law.odds)
    places, draws = (len(rows), 2 * chains, features), Draws(plan.seed)
    none: Kept = np.empty((len(rows), 0, features), run.walk.kept)
    ahead, kept = run(rows, chains, LEVELS, 1, draws.at(1), none)
    first = kept.reshape(places)
    back, kept = run(rows, chains, LEVELS, 1, draws.at(2), first, ahead=False)
    return Trial(ahead.ratio(), back.ratio(), np.concatenate([first, kept.reshape(places)], axis=1))


def _lifted(found: Chains, kept: Kept, rows: NDArray[np.intp], lift: Lift) -> Chains:
    """Chains with the log of the mean of the lift over their draws at the end of each leg."""
    _, chains, _, keep, _ = kept.shape
    made = np.empty((2, chains, len(rows)))
    for leg in range(2):
        for c in range(chains):
            each = [lift(kept[:, c, leg, t].astype(float), rows, leg) for t in range(keep)]
            made[leg, c] = logsumexp(each, axis=0) - np.log(keep)
    return replace(found, lift_visible=made[0], lift_both=made[1])


def _scored(
    found: Chains, back: Vector, back_error: Vector, least: float
) -> tuple[Vector, Vector, Vector, Vector]:
    """(row) scores, errors, what these have in common, and whether chains disagree."""
    plain, counts = found.ratio(), found.lifted()
    distance = np.abs(back - plain.score)
    apart = distance > APART + ERRORS * np.hypot(plain.error, back_error)
    own = np.maximum(counts.error, np.where(apart, distance / 2, least))
    few = (counts.effective < 2) & (len(found.visible) > 1)
    return counts.score, np.hypot(own, counts.bias), counts.bias, (apart | few).astype(float)
