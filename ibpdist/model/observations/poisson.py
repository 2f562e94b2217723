"""Counts: a cell is the number of tokens that a row has of a word, over all features (counts.md 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.model.observations.factorised_counts import FactorisedCounts
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


@dataclass(frozen=True)
class PoissonFactors:
    """x ~ Poisson(sum_k z w phi) by mean field: w and the entries of phi are gamma variables, those of shape
    `word_shape` (counts-modes.md 1)."""

    name: ClassVar[str] = "poisson_factors"
    counts: ClassVar[bool] = True
    has_row_density: ClassVar[bool] = False
    dense: ClassVar[bool] = False
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
    fit_settings: ClassVar[Mapping[str, object]] = {"shape": 0.25}
    draw_settings: ClassVar[Mapping[str, object]] = {}

    word_shape: float = 0.5

    def __post_init__(self) -> None:
        choice("word_shape", self.word_shape, (), number=True)

    @property
    def floor(self) -> float:
        """Tokens more of each word and feature in predictions."""
        return 0.0

    def factorised(self, shape: float) -> FactorisedCounts:
        """The equations, with weights of this shape."""
        return FactorisedCounts(shape, self.word_shape)


@dataclass(frozen=True)
class PoissonPoints:
    """The same by point estimates without priors, as Lee and Seung have them; predictions give each word of a
    feature `floor` tokens more, because words that training lacks have none."""

    name: ClassVar[str] = "poisson_points"
    counts: ClassVar[bool] = True
    has_row_density: ClassVar[bool] = False
    dense: ClassVar[bool] = True
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN})
    fit_settings: ClassVar[Mapping[str, object]] = {"shape": 0.25}
    draw_settings: ClassVar[Mapping[str, object]] = {}

    floor: float = 0.1

    def __post_init__(self) -> None:
        choice("floor", self.floor, (), number=True)

    def factorised(self, shape: float) -> FactorisedCounts:
        """The equations; there is no prior that weights have."""
        return FactorisedCounts(point=True)
