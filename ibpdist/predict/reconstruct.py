"""What a fitted model says of rows, given the cells that are visible: their features, weights and precision,
and their other cells (scores.md 16).

With y = z w of a row, the signal of a cell is s_d = b_d + y A_d. Its mean and variance given the visible
cells follow from E y and C = Cov y (moments.py), with q(A) of the fit for the dictionary:

    E s_d = b_d + E y phi_d,      Var s_d = E y Sigma_d E y' + tr C (phi_d phi_d' + Sigma_d),

and a cell has the noise besides; that of a row is divided by the posterior mean of its precision, where the
fit has a law of it. p(z | visible) is found by enumeration of the patterns of features, where
scores are, and from annealed chains (annealed.py) elsewhere; where the precision has a law, it is averaged
over the posterior of that. Draws of a sampler count alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from ibpdist.base.randomness import Draws
from ibpdist.base.words import counted
from ibpdist.model.observations.covariance import shrink
from ibpdist.predict.annealed import LEVELS, Law, Runner, typical
from ibpdist.predict.estimates import Numbers, Sampling, row_numbers
from ibpdist.predict.exact import not_idle, patterns, without_idle
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.moments import Moments, conditional, parts
from ibpdist.predict.predict import Mask, Matrix, Predictor, Vector
from ibpdist.predict.row_precision import row_precision
from ibpdist.predict.walks import Kept

LEAST, MORE = 2.0, 4
"""Rows with fewer effective chains than this get so many times the chains and the levels."""
SCARCE = 1e-3
"""Least E z of which weights given z = 1 are found as a ratio to it; below they are the prior's."""
_PAIRS, _CELLS = 1 << 21, 1 << 22
"""Numbers in a block of (feature, feature, column), and of (row, pattern)."""


@dataclass(frozen=True)
class Cells:
    """`mean` (row, column) of the signal, and `variance` (row, column) of a cell, noise included."""

    mean: Matrix
    variance: Matrix


@dataclass(frozen=True)
class RowPosterior:
    """Posterior means of rows given their visible cells: E z, `z` (row, feature), the weight of a feature
    where the row has it, `w` (row, feature), and E tau, `precision` (row); z w is E y."""

    z: Matrix
    w: Matrix
    precision: Vector


class Reconstructor:
    """A predictor, and how it averages over the features of a row."""

    def __init__(self, of: Predictor, plan: Sampling) -> None:
        self._whole, self._plan = of, plan
        self._of, self._kept = without_idle(of), not_idle(of)
        self._kind = kind_of(self._of)
        self._given = conditional(self._of)
        self._free = self._kind.undecided(self._of)

    @property
    def predictor(self) -> Predictor:
        """The predictor with all of its features."""
        return self._whole

    @property
    def enumerates(self) -> bool:
        return self._kind.enumerates(len(self._free))

    @property
    def words(self) -> str:
        """How features are averaged over."""
        if self.enumerates:
            return f"exact over {counted(2 ** len(self._free), 'pattern')} of features"
        return f"{self._plan.chains} annealed chains a row over {counted(self._of.features, 'feature')}"

    def __call__(self, x: Matrix, visible: Mask, numbers: Numbers) -> Cells:
        """Cells of rows x (row, column) with these global numbers, or with those from one on."""
        return self.posterior(x, visible, numbers)[1]

    def posterior(self, x: Matrix, visible: Mask, numbers: Numbers) -> tuple[RowPosterior, Cells]:
        """The features of rows and their cells."""
        of, named = self._of, row_numbers(numbers, len(x))
        offset = 0.0 if of.intercept is None else of.intercept.mean
        seen = np.where(visible, x - offset, 0.0)
        tau = row_precision(of, seen, visible, self._plan, named)
        found = Moments.none(len(x), of.features)
        for value, rows, shares in tau.points():
            even = self._with_noise_of(value)
            part = even._moments(seen[rows], visible[rows], named[rows])
            found.add(rows, part.scaled(shares))
        return self._features(found, tau.mean), _cells(of, found, offset, tau.mean)

    def _with_noise_of(self, precision: float) -> Reconstructor:
        """For rows whose precision is known."""
        if self._of.freedom is None:
            return self
        return Reconstructor(replace(self._of, freedom=None, precision=precision), self._plan)

    def _features(self, found: Moments, precision: Vector) -> RowPosterior:
        """Of all features; those that were left out have the prior."""
        of, rows = self._whole, len(precision)
        z, w = np.tile(expit(of.log_odds), (rows, 1)), np.tile(of.weight_mean, (rows, 1))
        z[:, self._kept] = np.clip(found.on, 0.0, 1.0)
        known = found.on > SCARCE
        w[:, self._kept] = np.divide(found.mean, found.on, out=w[:, self._kept], where=known)
        return RowPosterior(z, w, precision)

    def _moments(self, x: Matrix, visible: Mask, numbers: NDArray[np.intp]) -> Moments:
        """Of rows whose noise is known."""
        return self._enumerated(x, visible) if self.enumerates else self._chains(x, visible, numbers)

    def _enumerated(self, x: Matrix, visible: Mask) -> Moments:
        """Over all patterns of the features that are not certain, a block of them after the other."""
        of, cells = self._of, visible.astype(float)
        density, total = self._kind.density(of), np.full(len(x), -np.inf)
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
                found.put(some, again)
        return found

    def _drawn(
        self, rows: NDArray[np.intp], x: Matrix, visible: Mask, numbers: NDArray[np.intp], more: int
    ) -> tuple[Moments, Vector]:
        """Moments of some rows, and their effective number of chains (row)."""
        of, plan, chains = typical(self._of), self._plan, more * self._plan.chains
        run = Runner(Law.of(of), self._kind.walk(of), x, visible, np.zeros_like(visible), numbers)
        none: Kept = np.empty((len(rows), 0, of.features), run.walk.kept)
        modes, seed = none, Draws(plan.seed)
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
        made, density = np.zeros(len(rows)), self._kind.density
        if self._of.certain:
            return made
        full, chains = density(self._of), density(typical(self._of))
        for part in parts(len(rows), int((z != 0).sum(axis=1).max(initial=1)) * x.shape[1]):
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


def _patterns_met(kept: Kept) -> tuple[NDArray[np.intp], Matrix, NDArray[np.intp]]:
    """Pairs of a row and a pattern that its draws (row, chain, leg, draw, feature) have met: rows (pair),
    patterns (pair, feature), and the pair of each draw (row, chain, draw)."""
    count, chains, features = len(kept), kept.shape[1], kept.shape[-1]
    flat = kept.reshape(-1, features)
    row = np.repeat(np.arange(count, dtype=">u4"), len(flat) // max(count, 1))
    packed = np.packbits(flat, axis=1) if flat.dtype == np.uint8 else flat.view(np.uint8)
    keys = np.concatenate([row[:, None].view(np.uint8), packed], axis=1)
    one = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1]))).ravel()
    _, first, which = np.unique(one, return_index=True, return_inverse=True)
    return row[first].astype(np.intp), flat[first].astype(float), which.reshape(count, chains, -1)


def _cells(of: Predictor, found: Moments, offset: Vector | float, precision: Vector) -> Cells:
    """Signal and cells of rows with these moments of y and these precisions."""
    variance = of.cell_noise + np.outer(1 / precision - 1, of.noise / of.precision) + of.variance(found.mean)
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
