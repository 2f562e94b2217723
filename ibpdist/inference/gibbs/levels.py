"""What the rows of a chunk contribute to the log joint density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import NOTHING, Nothing
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian_params import LOG_2PI, intercept_mean
from ibpdist.model.observations.imputed import precision_of
from ibpdist.model.observations.row_noise import Posterior, PrecisionLaw, score
from ibpdist.model.weights._base import Weights

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """Log likelihood but for the noise of rows, what weights cost under a mean of zero, and the term of row
    noise."""

    likelihood: float = 0.0
    cost: float = 0.0
    row_noise: float = 0.0


def level(weights: Weights, chunk: Chunk, state: RowState, now: GaussianModelParams) -> Level:
    """Of rows as they are."""
    observed, kind, known = now.observation, chunk.x.dtype, precision_of(state)
    times = np.ones(chunk.rows) if known is None else known.astype(np.float64)
    y = weights.combine(state.z, state.w)
    left = chunk.x - intercept_mean(observed).astype(kind) - y.T @ observed.mean.astype(kind)
    seen = np.ones(left.shape, np.bool_) if chunk.observed is None else chunk.observed
    squares = times[:, None] * np.where(seen, left, 0).astype(np.float64) ** 2 / observed.noise
    likelihood = -0.5 * (squares.sum() + (seen * (LOG_2PI + np.log(observed.noise))).sum())
    cost = (state.z * weights.neg_log_prior(state.w)).sum() if state.w.size else 0.0
    row_noise = 0.0
    if not isinstance(observed.row_noise, Nothing):
        sums = Posterior.known(times).sums(seen.sum(axis=1).astype(np.float64), NOTHING)
        law = PrecisionLaw(float(observed.row_noise.freedom))
        row_noise = score(float(chunk.rows), law, sums, 0.0)
    return Level(float(likelihood), float(cost), row_noise)
