"""How often the features of a fit come back in subsamples, in words and for a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ibpdist.report.lines import Column

NONE = "-"


def answer(stability: Any) -> str:
    """How many features come back in most subsamples: 6 of 31 features come back in at least 6 of 8."""
    stable, features = int(stability["stable"].values.sum()), stability["stable"].size
    noun, verb = ("feature", "comes") if features == 1 else ("features", "come")
    verb = "comes" if stable == 1 else verb
    return f"{stable} of {features} {noun} {verb} back in at least {enough(stability)} subsamples"


def columns(stability: Any) -> Iterator[Column]:
    """What the line of a feature says of the subsamples."""
    yield Column("comes back", lambda k: times(stability, k))
    yield Column("same rows", lambda k: agreement(stability, k))


def enough(stability: Any) -> str:
    """The number of subsamples in which a stable feature comes back, of all: 6 of 8."""
    of = int(stability["present"].sizes["subsample"])
    return f"{math.ceil(of * float(stability.attrs['least']))} of {of}"


def times(stability: Any, feature: int) -> str:
    """In how many subsamples a feature comes back: 7 of 8."""
    present = stability["present"].values[:, _place(stability, feature)]
    return f"{int(present.sum())} of {present.size}"


def agreement(stability: Any, feature: int) -> str:
    """The share of the rows in which a feature keeps its membership, mean over subsamples that have it."""
    shares = stability["agreement"].values[:, _place(stability, feature)]
    known = shares[np.isfinite(shares)]
    return f"{100 * known.mean():.1f} %" if known.size else NONE


def _place(stability: Any, feature: int) -> int:
    return int(stability["feature"].values.tolist().index(feature))
