"""What draws of a sampler say of features: they are matched first, here and never inside a sampler.

The draw with the highest log joint density names the features. The features of every other draw are
assigned to them one to one, so that the squared differences are least; one that is as far from its
namesake as from nothing at all is not the same feature and counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ibpdist.errors import UsageError
from ibpdist.evaluate.fitted import Run, result_of

Float = NDArray[np.float64]
INTERVAL = (0.05, 0.95)
BLOCK = 64 << 20
"""Bytes of draws that are looked at at once."""


def features(run: Run, *, interval: tuple[float, float] = INTERVAL) -> xr.Dataset:
    """Features over the draws of a sampler, matched to those of the best draw.

    `mean`, `low` and `high` (feature, column) are mean and quantiles over the draws that have the
    feature, `share` (feature) is how many do, `prevalence`, `prevalence_low` and `prevalence_high`
    (feature) how many rows have it then. Features by falling share.
    """
    result = result_of(run)
    draws, (named, order) = _draws(result), _named(result)
    found = _matched(draws, named, _signed(result))
    best = _best(result["posterior"].to_dataset())
    low, high = interval
    held: dict[str, Any] = {"share": ("feature", found["share"][order])}
    for name, dims in (("mean", ("feature", "column")), ("prevalence", ("feature",))):
        table = found[name]
        lows, highs = np.nanquantile(table, interval, axis=0)
        suffix = "" if name == "mean" else f"{name}_"
        held |= {name: (dims, np.nanmean(table, axis=0)[order]), f"{suffix}low": (dims, lows[order])}
        held[f"{suffix}high"] = (dims, highs[order])
    coords = {name: held_ for name, held_ in result["params"].coords.items() if held_.dims == ("column",)}
    attrs = {"interval": [low, high], "draws": int(found["count"]), "named_by": [int(i) for i in best]}
    return xr.Dataset(held, coords, attrs)


def rows(run: Run) -> xr.Dataset:
    """Who has what over the draws of a sampler: the features of `features`, in their order.

    `z` (row, feature) is the share of the draws in which the row has the feature, `together` (feature,
    feature_) the mean number of rows that have both.
    """
    result = result_of(run)
    draws = _draws(result, rows=True)
    named, order = _named(result)
    table = np.zeros((draws.sizes["row"], len(named)))
    together = np.zeros((len(named), len(named)))
    for has, place, z in _matched_rows(draws, named, _signed(result)):
        taken = np.where(place >= 0, z[:, has][:, place], 0.0) if has.any() else np.zeros_like(table)
        table += taken
        together += taken.T @ taken
    count = draws.sizes["chain"] * draws.sizes["draw"]
    held = {
        "z": (("row", "feature"), table[:, order] / count),
        "together": (("feature", "feature_"), together[np.ix_(order, order)] / count),
    }
    coords = {name: held_ for name, held_ in result["rows"].coords.items() if held_.dims == ("row",)}
    return xr.Dataset(held, coords)


def cooccurrence(run: Run, rows: Any = None) -> xr.DataArray:
    """(row, row_) mean number of features that two rows share, over the draws; `rows` are positions."""
    result = result_of(run)
    draws = _draws(result, rows=True)
    at = np.arange(draws.sizes["row"]) if rows is None else np.asarray(rows)
    total = np.zeros((at.size, at.size))
    for chain in range(draws.sizes["chain"]):
        for draw in range(draws.sizes["draw"]):
            z = draws["z"].isel(chain=chain, draw=draw).values[at].astype(float)
            total += z @ z.T
    labels = {} if "row" not in result["rows"].coords else {"row": result["rows"].coords["row"].values[at]}
    shared = total / (draws.sizes["chain"] * draws.sizes["draw"])
    made = xr.DataArray(shared, dims=("row", "row_"), name="features shared")
    return made.assign_coords({name: ("row", values) for name, values in labels.items()})


def number(run: Run) -> xr.DataArray:
    """(features) share of the draws that have this number of features."""
    held = np.asarray(result_of(run)["posterior"]["features"].values).astype(int)
    count = np.bincount(held.ravel())
    least = int(held.min())
    return xr.DataArray(
        count[least:] / held.size, {"features": np.arange(least, count.size)}, ("features",), name="share"
    )


def _matched(draws: xr.Dataset, named: Float, free: bool) -> dict[str, Any]:
    """(draw, feature[, column]) of every draw in the names of `named`, NaN where a draw has no such one."""
    means, shares = [], []
    for mean, prevalence in _each(draws):
        place, sign = assign(named, mean, free)
        has = place >= 0
        taken = np.full(named.shape, np.nan)
        taken[has] = mean[place[has]] * sign[has, None]
        means.append(taken)
        shares.append(
            np.where(has, prevalence[place], np.nan) if len(prevalence) else np.full(len(named), np.nan)
        )
    table = np.array(shares)
    return {
        "mean": np.array(means),
        "prevalence": table,
        "share": np.isfinite(table).mean(axis=0),
        "count": len(means),
    }


def assign(named: Float, found: Float, free: bool = False) -> tuple[NDArray[np.intp], Float]:
    """(feature) place among `found` (place, column) of each of `named`, -1 where none is alike, and its sign.

    `free` features may have either sign.
    """
    place, sign = np.full(len(named), -1, dtype=np.intp), np.ones(len(named))
    if not len(named) or not len(found):
        return place, sign
    cross = named @ found.T
    signs = np.where(free & (cross < 0), -1.0, 1.0)
    lengths = (named**2).sum(1)
    apart = lengths[:, None] + (found**2).sum(1) - 2 * signs * cross
    cost = np.minimum(apart, lengths[:, None])
    for row, column in zip(*linear_sum_assignment(cost), strict=True):
        if apart[row, column] < lengths[row]:
            place[row], sign[row] = column, signs[row, column]
    return place, sign


def _each(draws: xr.Dataset) -> Iterator[tuple[Float, Float]]:
    """Means and prevalences of the features of each draw, a block of draws at a time."""
    each = 8 * draws.sizes["place"] * draws.sizes["column"]
    some = max(1, BLOCK // max(each, 1))
    for chain in range(draws.sizes["chain"]):
        for first in range(0, draws.sizes["draw"], some):
            block = draws.isel(chain=chain, draw=slice(first, first + some))
            tables = block["mean"].values.astype(float), block["prevalence"].values
            for mean, prevalence in zip(*tables, strict=True):
                has = prevalence > 0  # NaN where there is none, zero where nobody has it
                yield mean[has], prevalence[has]


def _best(posterior: xr.Dataset) -> tuple[int, int]:
    level = posterior["log_joint"].values
    chain, draw = np.unravel_index(int(np.argmax(level)), level.shape)
    return int(chain), int(draw)


def _draws(result: xr.DataTree, rows: bool = False) -> xr.Dataset:
    if "draws" not in result.children:
        raise UsageError("the result has no draws: it is not of a sampler")
    draws = result["draws"].to_dataset()
    if rows and "z" not in draws:
        raise UsageError("the draws of who has what were not kept, since they are too many: use fewer draws")
    return draws


def _named(result: xr.DataTree) -> tuple[Float, NDArray[np.intp]]:
    """The features of the best draw (feature, column), and their order by falling share of the draws."""
    draws, best = _draws(result), _best(result["posterior"].to_dataset())
    named = draws["mean"].values[best][draws["prevalence"].values[best] > 0].astype(float)
    share = _matched(draws, named, _signed(result))["share"]
    return named, np.argsort(-share, kind="stable")


def _matched_rows(
    draws: xr.Dataset, named: Float, free: bool
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp], Float]]:
    """Of each draw which places have a feature, which of those has each name, and z (row, place)."""
    for chain in range(draws.sizes["chain"]):
        for draw in range(draws.sizes["draw"]):
            one = draws[["mean", "prevalence", "z"]].isel(chain=chain, draw=draw)
            has = one["prevalence"].values > 0
            place, _ = assign(named, one["mean"].values[has].astype(float), free)
            yield has, place, one["z"].values.astype(float)


def _signed(result: xr.DataTree) -> bool:
    from ibpdist import catalog

    return catalog.find(str(result.attrs["system"])).weights == "normal"
