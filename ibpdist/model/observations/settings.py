"""Settings of an observation that are words or numbers."""

from __future__ import annotations

import numpy as np

from ibpdist.base.errors import UsageError

ROUTES = ("auto", "exact", "groups", "rows")


def choice(name: str, value: object, words: tuple[str, ...], *, number: bool) -> None:
    """Refuse a setting that is neither one of the words nor, where allowed, a positive number."""
    if isinstance(value, str) and value in words:
        return
    if number and isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < np.inf:
        return
    expected = ", ".join(words) + (" or a number greater than 0" if number else "")
    raise UsageError(f"{name}: {value!r}: expected {expected}")


def flag(name: str, value: object) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        raise UsageError(f"{name}: {value!r}: expected true or false")


def route(value: object) -> None:
    """Refuse a way to treat missing cells that is not one of the exact ones."""
    if value == "latent":
        raise UsageError(
            "missing=latent is no more: cells filled with their own prediction counted as evidence; "
            "set missing=exact"
        )
    choice("missing", value, ROUTES, number=False)
