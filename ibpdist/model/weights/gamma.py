"""Gamma weights of counts: how many tokens of a feature a row is expected to have (counts.md 1, 3, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ibpdist.base.rules import Rule
from ibpdist.model.observations.settings import choice

Float = NDArray[np.float64]
BEGIN = 0.1
"""Shapes where a fit begins that learns them."""
LEAST, MOST = 1e-6, 100.0
"""Between these shapes stay."""


@dataclass(frozen=True)
class Gamma:
    """w ~ Gamma(shape, rate c) with a shape for each feature and a rate for each row. `shape` is learn, or a
    number for all features."""

    name: ClassVar[str] = "gamma"
    counts: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    default_start: ClassVar[str] = "documents"
    most_features: ClassVar[int] = 1000
    fit_settings: ClassVar[Mapping[str, object]] = {}
    rows_have: ClassVar[str] = "have weights of counts"
    rules: ClassVar[frozenset[Rule]] = frozenset({Rule.MEAN, Rule.DRAW})

    shape: str | float = "learn"

    def __post_init__(self) -> None:
        choice("shape", self.shape, ("learn",), number=True)

    def shapes(self, features: int) -> Float:
        """(feature) shapes where a fit begins."""
        return np.full(features, self.first_shape)

    @property
    def first_shape(self) -> float:
        """The shape, where a fit begins that learns it."""
        return BEGIN if isinstance(self.shape, str) else float(self.shape)

    @property
    def learned(self) -> bool:
        """Whether shapes are learned."""
        return isinstance(self.shape, str)

    def updated(self, shapes: Float, seen: Float, exposed: Float) -> Float:
        """A step of the fixed point of the shapes (counts.md 6), unless they are given."""
        if not self.learned:
            return shapes
        found: Float = np.clip(shapes * seen / np.maximum(exposed, 1e-300), LEAST, MOST)
        return found


def presence(y: Float, rate: Float, shape: Float, log_odds: Float) -> Float:
    """(row, feature) f: the probability that a row has a feature of which y tokens are expected."""
    level = np.log(rate / (1 + rate))
    found: Float = 1 - np.exp(-y) * (1 - expit(log_odds + level[:, None] * shape))
    return found


def mean_weights(y: Float, rate: Float, shape: Float, present: Float) -> Float:
    """(row, feature) E z w: the tokens that a row is expected to have of each feature, which add up to about
    its length."""
    found: Float = (y + present * shape) / (1 + rate[:, None])
    return found
