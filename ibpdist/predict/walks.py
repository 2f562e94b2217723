"""Annealed chains of rows, by what they walk over: features alone, or features and weights together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.kernels import annealing, annealing_weights
from ibpdist.kernels.respond import Draw
from ibpdist.model.weights._base import Weights
from ibpdist.predict.predict import Matrix, Vector

Ends = NDArray[np.uint8]
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
    """Chains over the features of rows; they can jump between `modes` of them, or none."""

    @property
    def modes(self) -> int: ...

    def __call__(
        self, legs: Legs, ends: Ends, chains: int, levels: int, keep: int, key: Key
    ) -> tuple[Tables, Ends]:
        """Log weights (row, chain, leg), and z at the end of each leg (row, chain, leg, draw, feature);
        chains may jump between `ends` (row, mode, feature)."""
        ...


@dataclass(frozen=True)
class Flips:
    """Chains over z alone, whose evidence is known in closed form (kernels/annealing.py)."""

    tag: annealing.Unit | annealing.Normal

    @property
    def modes(self) -> int:
        return self.tag.modes

    def __call__(
        self, legs: Legs, ends: Ends, chains: int, levels: int, keep: int, key: Key
    ) -> tuple[Tables, Ends]:
        near = annealing.alike(legs.all, self.tag.near)
        room = (*annealing.room(self.tag, legs.tilt), *annealing.room(self.tag, legs.tilt))
        asked = (ends, legs.rows, chains, levels, keep, key)
        made: tuple[Tables, Ends] = annealing.annealed(
            self.tag, legs.grams, legs.pulls, legs.odds, near, *asked, *room
        )
        return made


@dataclass(frozen=True)
class Entries:
    """Chains over z and w, entries drawn from the response of the weights (kernels/annealing_weights.py)."""

    weights: Weights
    modes: ClassVar[int] = 0

    def __call__(
        self, legs: Legs, ends: Ends, chains: int, levels: int, keep: int, key: Key
    ) -> tuple[Tables, Ends]:
        asked = (legs.grams, legs.pulls, legs.odds, legs.rows, chains, levels, keep, key)
        made: tuple[Tables, Ends] = annealing_weights.annealed(self.weights.respond(), Draw(), *asked)
        return made
