"""Factors of pictures, drawn: each in the pixels where it belongs, and rows with what a fit makes of them."""

from __future__ import annotations

from math import isqrt
from pathlib import Path

import xarray as xr

from ibpdist.report.plots import Strip, draw_strips
from tests.support.real_matrices import Matrix, Split

ACROSS = 10
"""Pictures beside each other."""


def side(x: Matrix) -> int | None:
    """Pixels along an edge, if rows are square pictures."""
    length = isqrt(x.shape[1])
    return length if length**2 == x.shape[1] > 1 else None


def draw(path: Path, name: str, result: xr.DataTree, of: Split, length: int) -> Path:
    """Rows, what the fit makes of them, and the factors by prevalence in units of the pixels."""
    params, rows = result["params"], result["rows"]
    shown = slice(0, ACROSS)
    amounts = (rows["z"][shown] * rows["w"][shown]).values
    factors = params["mean"].values[params["active"].values]
    made = amounts @ params["mean"].values
    pixels, cells = of.restored(factors, length**2), length**2
    strips = [
        Strip("rows", list(of.restored(of.train[shown], cells, offset=True))),
        Strip("fitted", list(of.restored(made, cells, offset=True))),
    ]
    told = [f"{100 * share:.0f} %" for share in params["prevalence"].values[params["active"].values]]
    for first in range(0, len(pixels), ACROSS):
        last = min(first + ACROSS, len(pixels))
        label = f"factors\n{first + 1} to {last}\nin % of rows"
        strips.append(Strip(label, list(pixels[first:last]), told[first:last], own_scale=True))
    title = f"{name}: {len(factors)} factors of {len(of.train)} rows, {result.attrs['system']}"
    return draw_strips(path, strips, (length, length), title)
