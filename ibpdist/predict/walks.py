"""Annealed chains of rows, by what they walk over: features alone, or features and weights together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.kernels import annealing, annealing_weights
from ibpdist.kernels.respond import Draw
from ibpdist.model.weights._base import Weights
from ibpdist.predict.predict import Matrix, Vector

Kept = NDArray[Any]
"""Draws (row, chain, leg, draw, feature): z in bytes, or y in numbers."""
Tables = NDArray[np.float64]
Key = NDArray[np.uint64]


@dataclass(frozen=True)
class Legs:
    """What chains of rows with the same cells are drawn for: `grams` (leg, feature, feature) and `pulls`
    (leg, row, feature) of the cells of each leg, the Gram matrix of `all` cells, the log `odds` and the mean
    of the weights, `tilt`, (feature), and `rows`, their global numbers."""

    grams: Tables
    pulls: Tables
    all: Matrix
    odds: Vector
    tilt: Vector
    rows: NDArray[np.intp]


class Walk(Protocol):
    """Chains over the features of rows; they can jump between `modes` of them, or none. Draws are of z, or
    of y = z w where weights are drawn too, and are `kept` as numbers of that kind."""

    kept: ClassVar[type]

    @property
    def modes(self) -> int: ...

    def __call__(
        self, legs: Legs, ends: Kept, chains: int, levels: int, keep: int, key: Key
    ) -> tuple[Tables, Kept]:
        """Log weights (row, chain, leg), and draws at the end of each leg (row, chain, leg, draw, feature);
        chains may jump between `ends` (row, mode, feature)."""
        ...


@dataclass(frozen=True)
class Flips:
    """Chains over z alone, whose evidence is known in closed form (kernels/annealing.py)."""

    kept: ClassVar[type] = np.uint8
    tag: annealing.Unit | annealing.Normal

    @property
    def modes(self) -> int:
        return self.tag.modes

    def __call__(
        self, legs: Legs, ends: Kept, chains: int, levels: int, keep: int, key: Key
    ) -> tuple[Tables, Kept]:
        near = annealing.alike(legs.all, self.tag.near)
        room = (*annealing.room(self.tag, legs.tilt), *annealing.room(self.tag, legs.tilt))
        asked = (ends, legs.rows, chains, levels, keep, key)
        made: tuple[Tables, Kept] = annealing.annealed(
            self.tag, legs.grams, legs.pulls, legs.odds, near, *asked, *room
        )
        return made


@dataclass(frozen=True)
class Entries:
    """Chains over z and w, entries drawn from the response of the weights (kernels/annealing_weights.py)."""

    kept: ClassVar[type] = np.float64
    modes: ClassVar[int] = 0
    weights: Weights

    def __call__(
        self, legs: Legs, ends: Kept, chains: int, levels: int, keep: int, key: Key
    ) -> tuple[Tables, Kept]:
        asked = (legs.grams, legs.pulls, legs.odds, legs.rows, chains, levels, keep, key)
        made: tuple[Tables, Kept] = annealing_weights.annealed(self.weights.respond(), Draw(), *asked)
        return made
