"""Which rows are observed in the same columns.

Columns missing in the same rows form a group (found once, from the survey). Within a chunk,
rows that observe the same groups are sorted together into runs; the sweep then needs one
Gamma a run, and the Gram matrix of a group is the sum over the runs that observe it
(linear-gaussian.md 9). Complete data are one group and one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.data._base import Chunk

Index = NDArray[np.intp]
Rows = slice | Index
GROUP_BYTES = 128 << 10
"""Largest size of the Gram matrices of all groups of columns for which there is one for each group: there a
pass takes 2 to 7 times as long as with one for each row, but a fit needs fewer of them."""
FEW = 16
"""A fit with fewer features counts as if it had this many: those of samplers grow."""


def row_hash(start: int, rows: int) -> NDArray[np.uint64]:
    """64 well mixed bits for each global row (splitmix64)."""
    x = (np.arange(start, start + rows, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def missing_rows(chunk: Chunk) -> NDArray[np.uint64]:
    """(column) sum, modulo 2^64, of the hashes of the rows in which a column is missing."""
    if chunk.observed is None:
        return np.zeros(chunk.x.shape[1], np.uint64)
    hashes = row_hash(chunk.start, chunk.rows)
    table = np.where(chunk.observed, np.uint64(0), hashes[:, None])
    return np.asarray(table.sum(axis=0, dtype=np.uint64), dtype=np.uint64)


def column_groups(missing: NDArray[np.uint64]) -> Index:
    """(column) group of each column, from the summed hashes of its missing rows; numbered as they come."""
    _, first, group = np.unique(missing, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group]


def many(group: Index, features: int) -> bool:
    """Whether the Gram matrices of all groups are so large that it is cheaper for rows to have their own."""
    return (int(group.max()) + 1) * max(features, FEW) ** 2 * 8 > GROUP_BYTES


def refined(chunk: Chunk, group: Index, most: int) -> Iterator[tuple[Chunk, Index, Index]]:
    """Groups (column) whose columns are missing in the same rows of a chunk as well, with the old group of
    each; of so few of its rows at a time that there are at most `most`, or of one row."""
    pairs = np.stack([group.astype(np.uint64), missing_rows(chunk)])
    _, first, new = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    if len(first) <= most or chunk.rows == 1:
        yield chunk, np.asarray(new, np.intp).reshape(-1), group[first]
        return
    half = chunk.rows // 2
    for rows in ((0, half), (half, chunk.rows)):
        yield from refined(chunk.part(*rows), group, most)


@dataclass(frozen=True)
class Runs:
    """Rows of a chunk in an order that brings equal patterns together.

    `order` is None when it is the natural one. Run i is rows `starts[i] .. starts[i+1]` of
    that order and observes the groups where `masks[i]` (run, group) is one.
    """

    order: Index | None
    starts: Index
    masks: NDArray[np.float64]

    def rows(self, first: int, last: int) -> Rows:
        """Where the rows `first .. last` of the order are in the chunk."""
        return slice(first, last) if self.order is None else self.order[first:last]

    def cut(self, first: int, last: int) -> tuple[Index, NDArray[np.float64]]:
        """Runs of the rows `first .. last`, starting from zero, and their masks."""
        low = int(np.searchsorted(self.starts, first, side="right")) - 1
        high = int(np.searchsorted(self.starts, last, side="left"))
        inner = np.clip(self.starts[low : high + 1], first, last) - first
        return inner, self.masks[low:high]


def runs_of(observed: NDArray[np.bool_] | None, rows: int, group: Index) -> Runs:
    """Runs of a chunk from its observed cells (None: all)."""
    groups = int(group.max()) + 1 if group.size else 1
    if observed is None:
        return Runs(None, np.array([0, rows]), np.ones((1, groups)))
    first = np.unique(group, return_index=True)[1]
    seen = np.packbits(observed[:, first], axis=1)
    order = np.lexsort(seen.T)
    seen = seen[order]
    new = np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)) + 1
    starts = np.concatenate([[0], new, [rows]])
    masks = observed[order[starts[:-1]]][:, first].astype(np.float64)
    natural = bool((order[1:] > order[:-1]).all())
    return Runs(None if natural else order, starts, masks)
