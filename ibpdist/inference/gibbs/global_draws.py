"""The globals of a chain given who has what, and its log joint: what ends every sweep of rows in turn."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import (
    GaussianModel,
    GaussianModelParams,
    ModelParams,
    ModelSums,
    without_parents,
)
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.model.observations._base import RowState, RowSums
from ibpdist.model.observations.dictionary import known
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums

Float = NDArray[np.float64]


def draw_globals(
    model: GaussianModel,
    data: Chunk,
    params: GaussianModelParams,
    z: Float,
    ids: NDArray[Any],
    draws: Draws,
    cross: Float | None = None,
) -> tuple[Chain, Info]:
    """The chain with its globals drawn given z (feature, row), and the terms of its log joint; `cross`
    is z x, if that is known."""
    if model.prior.capacity(params.prior) is None:
        seen = z.any(axis=1)
        z, ids, cross = z[seen], ids[seen], None if cross is None else cross[seen]
    on, size = z.sum(axis=1), len(ids)
    entries = RowSums(on=on, first=on, second=on, entropy=np.zeros(size), cost=np.zeros(size))
    sums = ModelSums(entries=entries, observation=gaussian_sums(data, params.observation.group, z, cross))
    blank = replace(
        params,
        prior=model.prior.resized(params.prior, size),
        observation=resized(params.observation, size),
        ids=ids,
        on=on,
        **without_parents(size),
    )
    made, info = Coordinate(model, max(size, 1)).update(blank, sums, draws)
    state = RowState(ids=ids, z=z.astype(data.x.dtype), w=np.zeros((0, data.rows), data.x.dtype))
    terms = {**info.terms, "bound": info.objective}
    return Chain(made, state), dataclasses.replace(info, terms=terms)


def gaussian_sums(data: Chunk, group: NDArray[Any], z: Float, cross: Float | None = None) -> GaussianSums:
    """Sums of the rows for a draw of z (feature, row)."""
    if data.observed is None:
        gram = (z @ z.T)[None]
    else:
        first = np.unique(group, return_index=True)[1]
        gram = np.array([(z * data.observed[:, d]) @ z.T for d in first])
    return GaussianSums(
        rows=np.asarray(float(data.rows)),
        gram=gram,
        cross=z @ data.x.astype(np.float64, copy=False) if cross is None else cross,
    )


def resized(params: GaussianParams, features: int) -> GaussianParams:
    """Parameters for another number of features, of which nothing is known."""
    scale = params.scale[:1] if params.scale.size else np.ones(1)
    nothing = np.zeros((features, params.noise.size))
    return known(params, nothing, np.broadcast_to(scale, features).copy())


def blank_params(prior: Any, observed: GaussianParams) -> GaussianModelParams:
    """Parameters before any row has been seen."""
    size = len(observed.mean)
    zeros: dict[str, Any] = {"on": np.zeros(size), "rows": np.zeros(())}
    return ModelParams(
        prior=prior, observation=observed, ids=np.arange(size), **without_parents(size), **zeros
    )


def scaled(params: GaussianModelParams, scale: float) -> GaussianModelParams:
    """With one feature more than none, to carry the scale."""
    one = resized(params.observation, 1)
    return blank_params(params.prior, replace(one, scale=np.full(1, scale)))


def by_groups(model: GaussianModel) -> GaussianModel:
    """The model with a Gram matrix for each group of columns, which rows in turn need."""
    return dataclasses.replace(model, observation=dataclasses.replace(gaussian_of(model), missing="groups"))


def gaussian_of(model: GaussianModel) -> Gaussian:
    """The observation, which is refused if it is another."""
    if not isinstance(model.observation, Gaussian):
        raise UsageError(f"{model.observation.name}: rows are drawn in turn of Gaussian observations only")
    return model.observation
