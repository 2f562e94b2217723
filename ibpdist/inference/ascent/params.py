"""The global parameters of a model of three factors, as they are published and saved, and its sums."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from ibpdist.base.structs import Array, dims, struct
from ibpdist.model.model import Model
from ibpdist.model.observations._base import Params, RowSums, Sums
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.observations.gaussian_sums import GaussianSums

OFF = -1
"""The id of the feature that no row has."""


@struct("model-params", since=1)
class ModelParams(Generic[Params]):
    """`ids` (feature) are never reused; `on` (feature) and `rows` are of the last step.

    `prior` and `observation` are the records of those factors. A feature that row state has not
    seen yet begins there as the exclusive or of its two `parents` (ids; -1 is the feature that is
    off everywhere), complemented where `flip` is set.
    """

    prior: Any
    observation: Params
    ids: Array = dims("feature")
    parents: Array = dims("parent feature")
    flip: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()


@struct
class ModelSums(Generic[Sums]):
    """Sums of a block of rows: those of z and w, and those of the observation."""

    entries: RowSums
    observation: Sums


AnyModelParams = ModelParams[Any]
GaussianModel = Model[GaussianParams, GaussianSums]
GaussianModelParams = ModelParams[GaussianParams]
GaussianModelSums = ModelSums[GaussianSums]


def without_parents(features: int) -> dict[str, Array]:
    """`parents` and `flip` of features that begin switched off."""
    return {"parents": np.full((2, features), OFF), "flip": np.zeros(features, dtype=bool)}
