"""The global parameters of a model of three factors, as they are published and saved."""

from __future__ import annotations

from typing import Any

from ibpdist.structs import Array, dims, struct


@struct
class ModelParams:
    """`ids` (feature) are never reused; `on` (feature) and `rows` are of the last step.

    `prior` and `observation` are the records of those factors.
    """

    prior: Any
    observation: Any
    ids: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()
