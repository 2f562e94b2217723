"""Covariances as rivals of a fit: closed densities of the hidden columns of new rows given the visible ones.

Even columns are visible, odd ones hidden. With rows of uneven noise the density is the mixture of
predict/rownoise.py, in which a level adds the same share of the variance of a column to all of its row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from ibpdist.predict.rownoise import UNEVEN, RowNoise
from ibpdist.predict.sampled import Sampled
from tests.support import mofa
from tests.support.plain_factors import RANKS, fitted
from tests.support.real_matrices import Matrix, Split

Mask = NDArray[np.bool_]
NMF_RANKS = (2, 5, 10, 20, 40)
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Marks:
    """Nats per hidden cell, plain and with rows of uneven noise, and root mean square of the errors.

    What a method does not have is -inf, and inf for the errors.
    """

    nats: float = -np.inf
    mixed: float = -np.inf
    rmse: float = np.inf

    def best(self, other: Marks) -> Marks:
        """The best of each number."""
        return Marks(max(self.nats, other.nats), max(self.mixed, other.mixed), min(self.rmse, other.rmse))


def conditional(mean: Matrix, covariance: Matrix, x: Matrix, visible: Mask) -> tuple[Matrix, Matrix]:
    """(row, hidden) expected values and (row,) log densities of the hidden columns given the visible ones."""
    hidden, away = ~visible, x - mean
    factor = cho_factor(covariance[np.ix_(visible, visible)], lower=True)
    across = covariance[np.ix_(visible, hidden)]
    weights = cho_solve(factor, across)
    expected = mean[hidden] + away[:, visible] @ weights
    rest = covariance[np.ix_(hidden, hidden)] - across.T @ weights
    lower = np.linalg.cholesky((rest + rest.T) / 2)
    half = np.linalg.solve(lower, (x[:, hidden] - expected).T)
    fixed = 2 * np.log(np.diagonal(lower)).sum() + hidden.sum() * LOG_2PI
    logs: Matrix = -0.5 * (np.square(half).sum(axis=0) + fixed)
    return expected, logs


def marks(mean: Matrix, covariance: Matrix, unit: Matrix, x: Matrix) -> Marks:
    """A normal law on new rows; `unit` (column) is what a level of row noise is a share of."""
    visible = even(x)
    expected, plain = conditional(mean, covariance, x, visible)
    mixed = _mixed(UNEVEN, mean, covariance, unit, x)
    cells = x[:, ~visible].size
    return Marks(float(plain.sum()) / cells, float(mixed.sum()) / cells, error(expected, x))


def even(x: Matrix) -> Mask:
    """(column,) the visible columns."""
    made: Mask = np.arange(x.shape[1]) % 2 == 0
    return made


def error(expected: Matrix, x: Matrix) -> float:
    """Root mean square of the errors of the hidden columns."""
    return float(np.sqrt(np.mean((expected - x[:, ~even(x)]) ** 2)))


def _mixed(noise: RowNoise, mean: Matrix, covariance: Matrix, unit: Matrix, x: Matrix) -> Matrix:
    parts = []
    for level in noise.levels:
        _, logs = conditional(mean, covariance + level * np.diag(unit), x, even(x))
        parts.append(Sampled(logs, np.zeros(len(x))))
    return noise.mixed(parts).score


def factor_analysis(of: Split) -> Marks:
    """FactorAnalysis; each number at the rank that is best for it on these very rows."""
    found = Marks()
    for rank in RANKS:
        if rank < min(of.train.shape):
            law, centre = fitted(of.train, rank)
            covariance = law.mean.T @ law.mean + np.diag(law.noise)
            found = found.best(marks(centre, covariance, np.ones(len(centre)), of.test))
    return found


def ledoit_wolf(of: Split) -> Marks:
    """The sample covariance, shrunken towards a multiple of the identity."""
    from sklearn.covariance import LedoitWolf

    law = LedoitWolf().fit(of.train)
    return marks(law.location_, law.covariance_, np.ones(len(law.location_)), of.test)


def column_mean(of: Split) -> Marks:
    """Independent normal columns."""
    return marks(of.train.mean(0), np.diag(of.train.var(0)), np.ones(of.train.shape[1]), of.test)


def _parts(x: Matrix, rank: int) -> Matrix:
    """(part, column) of NMF."""
    from sklearn.decomposition import NMF

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(NMF(rank, init="nndsvda", max_iter=300).fit(x).components_)


def nmf(of: Split) -> Marks:
    """NMF of values above the least of their column in the training rows; the best rank, errors alone."""
    least, visible, found = of.train.min(0), even(of.test), Marks()
    shown = np.maximum(of.test[:, visible] - least[visible], 0.0)
    for rank in NMF_RANKS:
        if rank < min(of.train.shape):
            parts = _parts(of.train - least, rank)
            scores = np.array([nnls(parts[:, visible].T, row)[0] for row in shown])
            found = found.best(Marks(rmse=error(least[~visible] + scores @ parts[:, ~visible], of.test)))
    return found


def mofa_factors(of: Split) -> Marks:
    """MOFA; each number at the rank that is best for it on these very rows."""
    found = Marks()
    for law in mofa.laws(of.train):
        covariance = law.loadings.T @ law.loadings + np.diag(law.noise)
        found = found.best(marks(law.mean, covariance, np.ones(len(law.mean)), of.test))
    return found


RIVALS: dict[str, Callable[[Split], Marks]] = {
    "FA": factor_analysis,
    "Ledoit-Wolf": ledoit_wolf,
    "NMF": nmf,
    **({"MOFA": mofa_factors} if mofa.installed() else {}),
    "column mean": column_mean,
}


def rivals(of: Split) -> Iterator[tuple[str, Marks]]:
    """Every rival on a split."""
    for name, rival in RIVALS.items():
        yield name, rival(of)
