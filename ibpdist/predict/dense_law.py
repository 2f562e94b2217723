"""The density of rows along their precision under a law whose activities are all normal.

With y_k normal, of the mean and the variance that the prior gives it, the cells of a row are jointly normal
at every precision tau, and one eigendecomposition of the Gram matrix gives their density at all of them. The
law of a fit, with features that are on or off, differs from it by something that varies little with tau: what
is left is interpolated between a few values of tau (row_precision.py).

Noise is psi_d / c(tau) for one c for all columns, 1 / c = share / tau + 1 - share, where `share` is the mean
share of psi that tau divides: the rest is the variance of the dictionary.
"""

from __future__ import annotations

import numpy as np

from ibpdist.predict.annealed import Law, patterns
from ibpdist.predict.precision_grid import GRID
from ibpdist.predict.predict import LOG_2PI, Mask, Matrix, Predictor, Vector


def dense_curves(of: Predictor, x: Matrix, cells: Mask) -> Matrix:
    """(row, grid) log density of the cells (row, column) of rows; `x` is finite everywhere."""
    law = Law.of(of)
    share = float(np.mean(of.noise / law.psi))
    log_c = -np.log(share * np.exp(-GRID) + 1 - share)
    mean, variance = of.activity()
    made, x, scale = np.empty((len(x), len(GRID))), x - mean @ of.mean, np.sqrt(variance)
    for rows, seen, _ in patterns(cells, np.zeros_like(cells)):
        made[rows] = _curves(law, scale, x[rows], seen, log_c)
    return made


def _curves(law: Law, scale: Vector, x: Matrix, seen: Mask, log_c: Vector) -> Matrix:
    """(row, grid) of rows with the same cells."""
    c, scaled = np.exp(log_c), scale[:, None] * law.mean
    power, turn = np.linalg.eigh((scaled * (seen / law.psi)) @ scaled.T)
    spread = 1 + np.maximum(power, 0.0)[:, None] * c
    pull = (x * (seen / law.psi)) @ (scaled.T @ turn)
    square = np.square(x) @ (seen / law.psi)
    fixed = (np.log(law.psi) + LOG_2PI)[seen].sum() - seen.sum() * log_c + np.log(spread).sum(axis=0)
    made: Matrix = -0.5 * (fixed + square[:, None] * c - np.square(pull) @ (c**2 / spread))
    return made
