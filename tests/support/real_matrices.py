"""Matrices like those that people have, for the benchmark of factors: real ones and simulated ones.

Rows are split 80 / 20 at random; columns are standardised on the training rows and clipped at six
standard deviations; columns that do not vary in the training rows are left out. NaN is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
CLIP = 6.0


@dataclass(frozen=True)
class Split:
    """Training and new rows, standardised alike: (x - mean) / sd of some `columns` of the matrix."""

    train: Matrix
    test: Matrix
    mean: Matrix
    sd: Matrix
    columns: NDArray[np.intp]

    def restored(self, values: Matrix, width: int, offset: bool = False) -> Matrix:
        """(row, column of the matrix) values as they were before; zero in columns that were left out."""
        made = np.zeros((len(values), width))
        made[:, self.columns] = values * self.sd + (self.mean if offset else 0.0)
        return made


def split(x: Matrix, seed: int, columns: int | None = None) -> Split:
    """One random split of the rows, and of the columns when only some are wanted."""
    rng = np.random.default_rng([seed, 99])
    order, rows = rng.permutation(len(x)), int(0.8 * len(x))
    taken = np.arange(x.shape[1])
    if columns is not None and columns < len(taken):
        taken = np.sort(rng.permutation(x.shape[1])[:columns])
    taken = taken[np.nanstd(x[order[:rows]][:, taken], axis=0) > 1e-6]
    train, test = x[order[:rows]][:, taken], x[order[rows:]][:, taken]
    mean, sd = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    train, test = (np.clip((part - mean) / sd, -CLIP, CLIP) for part in (train, test))
    return Split(train, test, mean, sd, taken)


def digits() -> Matrix:
    """1797 handwritten digits of 8 x 8 pixels, as they come with scikit-learn."""
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data, dtype=np.float64)


def stored(path: str | Path, key: str = "X") -> Matrix:
    """A matrix in a .npy file, or under `key` in a .npz file."""
    found = np.load(path)
    return np.asarray(found if isinstance(found, np.ndarray) else found[key], dtype=np.float64)


def expression(rows: int = 100, columns: int = 2000, seed: int = 0) -> Matrix:
    """Like log expression of genes: modules, some active in part of the samples, three cell types, two
    batches, genes and samples of unequal noise with heavy tails."""
    rng, modules = np.random.default_rng(seed), 12
    members = rng.random((modules, columns)) < 0.15
    genes = rng.standard_normal((modules, columns)) * members * rng.gamma(2, 0.5, (modules, 1))
    activity = rng.standard_normal((rows, modules))
    activity[:, 4:] *= rng.random((rows, modules - 4)) < 0.4
    types = rng.standard_normal((3, columns)) * (rng.random((3, columns)) < 0.2)
    batch = rng.integers(0, 2, rows)[:, None] * rng.standard_normal(columns) * 0.4
    noise = np.exp(0.4 * rng.standard_normal(columns)) * 0.7
    quality = np.exp(0.25 * rng.standard_normal(rows))[:, None]
    error = rng.standard_t(5, (rows, columns)) / np.sqrt(5 / 3)
    made: Matrix = activity @ genes + types[rng.integers(0, 3, rows)] + batch + quality * noise * error
    return made


def genotypes(rows: int = 1000, columns: int = 2000, seed: int = 0, missing: float = 0.04) -> Matrix:
    """Counts 0, 1, 2 of an allele: three populations that drifted apart (Balding and Nichols), blocks of
    20 to 60 sites copied from eight founders of each population with 2 % of errors; some are missing."""
    rng = np.random.default_rng(seed)
    ancestral = rng.beta(0.8, 0.8, columns) * 0.9 + 0.05
    drift = np.array([0.03, 0.06, 0.1])[:, None]
    share = rng.beta(ancestral * (1 - drift) / drift, (1 - ancestral) * (1 - drift) / drift)
    population = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    made, first = np.zeros((rows, columns)), 0
    while first < columns:
        last = min(columns, first + int(rng.integers(20, 61)))
        for p in range(3):
            members = np.flatnonzero(population == p)
            founders = rng.random((8, last - first)) < share[p, first:last]
            often = rng.dirichlet(np.full(8, 0.7))
            for _ in range(2):
                copied = founders[rng.choice(8, members.size, p=often)]
                made[members, first:last] += copied ^ (rng.random(copied.shape) < 0.02)
        first = last
    return np.where(rng.random(made.shape) < missing, np.nan, made)


SIMULATED: dict[str, Callable[[], Matrix]] = {
    "digits": digits,
    "expression": expression,
    "genotypes": genotypes,
}
