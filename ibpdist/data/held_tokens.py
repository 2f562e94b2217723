"""Tokens of counts that are held out of training.

Of a row with L tokens share L are hidden, rounded up or down at random so that this is their mean, but
never all of them; which they are depends on the seed and the global row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk, CountChunk, Source
from ibpdist.data._split import TrainingPart, recipe, refuse_share
from ibpdist.data.entries import Entries
from ibpdist.kernels.token_split import hide_tokens


@dataclass(frozen=True)
class HeldTokens:
    """A `share` of the tokens of some rows is hidden, each row with probability `rows`."""

    share: float = 0.5
    rows: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        refuse_share("share", self.share)
        if not 0 < self.rows <= 1:
            raise UsageError(f"tokens: rows is {self.rows}: expected more than 0 and at most 1")

    def train(self, source: Source) -> Source:
        """The source without the hidden tokens."""
        return HiddenTokens(source, self)

    @property
    def text(self) -> str:
        return recipe("tokens", self)

    def chosen(self, start: int, rows: int) -> NDArray[np.bool_]:
        """(row) whether a row has hidden tokens."""
        found: NDArray[np.bool_] = self._uniforms(start, rows)[0] < self.rows
        return found

    def _uniforms(self, start: int, rows: int) -> NDArray[np.float64]:
        """(2, row): whether the row has hidden tokens, and how their number is rounded."""
        return Draws(self.seed).uniform("held tokens", start, rows, 2)

    def hidden(self, start: int, entries: Entries) -> NDArray[np.int64]:
        """(entry) how many tokens are hidden, of rows from `start` on."""
        lengths, numbers = entries.lengths, np.arange(start, start + entries.rows)
        rounding = self._uniforms(start, entries.rows)[1]
        wanted = np.minimum((self.share * lengths + rounding).astype(np.int64), np.maximum(lengths - 1, 0))
        wanted[~self.chosen(start, entries.rows)] = 0
        key = Draws(self.seed).key("hidden tokens")
        found: NDArray[np.int64] = hide_tokens(numbers, entries.starts, entries.counts, wanted, key)
        return found

    def divided(self, start: int, entries: Entries) -> tuple[Entries, Entries]:
        """The tokens that are seen, and those that are hidden, of rows from `start` on."""
        hidden = self.hidden(start, entries)
        return entries.with_counts(entries.counts - hidden), entries.with_counts(hidden)


class HiddenTokens(TrainingPart):
    """A source of counts without the tokens of a recipe."""

    def read(self, index: int) -> Chunk:
        chunk = self.source.read(index)
        seen, _ = self.split.divided(chunk.start, chunk.entries)
        return CountChunk(index, chunk.start, seen, self.columns, chunk.dtype)
