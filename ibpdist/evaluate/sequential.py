"""log p(hidden | visible) of rows with weights: in closed form, or from left to right.

The law is that of a row under a dictionary taken for its mean, with cells as much noisier as its
variance makes them on average: psi_d = noise_d + sum_k chance_k Sigma_d,kk. It is one law for all
z, so its conditionals can be multiplied: the hidden columns come in blocks, each is predicted
from the visible cells and the blocks before it, averaged over Gibbs chains, and then becomes
visible. Averages over whole rows of hidden cells would need draws without end (scores.md 6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from ibpdist.draws import Draws
from ibpdist.evaluate.predict import CERTAIN, LOG_2PI, Matrix, Predictor, Vector
from ibpdist.evaluate.sampled import Sampled, Sampling
from ibpdist.kernels.chains import left_to_right

Mask = NDArray[np.bool_]

BURN, KEEP = 30, 4
BLOCKS, BLOCK = 10, 40
"""Most blocks of columns, and fewest columns of one; some of them are hidden."""


@dataclass(frozen=True)
class Law:
    """`mean` (feature, column), `psi` (column), `odds` (feature)."""

    mean: Matrix
    psi: Vector
    odds: Vector

    @classmethod
    def of(cls, predictor: Predictor) -> Law:
        chance = expit(predictor.log_odds)
        psi = predictor.cell_noise + chance @ predictor.variances()
        return cls(predictor.mean, psi, np.clip(predictor.log_odds, -CERTAIN, CERTAIN))

    def gram(self, seen: Mask) -> Matrix:
        found: Matrix = (self.mean * (seen / self.psi)) @ self.mean.T
        return found

    def pull(self, x: Matrix, seen: Mask) -> Matrix:
        """(row, feature)"""
        found: Matrix = (x * (seen / self.psi)) @ self.mean.T
        return found

    def rest(self, x: Matrix, cells: Mask) -> Vector:
        """(row) what does not depend on the features: x of `cells` under the noise alone."""
        fixed = (np.log(self.psi) + LOG_2PI)[cells].sum()
        made: Vector = -0.5 * (fixed + np.square(x) @ (cells / self.psi))
        return made


def everywhere(of: Predictor) -> bool:
    """Whether rows have every feature for certain."""
    return of.weights == "normal" and bool((of.log_odds >= CERTAIN).all())


def closed(
    of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: int = 0
) -> tuple[Sampled, Sampled]:
    """Rows that have every feature: x ~ N(0, A'A + diag(psi)), plug-in and with the dictionary's variance."""
    plug, full = (_closed(Law.of(one), x, visible, hidden) for one in (of.plug_in(), of))
    zero = np.zeros(len(x))
    return Sampled(plug, zero), Sampled(full, zero)


def sequential(
    of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: int = 0
) -> tuple[Sampled, Sampled]:
    """From left to right, plug-in and with the dictionary's variance; `start` numbers the first row."""
    plug, full = (_sequential(Law.of(one), x, visible, hidden, plan, start) for one in (of.plug_in(), of))
    return plug, full


def _closed(law: Law, x: Matrix, visible: Mask, hidden: Mask) -> Vector:
    made = np.empty(len(x))
    for rows, seen, asked in _patterns(visible, hidden):
        both, shown = (_evidence(law, x[rows], cells) for cells in (seen | asked, seen))
        made[rows] = both - shown + law.rest(x[rows], asked)
    return made


def _evidence(law: Law, x: Matrix, seen: Mask) -> Vector:
    """(row) F' M^-1 F / 2 - log |M| / 2 with all features on."""
    lower = np.linalg.cholesky(np.eye(len(law.odds)) + law.gram(seen))
    half = np.linalg.solve(lower, law.pull(x, seen).T)
    made: Vector = 0.5 * np.square(half).sum(axis=0) - np.log(np.diagonal(lower)).sum()
    return made


def _sequential(law: Law, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: int) -> Sampled:
    made, error = np.zeros(len(x)), np.zeros(len(x))
    draws = Draws(plan.seed)
    blocks = _blocks(x.shape[1], draws)
    key = draws.key("left to right")
    for rows, seen, asked in _patterns(visible, hidden):
        grams, pulls, now = [law.gram(seen)], [law.pull(x[rows], seen)], seen.copy()
        for block in blocks:
            now[block] |= asked[block]
            grams.append(law.gram(now))
            pulls.append(law.pull(x[rows], now))
        terms = left_to_right(
            np.array(grams), np.array(pulls), law.odds, start + rows, plan.chains, BURN, KEEP, key
        )
        found = _jackknife(terms)
        made[rows], error[rows] = found.score + law.rest(x[rows], asked), found.error
    return Sampled(made, error)


def _blocks(columns: int, draws: Draws) -> list[NDArray[np.intp]]:
    """All columns in random order, cut into blocks: the same for every row."""
    order = draws.generator("blocks").permutation(columns)
    return np.array_split(order, int(np.clip(columns // BLOCK, 1, BLOCKS)))


def _patterns(visible: Mask, hidden: Mask) -> list[tuple[NDArray[np.intp], Mask, Mask]]:
    """Rows with the same visible and hidden cells, and these."""
    both = np.concatenate([visible, hidden], axis=1)
    found, which = np.unique(both, axis=0, return_inverse=True)
    columns = visible.shape[1]
    return [(np.flatnonzero(which.ravel() == i), one[:columns], one[columns:]) for i, one in enumerate(found)]


def _jackknife(terms: NDArray[np.float64]) -> Sampled:
    """Sum over blocks of log means over chains (row, block, chain), with the jackknife's standard error.

    Its correction of the bias is left out: where one chain alone has found the row, it overshoots
    without limit. So the score is low rather than high.
    """
    chains = terms.shape[2]
    whole = (logsumexp(terms, axis=2) - np.log(chains)).sum(axis=1)
    if chains == 1:
        return Sampled(whole, np.full(whole.shape, np.nan))
    left_out = np.array(
        [
            (logsumexp(np.delete(terms, c, axis=2), axis=2) - np.log(chains - 1)).sum(axis=1)
            for c in range(chains)
        ]
    )
    mean = left_out.mean(axis=0)
    error = np.sqrt((chains - 1) / chains * np.square(left_out - mean).sum(axis=0))
    return Sampled(whole, error)
