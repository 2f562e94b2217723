"""Counts: a cell is the number of tokens that a row has of a word, over all features (counts.md 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.model.observations.settings import choice

Float = NDArray[np.float64]
BEGIN = 0.05
"""eta where a chain begins that draws it."""


@dataclass(frozen=True)
class Poisson:
    """x ~ Poisson(sum_k z w phi), phi_k ~ Dirichlet(eta). A fit sees `eta`; predictions from expected tokens
    want less, `smoothing`. A sampler can `learn` eta."""

    name: ClassVar[str] = "poisson"
    counts: ClassVar[bool] = True
    has_row_density: ClassVar[bool] = False
    dense: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})
    fit_settings: ClassVar[Mapping[str, object]] = {}
    draw_settings: ClassVar[Mapping[str, object]] = {"eta": "learn"}

    eta: float | Literal["learn"] = 0.05
    smoothing: float = 0.02

    def __post_init__(self) -> None:
        choice("eta", self.eta, ("learn",), number=True)
        choice("smoothing", self.smoothing, (), number=True)

    @property
    def learned(self) -> bool:
        """Whether eta is drawn, as samplers can."""
        return isinstance(self.eta, str)

    @property
    def first_eta(self) -> float:
        """eta, where a chain begins that draws it."""
        return BEGIN if isinstance(self.eta, str) else float(self.eta)

    def shares(self, y: Float) -> Float:
        """(column, feature) E phi from expected tokens: the share of each word in each feature."""
        tokens = y + self.smoothing
        found: Float = tokens / tokens.sum(axis=0)
        return found
