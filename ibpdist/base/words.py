"""Numbers and commands in sentences."""

from __future__ import annotations

import shlex

OVERWRITE = "pass --overwrite (in Python: overwrite=True)"
PREDICTION = "prediction of hidden tokens"
"""What the objective of counts without a bound is called."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 row, 2,000 rows."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Bytes as a person says them: 3 bytes, 1 KB, 2,048 MB."""
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if number >= factor:
            return f"{number / factor:,.0f} {unit}"
    return counted(number, "byte")


def duration(seconds: float) -> str:
    """A time as a person says it: 4 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{minutes} min" if minutes < 90 else f"{hours} h {rest} min"


def command(*words: object) -> str:
    """A command of ibpdist as it can be pasted, whatever characters its paths have."""
    return shlex.join(["ibpdist", *map(str, words)])
