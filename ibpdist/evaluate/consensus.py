"""Features of several restarts beside one another: which are the same, which come back every time.

Restarts find the same features in another order. Those of each restart are assigned one-to-one to
those of a reference (as in recovery.py); a restart has a feature when the one assigned to it differs
by a root mean square below 0.3 feature standard deviations (`MATCHED`). A feature is stable when at least
three quarters (`STABLE`) of the restarts other than the reference have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.catalog import systems
from ibpdist.evaluate.recovery import MATCHED, compare
from ibpdist.model.weights._base import Weights

Array = NDArray[Any]

STABLE = 0.75
"""The least share of the other restarts that have a stable feature."""


def aligned(restarts: Mapping[int, xr.DataTree], reference: int) -> xr.Dataset:
    """The active features of the reference, and for each restart those that are assigned to them.

    By (restart, feature): `match`, the number of its feature or -1; `present`, whether it is the same
    one; `similarity`, the cosine of the two, 0 without any; `prevalence`; and `mean` (restart, feature,
    column), NaN without any. Where weights have signs a feature is turned to that of the reference.
    """
    theirs = _active(restarts[reference])
    first = restarts[reference]["params"].to_dataset()
    weights = systems.of_result(restarts[reference].attrs).weights_type
    rows = [_assigned(found, first["mean"].values[theirs], weights) for found in restarts.values()]
    dims = {"mean": ("restart", "feature", "column")}
    held = {
        name: (dims.get(name, ("restart", "feature")), np.array([row[name] for row in rows]))
        for name in rows[0]
    }
    coords: dict[str, Any] = {"restart": list(restarts), "feature": theirs}
    if "column" in first.coords:
        coords["column"] = first.coords["column"].values
    return xr.Dataset(held, coords, {"reference": reference})


def stability(found: xr.Dataset) -> xr.Dataset:
    """How many of the other restarts have each feature of the reference, which finds its own by necessity.

    `stability` (feature), the share of the other restarts that have it, NaN when there are none; `stable`
    (feature), whether that is at least `STABLE`; and `present` and `similarity` (restart, feature) of the
    other restarts, on which both rest. Attributes `matched` and `least` are the two thresholds.
    """
    others = found[["similarity", "present"]].drop_sel(restart=found.attrs["reference"])
    share = others["present"].sum("restart") / (others.sizes["restart"] or np.nan)
    share.attrs["long_name"] = "share of the other restarts that have the feature"
    made = others.assign(stability=share, stable=share >= STABLE)
    return made.assign_attrs(found.attrs | {"matched": MATCHED, "least": STABLE})


def _active(result: xr.DataTree) -> Array:
    return np.flatnonzero(result["params"].to_dataset()["active"].values)


def _assigned(result: xr.DataTree, reference: Array, weights: type[Weights]) -> dict[str, Array]:
    """What one restart has of the features (feature, column) of the reference."""
    active, params = _active(result), result["params"].to_dataset()
    mean, prevalence = params["mean"].values[active], params["prevalence"].values[active]
    features, columns = reference.shape
    if not len(active) or not features:
        at, present = np.full(features, -1), np.zeros(features, bool)
    else:
        made = compare(mean, reference, free=weights.has_weights, signed=weights.signed)
        at, present = made["match"].values, made["matched"].values
    some = at >= 0
    beside, often = np.full((features, columns), np.nan), np.full(features, np.nan)
    beside[some], often[some] = mean[at[some]], prevalence[at[some]]
    cosine = np.zeros(features)
    cosine[some] = _cosine(beside[some], reference[some])
    if weights.signed:
        beside *= np.where(cosine < 0, -1.0, 1.0)[:, None]
        cosine = np.abs(cosine)
    match = np.where(some, active[at] if len(active) else -1, -1)
    numbers = {"match": match, "present": present, "similarity": cosine}
    return {**numbers, "prevalence": often, "mean": beside}


def _cosine(a: Array, b: Array) -> Array:
    lengths = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    cross: Array = (a * b).sum(1)
    made: Array = np.divide(cross, lengths, out=np.zeros_like(cross), where=lengths > 0)
    return made
