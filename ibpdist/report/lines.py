"""Columns of a list of features, and levels of parameters, as plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

LEAST_WIDTH = 9
MASS_OF_ROUND = "expected atoms of a round"


@dataclass(frozen=True)
class Column:
    """A column of a list of features: its head, the text of feature k, and the side that texts begin at."""

    head: str
    of: Callable[[int], str]
    side: Literal["<", ">"] = ">"

    def cell(self, text: str) -> str:
        return f" {text:{self.side}{max(LEAST_WIDTH, len(self.head))}}"


def levels(params: Any, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A line for each of the parameters of these names that a result has, with what they are in brackets."""
    for name, what in words.items():
        if name in params:
            of = "columns" if "column" in params[name].dims else "features"
            yield name, _spread(np.asarray(params[name].values), of) + (f"  ({what})" if what else "")


def prior_words(params: Any) -> dict[str, str]:
    """Parameters of the prior, and what they are."""
    return {"mass": MASS_OF_ROUND if "round_chance" in params else "", "concentration": ""}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _spread(values: Any, what: str) -> str:
    if values.size == 1:
        return f"{values.item():.6g}"
    if not values.size:
        return "none"
    return f"{np.median(values):.6g} median, {values.min():.6g} to {values.max():.6g}, {values.size} {what}"
