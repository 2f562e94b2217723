"""Variances under q(A) from a basis and its spectrum, of a fit and of its result.

Column d of A has the covariance Sigma_d = B diag(1 / (1 + e_d / psi_d)) B' (dictionary.py), so what B is
multiplied with shrinks where the rows say much, and y Sigma_d y' is the sum of (y B)_j^2 times what is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def shrink(spectrum: Float, noise: Float) -> Float:
    """1 / (1 + e / psi), of the shape of both together."""
    made: Float = 1.0 / (1.0 + spectrum / noise)
    return made


def variance_along(turned: Float, left: Float) -> Float:
    """y Sigma_d y' (row, column), given y B (row, component) and the shrinkage (component, column)."""
    made: Float = turned**2 @ left
    return made
