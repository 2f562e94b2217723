"""Cells of a text table: numbers, missing cells, or what is wrong with them in words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError
from ibpdist.data.check import EXACT

MISSING = frozenset({"", "na", "nan"})
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?", re.ASCII)
_INFINITE = frozenset({"inf", "infinity", "+inf", "-inf", "+infinity", "-infinity"})


@dataclass(frozen=True)
class Where:
    """A row of a text file: its number from 0, None where that is not known, and its line from 1."""

    file: str
    row: int | None
    line: int

    def error(
        self, reason: str, *, column: str | int | None = None, value: str | None = None, kind: str = "format"
    ) -> InputError:
        counted = "" if self.row is None else "; rows are counted from 0"
        text = f"{reason} (line {self.line}{counted})"
        return InputError(text, file=self.file, row=self.row, column=column, value=value, kind=kind)


def numbers(
    lines: Sequence[str], delimiter: str, columns: Sequence[int] | None
) -> NDArray[np.float64] | None:
    """The numbers of lines without quotes, NaN for missing cells; None when any cell needs a closer look."""
    x = _load(lines, delimiter, columns)
    if x is None:
        gap, filled = _gap(delimiter), f"{delimiter}nan".replace("\\", r"\\")
        x = _load([gap.sub(filled, delimiter + line)[1:] for line in lines], delimiter, columns)
    # Infinity is none of our words, and a large integer may not be what its text says.
    return None if x is None or (np.abs(x) >= EXACT).any() else x


@cache
def _gap(delimiter: str) -> re.Pattern[str]:
    """A delimiter and the missing cell after it; blanks belong to the cell unless they delimit."""
    blank = "" if delimiter == " " else " *"
    return re.compile(rf"{re.escape(delimiter)}{blank}(?:[nN][aA]{blank})?(?=[{re.escape(delimiter)}\r\n]|$)")


def _load(lines: Sequence[str], delimiter: str, columns: Sequence[int] | None) -> NDArray[np.float64] | None:
    if any(not line or line.isspace() for line in lines):  # skipped by NumPy
        return None
    try:
        x = np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2, usecols=columns)
    except (ValueError, OverflowError):
        return None
    return x if len(x) == len(lines) else None


def is_missing(text: str) -> bool:
    return text.strip().casefold() in MISSING


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text.strip()) is not None


def parse(text: str, delimiter: str) -> tuple[float, str]:
    """The value of a cell, NaN when it is missing, and what is wrong with it ("" when nothing is)."""
    cell = text.strip()
    if cell.casefold() in MISSING:
        return math.nan, ""
    if not _NUMBER.fullmatch(cell):
        return math.nan, _why_not(cell, delimiter)
    if _INTEGER.fullmatch(cell) and (len(cell) > 20 or abs(int(cell)) > EXACT):
        return math.nan, "is an integer beyond 2^53, which no float holds exactly: rescale it"
    value = float(cell)
    return (value, "") if math.isfinite(value) else (value, "is too large for a float: rescale the data")


def _why_not(cell: str, delimiter: str) -> str:
    if "\0" in cell:
        return "holds a NUL byte: the file is damaged or not text"
    if cell.casefold() in _INFINITE:
        return "is infinite: remove it or leave the cell empty"
    if _DECIMAL_COMMA.fullmatch(cell):
        return "has a decimal comma: write decimal points"
    for other, word in DELIMITERS.items():
        if other != delimiter and other in cell:
            return f"is not a number but holds a {word}: is that the delimiter?"
    return (
        "is not a number: expected a number, or an empty cell, NA or NaN where it is missing "
        "(a column of words can be a covariate)"
    )
