"""What features of counts say of rows whose tokens are partly seen: weights, and the law of words.

The features are those of counts.md 1. Rows are placed by steps of the fit's own kernel that leave nothing
out of the sums of the words (counts.md 8). Every number of a row is the same, bit for bit, whatever the rows
beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.entries import Entries
from ibpdist.inference.counts.means import fold
from ibpdist.kernels import tokens as loops
from ibpdist.kernels.token_laws import LANES, add_laws
from ibpdist.kernels.tokens import LEAST_RATE
from ibpdist.model.weights import gamma

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

STEPS = 50
"""Steps that place the tokens of a row."""
SHARES = 1 << 17
"""Numbers rho (entry, feature) of the rows that are placed at once: they stay in the processor's cache."""
CELLS = 1 << 20
"""Cells (row, column) whose laws are made at once: 8 MB."""


class PredictsTokens(Protocol):
    """A fit of counts that gives rows laws of words."""

    @property
    def columns(self) -> int: ...
    @property
    def features(self) -> int: ...
    @property
    def y(self) -> Matrix:
        """(column, feature) expected tokens of words in training."""
        ...

    @property
    def how(self) -> str:
        """What a row is placed by, in words."""
        ...

    def place(self, seen: Entries) -> PlacedRows:
        """Find which features the seen tokens of rows have."""
        ...

    def weights(self, placed: PlacedRows) -> Matrix:
        """(row, feature) expected tokens of the features."""
        ...

    def add_laws(self, weights: Matrix, laws: Matrix) -> None:
        """laws (row, column) += the law of words of rows with these weights (row, feature)."""
        ...


class PlacedRows(NamedTuple):
    """Rows whose tokens have features: `y` (row, feature) expected tokens, `rate` (row) c, and `f` (row,
    feature) the probability that the row has the feature."""

    y: Matrix
    rate: Vector
    f: Matrix


@dataclass(frozen=True)
class TokenPredictor:
    """A fit of counts as far as it predicts.

    `y` (column, feature) expected tokens of words in training; `shape` (feature) r; `odds` (feature) prior
    log odds, infinite where every row has the feature; `smoothing` is added to y; `presence` is the mean over
    training rows of sum_k f r, from which the rate of a row begins.
    """

    y: Matrix
    shape: Vector
    odds: Vector
    smoothing: float
    presence: float

    @property
    def columns(self) -> int:
        return len(self.y)

    @property
    def features(self) -> int:
        return len(self.shape)

    @property
    def how(self) -> str:
        """What a row is placed by, in words."""
        return f"{STEPS} steps for each row"

    @cached_property
    def total(self) -> Vector:
        """(feature) expected tokens of all words."""
        found: Vector = self.y.sum(axis=0, dtype=float)
        return found

    def place(self, seen: Entries, steps: int = STEPS) -> PlacedRows:
        """Find which features the seen tokens of rows have."""
        rate = np.maximum(self.presence / np.maximum(seen.lengths, 1.0), LEAST_RATE)
        rows = loops.RowTokens(np.zeros((seen.rows, self.features)), rate)
        for part in _row_blocks(seen, max(1, SHARES // self.features)):
            self._place(seen, part, loops.RowTokens(rows.y[part], rows.rate[part]), steps)
        f = gamma.presence(rows.y, rows.rate, self.shape, self.odds)
        return PlacedRows(rows.y, row_rates(f, self.shape, seen.lengths), f)

    def _place(self, seen: Entries, part: slice, rows: loops.RowTokens, steps: int) -> None:
        """The same of a block of rows, which are changed; only the words that occur in it are read."""
        own = seen.between(part.start, part.stop)
        columns, words = np.unique(own.columns, return_inverse=True)
        fold(Entries(own.starts, words.astype(np.int32), own.counts), self._known(columns), rows, steps)

    def _known(self, columns: NDArray[np.integer[Any]]) -> loops.Known:
        """What a step reads of some words; the rows are not among those of the fit."""
        spread, own = self.smoothing * self.columns, 0.0
        y = self.y[columns].astype(float)
        return loops.Known(y, self.total, self.shape, self.odds, self.smoothing, spread, own)

    def weights(self, placed: PlacedRows) -> Matrix:
        """(row, feature) E[z w] = (y + f r) / (1 + c); they add to the number of tokens of a row."""
        return gamma.mean_weights(placed.y, placed.rate, self.shape, placed.f)

    def add_laws(self, weights: Matrix, laws: Matrix) -> None:
        """laws (row, column) += the law of words of rows with these weights (row, feature)."""
        shares = weights / weights.sum(axis=1, keepdims=True)
        shares /= self.total + self.smoothing * self.columns
        add_laws(shares, self.y, self.smoothing * shares.sum(axis=1), laws)


def token_predictor(named: Mapping[str, Any], smoothing: float) -> TokenPredictor:
    """The predictor of a fit from variables of its result: mean (feature, column), the shares of words with
    this smoothing, and tokens, weight_shape, log_odds, prevalence (feature)."""
    names = ("mean", "tokens", "weight_shape", "log_odds", "prevalence")
    mean, tokens, shape, odds, prevalence = (np.asarray(named[name], dtype=float) for name in names)
    y = mean.T * (tokens + smoothing * mean.shape[1]) - smoothing
    return TokenPredictor(np.maximum(y, 0.0), shape, odds, smoothing, float(prevalence @ shape))


def row_rates(f: Matrix, shape: Vector, lengths: NDArray[np.int64]) -> Vector:
    """c (row) given f; with it the weights of a row add to its length (counts.md 3)."""
    found: Vector = np.maximum((f * shape).sum(axis=1) / np.maximum(lengths, 1.0), LEAST_RATE)
    return found


def laws_of(of: Sequence[PredictsTokens], weights: Sequence[Matrix]) -> Iterator[tuple[slice, Matrix]]:
    """Laws (row, column) of words, a block of rows after another; of several predictors their mean.

    weights: (row, feature) of each predictor.
    """
    rows, columns = len(weights[0]), of[0].columns
    step = max(1, CELLS // columns)
    step -= step % LANES if step > LANES else 0
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        laws = np.zeros((part.stop - start, columns))
        for one, own in zip(of, weights, strict=True):
            one.add_laws(own[part], laws)
        yield part, laws / len(of)


def predicted_laws(of: Sequence[PredictsTokens], seen: Entries) -> Matrix:
    """The law (row, column) of the words of rows whose seen tokens are given, of all rows at once."""
    weights = [one.weights(one.place(seen)) for one in of]
    return np.concatenate([np.empty((0, of[0].columns)), *(laws for _, laws in laws_of(of, weights))])


def unigram(words: Vector) -> Vector:
    """(column) the law of words that is the same for all rows, from their tokens in training: one token more
    of each."""
    found: Vector = (words + 1.0) / (words + 1.0).sum()
    return found


def _row_blocks(entries: Entries, most: int) -> Iterator[slice]:
    """Blocks of rows that follow each other, each with at most so many entries, or of one row."""
    first = 0
    while first < entries.rows:
        limit = entries.starts[first] + most
        last = max(first + 1, int(np.searchsorted(entries.starts, limit, side="right")) - 1)
        yield slice(first, min(last, entries.rows))
        first = last
