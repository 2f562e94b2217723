"""A reduction in a fixed order: a binary counter of partial results.

After n values the stack holds one complete subtree for each binary digit of n. An aligned block
of 2^j values is such a subtree, so it may be reduced elsewhere and added as one value: the bits
of the total do not depend on j.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ibpdist.structs import combine

T = TypeVar("T")


class TreeSum(Generic[T]):
    """Add records of adjoining blocks from left to right, then ask for the value."""

    def __init__(self) -> None:
        self._stack: list[T] = []
        self._own: list[bool] = []
        """Whether a value of the stack was made here or given away, so that its arrays can be used again."""
        self._count = 0

    def add(self, value: T, *, own: bool = False) -> None:
        """`own`: the value is given away, and its arrays may be used for the sum."""
        self._count += 1
        merges = (self._count & -self._count).bit_length() - 1
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
