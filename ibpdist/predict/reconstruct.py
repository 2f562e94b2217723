"""What a fitted model says of the cells of rows, given those that are visible (scores.md 16).

With y = z w of a row, the signal of a cell is s_d = b_d + y A_d. Its mean and variance given the visible
cells follow from E y and C = Cov y (moments.py), with q(A) of the fit for the dictionary:

    E s_d = b_d + E y phi_d,      Var s_d = E y Sigma_d E y' + tr C (phi_d phi_d' + Sigma_d),

and a cell has the noise besides; that of a row is divided by the posterior mean of its precision, where the
fit has a law of it. p(z | visible) is found by enumeration of the patterns of features, where
scores are, and from annealed chains (annealed.py) elsewhere. Draws of a sampler count alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ibpdist.base.randomness import Draws
from ibpdist.base.words import counted
from ibpdist.model.observations.covariance import shrink
from ibpdist.predict.annealed import LEVELS, Law, Runner, typical
from ibpdist.predict.estimates import Numbers, Sampling, row_numbers
from ibpdist.predict.exact import patterns, without_idle
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.moments import Moments, conditional, parts
from ibpdist.predict.predict import CERTAIN, Mask, Matrix, Predictor, Vector
from ibpdist.predict.row_precision import row_precision

LEAST, MORE = 2.0, 4
"""Rows with fewer effective chains than this get so many times the chains and the levels."""
STEP = 0.125
"""Rows whose inferred log precisions differ by less are taken to have the same noise."""
_PAIRS, _CELLS = 1 << 21, 1 << 22
"""Numbers in a block of (feature, feature, column), and of (row, pattern)."""


@dataclass(frozen=True)
class Cells:
    """`mean` (row, column) of the signal, and `variance` (row, column) of a cell, noise included."""

    mean: Matrix
    variance: Matrix


class Reconstructor:
    """A predictor, and how it averages over the features of a row."""

    def __init__(self, of: Predictor, plan: Sampling) -> None:
        self._of, self._plan = without_idle(of), plan
        self._given = conditional(self._of)
        self._free = np.flatnonzero(np.abs(self._of.log_odds) < CERTAIN)

    @property
    def enumerates(self) -> bool:
        return kind_of(self._of).enumerates(len(self._free))

    @property
    def words(self) -> str:
        """How features are averaged over."""
        if self.enumerates:
            return f"exact over {counted(2 ** len(self._free), 'pattern')} of features"
        return f"{self._plan.chains} annealed chains a row over {counted(self._of.features, 'feature')}"

    def __call__(self, x: Matrix, visible: Mask, numbers: Numbers) -> Cells:
        """Cells of rows x (row, column) with these global numbers, or with those from one on."""
        of, named = self._of, row_numbers(numbers, len(x))
        offset = 0.0 if of.intercept is None else of.intercept.mean
        seen = np.where(visible, x - offset, 0.0)
        if of.freedom is None:
            return self._at(seen, visible, named, offset)
        level = np.rint(np.log(row_precision(of, seen, visible, self._plan, named)) / STEP)
        made = Cells(np.empty(x.shape), np.empty(x.shape))
        for one in np.unique(level):
            rows = np.flatnonzero(level == one)
            even = replace(of, freedom=None, precision=float(np.exp(one * STEP)))
            part = Reconstructor(even, self._plan)._at(seen[rows], visible[rows], named[rows], offset)
            made.mean[rows], made.variance[rows] = part.mean, part.variance
        return made

    def _at(self, x: Matrix, visible: Mask, numbers: NDArray[np.intp], offset: Vector | float) -> Cells:
        """Cells of rows whose noise is known."""
        found = self._enumerated(x, visible) if self.enumerates else self._chains(x, visible, numbers)
        return _cells(self._of, found, offset)

    def _enumerated(self, x: Matrix, visible: Mask) -> Moments:
        """Over all patterns of the features that are not certain, a block of them after the other."""
        of, cells = self._of, visible.astype(float)
        density, total = kind_of(of).density(of), np.full(len(x), -np.inf)
        made, count = Moments.none(len(x), of.features), 2 ** len(self._free)
        step = max(1, min(_CELLS // max(len(x), 1), _CELLS // len(of.noise)))
        for at in range(0, count, step):
            z = self._patterns(at, min(at + step, count))
            logs = of.log_prior(z) + density.grid(x, cells, z)
            before, total = total, np.logaddexp(total, logsumexp(logs, axis=1))
            share = np.exp(logs - total[:, None])
            made = made.scaled(np.exp(before - total)) + self._given.over(x, cells, z, share)
        return made

    def _patterns(self, start: int, stop: int) -> Matrix:
        z = np.tile((self._of.log_odds > 0).astype(float), (stop - start, 1))
        z[:, self._free] = patterns(len(self._free), start, stop)
        return z

    def _chains(self, x: Matrix, visible: Mask, numbers: NDArray[np.intp]) -> Moments:
        """Over draws of annealed chains, each chain by its weight; rows in which one chain has most of it
        get more of them."""
        found, effective = self._drawn(np.arange(len(x)), x, visible, numbers, 1)
        few = np.flatnonzero(effective < min(LEAST, self._plan.chains))
        for some in np.array_split(few, MORE):  # a row of these takes so much more memory
            if some.size:
                again, _ = self._drawn(some, x, visible, numbers, MORE)
                found.mean[some], found.second[some] = again.mean, again.second
        return found

    def _drawn(
        self, rows: NDArray[np.intp], x: Matrix, visible: Mask, numbers: NDArray[np.intp], more: int
    ) -> tuple[Moments, Vector]:
        """Moments of some rows, and their effective number of chains (row)."""
        of, plan, chains = typical(self._of), self._plan, more * self._plan.chains
        run = Runner(Law.of(of), kind_of(of).walk(of), x, visible, np.zeros_like(visible), numbers)
        none, seed = np.empty((len(rows), 0, of.features), np.uint8), Draws(plan.seed)
        modes = none
        if run.walk.modes:
            _, ends = run(rows, plan.chains, more * LEVELS, 1, seed.at(1), none)
            modes = ends.reshape(len(rows), -1, of.features)
        found, kept = run(rows, chains, more * LEVELS, plan.draws, seed, modes)
        given = x[rows], visible[rows].astype(float)
        n, z, which = _patterns_met(kept)
        logs = (found.visible.T[:, :, None] + self._lift(*given, n, z)[which]).reshape(len(rows), -1)
        share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        by_chain = share.reshape(len(rows), chains, -1).sum(axis=2)
        shares: Vector = np.bincount(which.ravel(), share.ravel(), len(n)).astype(float)
        return self._given.paired(*given, n, z, shares), 1 / np.square(by_chain).sum(axis=1)

    def _lift(self, x: Matrix, cells: Matrix, rows: NDArray[np.intp], z: Matrix) -> Vector:
        """(pair) log density of the visible cells of a row under a pattern above that of the chains."""
        made, kind = np.zeros(len(rows)), kind_of(self._of)
        if self._of.certain:
            return made
        full, chains = kind.density(self._of), kind.density(typical(self._of))
        for part in parts(len(rows), int(z.sum(axis=1).max(initial=1)) * x.shape[1]):
            given = x[rows[part]], cells[rows[part]], z[part]
            made[part] = full.each(*given) - chains.each(*given)
        return made


@dataclass(frozen=True)
class Mixture:
    """The mean over several reconstructors, those of the draws of a sampler."""

    each: Sequence[Reconstructor]

    @property
    def words(self) -> str:
        words = " or ".join(dict.fromkeys(one.words for one in self.each))
        return words if len(self.each) == 1 else f"mean over {len(self.each)} draws of the posterior: {words}"

    def __call__(self, x: Matrix, visible: Mask, start: int) -> Cells:
        mean, second = np.zeros(x.shape), np.zeros(x.shape)
        for one in self.each:
            cells = one(x, visible, start)
            mean += cells.mean / len(self.each)
            second += (cells.variance + np.square(cells.mean)) / len(self.each)
        return cells if len(self.each) == 1 else Cells(mean, second - np.square(mean))


def reconstructor(of: Sequence[Predictor], plan: Sampling) -> Mixture:
    """What reconstructs rows with the predictor of a fit, or with those of the draws of a sampler."""
    return Mixture([Reconstructor(one, plan) for one in of])


def _patterns_met(kept: NDArray[np.uint8]) -> tuple[NDArray[np.intp], Matrix, NDArray[np.intp]]:
    """Pairs of a row and a pattern that its draws (row, chain, leg, draw, feature) have met: rows (pair),
    patterns (pair, feature), and the pair of each draw (row, chain, draw)."""
    count, chains, features = len(kept), kept.shape[1], kept.shape[-1]
    flat = kept.reshape(-1, features)
    row = np.repeat(np.arange(count, dtype=">u4"), len(flat) // max(count, 1))
    keys = np.concatenate([row[:, None].view(np.uint8), np.packbits(flat, axis=1)], axis=1)
    one = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1]))).ravel()
    _, first, which = np.unique(one, return_index=True, return_inverse=True)
    return row[first].astype(np.intp), flat[first].astype(float), which.reshape(count, chains, -1)


def _cells(of: Predictor, found: Moments, offset: Vector | float) -> Cells:
    """Signal and cells of rows with these moments of y."""
    variance = of.cell_noise + of.variance(found.mean)
    spread = found.covariance.reshape(len(found.mean), -1)
    for block, pairs in _pairs(of):
        variance[:, block] += np.maximum(spread @ pairs, 0.0)
    return Cells(found.mean @ of.mean + offset, variance)


def _pairs(of: Predictor) -> Iterator[tuple[slice, Matrix]]:
    """Blocks of columns, and phi_d phi_d' + Sigma_d of each (feature times feature, column)."""
    size, columns = of.features**2, len(of.noise)
    step, spread = max(1, _PAIRS // max(1, size)), shrink(of.spectrum[of.group].T, of.noise)
    for at in range(0, columns, step):
        block = slice(at, min(at + step, columns))
        mean = of.mean[:, block]
        pairs = (mean[:, None] * mean[None]).reshape(size, -1)
        turn = of.group[block] if len(of.basis) > 1 else np.zeros_like(of.group[block])
        for g in np.unique(turn) if of.basis.any() else ():
            basis, here = of.basis[g], turn == g
            along = (basis[:, None] * basis[None]).reshape(size, -1)
            pairs[:, here] += along @ spread[:, block][:, here]
        yield block, pairs
