"""The global parameters of a model of three factors, as they are published and saved, and its sums."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from ibpdist.base.structs import NOTHING, Array, Nothing, dims, record, struct
from ibpdist.model.model import Model
from ibpdist.model.observations._base import Params, RowSums, Sums
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.weights._base import Slab, WeightSums

OFF = -1
"""The id of the feature that no row has."""


@struct("short-fits", since=1)
class ShortFits:
    """Fits from different starts to the same sample of rows, one of which goes on: the objective of a cell,
    and the number of active features that stand out of the noise."""

    objective: Array = dims("start")
    active: Array = dims("start")


@struct("model-params", since=1)
class ModelParams(Generic[Params]):
    """`ids` (feature) are never reused; `on` (feature) and `rows` are of the last step.

    `prior`, `observation` and `weights` are the records of those factors. A feature that row state has not
    seen yet begins there as the exclusive or of its two `parents` (ids; -1 is the feature that is
    off everywhere), complemented where `flip` is set. `starts` is kept of a fit that began with short fits.
    """

    prior: Any
    observation: Params
    ids: Array = dims("feature")
    parents: Array = dims("parent feature")
    flip: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()
    weights: Slab | Nothing = record(default=NOTHING, kw_only=True)
    starts: ShortFits | Nothing = record(default=NOTHING, kw_only=True)


@struct
class ModelSums(Generic[Sums]):
    """Sums of a block of rows: those of z and w, and those of the observation."""

    entries: RowSums
    observation: Sums


def weight_sums(entries: RowSums) -> WeightSums:
    """What the weights are updated from and scored by."""
    return WeightSums(entries.on, entries.first, entries.second, entries.cost)


AnyModelParams = ModelParams[Any]
AnyModelSums = ModelSums[Any]
GaussianModel = Model[GaussianParams, GaussianSums]
GaussianModelParams = ModelParams[GaussianParams]
GaussianModelSums = ModelSums[GaussianSums]


def without_parents(features: int) -> dict[str, Any]:
    """`parents` and `flip` of features that begin switched off."""
    return {"parents": np.full((2, features), OFF), "flip": np.zeros(features, dtype=bool)}
