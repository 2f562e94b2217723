"""Fits of counts by non-negative factors, as an algorithm would make them: start, steps, new documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.kernels.token_flips import Effort, RowModes
from ibpdist.kernels.tokens import Entries
from ibpdist.model.observations.factorised_counts import (
    EVERY,
    MANY,
    WARM,
    FactorisedCounts,
    FactorisedParams,
    FactorisedSums,
    effort_of,
    everywhere,
    largest,
)
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors.always import Always

Matrix = NDArray[np.float64]
ALWAYS, COUNTS = Always(), FactorisedCounts()
NEW_STEPS = 5
"""Steps with flips of rows that the dictionary has not seen."""


@dataclass(frozen=True)
class State:
    """Parameters of dictionary and prior, rows, and the objective before and after each update."""

    params: FactorisedParams
    prior: Any
    rows: RowModes
    sums: FactorisedSums
    trace: list[float]


@dataclass(frozen=True)
class Fit:
    """Counts with a prior; rows begin with every feature for `WARM` steps, unless the prior keeps them so.
    Without an `effort` there are few flips at first."""

    prior: Any = ALWAYS
    counts: FactorisedCounts = COUNTS
    effort: Effort | None = None
    exposed: bool = False

    def entries(self, x: NDArray[Any]) -> Entries:
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(x, axis=1))])
        return Entries(starts, np.nonzero(x)[1], x[x > 0].astype(np.float64))

    def exposure(self, x: NDArray[Any]) -> Matrix:
        return np.maximum(x.sum(axis=1), 1.0) if self.exposed else np.ones(len(x))

    def step(self, x: NDArray[Any], state: State, effort: Effort) -> State:
        """Rows, then lengths, dictionary and prior."""
        odds = self.prior.log_odds(state.prior)
        rows, sums = self.counts.local(
            state.params, odds, self.entries(x), np.arange(x.shape[1]), state.rows, effort
        )
        seen = PriorSums(on=sums.on, rows=sums.rows)
        trace = [self.total(state.params, state.prior, sums)]
        sums = self.counts.balanced(sums)
        params = self.counts.updated(sums)
        prior = self.prior.update(state.prior, seen, Rule.MEAN, np.random.default_rng(0))
        trace.append(self.total(params, prior, sums))
        return State(params, prior, rows, sums, state.trace + trace)

    def total(self, params: FactorisedParams, prior: Any, sums: FactorisedSums) -> float:
        """The objective. It is not a bound of balanced sums with the dictionary before them."""
        own = self.prior.score(prior, PriorSums(on=sums.on, rows=sums.rows))
        return sum(self.counts.score(params, sums).values()) + sum(own.values())

    def start(self, x: NDArray[Any], words: Matrix) -> State:
        """Steps with every feature from these tokens (column, feature), then the largest of each row."""
        features, tokens = words.shape[1], x.sum(axis=1)
        exposure = self.exposure(x)
        state = State(
            self.counts.begun(words, float(tokens.sum() / exposure.sum())),
            self.prior.init(features, len(x)),
            everywhere(tokens, features, exposure),
            None,  # type: ignore[arg-type]
            [],
        )
        if self.prior.dense:
            return state
        for _ in range(WARM):
            state = self.step(x, state, EVERY)
        rows = largest(state.rows)
        seen = PriorSums(on=rows.on.sum(axis=0).astype(float), rows=np.asarray(float(len(x))))
        prior = self.prior.update(
            self.prior.init(features, len(x)), seen, Rule.MEAN, np.random.default_rng(0)
        )
        return State(state.params, prior, rows, state.sums, [])

    def run(self, x: NDArray[Any], words: Matrix, steps: int) -> State:
        state = self.start(x, words)
        for number in range(steps):
            effort = EVERY if self.prior.dense else self.effort or effort_of(number)
            state = self.step(x, state, effort)
        return state

    def new_rows(self, x: NDArray[Any], state: State, folds: int) -> RowModes:
        """Rows that the dictionary has not seen, which begin as others do."""
        tokens, features = x.sum(axis=1), len(state.params.rate)
        odds, columns = self.prior.log_odds(state.prior), np.arange(x.shape[1])
        entries, rows = self.entries(x), everywhere(tokens, features, self.exposure(x))

        def stepped(rows: RowModes, effort: Effort) -> RowModes:
            return self.counts.local(state.params, odds, entries, columns, rows, effort)[0]

        rows = stepped(rows, Effort(folds, 0))
        if self.prior.dense:
            return rows
        rows = largest(rows)
        for _ in range(NEW_STEPS):
            rows = stepped(rows, MANY)
        return rows
