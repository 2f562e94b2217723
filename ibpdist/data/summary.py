"""Column summaries in one pass: counts, means, standard deviations, extremes of observed cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_TILE = 1024
FIELDS = ("count", "mean", "sd", "min", "max")
FAR = 50.0
"""Standard deviations from zero beyond which columns are centred. At 50 the noise that fits find in single
precision is right to 0.5 %, at 70 to 3 %, and at 100 it is wrong by a quarter."""


@dataclass(frozen=True)
class ColumnSummary:
    """Running sums over rows, each (column,); `squares` is the sum of squared deviations from the mean."""

    count: Vector
    mean: Vector
    squares: Vector
    low: Vector
    high: Vector

    @property
    def sd(self) -> Vector:
        """Population standard deviation; NaN where nothing was observed."""
        with np.errstate(invalid="ignore", divide="ignore"):
            deviation: Vector = np.sqrt(self.squares / self.count)
        return deviation

    def table(self) -> dict[str, Vector]:
        """The stored columns by name; NaN where a column was never observed."""
        observed = self.count > 0
        return {
            "count": self.count,
            "mean": np.where(observed, self.mean, np.nan),
            "sd": self.sd,
            "min": np.where(observed, self.low, np.nan),
            "max": np.where(observed, self.high, np.nan),
        }

    def add(self, x: NDArray[Any]) -> ColumnSummary:
        """With the rows of x (row, column) added; NaN cells are missing. Chan, Golub and LeVeque 1983."""
        total = self
        for start in range(0, len(x), _TILE):
            total = total.joined(_of_tile(x[start : start + _TILE].astype(np.float64)))
        return total

    def joined(self, other: ColumnSummary) -> ColumnSummary:
        """With the rows of another summary."""
        count = self.count + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        shift = other.mean - self.mean
        return ColumnSummary(
            count,
            self.mean + shift * share,
            self.squares + other.squares + shift**2 * self.count * share,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def empty_summary(columns: int) -> ColumnSummary:
    zero = np.zeros(columns)
    return ColumnSummary(zero, zero, zero, np.full(columns, np.inf), np.full(columns, -np.inf))


def far(table: Mapping[str, Vector]) -> NDArray[np.bool_]:
    """(column) which columns of a summary are far from zero: by more than FAR of their standard deviations,
    and of what columns typically have, for a column that hardly varies among others that do costs nothing."""
    varies = (table["count"] > 1) & (table["max"] > table["min"]) & (table["sd"] > 0)
    if not varies.any():
        return np.zeros_like(varies)
    spread = np.where(varies, table["sd"], 0.0)
    typical = float(np.median(spread[varies]))
    with np.errstate(invalid="ignore"):
        beyond: NDArray[np.bool_] = np.abs(table["mean"]) > FAR * np.maximum(spread, typical)
    return beyond


def summary_of(table: dict[str, Vector]) -> ColumnSummary:
    """The running sums behind a stored table."""
    observed = table["count"] > 0
    squares = np.where(observed, table["sd"] ** 2 * table["count"], 0.0)
    return ColumnSummary(
        table["count"],
        np.where(observed, table["mean"], 0.0),
        squares,
        np.where(observed, table["min"], np.inf),
        np.where(observed, table["max"], -np.inf),
    )


def _of_tile(x: NDArray[np.float64]) -> ColumnSummary:
    missing = np.isnan(x)
    if not missing.any():
        mean = x.mean(axis=0)
        return ColumnSummary(
            np.full(x.shape[1], float(len(x))),
            mean,
            ((x - mean) ** 2).sum(axis=0),
            x.min(axis=0),
            x.max(axis=0),
        )
    count = (~missing).sum(axis=0).astype(np.float64)
    mean = np.where(missing, 0.0, x).sum(axis=0) / np.maximum(count, 1.0)
    squares = np.where(missing, 0.0, (x - mean) ** 2).sum(axis=0)
    low = np.where(missing, np.inf, x).min(axis=0)
    return ColumnSummary(count, mean, squares, low, np.where(missing, -np.inf, x).max(axis=0))
