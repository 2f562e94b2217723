"""What draws of a sampler say of features: they are matched first, here and never inside a sampler.

One draw names the features: of those with the most frequent number of features (the smaller where two
are as frequent) the one with the highest log joint density. Densities of draws with other numbers are not
compared, because the dictionary has more entries there, so that the units of the data would decide. The
features of every other draw are assigned to the named ones one to one, so that the squared differences
are least; one that is as far from its namesake as from nothing at all is not the same feature and
counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ibpdist.base.errors import UsageError
from ibpdist.evaluate.fitted import Run, result_of

Float = NDArray[np.float64]
Flags = NDArray[np.bool_]
INTERVAL = (0.05, 0.95)
BLOCK = 64 << 20
"""Bytes of draws that are looked at at once."""
ABSENT = -1


def features(run: Run, *, interval: tuple[float, float] = INTERVAL) -> xr.Dataset:
    """Features over the draws of a sampler, matched to those of the draw that names them.

    `mean`, `low` and `high` (feature, column) are mean and quantiles over the draws that have the
    feature, beside what `prevalences` has. Features by falling share; none when most draws have none.
    """
    result = result_of(run)
    draws, matched = _draws(result), _matched(result)
    held = {name: np.full(matched.named.shape, np.nan) for name in ("mean", "low", "high")}
    for columns, table in _columns(draws, matched):
        for k, has in enumerate(matched.has.T):
            if has.any():
                values = table[has, k].astype(float)
                held["mean"][k, columns] = values.mean(axis=0)
                held["low"][k, columns], held["high"][k, columns] = np.quantile(values, interval, axis=0)
    coords = {name: held_ for name, held_ in result["params"].coords.items() if held_.dims == ("column",)}
    tables = {name: (("feature", "column"), table) for name, table in held.items()}
    return _prevalences(matched, interval).assign(tables).assign_coords(coords)


def prevalences(run: Run, *, interval: tuple[float, float] = INTERVAL) -> xr.Dataset:
    """How often the features of `features` are drawn, and how many rows have them.

    `share` (feature) is how many of the draws have it, `prevalence`, `prevalence_low` and
    `prevalence_high` (feature) how many rows have it then.
    """
    return _prevalences(_matched(result_of(run)), interval)


def rows(run: Run) -> xr.Dataset:
    """Who has what over the draws of a sampler: the features of `features`, in their order.

    `z` (row, feature) is the share of the draws in which the row has the feature, `together` (feature,
    feature_) the mean number of rows that have both.
    """
    result = result_of(run)
    draws = _draws(result, rows=True)
    matched = _matched(result)
    table = np.zeros((draws.sizes["row"], len(matched.named)))
    together = np.zeros((len(matched.named), len(matched.named)))
    for at, z in _each(draws, "z"):
        has, taken = matched.has[at], np.zeros_like(table)
        taken[:, has] = z[:, matched.place[at, has]]
        table += taken
        together += taken.T @ taken
    held = {
        "z": (("row", "feature"), table / len(matched.has)),
        "together": (("feature", "feature_"), together / len(matched.has)),
    }
    coords = {name: held_ for name, held_ in result["rows"].coords.items() if held_.dims == ("row",)}
    return xr.Dataset(held, coords)


def cooccurrence(run: Run, rows: Any = None) -> xr.DataArray:
    """(row, row_) mean number of features that two rows share, over the draws; `rows` are positions."""
    result = result_of(run)
    draws = _draws(result, rows=True)
    at = np.arange(draws.sizes["row"]) if rows is None else np.asarray(rows)
    total = np.zeros((at.size, at.size))
    for _, table in _each(draws, "z"):
        z = table[at].astype(float)
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


@dataclass(frozen=True)
class _Matched:
    """Features with names, by falling share: what they look like in the draw that names them, and of each
    draw their `place` in it (ABSENT: nowhere), `sign` and `prevalence` (draw, feature)."""

    named: Float
    place: NDArray[np.intp]
    sign: Float
    prevalence: Float
    best: tuple[int, int]

    @property
    def has(self) -> Flags:
        found: Flags = self.place != ABSENT
        return found


def _matched(result: xr.DataTree) -> _Matched:
    """The features of the draw that names them, found again in all draws."""
    draws, best, free = _draws(result), _best(result["posterior"].to_dataset()), _signed(result)
    one = draws.isel(chain=best[0], draw=best[1])
    named = one["mean"].values[_there(one["prevalence"].values)].astype(float)
    count = draws.sizes["chain"] * draws.sizes["draw"]
    prevalence = draws["prevalence"].values.reshape(count, draws.sizes["place"])
    place = np.full((count, len(named)), ABSENT, dtype=np.intp)
    sign = np.ones(place.shape)
    for at, mean in _each(draws, "mean"):
        there = np.flatnonzero(_there(prevalence[at]))
        found, sign[at] = assign(named, mean[there].astype(float), free)
        has = found != ABSENT
        place[at, has] = there[found[has]]
    order = np.argsort(-(place != ABSENT).mean(axis=0), kind="stable")
    place = place[:, order]
    held = np.full(place.shape, np.nan)
    draw, k = np.nonzero(place != ABSENT)
    held[draw, k] = prevalence[draw, place[draw, k]]
    return _Matched(named[order], place, sign[:, order], held, best)


def _there(prevalence: Float) -> Flags:
    """Where a draw has a feature: NaN where there is none, zero where no row has it."""
    return prevalence > 0


def _prevalences(matched: _Matched, interval: tuple[float, float]) -> xr.Dataset:
    table = np.full((3, len(matched.named)), np.nan)
    for k, has in enumerate(matched.has.T):
        if has.any():
            values = matched.prevalence[has, k]
            table[:, k] = values.mean(), *np.quantile(values, interval)
    names = ("prevalence", "prevalence_low", "prevalence_high")
    held = {"share": matched.has.mean(axis=0), **dict(zip(names, table, strict=True))}
    attrs = {"interval": list(interval), "draws": len(matched.has), "named_by": list(matched.best)}
    return xr.Dataset({name: ("feature", values) for name, values in held.items()}, attrs=attrs)


def assign(named: Float, found: Float, free: bool = False) -> tuple[NDArray[np.intp], Float]:
    """(feature) place among `found` (place, column) of each of `named`, and its sign.

    ABSENT where none is alike; `free` features may have either sign.
    """
    place, sign = np.full(len(named), ABSENT, dtype=np.intp), np.ones(len(named))
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


def _blocks(draws: xr.Dataset, name: str) -> Iterator[tuple[int, xr.DataArray]]:
    """The number of the first draw and the array (draw, ...) of draws that follow each other in a chain."""
    table = draws[name]
    kept, each = draws.sizes["draw"], int(np.prod(table.shape[2:])) * table.dtype.itemsize
    some = max(1, BLOCK // max(each, 1))
    for chain in range(draws.sizes["chain"]):
        for first in range(0, kept, some):
            yield chain * kept + first, table.isel(chain=chain, draw=slice(first, first + some))


def _each(draws: xr.Dataset, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
    """The array of each draw with its number, read a block of draws at a time."""
    for first, block in _blocks(draws, name):
        yield from enumerate(block.values, start=first)


def _columns(draws: xr.Dataset, matched: _Matched) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Blocks of columns, with what they are in the named features of all draws (draw, feature, column);
    anything where a draw lacks the feature."""
    table = draws["mean"]
    width = max(1, BLOCK // max(matched.place.size * table.dtype.itemsize, 1))
    for start in range(0, draws.sizes["column"] if matched.named.size else 0, width):
        columns = slice(start, start + width)
        taken = np.zeros((*matched.place.shape, len(matched.named[0, columns])), table.dtype)
        for first, block in _blocks(draws, "mean"):
            here = slice(first, first + block.sizes["draw"])
            place, sign = matched.place[here, :, None], matched.sign[here, :, None]
            values = block.isel(column=columns).values
            taken[here] = np.take_along_axis(values, np.maximum(place, 0), axis=1) * sign
        yield columns, taken


def _best(posterior: xr.Dataset) -> tuple[int, int]:
    """The draw that names the features."""
    number = posterior["features"].values.astype(int)
    usual = np.bincount(number.ravel()).argmax()
    level = np.where(number == usual, posterior["log_joint"].values, -np.inf)
    chain, draw = np.unravel_index(int(np.argmax(level)), level.shape)
    return int(chain), int(draw)


def _draws(result: xr.DataTree, rows: bool = False) -> xr.Dataset:
    if "draws" not in result.children:
        raise UsageError("the result has no draws: it is not of a sampler")
    draws = result["draws"].to_dataset()
    if rows and "z" not in draws:
        raise UsageError("the draws of who has what were not kept, since they are too many: use fewer draws")
    return draws


def _signed(result: xr.DataTree) -> bool:
    from ibpdist.catalog import systems

    return systems.of_result(result.attrs).weights_type.signed
