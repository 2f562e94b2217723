"""The global parameters of a model of three factors, as they are published and saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibpdist.base.structs import Array, dims, struct

OFF = -1
"""The id of the feature that no row has."""


@struct("model-params", since=1)
class ModelParams:
    """`ids` (feature) are never reused; `on` (feature) and `rows` are of the last step.

    `prior` and `observation` are the records of those factors. A feature that row state has not
    seen yet begins there as the exclusive or of its two `parents` (ids; -1 is the feature that is
    off everywhere), complemented where `flip` is set.
    """

    prior: Any
    observation: Any
    ids: Array = dims("feature")
    parents: Array = dims("parent feature")
    flip: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()


def without_parents(features: int) -> dict[str, Array]:
    """`parents` and `flip` of features that begin switched off."""
    return {"parents": np.full((2, features), OFF), "flip": np.zeros(features, dtype=bool)}
