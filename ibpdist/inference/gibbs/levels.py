"""Log likelihood of the rows of a chunk given all parameters, and what their weights cost."""

from __future__ import annotations

import numpy as np

from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian_params import LOG_2PI, intercept_mean
from ibpdist.model.weights._base import Weights


def level(weights: Weights, chunk: Chunk, state: RowState, now: GaussianModelParams) -> tuple[float, float]:
    """Both, the cost under a mean of zero."""
    noise, kind = now.observation.noise, chunk.x.dtype
    y = weights.combine(state.z, state.w)
    base, mean = intercept_mean(now.observation), now.observation.mean
    left = chunk.x - base.astype(kind) - y.T @ mean.astype(kind)
    seen = np.ones(left.shape, np.bool_) if chunk.observed is None else chunk.observed
    squares = np.where(seen, left, 0).astype(np.float64) ** 2 / noise
    likelihood = -0.5 * (squares.sum() + (seen * (LOG_2PI + np.log(noise))).sum())
    cost = (state.z * weights.neg_log_prior(state.w)).sum() if state.w.size else 0.0
    return float(likelihood), float(cost)
