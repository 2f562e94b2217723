"""Features of counts that a row has or lacks, and the factorisations in which it has all (counts-modes.md 1).

A fit with flips begins with steps in which every row has every feature; then rows keep their largest one. No
step lowers the objective but the one between the two, and those before it are marked as `warming`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, replace, struct
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info, Known
from ibpdist.inference.ascent.coordinate import ACTIVE, BEYOND_THE_REPORT
from ibpdist.inference.counts._base import CountSteps, described, order_of
from ibpdist.inference.counts.documents import BeginWords, Documents
from ibpdist.kernels.token_flips import TINY, RowModes
from ibpdist.kernels.tokens import Entries
from ibpdist.model.model import FactorModel
from ibpdist.model.observations._base import Survey
from ibpdist.model.observations.factorised_counts import (
    EVERY,
    WARM,
    FactorisedCounts,
    FactorisedParams,
    FactorisedSums,
    effort_of,
    everywhere,
    largest,
)
from ibpdist.model.priors._base import PriorSums


@struct("token-mode-params", since=1)
class TokenModeParams:
    """Dictionary and prior after `step` steps; `on` (feature) and `rows` are of the last one."""

    prior: Any
    words: FactorisedParams
    step: Array = dims()
    ids: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()


@struct("token-mode-row-state", since=1)
class TokenModeRowState:
    """Of the rows of a chunk: which features they have, and expected tokens of each."""

    on: Array = dims("row feature", reduce="concat")
    y: Array = dims("row feature", reduce="concat")


@struct
class TokenModeSums:
    """Sums of the dictionary, and `on` (feature): how many rows have each feature in the next step."""

    words: FactorisedSums
    on: Array = dims("feature")


@dataclass(frozen=True)
class TokenModes(CountSteps):
    """`features` is K; `begin` makes the first words of the features."""

    model: FactorModel
    features: int
    begin: BeginWords = field(default_factory=Documents)

    def __post_init__(self) -> None:
        if self.model.weights.learned:
            raise UsageError("shape: learn is for collapsed systems, such as counts-finite: give a number")

    @property
    def counts(self) -> FactorisedCounts:
        """The equations, with the settings of the model."""
        weights, observation = self.model.weights, self.model.observation
        return observation.factorised(weights.first_shape)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> TokenModeParams:
        features, prior = self.features, self.model.prior
        words = self.begin.words(survey, features, known, draws)
        return TokenModeParams(
            prior=prior.resized(prior.init(features, int(survey.rows)), features),
            words=self.counts.begun(words, float(survey.total.sum()) / max(float(survey.rows), 1.0)),
            step=np.zeros(()),
            ids=np.arange(features),
            on=np.full(features, float(survey.rows)),
            rows=np.asarray(float(survey.rows)),
        )

    def adopt(self, params: TokenModeParams, survey: Survey) -> TokenModeParams:
        """The rows look for the features of another fit as they do at the start."""
        return replace(params, step=np.zeros(()), rows=np.asarray(float(survey.rows)))

    def start(self, chunk: Chunk, params: TokenModeParams, draws: Draws) -> TokenModeRowState:
        """Every feature, with equal parts of the tokens."""
        lengths = chunk.entries.lengths.astype(float)
        rows = everywhere(lengths, len(params.ids), np.ones(chunk.rows))
        return TokenModeRowState(on=rows.on.astype(chunk.dtype), y=rows.y)

    def local(
        self, chunk: Chunk, local: TokenModeRowState, params: TokenModeParams, draws: Draws
    ) -> tuple[TokenModeRowState, TokenModeSums]:
        found, columns = chunk.entries, np.arange(chunk.columns)
        entries = Entries(found.starts, found.columns.astype(np.int64), found.counts.astype(float))
        odds, left = self.model.prior.log_odds(params.prior), self._left(params)
        every = self.model.prior.dense or left > 0
        effort = EVERY if every else effort_of(int(params.step) - WARM)
        before = RowModes(local.on.astype(np.int8), local.y, np.ones(chunk.rows))
        rows, sums = self.counts.local(params.words, odds, entries, columns, before, effort)
        if left == 1:
            rows = largest(rows)
        on = rows.on.sum(axis=0).astype(float)
        made = TokenModeRowState(on=rows.on.astype(chunk.dtype), y=rows.y)
        return made, TokenModeSums(words=sums, on=on)

    def update(
        self, params: TokenModeParams, sums: TokenModeSums, draws: Draws
    ) -> tuple[TokenModeParams, Info]:
        left, rows = self._left(params), sums.words.rows
        seen, prior = PriorSums(on=sums.on, rows=rows), params.prior
        if left < 2:
            prior = self.model.prior.update(prior, seen, Rule.MEAN, draws.generator("prior"))
        words = self.counts.balanced(sums.words)
        made = replace(
            params,
            prior=prior,
            words=self.counts.updated(words),
            step=params.step + 1,
            on=sums.on,
            rows=rows,
        )
        own = PriorSums(on=words.on, rows=rows)
        terms = {**self.model.prior.score(prior, own), **self.counts.score(made.words, words)}
        level = sum(terms.values())
        levels = {
            "objective": level,
            "bound": level - sum(terms.get(name, 0.0) for name in BEYOND_THE_REPORT),
            "active": float((sums.on > ACTIVE).sum()),
        }
        marks = {"warming": 1.0, "settled": 0.0} if left else {}
        return made, Info({**levels, **terms}, **marks)

    def _left(self, params: TokenModeParams) -> int:
        """How many steps are left in which rows have every feature before they choose."""
        return 0 if self.model.prior.dense else max(WARM - int(params.step), 0)

    def monotone(self) -> bool:
        return True

    def describe(self, params: TokenModeParams) -> Named:
        order, prior, shape = order_of(params), self.model.prior, params.words.shape + TINY
        return {
            **described(params, prior, prior.log_odds(params.prior)),
            "mean": (("feature", "column"), (shape / shape.sum(axis=0)).T[order]),
            "tokens": (("feature",), self.counts.tokens(params.words).sum(axis=0)[order]),
            "weight_shape": (("feature",), np.full(len(order), self.model.weights.first_shape)),
        }

    def describe_rows(self, local: TokenModeRowState, params: TokenModeParams) -> Named:
        """z, and w so that z w are the tokens that a row is expected to have of a feature."""
        order, kind = order_of(params), local.on.dtype
        w = self.counts.amounts(params.words, RowModes(local.on, local.y, np.ones(len(local.on))))
        return {
            "z": (("feature", "row"), local.on.T[order]),
            "w": (("feature", "row"), w.T[order].astype(kind)),
        }
