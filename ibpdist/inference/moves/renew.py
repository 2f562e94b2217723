"""Renewal of rows: each row inferred anew, and kept where its part of the objective is higher."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import Coordinate, align
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.rows import linear, worth

GaussianFit = Coordinate[GaussianParams, GaussianSums]


def renewed(
    fit: GaussianFit, chunk: Chunk, local: RowState, params: GaussianModelParams, draws: Draws
) -> RowState:
    """Rows inferred from hot to cold and from the linear answer.

    Only for unit weights; elsewhere rows stay as they are.
    """
    old, model = align(local, params), fit.model
    if model.weights.has_weights or model.draws:
        return old
    chance, dtype = params.on / max(float(params.rows), 1.0), chunk.x.dtype
    log_odds = model.prior.log_odds(params.prior)
    hot = list(fit.cooling_path(params.observation))
    best, level = old.z, worth(chunk, params.observation, log_odds, old.z)
    for z, path in (
        (np.repeat(chance[:, None], chunk.rows, axis=1), hot),
        (linear(chunk, params.observation, chance), []),
    ):
        start = replace(old, z=z.astype(dtype))
        new = _swept(fit, chunk, start, params, [*path, *2 * [params.observation]], draws)
        reached = worth(chunk, params.observation, log_odds, new.z)
        best, level = np.where(reached > level, new.z, best), np.maximum(reached, level)
    return replace(old, z=best)


def _swept(
    fit: GaussianFit,
    chunk: Chunk,
    state: RowState,
    params: GaussianModelParams,
    path: Sequence[GaussianParams],
    draws: Draws,
) -> RowState:
    """Row state after two sweeps against each of the dictionaries of the path."""
    often = dataclasses.replace(fit, inner=2)
    for seen in path:
        state, _ = often.local(chunk, state, replace(params, observation=seen), draws)
    return state
