"""Features of counts by collapsed means: rows against the expected tokens of the step before.

A step bounds nothing (counts.md 2). What a fit is compared by, and what ends it, is how well it predicts a
share of the tokens of its rows that it does not see: the objective is their log density, and it may fall.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import digamma

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Named, replace
from ibpdist.data._base import Chunk
from ibpdist.data.entries import Entries
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.inference._base import Info, Known
from ibpdist.inference.ascent.coordinate import ACTIVE
from ibpdist.inference.counts._base import CountSteps, described, order_of
from ibpdist.inference.counts.documents import BeginWords, Documents
from ibpdist.inference.counts.params import TokenParams, TokenRowState, TokenStepSums
from ibpdist.inference.stopping import WINDOW
from ibpdist.kernels import tokens
from ibpdist.model.model import TokenModel
from ibpdist.model.observations._base import Survey
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.weights.gamma import mean_weights, presence

EVALUATIONS = 4
"""Of the equation of rho in a step (counts.md 5)."""
WAIT = 10
"""First steps, in which the prior and the shapes stay as they are: rows have a little of every feature."""
FOLDS = 20
"""Steps in which rows look for their tokens among features of another fit."""
BEGIN_ETA = 0.3
"""Concentration of the words in the first step."""
SEED = 0x51C0
"""Of the hidden tokens: fits of the same rows hide the same ones, so that their objectives compare."""


@dataclass(frozen=True)
class TokenMeans(CountSteps):
    """`features` is K; a share `hidden` of the tokens of the rows is not seen; `begin` makes the first words
    of the features."""

    model: TokenModel
    features: int
    hidden: float = 0.05
    begin: BeginWords = field(default_factory=Documents)

    def __post_init__(self) -> None:
        if not 0 < self.hidden < 1:
            raise UsageError(f"hidden is {self.hidden:g}; expected a share greater than 0 and less than 1")
        if self.model.observation.learned:
            raise UsageError("eta: learn is for samplers, such as counts-gibbs-finite: give a number")

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> TokenParams:
        features, prior = self.features, self.model.prior
        return TokenParams(
            prior=prior.resized(prior.init(features, int(survey.rows)), features),
            y=self.begin.words(survey, features, known, draws),
            shape=self.model.weights.shapes(features),
            odds=np.zeros(features),
            eta=np.asarray(BEGIN_ETA),
            ids=np.arange(features),
            on=np.full(features, float(survey.rows)),
            **_unseen(survey, folds=0),
        )

    def adopt(self, params: TokenParams, survey: Survey) -> TokenParams:
        """The rows look for their tokens among the features first; then they make the features."""
        grown = float(survey.rows) / max(float(params.rows), 1.0)
        eta = np.asarray(self.model.observation.smoothing)
        return replace(params, on=params.on * grown, eta=eta, **_unseen(survey, folds=FOLDS))

    def start(self, chunk: Chunk, params: TokenParams, draws: Draws) -> TokenRowState:
        """No tokens in any feature, and rates as if the rows had all; with features of another fit, the
        tokens that rows have of these."""
        seen = self.seen(chunk)
        present = float(params.on @ params.shape) / max(float(params.rows), 1.0)
        rate = np.maximum(present / np.maximum(seen.lengths, 1), tokens.LEAST_RATE)
        rows = tokens.RowTokens(np.zeros((seen.rows, len(params.ids)), chunk.dtype), rate)
        if int(params.folds):
            fold(seen, known_of(params, chunk.dtype), rows, int(params.folds))
        return TokenRowState(*rows)

    def local(
        self, chunk: Chunk, local: TokenRowState, params: TokenParams, draws: Draws
    ) -> tuple[TokenRowState, TokenStepSums]:
        seen, hidden = self._divided(chunk)
        known = known_of(params, chunk.dtype)
        rows = tokens.RowTokens(local.y.copy(), local.rate.copy())
        sums = tokens.empty_sums(*params.y.shape)
        tokens.find_rho(entered(seen, known), known, rows, EVALUATIONS, digamma(params.shape), sums)
        nats = np.zeros(hidden.rows)
        tokens.log_densities(entered(hidden, known), self._predicting(known, params), rows, nats)
        return TokenRowState(*rows), TokenStepSums(
            y=sums.y,
            on=sums.on,
            seen=sums.seen,
            exposed=sums.exposed,
            rows=np.asarray(float(seen.rows)),
            change=np.asarray(sums.change),
            tokens=np.asarray(sums.tokens),
            nats=np.asarray(nats.sum()),
            scored=np.asarray(float(hidden.counts.sum())),
        )

    def _predicting(self, known: tokens.Known, params: TokenParams) -> tokens.Known:
        """The same with the concentration of the words that predictions have."""
        smoothing = known.y.dtype.type(self.model.observation.smoothing)
        return known._replace(eta=smoothing, spread=smoothing * known.y.dtype.type(len(params.y)))

    def seen(self, chunk: Chunk) -> Entries:
        return self._divided(chunk)[0]

    def _divided(self, chunk: Chunk) -> tuple[Entries, Entries]:
        """The tokens of a chunk that the fit sees, and the hidden ones."""
        return HeldTokens(self.hidden, 1.0, SEED).divided(chunk.start, chunk.entries)

    def update(self, params: TokenParams, sums: TokenStepSums, draws: Draws) -> tuple[TokenParams, Info]:
        learned = params if draws.step <= WAIT else self._learned(params, sums, draws)
        made = TokenParams(
            prior=learned.prior,
            y=sums.y,
            shape=learned.shape,
            odds=learned.odds,
            eta=np.asarray(self.model.observation.first_eta),
            own=np.ones(()),
            folds=np.zeros(()),
            ids=params.ids,
            on=sums.on,
            rows=sums.rows,
            change=np.asarray(float(sums.change) / max(float(sums.tokens), 1.0)),
            scored=sums.scored,
            recent=np.append(params.recent, sums.nats)[-WINDOW - 1 :],
        )
        return made, _info(made)

    def _learned(self, params: TokenParams, sums: TokenStepSums, draws: Draws) -> TokenParams:
        """Prior, its odds and shapes, given the sums."""
        model, counts = self.model, PriorSums(on=np.minimum(sums.on, sums.rows), rows=sums.rows)
        prior = model.prior.update(params.prior, counts, model.rules.prior, draws.generator("prior"))
        shape = model.weights.updated(params.shape, sums.seen, sums.exposed)
        return replace(params, prior=prior, odds=model.prior.log_odds(prior), shape=shape)

    def monotone(self) -> bool:
        return False

    def describe(self, params: TokenParams) -> Named:
        order = order_of(params)
        nats, scored = float(params.recent[-1]) if params.recent.size else 0.0, float(params.scored)
        return {
            **described(params, self.model.prior, params.odds),
            "mean": (("feature", "column"), self.model.observation.shares(params.y).T[order]),
            "tokens": (("feature",), params.y.sum(axis=0)[order]),
            "weight_shape": (("feature",), params.shape[order]),
            "score": ((), np.asarray(nats / max(scored, 1.0))),
            "scored_tokens": ((), np.asarray(scored)),
        }

    def describe_rows(self, local: TokenRowState, params: TokenParams) -> Named:
        """z, and w so that z w are the tokens that a row is expected to have of a feature."""
        y, order = local.y.astype(np.float64), order_of(params)
        present = presence(y, local.rate, params.shape, params.odds)
        weights = mean_weights(y, local.rate, params.shape, present)
        w = np.divide(weights, present, out=np.zeros_like(weights), where=present > 0)
        kind = local.y.dtype
        return {
            "z": (("feature", "row"), present.T[order].astype(kind)),
            "w": (("feature", "row"), w.T[order].astype(kind)),
        }


def known_of(params: TokenParams, dtype: np.dtype[Any]) -> tokens.Known:
    """What the loops of a step read, in the precision of the data."""
    one, y = dtype.type, params.y
    return tokens.Known(
        y.astype(dtype),
        y.sum(axis=0).astype(dtype),
        params.shape,
        params.odds,
        one(params.eta),
        one(float(params.eta) * len(y)),
        one(params.own),
    )


def entered(entries: Entries, known: tokens.Known) -> tokens.Entries:
    """Entries as the loops read them."""
    return tokens.Entries(entries.starts, entries.columns, entries.counts.astype(known.y.dtype))


def fold(entries: Entries, known: tokens.Known, rows: tokens.RowTokens, steps: int) -> None:
    """Rows look for their tokens among features that they are no part of; rows are changed."""
    given, low = entered(entries, known), digamma(known.shape)
    rho = np.zeros((len(given.counts), len(known.shape)), known.y.dtype)
    unused = tokens.empty_sums(*known.y.shape)
    for _ in range(steps):
        tokens.keep_rho(given, known, rows, rho, low, unused)


def _unseen(survey: Survey, folds: int) -> dict[str, Any]:
    """What parameters hold before any step over these rows."""
    none = np.zeros(())
    return {
        "own": none,
        "folds": np.asarray(float(folds)),
        "rows": np.asarray(float(survey.rows)),
        "change": none,
        "scored": none,
        "recent": np.zeros(0),
    }


def _info(params: TokenParams) -> Info:
    nats = float(params.recent[-1])
    active = float((params.on > ACTIVE).sum())
    terms = {"objective": nats, "bound": nats, "active": active, "prediction": nats}
    whole = params.recent.size > WINDOW
    slope = float(params.recent[-1] - params.recent[0]) / WINDOW if whole else None
    return Info(terms, slope=slope)
