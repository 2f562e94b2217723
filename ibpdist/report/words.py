"""Features of counts as lists of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def top_words(
    mean: NDArray[np.floating[Any]], labels: Sequence[object] | NDArray[Any] | None, count: int = 10
) -> list[list[tuple[str, float]]]:
    """The `count` words of each feature that have the largest shares of it, with these, largest first.

    mean (feature, column): shares; labels (column): words, None where columns have numbers alone, which are
    `column 17` then. Words with the same share are in the order of the columns.
    """
    return [
        [(word_of(labels, int(at)), float(shares[at])) for at in largest(shares, count)] for shares in mean
    ]


def word_of(labels: Sequence[object] | NDArray[Any] | None, at: int) -> str:
    """The word of a column."""
    return f"column {at}" if labels is None else str(labels[at])


def largest(shares: NDArray[np.floating[Any]], count: int) -> NDArray[np.intp]:
    """Places of the largest values, the first ones among equals."""
    rest = max(shares.size - count, 0)
    places = np.flatnonzero(shares >= np.partition(shares, rest)[rest])
    return places[np.argsort(-shares[places], kind="stable")][:count]
