"""Subsamples of the rows: a pure function of (seed, member, global row), whatever the chunks (scores.md 11).

Subsamples of half of the rows come in complementary pairs: members 2 j and 2 j + 1 share no row and have all
rows together. Those of another share are drawn independently of one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Source
from ibpdist.data.splits import SomeRows

HALF = 0.5
PURPOSE = "stability"


@dataclass(frozen=True)
class Subsample:
    """Each row belongs to the subsample with probability `share`."""

    seed: int
    member: int
    share: float = HALF

    def of(self, source: Source) -> SomeRows:
        """The rows of the subsample, numbered without gaps."""
        return SomeRows(source, self, test=False)

    def rows(self, source: Source) -> int:
        """Number of rows of a source that belong to the subsample."""
        hidden = (self.hidden(*source.bounds(index)) for index in range(source.chunks))
        return sum(int(len(mask) - mask.sum()) for mask in hidden)

    def hidden(self, start: int, stop: int) -> NDArray[np.bool_]:
        """(row,) which of rows start to stop do not belong to it."""
        paired = self.share == HALF
        stream = self.member // 2 if paired else self.member
        below = Draws(self.seed, chain=stream).uniform(PURPOSE, start, stop - start, 1)[0] < self.share
        inside: NDArray[np.bool_] = ~below if paired and self.member % 2 else below
        return ~inside

    @property
    def text(self) -> str:
        return f"subsample:share={self.share!r},seed={self.seed!r},member={self.member!r}"
