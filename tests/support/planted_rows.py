"""Rows made of planted features and noise, and cells of them that are missing."""

from __future__ import annotations

import numpy as np


def planted(seed, rows=300, columns=20, prevalence=(0.3, 0.3, 0.3), noise=0.5, constant=False):
    """x, z (row, feature) and the dictionary; with `constant` a column of ones comes last."""
    rng = np.random.default_rng(seed)
    z = (rng.random((rows, len(prevalence))) < np.asarray(prevalence)).astype(np.float64)
    if constant:
        z = np.concatenate([z, np.ones((rows, 1))], axis=1)
    a = rng.normal(size=(z.shape[1], columns))
    return z @ a + noise * rng.normal(size=(rows, columns)), z, a


def masked(x, kind, seed=0):
    """x with zeros, and the mask of a kind: complete, masked (several groups of columns), block."""
    rng = np.random.default_rng(seed)
    if kind == "complete":
        return x, None
    observed = np.ones(x.shape, bool)
    if kind == "block":
        observed[::3, x.shape[1] // 2 :] = False
    else:
        observed = rng.random(x.shape) < 0.85
    return np.where(observed, x, 0.0), observed
