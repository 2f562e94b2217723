"""What a model does with a conditional distribution: take its mean, its mode, or a draw.

    z           who has which feature
    weights     how much of it there is
    prior       sticks or prevalences
    dictionary  what a feature looks like

All means is variational inference; z by mode is its hard version; all draws is Gibbs sampling.
Variances and mass are point estimates, or drawn where everything is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    MEAN = "mean"
    MODE = "mode"
    DRAW = "draw"


@dataclass(frozen=True)
class Rules:
    """One rule for each latent group."""

    z: Rule = Rule.MEAN
    weights: Rule = Rule.MEAN
    prior: Rule = Rule.MEAN
    dictionary: Rule = Rule.MEAN


MEAN = Rules()
HARD = Rules(z=Rule.MODE)
DRAW = Rules(Rule.DRAW, Rule.DRAW, Rule.DRAW, Rule.DRAW)
