"""Features that rows of two groups share: sums over blocks of rows, never a matrix of pairs of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ibpdist.base.errors import UsageError

Float = NDArray[np.float64]
MOST = 24
"""Groups of a covariate that is compared without being asked for."""
BLOCK = 1 << 20
"""Numbers that are read at once."""


def shared_features(result: xr.DataTree, by: str | ArrayLike) -> xr.Dataset:
    """How many features a row of one group shares with a row of another one, on average.

    `by` is the name of a covariate of the rows, or a label for each row. The result has `shared` (group,
    group_), over pairs of different rows, NaN for a group of one row; `prevalence` (group, feature), of
    active features; `features` (group), of a row; and `rows` (group). With z the probabilities that rows
    have a feature, shared is the mean of z_n z_m' over the pairs.
    """
    rows = result["rows"].to_dataset()
    groups, of = np.unique(_labels(rows, by), return_inverse=True)
    active = np.flatnonzero(np.asarray(result["params"].to_dataset()["active"].values))
    count = np.bincount(of, minlength=groups.size).astype(np.float64)
    total, own = np.zeros((groups.size, active.size)), np.zeros(groups.size)
    for start, z in _blocks(rows["z"].isel(feature=active)):
        part = of[start : start + len(z)]
        np.add.at(total, part, z)
        np.add.at(own, part, np.square(z).sum(axis=1))
    mean = total / count[:, None]
    shared, several = mean @ mean.T, count > 1
    within = np.full(groups.size, np.nan)
    pairs = (np.square(total).sum(axis=1) - own)[several]
    within[several] = pairs / (count * (count - 1))[several]
    np.fill_diagonal(shared, within)
    values = {
        "shared": (("group", "group_"), shared),
        "prevalence": (("group", "feature"), mean),
        "features": (("group",), mean.sum(axis=1)),
        "rows": (("group",), count.astype(np.int64)),
    }
    coords = {"group": groups, "group_": groups, "feature": active}
    return xr.Dataset(values, coords, {"by": by if isinstance(by, str) else "labels"})


def covariate(rows: xr.Dataset) -> str | None:
    """The first covariate of the rows with a few values, each of which several rows have."""
    for name, held in rows.coords.items():
        if name == "row" or held.dims != ("row",) or held.dtype.kind == "f":
            continue
        values = np.unique(held.values)
        if 2 <= values.size <= min(MOST, held.size // 2):
            return str(name)
    return None


def _labels(rows: xr.Dataset, by: str | ArrayLike) -> NDArray[Any]:
    if isinstance(by, str):
        if by not in rows.coords or rows[by].dims != ("row",):
            known = [
                str(name) for name, held in rows.coords.items() if held.dims == ("row",) and name != "row"
            ]
            hint = f"; they have {', '.join(known)}" if known else "; ingest with --covariate NAME keeps one"
            raise UsageError(f"by: the rows have no covariate {by!r}{hint}")
        return np.asarray(rows[by].values)
    labels = np.asarray(by)
    if labels.shape != (rows.sizes["row"],):
        raise UsageError(f"by: expected a label for each of {rows.sizes['row']} rows, got {labels.shape}")
    return labels


def _blocks(z: xr.DataArray) -> Iterator[tuple[int, Float]]:
    """The first row and z (row, feature) of adjoining rows."""
    step = max(1, BLOCK // max(1, z.sizes["feature"]))
    for start in range(0, z.sizes["row"], step):
        part = z.isel(row=slice(start, start + step)).transpose("row", "feature")
        yield start, np.asarray(part.values, np.float64)
