"""Rows whose noise is inferred from their visible cells.

The noise of a cell is N(0, psi_d / tau_n) with tau_n ~ Gamma(nu/2, nu/2), and so

    p(hidden | visible) = int p(visible, hidden | tau) p(tau) dtau / int p(visible | tau) p(tau) dtau

is a mixture over tau whose shares are its posterior given the visible cells (scores.md 15). Rows are scored
by the estimator of their kind at a few values of log tau each, at even distances that cover the posterior
given the visible cells and that given all cells. Between them the log evidence is that of the dense law
(dense_law.py) plus a cubic spline through what the estimator adds to it, so that the distances can be larger
than the width of the posterior. Values are points of one grid, and rows that need the same are scored
together.

Errors are propagated to first order. With a_j and b_j the shares of value j in the integrals over all cells
and over the visible ones, the score moves by

    sum_j a_j ds_j + sum_j (a_j - b_j) dE_j

when the score at value j moves by ds_j and the log evidence of the visible cells by dE_j. Chains at several
values use the same random numbers, so errors of the first sum are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibpdist.predict.dense_law import dense_curves
from ibpdist.predict.estimates import Numbers, Sampled, Sampling, row_numbers
from ibpdist.predict.exact import estimate_of
from ibpdist.predict.kinds import Estimate
from ibpdist.predict.precision_grid import GRID, Integral
from ibpdist.predict.precision_nodes import Nodes
from ibpdist.predict.predict import Mask, Matrix, Predictor, Vector

WIDTH = 3.0
"""Nats below its maximum down to which the posterior of log tau is covered by values."""
ONE = int(np.abs(GRID).argmin())
"""Place on the grid where tau is one."""
_ROUNDS = 4
_FIELDS = 6


@dataclass(frozen=True)
class Along:
    """Log densities of rows along their precision, for one way to treat the dictionary.

    `visible` and `both` (row, grid) are those of the visible and of all cells under the dense law. `found`
    (field, row, grid) is what an estimate gives at the nodes: the score, its own error, its bias, the share
    of chains that disagree, the evidence of the visible cells and its error.
    """

    freedom: float
    visible: Matrix
    both: Matrix
    found: NDArray[np.float64]

    @classmethod
    def unscored(cls, of: Predictor, x: Matrix, visible: Mask, hidden: Mask) -> Along:
        """Rows that no estimate has scored yet."""
        seen, both = (dense_curves(of, x, cells) for cells in (visible, visible | hidden))
        return cls(_freedom(of), seen, both, np.full((_FIELDS, *seen.shape), np.nan))

    def integrals(self, nodes: Nodes | None) -> tuple[Integral, Integral]:
        """Over all cells, and over the visible ones; under the dense law where no node is given."""
        curves = (self.both, self.visible) if nodes is None else self._interpolated(nodes)
        both, visible = (Integral.of(curve, self.freedom) for curve in curves)
        return both, visible

    def _interpolated(self, nodes: Nodes) -> tuple[Matrix, Matrix]:
        """(row, grid) log densities of all cells, and of the visible ones, through those at the nodes."""
        both, visible = self.both.copy(), self.visible.copy()
        for rows, places in nodes.groups():
            score, _, _, _, evidence, _ = self.at(rows, places)
            shares = nodes.shares(rows, np.broadcast_to(GRID, (len(rows), len(GRID))))
            for curve, value in ((both, evidence + score), (visible, evidence)):
                more = value - np.take_along_axis(curve[rows], places, axis=1)
                curve[rows] += np.einsum("npj,nj->np", shares, more)
        return both, visible

    def at(self, rows: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.float64]:
        """(field, row, value) what the estimate gave at places (row, value) of the grid."""
        made: NDArray[np.float64] = self.found[:, rows[:, None], places]
        return made

    def range(self, nodes: Nodes | None) -> tuple[Vector, Vector]:
        """(row) least and largest log tau that matter for the score. Where no cell is visible there is
        nothing to interpolate of the visible ones."""
        both, visible = (one.range(WIDTH) for one in self.integrals(nodes))
        blank = ~self.visible.any(axis=1)
        low, high = (np.where(blank, one, other) for one, other in zip(both, visible, strict=True))
        return _joined(both, (low, high))

    def mixed(self, nodes: Nodes) -> Sampled:
        """Scores with tau integrated out, and their Monte Carlo errors."""
        both, visible = self.integrals(nodes)
        made = np.zeros((4, len(self.both)))
        for rows, places in nodes.groups():
            a, b = (_at_nodes(one, nodes, rows) for one in (both, visible))
            made[:, rows] = _errors(a, b, self.at(rows, places))
        error, bias, apart, uncertain = made
        score = both.log - visible.log
        return Sampled(score, np.hypot(error, bias), None, bias, apart, visible.log, uncertain)


@dataclass(frozen=True)
class Rows:
    """Rows (row, column), and the estimate that scores them at a given precision."""

    estimate: Estimate
    of: Predictor
    x: Matrix
    visible: Mask
    hidden: Mask
    plan: Sampling
    numbers: NDArray[np.intp]

    def along(self) -> tuple[Nodes, tuple[Along, Along]]:
        """Plug-in and with variance: at nodes that cover the posterior under the dense law, and at others for
        as long as the posterior is found to lie elsewhere."""
        plug, full = (
            Along.unscored(one, self.x, self.visible, self.hidden) for one in (self.of.plug_in(), self.of)
        )
        low, high = _joined(plug.range(None), full.range(None))
        nodes = Nodes.covering(low, high)
        for _ in range(_ROUNDS):
            plug, full = self._scored(plug, full, nodes)
            low, high = _joined((low, high), plug.range(nodes), full.range(nodes))
            wider = Nodes.covering(low, high)
            if (wider.places() == nodes.places()).all():
                break
            nodes = wider
        return nodes, self._scored(plug, full, nodes)

    def _scored(self, plug: Along, full: Along, nodes: Nodes) -> tuple[Along, Along]:
        """With what the estimate gives at the nodes where it was not asked before."""
        missing = nodes.places() & np.isnan(full.found[0])
        found = np.array([plug.found, full.found])
        for place in np.flatnonzero(missing.any(axis=0)):
            rows = np.flatnonzero(missing[:, place])
            found[:, :, rows, place] = [_fields(one) for one in self._at(rows, float(np.exp(GRID[place])))]
        return replace(plug, found=found[0]), replace(full, found=found[1])

    def _at(self, rows: NDArray[np.intp], precision: float) -> tuple[Sampled, Sampled]:
        of, cells = replace(self.of, precision=precision), (self.visible[rows], self.hidden[rows])
        return self.estimate(of, self.x[rows], *cells, self.plan, self.numbers[rows])


@dataclass(frozen=True)
class Inferred:
    """An estimate for rows whose precision is inferred from their visible cells."""

    estimate: Estimate

    def __call__(
        self, of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: Numbers = 0
    ) -> tuple[Sampled, Sampled]:
        """Plug-in and with the variance of the dictionary; rows that hide nothing score zero."""
        some = np.flatnonzero(hidden.any(axis=1))
        if not some.size:
            zero = np.zeros(len(x))
            return Sampled(zero, zero), Sampled(zero, zero)
        nodes, parts = _rows(self.estimate, of, x, visible, hidden, plan, start, some).along()
        plug, full = (_spread(part.mixed(nodes), some, len(x)) for part in parts)
        return plug, full


@dataclass(frozen=True)
class PrecisionPosterior:
    """What the visible cells of rows say of tau: its posterior `mean` (row), and the share (row, grid) that
    a function of log tau has at points of the grid in its posterior mean.

    Shares belong to a spline through few points, so that some of them are slightly negative.
    """

    mean: Vector
    shares: Matrix

    @classmethod
    def known(cls, rows: int) -> PrecisionPosterior:
        """Of rows whose precision is one."""
        shares = np.zeros((rows, len(GRID)))
        shares[:, ONE] = 1.0
        return cls(np.ones(rows), shares)

    def points(self) -> Iterator[tuple[float, NDArray[np.intp], Vector]]:
        """Values of tau, the rows that have a share there, and their shares."""
        for place in np.flatnonzero(self.shares.any(axis=0)):
            rows = np.flatnonzero(self.shares[:, place])
            yield float(np.exp(GRID[place])), rows, self.shares[rows, place]


def row_precision(
    of: Predictor,
    x: Matrix,
    visible: Mask,
    plan: Sampling | None = None,
    start: Numbers = 0,
) -> PrecisionPosterior:
    """The posterior of tau given the visible cells, with the variance of the dictionary.

    It is one where rows are even, and is taken for one where no cell is visible. As in an estimate, the mean
    of the intercept is taken from `x` before.
    """
    made, some = PrecisionPosterior.known(len(x)), np.flatnonzero(visible.any(axis=1))
    if of.freedom is None or not some.size:
        return made
    none, ask = np.zeros_like(visible), estimate_of(of)
    nodes, (_, full) = _rows(ask, of, x, none, visible, plan or Sampling(), start, some).along()
    posterior, _ = full.integrals(nodes)
    made.mean[some] = posterior.mean(np.exp(posterior.at))
    made.shares[some] = 0.0
    for rows, places in nodes.groups():
        made.shares[some[rows][:, None], places] = _at_nodes(posterior, nodes, rows)
    return made


def _at_nodes(of: Integral, nodes: Nodes, rows: NDArray[np.intp]) -> Matrix:
    """(row, value) shares of the nodes of some rows in an integral."""
    made: Matrix = np.einsum("np,npj->nj", of.shares[rows], nodes.shares(rows, of.at[rows]))
    return made


def _rows(
    estimate: Estimate,
    of: Predictor,
    x: Matrix,
    visible: Mask,
    hidden: Mask,
    plan: Sampling,
    start: Numbers,
    some: NDArray[np.intp],
) -> Rows:
    """Some of the rows, whose cells that are neither visible nor hidden may hold anything."""
    cleared = np.where(visible | hidden, x, 0.0)[some]
    return Rows(estimate, of, cleared, visible[some], hidden[some], plan, row_numbers(start, len(x))[some])


def _freedom(of: Predictor) -> float:
    if of.freedom is None:
        raise ValueError("the predictor has no row_freedom, so its rows are even: score them as they are")
    return of.freedom


def _fields(part: Sampled) -> NDArray[np.float64]:
    """(field, row) what is kept of the scores at a value of tau."""
    each = part.score, np.sqrt(part.own), part.bias, part.apart, part.evidence, part.evidence_error
    return np.array(np.broadcast_arrays(*each))


def _errors(a: Matrix, b: Matrix, found: NDArray[np.float64]) -> NDArray[np.float64]:
    """(4, row) the error of the score but for its bias, the bias, the share of chains that disagree, and the
    error of the evidence; `a` and `b` (row, value) are the shares of the values in both integrals. The error
    of a value is at most what the score would lose without it."""
    _, own, bias, apart, _, uncertain = found
    lost = -np.log1p(-np.clip(np.abs(a), 0, 1 - 1e-12))
    direct = np.minimum(np.abs(a) * own, lost).sum(axis=1)
    shifted = np.sqrt(np.square((a - b) * uncertain).sum(axis=1))
    return np.array(
        [
            np.hypot(direct, shifted),
            np.clip(a * bias, -lost, lost).sum(axis=1),
            (np.abs(a) * apart).sum(axis=1),
            (np.abs(b) * uncertain).sum(axis=1),
        ]
    )


def _joined(*ranges: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """(row) the range that holds all of several."""
    return np.min([low for low, _ in ranges], axis=0), np.max([high for _, high in ranges], axis=0)


def _spread(part: Sampled, some: NDArray[np.intp], rows: int) -> Sampled:
    """Scores of some of the rows; the others score zero."""

    def whole(values: Vector | float) -> Vector:
        made = np.zeros(rows)
        made[some] = values
        return made

    first = whole(part.score), whole(part.error), None, whole(part.bias), whole(part.apart)
    return Sampled(*first, whole(part.evidence), whole(part.evidence_error))
