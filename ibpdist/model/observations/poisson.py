"""Counts: a cell is the number of tokens that a row has of a word, over all features (counts.md 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.model.observations.settings import choice

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Poisson:
    """x ~ Poisson(sum_k z w phi), phi_k ~ Dirichlet(eta). A fit sees `eta`; predictions from expected tokens
    want less, `smoothing`."""

    name: ClassVar[str] = "poisson"
    counts: ClassVar[bool] = True
    has_row_density: ClassVar[bool] = False
    dense: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
    fit_settings: ClassVar[Mapping[str, object]] = {}

    eta: float = 0.05
    smoothing: float = 0.02

    def __post_init__(self) -> None:
        choice("eta", self.eta, (), number=True)
        choice("smoothing", self.smoothing, (), number=True)

    def shares(self, y: Float) -> Float:
        """(column, feature) E phi from expected tokens: the share of each word in each feature."""
        tokens = y + self.smoothing
        found: Float = tokens / tokens.sum(axis=0)
        return found
