"""Weights whose density is exp(-|w|) up to a constant, with balanced lengths (factors.md 11, ica.md 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.structs import Nothing
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import FixedWeights, Slab, WeightSums

Matrix = NDArray[Any]


class BalancedWeights(FixedWeights):
    """What weights with one side and with two sides share."""

    def best(
        self, slab: Slab | Nothing, sums: WeightSums, energy: Matrix, beside: Evidence | None
    ) -> tuple[Slab | Nothing, Matrix]:
        return slab, np.ones(len(sums.on)) if beside is None else length(sums.on, sums.first, beside)

    def rescaled(self, sums: WeightSums, lengths: Matrix) -> WeightSums:
        cost = sums.cost + change_of_cost(sums.on, sums.first, lengths)
        return WeightSums(sums.on, sums.first / lengths, sums.second / lengths**2, cost)


def length(on: Matrix, first: Matrix, beside: Evidence) -> Matrix:
    """(feature) c where the objective is highest when weights are divided by c and features multiplied.

    `on` and `first` are sums of E z and E |y|. Beside constants the objective has (factors.md 11)

        -first / c - (on + cells) log c - squares / (2 c^2),

    the entropies and the weights' prior, and of the dictionary what `beside` says. It has one maximum.
    """
    cells = on + beside.cells
    return np.asarray((first + np.sqrt(first**2 + 4 * cells * beside.squares)) / (2 * cells))


def change_of_cost(on: Matrix, first: Matrix, lengths: Matrix) -> Matrix:
    """(feature) what the cost of the weights gains when they are divided by `lengths`."""
    return np.asarray(first * (1 / lengths - 1) + on * np.log(lengths))
