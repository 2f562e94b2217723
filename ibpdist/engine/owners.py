"""Which worker has which chunks: a hint that keeps row state where it is."""

from __future__ import annotations

from collections.abc import Sequence


class Owners:
    """Contiguous shares of the chunks, one for each worker; the last ones have one more where they do not
    divide evenly, since the last chunk may have few rows.

    A worker that comes takes the share of one that went, so the others keep theirs.
    """

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks
        self.slots: list[str] = []

    def refresh(self, alive: Sequence[str]) -> None:
        """Take note of who is there."""
        new = [address for address in alive if address not in self.slots]
        for slot, address in enumerate(self.slots):
            if address not in alive and new:
                self.slots[slot] = new.pop(0)
        self.slots += new

    def of(self, chunk: int, alive: Sequence[str]) -> str | None:
        """The worker for a chunk; another one when its owner is gone, None without workers."""
        if not self.slots or not alive:
            return None
        shares = len(self.slots)
        owner = self.slots[(chunk * shares + shares - 1) // self._chunks]
        return owner if owner in alive else alive[chunk % len(alive)]

    def borders(self) -> list[int]:
        """The first chunk of every share but the first."""
        shares = len(self.slots)
        return [(slot * self._chunks) // shares for slot in range(1, shares)]


def width_for(chunks: int, workers: int, tasks: int = 4) -> int:
    """Chunks of a group: the largest power of 2 that leaves `tasks` groups for each worker."""
    width = 1
    while -(-chunks // (2 * width)) >= tasks * workers:
        width *= 2
    return width


def refit(width: int, chunks: int, workers: int, seconds: float) -> int:
    """A better width when tasks took `seconds`: at least 0.1 s, yet work for every worker; at most 2 s."""
    if seconds < 0.1 and -(-chunks // (2 * width)) >= workers:
        return 2 * width
    if seconds > 2 and width > 1:
        return width // 2
    return width
