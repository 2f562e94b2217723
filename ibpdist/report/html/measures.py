"""What fits are compared by, in the words of the page: of cells and of tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ibpdist.base.words import PREDICTION
from ibpdist.report.html.numbers import SCORE, Form, Number, fixed
from ibpdist.report.tokens import decimals

PERPLEXITY = Form(lambda value: f"{value:,.{decimals(value)}f}")


@dataclass(frozen=True)
class Measures:
    """What the objective is called, what is hidden for a score, the format of a score, what is not known
    without one, what comes first in lists of features, and what to do where all features are used."""

    objective: str
    hidden: str
    score: Form
    unscored: str
    first: str
    used_up: str


CELLS = Measures(
    objective="objective",
    hidden="cell",
    score=SCORE,
    unscored="No score of hidden cells is kept with the fit, so how well it predicts is not known.",
    first="most frequent features",
    used_up="try a larger K",
)
TOKENS = Measures(
    objective=PREDICTION,
    hidden="token",
    score=fixed(4, "nats per token"),
    unscored="No score of new rows is kept with the fit, so how well it predicts them is not known.",
    first="features with most tokens",
    used_up="compare several K with ibpdist choose",
)
DRAWN_TOKENS = replace(TOKENS, objective="objective", first=CELLS.first)
"""Of a sampler, whose objective is a log joint density, and of mean field, whose objective is a bound."""


def perplexity(score: Number, tokens: float = 1.0) -> Number:
    """The perplexity of a score in nats a token, or of nats of so many tokens."""
    value = math.exp(-score.value / tokens) if score.known else math.nan
    return Number(score.variable, value, score.index, f"{score.of} perplexity".strip())
