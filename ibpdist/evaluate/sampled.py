"""log p(hidden | visible) from annealed Gibbs draws of z, with its Monte Carlo error.

Every row has several independent chains. A chain starts at the prior, is cooled (the
likelihood of the visible cells to the powers 1/64 .. 1) and then keeps its draws. Where there
are several modes, chains end in each as often as cooling leads there, not as often as it is
probable, so they count with the weights of annealed importance sampling: the product over the
steps t of p_plug(visible | z before step t) to the power that was added. A chain moves
under the plug-in dictionary, where a flip costs nothing but a row of the Gram matrix; the
variance of the dictionary comes in by the weights r(z) = p(visible | z) / p_plug(visible | z):

    p(hidden | visible) = E[r(z) p(hidden | visible, z)] / E[r(z)].

The score of a row is the jackknife over chains of the log of that ratio, which takes out the
bias of a log of a mean to first order, and its error is the jackknife's standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from ibpdist.draws import Draws
from ibpdist.evaluate.predict import Density, Matrix, Predictor, Vector, density

_FREE, _COOLING, _SETTLE = 1 / 64, 24, 6
_NUMBERS = 1 << 22
"""Numbers in the largest array of a block of rows."""


@dataclass(frozen=True)
class Sampling:
    """Chains a row, kept draws a chain, and the seed."""

    chains: int = 8
    draws: int = 25
    seed: int = 0


@dataclass(frozen=True)
class Shared:
    """Error of the sum of the scores of a block of rows: `parts` (part) that are independent of each other
    and the same in every block, and the variance of what is the block's own."""

    parts: Vector
    own: float


@dataclass(frozen=True)
class Sampled:
    """(row,) log p(hidden | visible) and its Monte Carlo error, for one way to treat the dictionary; errors
    of rows are independent unless `shared` says what they have in common."""

    score: Vector
    error: Vector
    shared: Shared | None = None


def together(blocks: Sequence[Sampled]) -> float:
    """Monte Carlo error of the sum of the scores of all rows of several blocks."""
    shared = [block.shared for block in blocks if block.shared is not None]
    own = sum(float((block.error**2).sum()) for block in blocks if block.shared is None)
    common = np.sum([one.parts for one in shared], axis=0)
    return float(np.sqrt(own + sum(one.own for one in shared) + np.square(common).sum()))


def sampled(
    of: Predictor,
    x: Matrix,
    visible: NDArray[np.bool_],
    hidden: NDArray[np.bool_],
    plan: Sampling,
    start: int = 0,
) -> tuple[Sampled, Sampled]:
    """Plug-in and with the variance of the dictionary; `start` is the global number of the first row."""
    if not len(x):
        empty = Sampled(np.empty(0), np.empty(0))
        return empty, empty
    step = max(1, _NUMBERS // max(of.features**2, of.features * len(of.noise), 1))
    blocks = [_block(of, x[i : i + step], visible[i : i + step], hidden[i : i + step], plan, start + i)
              for i in range(0, len(x), step)]  # fmt: skip
    plug, full = (np.concatenate([b[i] for b in blocks], axis=-1) for i in (0, 1))
    return _jackknife(plug[0], plug[1]), _jackknife(full[0], full[1])


def _block(
    of: Predictor,
    x: Matrix,
    visible: NDArray[np.bool_],
    hidden: NDArray[np.bool_],
    plan: Sampling,
    start: int,
) -> tuple[Matrix, Matrix]:
    """(2, chain, row) log numerators and denominators of the two ratios."""
    cells = Cells.of(x, visible, hidden)
    plug = _Ratio(density(of.plug_in()), cells)
    full = plug if of.certain else _Ratio(density(of), cells)
    chain = Chain.of(of, cells)
    made = np.empty((2, 2, plan.chains, len(x)))
    for c in range(plan.chains):
        weight, kept = chain.run(Draws(plan.seed, chain=c), start, plan.draws)
        terms = np.array([_terms(z, plug, full) for z in kept])
        made[:, :, c] = weight + logsumexp(terms, axis=0) - np.log(plan.draws)
    return made[0], made[1]


def _terms(z: Matrix, plug: _Ratio, full: _Ratio) -> Matrix:
    """(2, 2, row) log numerator and denominator of both estimates for one draw."""
    seen, both = plug(z)
    seen_full, both_full = (seen, both) if full is plug else full(z)
    return np.array([[both - seen, np.zeros(len(z))], [both_full - seen, seen_full - seen]])


@dataclass(frozen=True)
class Cells:
    """A block of rows, zero outside the visible and outside the visible and hidden cells."""

    visible: Matrix
    both: Matrix
    x_visible: Matrix
    x_both: Matrix

    @staticmethod
    def of(x: Matrix, visible: NDArray[np.bool_], hidden: NDArray[np.bool_]) -> Cells:
        both = visible | hidden
        return Cells(
            visible.astype(float), both.astype(float), np.where(visible, x, 0.0), np.where(both, x, 0.0)
        )


@dataclass(frozen=True)
class _Ratio:
    """log p(visible | z) and log p(visible, hidden | z) of the rows."""

    law: Density
    cells: Cells

    def __call__(self, z: Matrix) -> tuple[Vector, Vector]:
        seen = self.law.each(self.cells.x_visible, self.cells.visible, z)
        return seen, self.law.each(self.cells.x_both, self.cells.both, z)


@dataclass(frozen=True)
class Chain:
    """Gibbs sweeps over z (and w) given the visible cells, under the plug-in dictionary.

    `pull` (row, feature) is A (x / noise) and `gram` (mask, feature, feature) is A diag(1/noise) A'
    over the cells of each visible mask; `mask` (row) says which.
    """

    log_odds: Vector
    weights: str
    pull: Matrix
    gram: NDArray[np.float64]
    mask: NDArray[np.intp]

    @staticmethod
    def of(of: Predictor, cells: Cells) -> Chain:
        masks, mask = np.unique(cells.visible, axis=0, return_inverse=True)
        scaled = of.mean / of.cell_noise
        gram = np.array([(scaled * m) @ of.mean.T for m in masks])
        return Chain(of.log_odds, of.weights, cells.x_visible @ scaled.T, gram, mask.ravel())

    def run(self, draws: Draws, start: int, keep: int) -> tuple[Vector, list[Matrix]]:
        """The log weight (row) and the kept draws of z (row, feature) of one chain."""
        rows, features = self.pull.shape
        first = draws.uniform("heldout z", start, rows, features).T
        z = (expit(self.log_odds) > first).astype(float)
        y, move, kept = z.copy(), self._move(), []
        powers = [*np.geomspace(_FREE, 1.0, _COOLING), *np.ones(_SETTLE + keep)]
        weight, before = np.zeros(rows), 0.0
        for t, power in enumerate(powers, start=1):
            now = draws.at(t)
            weight, before = weight + (power - before) * self._likelihood(y), power
            flips = now.uniform("heldout z", start, rows, features).T
            normals = now.normal("heldout w", start, rows, features).T if self.weights == "normal" else flips
            for k in range(features):
                loads = self.gram[:, k][self.mask]
                quad = power * loads[:, k]
                linear = power * (self.pull[:, k] - np.einsum("nk,nk->n", y, loads)) + quad * y[:, k]
                z[:, k], y[:, k] = move(self.log_odds[k], linear, quad, flips[:, k], normals[:, k])
            if t > _COOLING + _SETTLE:
                kept.append(z.copy())
        return weight, kept

    def _likelihood(self, y: Matrix) -> Vector:
        """(row) log p(visible | y), up to a constant."""
        pulled = self.pull - 0.5 * np.einsum("nkl,nl->nk", self.gram[self.mask], y)
        return np.asarray(np.einsum("nk,nk->n", y, pulled))

    def _move(self) -> Callable[..., tuple[Vector, Vector]]:
        return {"unit": _flip_unit, "normal": _flip_normal}[self.weights]


def _flip_unit(
    odds: float, linear: Vector, quad: Vector, uniform: Vector, normal: Vector
) -> tuple[Vector, Vector]:
    z = (uniform < expit(odds + linear - quad / 2)).astype(float)
    return z, z


def _flip_normal(
    odds: float, linear: Vector, quad: Vector, uniform: Vector, normal: Vector
) -> tuple[Vector, Vector]:
    """z with its own w integrated out, then w given z."""
    width = 1 / (1 + quad)
    z = (uniform < expit(odds + (np.log(width) + width * linear**2) / 2)).astype(float)
    return z, z * (width * linear + np.sqrt(width) * normal)


def _jackknife(above: Matrix, below: Matrix) -> Sampled:
    """Log ratio of means over chains (chain, row), corrected, with its standard error."""
    chains = len(above)
    whole = logsumexp(above, axis=0) - logsumexp(below, axis=0)
    if chains == 1:
        return Sampled(whole, np.full(whole.shape, np.nan))
    left_out = np.array([_without(above, c) - _without(below, c) for c in range(chains)])
    mean = left_out.mean(0)
    error = np.sqrt((chains - 1) / chains * ((left_out - mean) ** 2).sum(0))
    # Where one chain alone has found the row, the correction would overshoot without limit.
    most = np.log(chains)
    corrected = np.clip(chains * whole - (chains - 1) * mean, whole - most, whole + most)
    return Sampled(corrected, error)


def _without(terms: Matrix, chain: int) -> Vector:
    made: Vector = logsumexp(np.delete(terms, chain, axis=0), axis=0)
    return made
