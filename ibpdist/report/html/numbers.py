"""Numbers that say where they come from, and how they are written.

    <span data-variable="params/prevalence" data-index="feature=3" data-value="0.41234">0.41</span>

`data-index` are positions along dims, counted from 0. `data-of` says how the number follows from
the variable when it is not an entry of it. What is written is `data-value` times `data-scale`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ibpdist.report.html.markup import Html, join, tag

NONE = "–"
"""Stands for a number that is not there."""


@dataclass(frozen=True)
class Form:
    """How a number is written: digits, the factor to its unit, the unit."""

    digits: Callable[[float], str]
    scale: float = 1.0
    unit: str = ""

    def text(self, value: float) -> str:
        """Digits alone."""
        if not math.isfinite(value):
            return NONE
        return _proper(self.digits(value * self.scale))


@dataclass(frozen=True)
class Number:
    """A value with the path of its variable, positions along its dims, and the reduction, if any."""

    variable: str
    value: float
    index: tuple[tuple[str, int], ...] = ()
    of: str = ""

    @property
    def known(self) -> bool:
        return math.isfinite(self.value)

    def html(self, form: Form, unit: bool = True) -> Html:
        """The number as it is written, with its unit unless that stands elsewhere."""
        shown = tag(
            "span",
            form.text(self.value),
            class_="n",
            data_variable=self.variable,
            data_index=self.where or None,
            data_of=self.of or None,
            data_scale=f"{form.scale:g}" if form.scale != 1 else None,
            data_value=repr(self.value),
        )
        return join(shown, f"\u00a0{form.unit}") if unit and form.unit and self.known else shown

    @property
    def where(self) -> str:
        return ",".join(f"{dim}={at}" for dim, at in self.index)


def fixed(decimals: int, unit: str = "", scale: float = 1.0) -> Form:
    """A format with this number of digits after the point."""
    return Form(lambda value: f"{value:,.{decimals}f}", scale, unit)


def significant(digits: int, unit: str = "") -> Form:
    """A format with this number of significant digits."""
    return Form(lambda value: _plain(value, digits), 1.0, unit)


def duration(seconds: float) -> Form:
    """A duration in the unit that suits it."""
    for least, scale, unit in ((5400.0, 1 / 3600, "hours"), (90.0, 1 / 60, "minutes"), (0.1, 1.0, "seconds")):
        if seconds >= least:
            return Form(lambda value: _plain(value, 3), scale, unit)
    return Form(lambda value: _plain(value, 3), 1000.0, "ms")


COUNT = fixed(0)
NATS = fixed(1, "nats")
SCORE = fixed(4, "nats per hidden cell")
PERCENT = fixed(1, "%", 100.0)
WHOLE_PERCENT = fixed(0, "%", 100.0)
VALUE = significant(3)


def _plain(value: float, digits: int) -> str:
    """Significant digits, as a decimal unless that would be long."""
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(digits - 1 - size, 0)}f}"


def _proper(text: str) -> str:
    """With a minus sign as printers set it."""
    return text.replace("-", "\u2212")
