"""Rows and summary of the recovery benchmark."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

CLOSE, NATS, LONG, SHORT = 1e-3, 1e-4, 10.0, 2.0
"""Largest relative gap, and largest in nats a cell: the relative one depends on the unit of the data, and is
strict where the objective is near zero. A fit takes at most so many plain fits, or so many seconds."""


@dataclass(frozen=True)
class Row:
    """A method on a problem. `times` and `cpu_times` are in plain random-start fits; `free` components
    have no sign, no length and no objective; `stop` is why the fit ended, `error` why there is none."""

    problems: str
    number: int
    rows: int
    columns: int
    features: int
    prevalence: str
    noise: float
    truncation: int
    method: str
    active: int = 0
    active_truth: int = 0
    matched: int = 0
    matched_truth: int = 0
    matched_both: int = 0
    objective: float = math.nan
    objective_truth: float = math.nan
    gap: float = math.nan
    gap_nats: float = math.nan
    steps: int = 0
    seconds: float = math.nan
    cpu: float = math.nan
    times: float = math.nan
    cpu_times: float = math.nan
    free: bool = False
    stop: str = ""
    error: str = ""

    def __str__(self) -> str:
        size = f"{self.rows:>5}x{self.columns:<4} K {self.features:>2} of {self.truncation:>2}"
        what = f"{self.number:>3} {size} p {self.prevalence:>6} noise {self.noise:<4g} {self.method:>7}"
        if self.error:
            return f"{what}  FAILED {self.error}"
        both = f"{self.matched_both}/{self.matched_truth} ({self.matched})"
        level = "" if math.isnan(self.gap) else f"gap {self.gap:>9.2e} {self.gap_nats:>9.2e}/cell  "
        took = f"{self.seconds:.2f} s {self.times:.1f}x, cpu {self.cpu:.2f} s {self.cpu_times:.1f}x"
        found = f"found {self.active:>2} matched {both:<13}"
        return f"{what}  {found} {level}{took}, {self.steps} steps {self.stop}"


def summary(method: str, rows: list[Row]) -> str:
    """The goals of starts-and-moves.md 23; a failed row counts against each."""
    if not rows:
        return f"{method}: no problems"
    done = [row for row in rows if not row.error]
    lines = [f"{method}: {len(rows)} problems, {len(rows) - len(done)} failed", _matched(rows)]
    if not any(row.free for row in rows):
        lines[1:1] = [_gaps(rows, done)]
        lines += [_counts(rows)]
    return "\n    ".join([*lines, _times(rows, done)])


def _gaps(rows: list[Row], done: list[Row]) -> str:
    gaps = [row.gap for row in done] or [math.nan]
    return (
        f"gap < 0.1 % {_share(row.gap < CLOSE for row in rows)}, < {NATS:g} nats a cell "
        f"{_share(row.gap_nats < NATS for row in rows)}, median {statistics.median(gaps):.2g} "
        f"({statistics.median(row.gap_nats for row in done) if done else math.nan:.2g} nats a cell), "
        f"worst {max(gaps):.2g}, more than 0.1 % above {_share(row.gap < -CLOSE for row in rows)}"
    )


def _matched(rows: list[Row]) -> str:
    both, there, planted = (
        sum(getattr(row, name) for row in rows) for name in ("matched_both", "matched_truth", "features")
    )
    found = f"{both:,} of {there:,}, {planted:,} planted"
    return f"matched {_percent(both, there)} of those the truth start matches ({found})"


def _counts(rows: list[Row]) -> str:
    planted = _share(not row.error and row.active == row.features for row in rows)
    return f"K as planted {planted}, as in the truth start {_share(_like_truth(row) for row in rows)}"


def _like_truth(row: Row) -> bool:
    return not row.error and row.active == row.active_truth


def _times(rows: list[Row], done: list[Row]) -> str:
    allowed = _share(row.times <= LONG or row.seconds <= SHORT for row in rows)
    worked = _share(row.cpu_times <= LONG or row.cpu <= SHORT for row in rows)
    longest = max((row.seconds for row in done), default=math.nan)
    return (
        f"time in plain fits {_quantiles([row.times for row in done])}, processor "
        f"{_quantiles([row.cpu_times for row in done])}, longest {longest:.3g} s; "
        f"within {LONG:g} plain fits or {SHORT:g} s {allowed}, of processor time {worked}"
    )


def _share(flags: Iterable[bool]) -> str:
    held = list(flags)
    return _percent(sum(held), len(held))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _quantiles(values: list[float]) -> str:
    return f"median {np.median(values):.1f}, 90 % below {np.quantile(values, 0.9):.1f}" if values else "none"
