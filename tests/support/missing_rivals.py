"""Rivals for cells missing at random: factor analysis and probabilistic PCA by EM, soft thresholds of
singular values, and imputers of scikit-learn. NaN is missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_NOISE, RELATIVE_GAIN, MOST_STEPS = 1e-3, 1e-5, 200
RANKS = (2, 5, 10, 20, 30)
STRENGTHS, WEAKEST, INSIDE, SWEEPS, CHANGE = 20, 0.01, 0.1, 100, 1e-4
"""Of soft thresholds: their number, the least as a share of the largest, the share of the visible cells
that are hidden to choose one, and when to stop."""
NEIGHBOURS = 10


@dataclass(frozen=True)
class FactorLaw:
    """x ~ N(mean, loadings' loadings + diag(noise)); `loadings` (factor, column)."""

    mean: Matrix
    loadings: Matrix
    noise: Matrix

    def rows(self, x: Matrix, cells: Mask) -> tuple[Matrix, Matrix, Matrix]:
        """(row, factor) means and (row, factor, factor_) covariances of the factors given the cells, and
        (row,) log densities of the cells."""
        away, (rank, columns) = np.where(cells, x - self.mean, 0.0), self.loadings.shape
        scaled = self.loadings / self.noise
        pairs = (self.loadings[:, None] * scaled[None]).reshape(rank * rank, columns)
        precision = np.eye(rank) + (cells @ pairs.T).reshape(len(x), rank, rank)
        covariance, pull = np.linalg.inv(precision), away @ scaled.T
        mean = np.einsum("nkl,nl->nk", covariance, pull)
        squares = (away**2) @ (1 / self.noise) + cells @ np.log(2 * np.pi * self.noise)
        explained = (mean * pull).sum(axis=1) - np.linalg.slogdet(precision)[1]
        return mean, covariance, 0.5 * (explained - squares)

    def expected(self, x: Matrix) -> Matrix:
        """(row, column) what is expected of all cells given those that are not missing."""
        seen = np.isfinite(x)
        made: Matrix = self.mean + self.rows(np.nan_to_num(x), seen)[0] @ self.loadings
        return made

    def score(self, x: Matrix, visible: Mask, hidden: Mask) -> float:
        """Nats per hidden cell given the visible ones of its row."""
        both, shown = (self.rows(x, cells)[2].sum() for cells in (visible | hidden, visible))
        return float(both - shown) / int(hidden.sum())


def factor_em(x: Matrix, rank: int, shared: bool = False, steps: int = MOST_STEPS) -> FactorLaw:
    """Factor analysis of the visible cells by EM; with `shared` noise probabilistic PCA."""
    seen, law = np.isfinite(x), _begun(x, rank, shared)
    filled, before = np.nan_to_num(x), -np.inf
    for _ in range(steps):
        mean, covariance, logs = law.rows(filled, seen)
        law = _maximised(filled, seen, mean, covariance, shared)
        now = float(logs.sum())
        if now - before < RELATIVE_GAIN * abs(now):
            break
        before = now
    return law


def _begun(x: Matrix, rank: int, shared: bool) -> FactorLaw:
    """The leading directions of the rows with column means in missing cells."""
    mean = np.nanmean(x, axis=0)
    filled = np.where(np.isfinite(x), x, mean) - mean
    _, values, directions = np.linalg.svd(filled, full_matrices=False)
    loadings = values[:rank, None] / np.sqrt(len(x)) * directions[:rank]
    left = np.mean((filled - filled @ directions[:rank].T @ directions[:rank]) ** 2, axis=0)
    noise = np.maximum(left, 0.1 * filled.var(axis=0) + LEAST_NOISE)
    return FactorLaw(mean, loadings, np.full(len(noise), noise.mean()) if shared else noise)


def _maximised(x: Matrix, seen: Mask, mean: Matrix, covariance: Matrix, shared: bool) -> FactorLaw:
    """Regress every column on the factors and a constant, in the rows that show it."""
    ones = np.ones((len(x), 1))
    factors = np.concatenate([mean, ones], axis=1)
    squares = factors[:, :, None] * factors[:, None, :]
    squares[:, :-1, :-1] += covariance
    width = factors.shape[1]
    shown = seen.astype(float)
    gram = (shown.T @ squares.reshape(len(x), -1)).reshape(-1, width, width)
    pull = (x * shown).T @ factors
    found = np.linalg.solve(gram, pull[:, :, None])[:, :, 0]
    left = (shown * x**2).sum(axis=0) - (found * pull).sum(axis=1)
    counts = shown.sum(axis=0)
    noise = np.full(len(left), left.sum() / counts.sum()) if shared else left / counts
    return FactorLaw(found[:, -1], found[:, :-1].T, np.maximum(noise, LEAST_NOISE))


def soft_impute(x: Matrix, seed: int = 0) -> Matrix:
    """Complete a matrix by soft thresholds of its singular values (Mazumder et al. 2010).

    The threshold is the one that predicts cells best that are visible and were hidden to choose it.
    """
    rng, seen = np.random.default_rng(seed), np.isfinite(x)
    inside = seen & (rng.random(x.shape) < INSIDE)
    errors = [np.mean((made - x)[inside] ** 2) for made in _soft_path(np.where(inside, np.nan, x), STRENGTHS)]
    return _soft_path(x, int(np.argmin(errors)) + 1)[-1]


def soft_complete(x: Matrix, strength: float, start: Matrix) -> Matrix:
    """The minimiser of half the squares of the visible errors and `strength` times the nuclear norm."""
    seen, now = np.isfinite(x), start
    for _ in range(SWEEPS):
        left, values, right = np.linalg.svd(np.where(seen, x, now), full_matrices=False)
        then = (left * np.maximum(values - strength, 0.0)) @ right
        change = np.square(then - now).sum() / max(np.square(now).sum(), 1e-12)
        now = then
        if change < CHANGE**2:
            break
    return now


def _soft_path(x: Matrix, count: int) -> list[Matrix]:
    """Completions at the first `count` thresholds, the largest first, each begun at the one before."""
    mean = np.nanmean(x, axis=0)
    away = x - mean
    largest = np.linalg.norm(np.nan_to_num(away), 2)
    made, now = [], np.zeros(x.shape)
    for strength in largest * np.geomspace(0.95, WEAKEST, STRENGTHS)[:count]:
        now = soft_complete(away, strength, now)
        made.append(now + mean)
    return made


def iterative(x: Matrix) -> Matrix:
    """scikit-learn's IterativeImputer: Bayesian ridge regression of every column on the nearest ones."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    nearest = min(30, x.shape[1] - 1)
    made = IterativeImputer(max_iter=5, n_nearest_features=nearest, keep_empty_features=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(made.fit_transform(x))


def neighbours(x: Matrix) -> Matrix:
    """scikit-learn's KNNImputer."""
    from sklearn.impute import KNNImputer

    return np.asarray(KNNImputer(n_neighbors=NEIGHBOURS, keep_empty_features=True).fit_transform(x))


def column_mean(x: Matrix) -> Matrix:
    return np.broadcast_to(np.nanmean(x, axis=0), x.shape)


COMPLETED: dict[str, Callable[[Matrix], Matrix]] = {
    "softImpute": soft_impute,
    "IterativeImputer": iterative,
    "KNNImputer": neighbours,
    "column mean": column_mean,
}
"""Methods without a density."""
EM = {"FA by EM": False, "PPCA by EM": True}
"""Methods with one, and whether columns share their noise."""
