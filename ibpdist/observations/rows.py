"""What a single row contributes to the objective: to compare two states of it (starts.md 2 F).

With y = z w, F = A E / psi x and Gamma as in the sweep (vibp 9.1), the part of row n that depends on its
state is  F_n y - 1/2 y Gamma y' (second moments on the diagonal) + z log odds + H(z).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ibpdist.data._base import Chunk
from ibpdist.observations.dictionary import GaussianParams
from ibpdist.observations.patterns import runs_of
from ibpdist.observations.tiles import globals_of

Float = NDArray[np.float64]


def worth(chunk: Chunk, params: GaussianParams, log_odds: Float, z: NDArray[Any]) -> Float:
    """(row) the terms of each row that depend on its z (feature, row), weights being units."""
    made = globals_of(params, chunk.x.dtype)
    z = z.astype(np.float64)
    found: Float = np.einsum("kn,kn->n", made.loadings @ chunk.x.T + log_odds[:, None], z)
    found += (entr(z) + entr(1 - z)).sum(axis=0)
    runs = runs_of(None if params.latent else chunk.observed, chunk.rows, params.group)
    for run, (first, last) in enumerate(pairwise(runs.starts)):
        rows = runs.rows(first, last)
        gamma = np.tensordot(runs.masks[run], made.gamma, axes=1)
        part, own = z[:, rows], np.diagonal(gamma)
        both = np.einsum("kn,kn->n", part, gamma @ part) + own @ (part - part**2)
        found[rows] -= 0.5 * both
    return found
