"""One pass over the rows of a result: which features occur together, and whose rows are whose.

With y = z w (w = 1 for features without weights) and |a_k|^2 the size of feature k, it explains
e_nk = y_nk^2 |a_k|^2 of row n. The rows shown for a feature are those that have it (z > 1/2) with the
largest e_nk^2 / sum_l e_nl: what it explains of the row times its share of all that is explained. A row
must have much of the feature and little else. The difference of the two instead would name empty rows
where features overlap: it is largest, below zero, where nothing is explained. Of counts, e_nk = y_nk are
the tokens of the row that feature k is expected to have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
BLOCK = 1 << 20
"""Numbers that are read at once."""
BEST = 5
"""Rows that are named for a feature."""


@dataclass(frozen=True)
class Best:
    """A row of a feature: its number, the share of the row's fit that is this feature's, z and w."""

    row: int
    share: float
    z: float
    w: float


@dataclass(frozen=True)
class Seen:
    """`together` (feature, feature_): expected rows that have both; on the diagonal those that have one."""

    together: Float
    best: tuple[tuple[Best, ...], ...]


def look(rows: Any, mean: Float) -> Seen:
    """Summarise `z` and `w` (row, feature) in an xarray Dataset, given the features (feature, column)."""
    size = (mean**2).sum(axis=1)
    return _summary(rows, len(mean), lambda y: y**2 * size)


def look_at_tokens(rows: Any) -> Seen:
    """The same of counts, where z w are tokens."""
    return _summary(rows, rows["z"].sizes["feature"], lambda y: y)


def _summary(rows: Any, features: int, explains: Callable[[Float], Float]) -> Seen:
    """`explains` (row, feature) is what features explain of rows, given y."""
    both, alone = np.zeros((features, features)), np.zeros(features)
    found: list[list[tuple[float, Best]]] = [[] for _ in range(features)]
    for start, z, w in _blocks(rows):
        both += z.T @ z
        alone += z.sum(axis=0)
        explained = explains(z * w)
        for k in range(features):
            found[k] = _best([*found[k], *_candidates(k, start, z, w, explained)])
    np.fill_diagonal(both, alone)
    return Seen(both, tuple(tuple(best for _, best in one) for one in found))


def _blocks(rows: Any) -> Iterator[tuple[int, Float, Float]]:
    """The first row, z and w of adjoining rows; where w is unknown it is 1."""
    count, features = rows["z"].sizes["row"], rows["z"].sizes["feature"]
    step = max(1, BLOCK // max(1, features))
    for start in range(0, count, step):
        part = rows.isel(row=slice(start, start + step))
        z = np.asarray(part["z"].transpose("row", "feature").values, np.float64)
        w = np.asarray(part["w"].transpose("row", "feature").values, np.float64) if "w" in rows else None
        yield start, z, np.ones_like(z) if w is None else w


def _candidates(k: int, start: int, z: Float, w: Float, explained: Float) -> Iterator[tuple[float, Best]]:
    """The best rows of a block for feature k, with the measure that they are ranked by."""
    has = np.flatnonzero(z[:, k] > 0.5)
    own, whole = explained[has, k], explained[has].sum(axis=1)
    share = np.divide(own, whole, out=np.zeros_like(own), where=whole > 0)
    for at in np.argsort(-own * share, kind="stable")[:BEST]:
        n = int(has[at])
        best = Best(start + n, float(share[at]), float(z[n, k]), float(w[n, k]))
        yield float(own[at] * share[at]), best


def _best(candidates: list[tuple[float, Best]]) -> list[tuple[float, Best]]:
    """The best rows; the first of equal ones stays first."""
    return sorted(candidates, key=lambda one: -one[0])[:BEST]
