"""What the dictionary explains of the squares of each column, in its eigenbasis.

One pass over the tables: with numpy every operation would be a pass of its own, and for wide data they would
take a quarter as long as the products of a step.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS


@njit(cache=True, **OPTIONS)
def column_squares(power, spectrum, own, noise):
    """(column) sum_j R_jd^2 (e_j + 2 psi_d) / (psi_d + e_j)^2 - sum_j c_jd psi_d / (psi_d + c_jd).

    See model/observations/variances.py. power (feature, column): R^2. spectrum (feature): e. own: c,
    (feature, column) or (feature, 1). noise (column): psi. Terms are added feature by feature.
    """
    features, columns = power.shape
    fit, spread = np.zeros(columns), np.zeros(columns)
    for j in range(features):
        e = spectrum[j]
        for d in range(columns):
            both = noise[d] + e
            fit[d] += power[j, d] / both * (1 + noise[d] / both)
        if own.shape[1] == 1:
            c = own[j, 0]
            for d in range(columns):
                spread[d] += c * noise[d] / (noise[d] + c)
        else:
            for d in range(columns):
                spread[d] += own[j, d] * noise[d] / (noise[d] + own[j, d])
    return fit - spread
