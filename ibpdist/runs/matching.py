"""Features of one fit beside those of another: which is which, and how similar they are (scores.md 11).

Fits find the same features in another order, and signed weights leave the sign of a feature open. Features
are assigned to those of a reference one to one, by a pairing that also says when two are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Array = NDArray[Any]
Matrix = NDArray[np.float64]
Pairing = Callable[[Matrix, Matrix], tuple[Array, Array]]
"""Of features (feature, column) and those of a reference: by feature of the reference the index of the
feature assigned to it, -1 without one, and whether the two are the same."""

SIMILAR = 0.9
"""The cosine above which two features are the same, by `by_cosine`."""
STABLE = 0.75
"""The least share of other fits that have a stable feature."""


class Features(NamedTuple):
    """The active features of a result: their positions, `mean` (feature, column) and `prevalence`."""

    at: Array
    mean: Matrix
    prevalence: Array


class Matches(NamedTuple):
    """What a fit has of each feature of a reference.

    `match` is the position of the feature assigned to it, -1 without one; `present`, whether the two are
    the same; `similarity`, their cosine, 0 without one; `prevalence` and `mean` (feature, column), NaN
    without one. With signed weights features are turned to those of the reference.
    """

    match: Array
    present: Array
    similarity: Array
    prevalence: Array
    mean: Matrix


def active(result: xr.DataTree) -> Features:
    """The active features of a result."""
    params = result["params"].to_dataset()
    at = np.flatnonzero(params["active"].values)
    mean = np.asarray(params["mean"].values[at], np.float64)
    return Features(at, mean, np.asarray(params["prevalence"].values[at]))


def matched(
    found: Features, reference: Matrix, pairing: Pairing, *, signed: bool, unit: Array | float = 1.0
) -> Matches:
    """Features beside those of a reference (feature, column), both in units of the columns."""
    features, columns = reference.shape
    index, present = np.full(features, -1), np.zeros(features, bool)
    if features and len(found.at):
        index, present = pairing(_in_units(found.mean, unit), _in_units(reference, unit))
    some = index >= 0
    mean, prevalence = np.full((features, columns), np.nan), np.full(features, np.nan)
    mean[some], prevalence[some] = found.mean[index[some]], found.prevalence[index[some]]
    cosine = np.zeros(features)
    cosine[some] = _cosine(_in_units(mean[some], unit), _in_units(reference[some], unit))
    if signed:
        mean *= np.where(cosine < 0, -1.0, 1.0)[:, None]
        cosine = np.abs(cosine)
    match = np.where(some, found.at[index] if len(found.at) else -1, -1)
    return Matches(match, present, cosine, prevalence, mean)


def by_cosine(signed: bool) -> Pairing:
    """Two features are the same when their cosine is above `SIMILAR`, in size where weights are signed.

    As many as can be are the same; among such assignments the sum of the cosines is largest.
    """

    def pair(found: Matrix, reference: Matrix) -> tuple[Array, Array]:
        cosine = _directions(found) @ _directions(reference).T
        alike = np.abs(cosine) if signed else cosine
        same = alike > SIMILAR
        of, to = linear_sum_assignment(alike + 2.0 * len(cosine) * same, maximize=True)
        index, present = np.full(len(reference), -1), np.zeros(len(reference), bool)
        index[to], present[to] = of, same[of, to]
        return index, present

    return pair


def column_units(result: xr.DataTree) -> Array | float:
    """(column) the standard deviation of each column where the noise is learned by column, otherwise 1.

    A model with one noise takes columns as they are, and one with a noise of each column does not depend
    on their units.
    """
    params = result["params"].to_dataset()
    by_column = "noise" in params and "spread" in params and "column" in params["noise"].dims
    return np.sqrt(np.asarray(params["spread"].values, np.float64)) if by_column else 1.0


def _in_units(mean: Matrix, unit: Array | float) -> Matrix:
    """A constant column, whose unit is 0, says nothing of a feature."""
    scaled: Matrix = np.divide(
        mean, unit, out=np.zeros_like(mean), where=np.broadcast_to(unit, mean.shape) > 0
    )
    return scaled


def _directions(mean: Matrix) -> Matrix:
    lengths = np.sqrt((mean**2).sum(1, keepdims=True))
    made: Matrix = np.divide(mean, lengths, out=np.zeros_like(mean), where=lengths > 0)
    return made


def _cosine(a: Matrix, b: Matrix) -> Matrix:
    lengths = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    cross: Matrix = (a * b).sum(1)
    made: Matrix = np.divide(cross, lengths, out=np.zeros_like(cross), where=lengths > 0)
    return made
