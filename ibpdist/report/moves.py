"""What the moves of a fit did, in words: how many were accepted, and what they gained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tally:
    """Of one move: how often it was tried and accepted, and the nats that it gained."""

    name: str
    tried: int
    accepted: int
    gain: float

    def __str__(self) -> str:
        times = f"{self.accepted} of {self.tried}" if self.accepted else f"none of {self.tried}"
        return f"{self.name} {times}" + (f" (+{nats(self.gain)})" if self.accepted else "")


def tallies(trace: Any, names: Sequence[str]) -> list[Tally]:
    """Of the moves that were decided on (`trace` is an xarray Dataset along step), in their order."""
    if "move" not in trace or not len(names):
        return []
    move, accepted = trace["move"].values.astype(int), trace["accepted"].values > 0
    gain = np.where(accepted, trace["gain"].values, 0.0)
    tallied = []
    for number, name in enumerate(names, 1):
        at = move == number
        if at.any():
            tallied.append(Tally(name, int(at.sum()), int(accepted[at].sum()), float(gain[at].sum())))
    return tallied


def sentences(trace: Any, names: Sequence[str]) -> Iterator[str]:
    """How many moves were accepted and what they gained together, then each kind of move."""
    counts = tallies(trace, names)
    if not counts:
        return
    tried, accepted = sum(one.tried for one in counts), sum(one.accepted for one in counts)
    gained = f", together +{nats(sum(one.gain for one in counts))} nats" if accepted else ""
    yield f"{accepted} of {tried} accepted{gained}"
    yield ", ".join(map(str, counts))


def nats(value: float) -> str:
    """With as many digits as tell something."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
