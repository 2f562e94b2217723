"""Problems with planted binary columns, and what the master of a fit would hand to the starts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.starts.rank import Spectrum, spectrum

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Planted:
    """x (row, column) = z' A + noise, with z (feature, row) and A (feature, column)."""

    x: Matrix
    z: Matrix
    dictionary: Matrix


def plant(
    rows: int, columns: int, features: int, prevalence: float, noise_sd: float = 0.5, seed: int = 0
) -> Planted:
    rng = np.random.default_rng([seed, rows, columns, features])
    z = (rng.random((features, rows)) < prevalence).astype(float)
    a = rng.standard_normal((features, columns))
    return Planted(z.T @ a + noise_sd * rng.standard_normal((rows, columns)), z, a)


def eigen(x: Matrix) -> tuple[Matrix, Matrix]:
    """All min(N - 1, D) eigenvalues of the centred covariance, largest first, and eigenvectors in columns."""
    _, values, vectors = np.linalg.svd(x - x.mean(0), full_matrices=False)
    keep = min(len(x) - 1, x.shape[1])
    return values[:keep] ** 2 / max(len(x) - 1, 1), vectors[:keep].T


def whitened(x: Matrix, most: int) -> tuple[Spectrum, Matrix]:
    """Spectrum, and y (component, row), quasi-whitened and not centred."""
    values, vectors = eigen(x)
    found = spectrum(values, *x.shape, most)
    return found, (x @ vectors[:, : found.rank] / np.sqrt(found.signal)).T


def correlations(found: Matrix, true: Matrix) -> Matrix:
    """(found, true) correlations of columns; those that do not vary have none."""
    one, two = (a - a.mean(1, keepdims=True) for a in (found, true))
    lengths = np.outer(np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1))
    return np.divide(one @ two.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def matched(found: Matrix, true: Matrix, signed: bool = True) -> int:
    """How many true columns have a found one with correlation above .95 (of either sign, unless signed)."""
    close = correlations(found, true)
    return int(np.sum((close if signed else np.abs(close)).max(0) > 0.95))
