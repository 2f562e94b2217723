"""Matrices that a fit must take in its stride."""

import numpy as np

ODD = {
    "one row": np.array([[1.0, -2.0, 0.5]]),
    "fewer rows than features": np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0]]),
    "one column": np.array([[1.0], [-2.0], [0.5], [0.0], [3.0]]),
    "one cell": np.array([[2.0]]),
    "zeros": np.zeros((6, 3)),
    "constant": np.full((6, 3), 7.5),
    "constant column": np.column_stack([np.full(6, 3.0), np.arange(6.0)]),
    "duplicate rows": np.tile([[1.0, -1.0, 2.0]], (7, 1)),
    "duplicate columns": np.tile(np.arange(6.0)[:, None], (1, 3)),
    "tiny": 1e-12 * np.arange(12.0).reshape(6, 2),
    "huge": 1e12 * np.arange(12.0).reshape(6, 2),
    "far from zero": 1e6 + np.arange(12.0).reshape(6, 2),
    "an outlier": np.vstack([np.random.default_rng(1).normal(size=(8, 2)), [[1e5, -1e5]]]),
}
