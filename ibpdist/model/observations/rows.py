"""What a single row contributes to the objective: to compare two states of it (starts-and-moves.md 13).

With y = z w, F = A E / psi x and Gamma as in the sweep (linear-gaussian.md 4), the part of row n that depends
on its state is  F_n y - 1/2 y Gamma y' (second moments on the diagonal) + z log odds + H(z).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ibpdist.data._base import Chunk
from ibpdist.model.observations.gaussian_params import GaussianParams, ScatteredParams
from ibpdist.model.observations.patterns import runs_of
from ibpdist.model.observations.scattered import evidence
from ibpdist.model.observations.tiles import Globals, globals_of

Float = NDArray[np.float64]
LEAST = 1e-6
"""Variance of a coin below which it counts as this."""


def linear(chunk: Chunk, params: GaussianParams, chance: Float) -> Float:
    """(feature, row) z as it were if it were normal with the mean and variance of a coin of this chance
    (feature), within [0, 1]: where features overlap much, sweeps from there end where no others do.

    Rows with missing cells are taken to lack the average share of what the columns say.
    """
    made = globals_of(params, chunk.x.dtype)
    share = 1.0 if chunk.observed is None else float(chunk.observed.mean())
    gamma = share * made.gamma.sum(axis=0)
    precision = gamma + np.diag(1 / np.maximum(chance * (1 - chance), LEAST))
    excess = _pulled(chunk, made) - (gamma @ chance)[:, None]
    found: Float = np.clip(chance[:, None] + np.linalg.solve(precision, excess), 0.0, 1.0)
    return found


def worth(chunk: Chunk, params: GaussianParams, log_odds: Float, z: NDArray[Any]) -> Float:
    """(row) the terms of each row that depend on its z (feature, row), weights being units."""
    made = globals_of(params, chunk.x.dtype)
    z = z.astype(np.float64)
    found: Float = (entr(z) + entr(1 - z)).sum(axis=0)
    if isinstance(params, ScatteredParams):
        found += log_odds @ z + evidence(chunk, params, z)
        return found
    found += np.einsum("kn,kn->n", _pulled(chunk, made) + log_odds[:, None], z)
    runs = runs_of(chunk.observed, chunk.rows, params.group)
    for run, (first, last) in enumerate(pairwise(runs.starts)):
        rows = runs.rows(first, last)
        gamma = np.tensordot(runs.masks[run], made.gamma, axes=1)
        part, own = z[:, rows], np.diagonal(gamma)
        both = np.einsum("kn,kn->n", part, gamma @ part) + own @ (part - part**2)
        found[rows] -= 0.5 * both
    return found


def _pulled(chunk: Chunk, made: Globals) -> NDArray[Any]:
    """(feature, row) products with the dictionary, about the intercept."""
    pull: NDArray[Any] = made.loadings @ chunk.x.T
    if not len(made.offset):
        return pull
    runs = runs_of(chunk.observed, chunk.rows, made.params.group)
    for run, (first, last) in enumerate(pairwise(runs.starts)):
        pull[:, runs.rows(first, last)] -= (runs.masks[run] @ made.offset)[:, None].astype(pull.dtype)
    return pull
