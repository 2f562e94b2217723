"""A reduction in a fixed order: a binary counter of partial results.

After n values the stack holds one complete subtree for each binary digit of n. An aligned block
of 2^j values is such a subtree, so it may be reduced elsewhere and added as one value: the bits
of the total do not depend on the sizes of the blocks.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ibpdist.base.structs import combine

T = TypeVar("T")


class TreeSum(Generic[T]):
    """Add records of adjoining blocks from left to right, then ask for the value."""

    def __init__(self) -> None:
        self._stack: list[T] = []
        self._own: list[bool] = []
        """Whether a value of the stack was made here or given away, so that its arrays can be used again."""
        self._count = 0
        self._over = False
        """Whether the last values were added, whose number is not a power of 2."""

    def add(self, value: T, size: int = 1, *, own: bool = False) -> None:
        """Add the sum of `size` values: an aligned power of 2, or the last values of all.

        `own`: the value is given away, and its arrays may be used for the sum.
        """
        if self._over or self._count % (1 << (size - 1).bit_length()):
            raise ValueError(f"{size} values after {self._count} are not an aligned block")
        self._over = size & (size - 1) > 0
        self._count += size
        merges = 0 if self._over else _zeros(self._count) - _zeros(size)
        for _ in range(merges):
            value = combine(self._stack.pop(), value, reuse=self._own.pop())
        self._stack.append(value)
        self._own.append(own or merges > 0)

    def value(self) -> T:
        """The total; partial subtrees are joined from the right."""
        if not self._stack:
            raise ValueError("the sum of nothing")
        self._own = [False] * len(self._stack)  # what was given away is not used again
        total = self._stack[-1]
        for left in reversed(self._stack[:-1]):
            total = combine(left, total)
        return total


def _zeros(count: int) -> int:
    """Zeros at the end of a number in binary."""
    return (count & -count).bit_length() - 1
