"""A reduction in a fixed order: a binary tree of partial results.

An aligned block of 2^j values is a complete subtree, so it may be reduced elsewhere and added as one value.
Two blocks that make a larger one are combined as soon as both are there: the bits of the total do not depend
on the sizes of the blocks, nor on the order in which they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ibpdist.base.structs import combine

T = TypeVar("T")


@dataclass
class Subtree(Generic[T]):
    """The sum of adjoining values."""

    size: int
    value: T
    own: bool
    """Whether its arrays were made here or given away, so that they can be used again."""


class TreeSum(Generic[T]):
    """Add records of blocks of values, then ask for the value."""

    def __init__(self) -> None:
        self._blocks: dict[int, Subtree[T]] = {}
        """By the number of their first value."""
        self._end = 0
        self._last: int | None = None
        """Where the last values of all begin, once a block of them was added that is no power of 2."""

    def add(self, value: T, size: int = 1, *, at: int | None = None, own: bool = False) -> None:
        """Add the sum of `size` values from number `at` on, by default those after the last: an aligned power
        of 2, or the last values of all.

        `own`: the value is given away, and its arrays may be used for the sum.
        """
        first = self._end if at is None else at
        over = size & (size - 1) > 0
        if first % (1 << (size - 1).bit_length()) or (self._last is not None and first > self._last):
            raise ValueError(f"{size} values from {first} on are not an aligned block")
        self._end = max(self._end, first + size)
        self._last = first if over else self._last
        made = Subtree(size, value, own)
        while not over and (other := self._blocks.get(first ^ made.size)) and other.size == made.size:
            left, right = (other, made) if first & made.size else (made, other)
            del self._blocks[first ^ made.size]
            first = min(first, first ^ made.size)
            made = Subtree(2 * made.size, combine(left.value, right.value, reuse=left.own), True)
        self._blocks[first] = made

    def value(self) -> T:
        """The total; partial subtrees are joined from the right."""
        if not self._blocks:
            raise ValueError("the sum of nothing")
        expected = 0
        for first in sorted(self._blocks):
            if first != expected:
                raise ValueError(f"values {expected} to {first - 1} are missing, or were added twice")
            expected += self._blocks[first].size
            self._blocks[first].own = False  # what was given away is not used again
        parts = [self._blocks[first].value for first in sorted(self._blocks)]
        total = parts[-1]
        for left in reversed(parts[:-1]):
            total = combine(left, total)
        return total
