"""What factors of counts say of rows whose tokens are partly seen (counts-modes.md 8)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.entries import Entries
from ibpdist.kernels.token_flips import Effort, RowModes
from ibpdist.kernels.token_laws import add_laws
from ibpdist.kernels.tokens import Entries as Tokens
from ibpdist.model.observations.factorised_counts import (
    MANY,
    FactorisedCounts,
    FactorisedParams,
    everywhere,
    largest,
)
from ibpdist.predict.tokens import PlacedRows

Matrix = NDArray[np.float64]
FOLDS, FLIPS = 50, 20
"""Rounds in which a row has every feature, and steps in which it chooses."""


@dataclass(frozen=True)
class FactorPredictor:
    """A fit by mean field as far as it predicts: its equations, dictionary and prior log odds (feature);
    whether rows have `every` feature; and how many tokens more each word of a feature has."""

    counts: FactorisedCounts
    params: FactorisedParams
    odds: NDArray[np.float64]
    every: bool
    floor: float

    @property
    def columns(self) -> int:
        return len(self.params.shape)

    @property
    def features(self) -> int:
        return len(self.odds)

    @property
    def how(self) -> str:
        """What a row is placed by, in words."""
        steps = f"{FOLDS} rounds" if self.every else f"{FOLDS} rounds and {FLIPS} steps of flips"
        more = f", {self.floor:g} tokens more for each word of a feature" if self.floor else ""
        return f"{steps} for each row{more}"

    @cached_property
    def y(self) -> Matrix:
        """(column, feature) expected tokens of words in training."""
        return self.counts.tokens(self.params)

    @cached_property
    def words(self) -> Matrix:
        """(column, feature) shares of words, and the tokens (feature) that they are shares of."""
        return np.asarray(self.params.shape + self.floor)

    def place(self, seen: Entries) -> PlacedRows:
        """Find which features the seen tokens of rows have."""
        entries = Tokens(seen.starts, seen.columns.astype(np.int64), seen.counts.astype(float))
        rows = everywhere(seen.lengths.astype(float), self.features, np.ones(seen.rows))
        rows = self._stepped(entries, rows, Effort(FOLDS, 0))
        if not self.every:
            rows = largest(rows)
            for _ in range(FLIPS):
                rows = self._stepped(entries, rows, MANY)
        return PlacedRows(rows.y, rows.exposure, rows.on.astype(float))

    def _stepped(self, entries: Tokens, rows: RowModes, effort: Effort) -> RowModes:
        columns = np.arange(self.columns)
        return self.counts.local(self.params, self.odds, entries, columns, rows, effort)[0]

    def weights(self, placed: PlacedRows) -> Matrix:
        """(row, feature) expected tokens of the features; a row without features has a little of all."""
        rows = RowModes(placed.f.astype(np.int8), placed.y, placed.rate)
        found = self.counts.amounts(self.params, rows)
        none = ~(found.sum(axis=1) > 0)
        found[none] = self.words.sum(axis=0) * (1e-9 / self.words.sum())
        return found

    def add_laws(self, weights: Matrix, laws: Matrix) -> None:
        """laws (row, column) += the law of words of rows with these weights (row, feature)."""
        shares = weights / weights.sum(axis=1, keepdims=True) / self.words.sum(axis=0)
        add_laws(shares, self.words, np.zeros(len(shares)), laws)
