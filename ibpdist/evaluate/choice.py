"""The outcome of `choose`: candidates with their scores, the best one, and the smallest K as good as it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.words import counted

AXES = ("system", "K", "row_noise")
"""What candidates differ in."""
VARIABLES = {
    "score": "nats per hidden cell, of counts per hidden token",
    "error": "Monte Carlo error of the score",
    "standard_error": "standard error of the score over rows",
    "behind": "score of the best candidate less the score",
    "behind_error": "standard error of this difference over rows",
    "active": "active features of the fit",
}
"""Variables of the table of candidates."""


@dataclass(frozen=True)
class RowScores:
    """The scores of held-out rows under one fit: their nats and hidden cells, and the Monte Carlo error of
    the sum. `settings` are those of the fit."""

    system: str
    K: int
    row_noise: str
    settings: Mapping[str, object]
    nats: NDArray[np.float64]
    cells: NDArray[np.int_]
    error: float
    active: int
    unit: str = "cell"
    """What is hidden: cells, or tokens of counts."""

    @property
    def score(self) -> float:
        return float(self.nats.sum() / self.cells.sum())


@dataclass(frozen=True)
class Candidate:
    """A system with a maximum number of features K, and its score in nats per hidden cell or token.

    `error` is the Monte Carlo error of the score, `standard_error` its error over held-out rows, `behind` the
    score of the best candidate less this one, and `behind_error` the error of that difference over rows.
    """

    system: str
    K: int
    row_noise: str
    score: float
    error: float
    standard_error: float
    behind: float
    behind_error: float
    active: int

    @property
    def as_good(self) -> bool:
        """Whether its score is within one standard error of the best."""
        return self.behind == 0 or self.behind <= self.behind_error


@dataclass(frozen=True)
class Choice:
    """The candidate that predicts best, and the smallest K of the same system that is within one standard
    error of it. `settings` are those of the system, for `fit(data, system=..., K=..., **settings)`."""

    system: str
    K: int
    K_smallest: int
    settings: Mapping[str, object]
    candidates: tuple[Candidate, ...]
    rows: int = field(default=0)
    """Held-out rows."""
    unit: str = "cell"
    """What was hidden of them: cells, or tokens of counts."""

    @property
    def scores(self) -> dict[str, float]:
        """The best score of each system."""
        ordered = sorted(self.candidates, key=lambda one: one.score)
        best = {one.system: one.score for one in ordered}
        return {name: best[name] for name in dict.fromkeys(one.system for one in self.candidates)}

    @property
    def table(self) -> xr.Dataset:
        """(system, K, row_noise) the numbers of each candidate; NaN where there is none."""
        values = {axis: list(dict.fromkeys(getattr(one, axis) for one in self.candidates)) for axis in AXES}
        shape = [len(known) for known in values.values()]
        arrays = {name: np.full(shape, np.nan) for name in VARIABLES}
        for one in self.candidates:
            at = tuple(values[axis].index(getattr(one, axis)) for axis in AXES)
            for name, array in arrays.items():
                array[at] = getattr(one, name)
        held = {name: (AXES, array, {"long_name": VARIABLES[name]}) for name, array in arrays.items()}
        return xr.Dataset(held, values, attrs={"units": f"nats per hidden {self.unit}"})

    @property
    def sentence(self) -> str:
        """What predicts best, and how few features do about as well."""
        noise = next(one.row_noise for one in self.candidates if one.behind == 0)
        others = len({one.row_noise for one in self.candidates}) > 1
        best = f"predicting is best with {self.system}, K = {self.K}" + (
            f" and row_noise={noise}" if others else ""
        )
        if self.K_smallest < self.K:
            return f"{best}; K = {self.K_smallest} is within one standard error"
        smaller = any(one.system == self.system and one.K < self.K for one in self.candidates)
        return f"{best}; no smaller K is within one standard error" if smaller else best

    def __str__(self) -> str:
        about = f"score of {counted(self.rows, 'held-out row')} in nats per hidden {self.unit}"
        return "\n".join([about, *_lines(self.candidates, self.unit), self.sentence])


def best_of(scored: Sequence[RowScores]) -> Choice:
    """The choice among fits that were scored on the same rows."""
    best = max(scored, key=lambda one: one.score)
    found = tuple(_candidate(one, best) for one in scored)
    alike = (best.system, best.row_noise)
    as_good = [one.K for one in found if one.as_good and (one.system, one.row_noise) == alike]
    return Choice(
        best.system, best.K, min(as_good), best.settings, found, int((best.cells > 0).sum()), best.unit
    )


def _candidate(one: RowScores, best: RowScores) -> Candidate:
    """Rows are compared in pairs: what makes a row hard is the same for both fits."""
    gap = best.nats - one.nats
    return Candidate(
        one.system,
        one.K,
        one.row_noise,
        one.score,
        one.error,
        _error(one.nats, one.cells),
        best.score - one.score,
        _error(gap, one.cells),
        one.active,
    )


def _error(nats: NDArray[np.float64], cells: NDArray[np.int_]) -> float:
    """Standard error over rows of the nats per cell, a ratio of sums."""
    rows = int((cells > 0).sum())
    if rows < 2:
        return float("nan")
    around = nats - nats.sum() / cells.sum() * cells
    return float(np.sqrt(rows / (rows - 1) * (around**2).sum()) / cells.sum())


def _lines(candidates: Sequence[Candidate], unit: str) -> Iterator[str]:
    """The candidates as lines of a table, words to the left and numbers to the right. Rows of counts have no
    noise of their own, and their tokens are scored without draws."""
    head = (
        "system",
        "K",
        "row noise",
        "active",
        "score",
        "Monte Carlo error",
        "standard error",
        "behind the best",
    )
    shown = [name for name in head if unit == "cell" or name not in ("row noise", "Monte Carlo error")]
    table = [dict(zip(head, cells, strict=True)) for cells in (head, *(_cells(one) for one in candidates))]
    widths = {name: max(len(row[name]) for row in table) for name in shown}
    for row in table:
        yield "  ".join(_padded(name, row[name], widths[name]) for name in shown).rstrip()


def _padded(name: str, text: str, width: int) -> str:
    return text.ljust(width) if name in ("system", "row noise") else text.rjust(width)


def _cells(one: Candidate) -> tuple[str, ...]:
    behind = "best" if one.behind == 0 else f"{one.behind:.4f} +- {one.behind_error:.4f}"
    numbers = (f"{value:.4f}" for value in (one.score, one.error, one.standard_error))
    return (one.system, str(one.K), one.row_noise, str(one.active), *numbers, behind)
