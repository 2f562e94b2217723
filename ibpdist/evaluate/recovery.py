"""Recovery of planted features: the best one-to-one assignment of fitted to planted ones.

A planted feature is matched when the fitted one assigned to it differs by a root mean square
below 0.3 feature standard deviations (scores.md 10). Weights leave the length of a feature open, and
signed weights its sign too, so with weights it is compared after the best multiple, positive where
weights are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ibpdist.base.errors import InputError, UsageError
from ibpdist.catalog import systems
from ibpdist.data.store import Dataset, open_dataset
from ibpdist.evaluate.fitted import Run, result_of
from ibpdist.evaluate.synthetic import stored

Matrix = NDArray[np.float64]

MATCHED = 0.3
"""Largest error of a matched feature, in feature standard deviations."""


def recovery(run: Run, truth: Dataset | xr.Dataset | str) -> xr.Dataset:
    """Compare the active features of a fit with those planted in synthetic data."""
    result = result_of(run)
    params = result["params"].to_dataset()
    active = np.flatnonzero(params["active"].values)
    weights = systems.of_result(result.attrs).weights_type
    fitted, planted = params["mean"].values[active], planted_dictionary(truth)
    made = compare(fitted, planted, free=weights.has_weights, signed=weights.signed)
    return made.assign(match=("feature", np.where(made.match >= 0, active[made.match], -1)))


def compare(
    fitted: ArrayLike,
    planted: ArrayLike,
    *,
    free: bool = False,
    signed: bool = True,
    scale: float | None = None,
) -> xr.Dataset:
    """Assign fitted features (feature, column) to planted ones.

    `free` leaves the length of a feature open, and with `signed` weights its sign too.

    `scale` is the feature variance, the mean square of the planted dictionary unless given. By
    planted feature: `match`, the index of its fitted feature or -1; `error`, in feature
    standard deviations; `matched`. And the numbers `fitted`, `planted` and `recovered`.
    """
    found, true = np.atleast_2d(np.asarray(fitted, float)), np.atleast_2d(np.asarray(planted, float))
    if found.shape[1] != true.shape[1]:
        raise InputError(
            f"fitted features have {found.shape[1]} columns, planted ones {true.shape[1]}", kind="shape"
        )
    size = np.sqrt(np.mean(true**2) if scale is None else scale) if true.size else 1.0
    errors = np.sqrt(_distances(found, true, free, signed)) / size
    match, error = np.full(len(true), -1), np.full(len(true), np.inf)
    for k, p in zip(*linear_sum_assignment(np.minimum(errors, 1 / MATCHED)), strict=True):
        match[p], error[p] = k, errors[k, p]
    matched = error < MATCHED
    held: dict[str, Any] = {
        "match": ("feature", match),
        "error": ("feature", error),
        "matched": ("feature", matched),
        "fitted": len(found),
        "planted": len(true),
        "recovered": int(matched.sum()),
    }
    return xr.Dataset(held)


def planted_dictionary(truth: Dataset | xr.Dataset | str) -> Matrix:
    """The dictionary planted in a synthetic store or dataset."""
    if isinstance(truth, xr.Dataset):
        if "dictionary" not in truth:
            raise UsageError("the dataset has no variable dictionary; recovery needs synthetic data")
        return np.asarray(truth["dictionary"].values, dtype=float)
    store = truth if isinstance(truth, Dataset) else open_dataset(truth)
    return np.asarray(stored(store, "dictionary"), dtype=float)


def summary(found: xr.Dataset) -> str:
    """Recovery in words."""
    counts = {name: int(found[name]) for name in ("recovered", "planted", "fitted")}
    return "{recovered} of {planted} planted features recovered, {fitted} active".format(**counts)


def _distances(found: Matrix, true: Matrix, free: bool, signed: bool) -> Matrix:
    """(fitted, planted) mean squares of the difference, after the best multiple when `free`; it is not below
    zero unless `signed`."""
    squares = (true**2).mean(1)
    if not free:
        return np.array([((row - true) ** 2).mean(1) for row in found]).reshape(len(found), len(true))
    lengths = (found**2).mean(1)
    cross = found @ true.T / max(true.shape[1], 1)
    if not signed:
        cross = np.maximum(cross, 0.0)
    share = np.divide(cross**2, lengths[:, None], out=np.zeros_like(cross), where=lengths[:, None] > 0)
    made: Matrix = np.maximum(squares - share, 0.0)
    return made
