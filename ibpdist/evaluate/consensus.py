"""Features of several restarts beside one another: which are the same, which come back every time.

Restarts find the same features in another order. Those of each restart are assigned one-to-one to
those of a reference (matching.py); a restart has a feature when the one assigned to it differs
by a root mean square below 0.3 feature standard deviations (`MATCHED`, as in recovery.py). A feature
is stable when at least three quarters (`STABLE`) of the restarts other than the reference have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.catalog import systems
from ibpdist.evaluate.recovery import MATCHED, compare
from ibpdist.model.weights._base import WeightsKind
from ibpdist.runs.matching import STABLE, Matches, Matrix, Pairing, active, matched

Array = NDArray[Any]


def aligned(restarts: Mapping[int, xr.DataTree], reference: int) -> xr.Dataset:
    """The active features of the reference, and for each restart those that are assigned to them.

    By (restart, feature): `match`, the number of its feature or -1; `present`, whether it is the same
    one; `similarity`, the cosine of the two, 0 without any; `prevalence`; and `mean` (restart, feature,
    column), NaN without any. Where weights have signs a feature is turned to that of the reference.
    """
    first, ours = restarts[reference]["params"].to_dataset(), active(restarts[reference])
    weights = systems.of_result(restarts[reference].attrs).weights_type
    pairing, signed = by_distance(weights), weights.signed
    rows = [matched(active(found), ours.mean, pairing, signed=signed) for found in restarts.values()]
    dims = {"mean": ("restart", "feature", "column")}
    held = {
        name: (dims.get(name, ("restart", "feature")), np.array([getattr(row, name) for row in rows]))
        for name in Matches._fields
    }
    coords: dict[str, Any] = {"restart": list(restarts), "feature": ours.at}
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


def by_distance(weights: type[WeightsKind]) -> Pairing:
    """Two features are the same when `recovery.compare` matches them, as far as weights leave them open."""

    def pair(found: Matrix, reference: Matrix) -> tuple[Array, Array]:
        made = compare(found, reference, free=weights.has_weights, signed=weights.signed)
        return made["match"].values, made["matched"].values

    return pair
