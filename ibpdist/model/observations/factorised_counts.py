"""Counts as a product of non-negative factors: x_nv ~ Poisson(L_n sum_k z_nk w_nk Phi_vk), by mean field.

w_nk ~ Gamma(e, e) and Phi_vk ~ Gamma(b, b P), both by shape and rate, so that w and the sum of a feature over
its P words have mean 1 (counts-modes.md 1). q(Phi_vk) = Gamma(shape_vk, rate_k). A step of rows is that of
`kernels/token_flips.py`; the dictionary needs its sums alone, and so does the objective (counts-modes.md 5).

Point estimates have no priors: with every feature on they are the factorisation of Lee and Seung.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from ibpdist.base.errors import UsageError
from ibpdist.base.structs import Array, dims, replace, struct
from ibpdist.kernels.token_flips import TINY, Dictionary, Effort, RowModes, empty_flip_sums, flip_rows
from ibpdist.kernels.tokens import Entries

Float = NDArray[np.float64]

LEAST_SHAPE = 0.002
"""Below, exp(E log) of a gamma variable is no normal number."""
WARM, FEW_STEPS = 15, 30
"""Steps with every feature in every row at the start, and then with one flip of a row in each direction."""
EVERY, FEW, MANY = (Effort(rounds, flips) for rounds, flips in ((1, 0), (3, 1), (3, 16)))
"""Of a step with every feature in every row, and of one with flips (counts-modes.md 4, 7)."""


def effort_of(step: int) -> Effort:
    """Of a step after the start, from 0 on."""
    return FEW if step < FEW_STEPS else MANY


@struct("factorised-counts-params", since=1)
class FactorisedParams:
    """q(Phi_vk) = Gamma(shape_vk, rate_k); of point estimates Phi_vk is the shape over the rate."""

    shape: Array = dims("column feature")
    rate: Array = dims("feature")


@struct
class FactorisedSums:
    """What dictionary, prior and objective need of rows.

    `y` is sum_n E y_nvk; `on`, `amount`, `exposed` are sum z, sum z E w, sum L z E w. `rest` is
    sum y (E log (L w) - log share), where share is y over x; `divergence` is sum z KL(q(w) || p(w));
    `log_factorials` is sum log x!.
    """

    y: Array = dims("column feature")
    on: Array = dims("feature")
    amount: Array = dims("feature")
    exposed: Array = dims("feature")
    rest: Array = dims()
    divergence: Array = dims()
    log_factorials: Array = dims()
    tokens: Array = dims()
    rows: Array = dims()


@dataclass(frozen=True)
class FactorisedCounts:
    """`weight_shape` is e and `word_shape` is b; a `point` estimate has neither prior."""

    weight_shape: float = 0.25
    word_shape: float = 0.5
    point: bool = False

    def __post_init__(self) -> None:
        for name in ("weight_shape", "word_shape"):
            value: object = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not LEAST_SHAPE <= value < math.inf
            ):
                raise UsageError(f"{name} is {value!r}; expected a number of at least {LEAST_SHAPE}")

    def begun(self, words: Float, level: float) -> FactorisedParams:
        """A dictionary from tokens of features (column, feature). Weights of 1 make rows of `level` tokens,
        sum x / sum L. Every word has a little of every feature: a point estimate of zero would stay."""
        shape = words + self.word_shape
        size = max(level, TINY) / words.shape[1]
        return FactorisedParams(shape=shape, rate=shape.sum(axis=0) / size)

    def log_words(self, params: FactorisedParams) -> Float:
        """(column, feature) E log Phi."""
        if self.point:
            found: Float = np.log(np.maximum(params.shape / params.rate, TINY))
            return found
        return np.asarray(digamma(params.shape) - np.log(params.rate))

    def size(self, params: FactorisedParams) -> Float:
        """(feature) sum_v E Phi."""
        return np.asarray(params.shape.sum(axis=0) / params.rate)

    def local(
        self,
        params: FactorisedParams,
        odds: Float,
        entries: Entries,
        columns: NDArray[np.intp],
        rows: RowModes,
        effort: Effort,
    ) -> tuple[RowModes, FactorisedSums]:
        """A step of a chunk: its rows given the dictionary, and sums of them. Word i of the entries is column
        `columns[i]` of the data; `odds` (feature) are prior log odds of z."""
        chosen = FactorisedParams(shape=params.shape[columns], rate=params.rate)
        logs, size = self.log_words(chosen), self.size(params)
        known = Dictionary(np.exp(logs), size, np.asarray(odds), self._weight_shape, self.point)
        rows = RowModes(rows.on.copy(), rows.y.copy(), rows.exposure)
        sums = empty_flip_sums(len(columns), len(size))
        flip_rows(entries, known, rows, effort, sums)
        y = np.zeros(params.shape.shape)
        y[columns] = sums.y
        counts = np.asarray(entries.counts, dtype=np.float64)
        return rows, FactorisedSums(
            y=y,
            on=sums.on,
            amount=sums.amount,
            exposed=sums.exposed,
            rest=np.asarray(sums.fit - float(np.sum(sums.y * logs))),
            divergence=np.asarray(sums.divergence),
            log_factorials=np.asarray(gammaln(counts + 1).sum()),
            tokens=np.asarray(counts.sum()),
            rows=np.asarray(float(len(rows.on))),
        )

    def balanced(self, sums: FactorisedSums) -> FactorisedSums:
        """The sums with q(w_nk) scaled by one factor for each feature, the best one together with q(Phi).

        u = sum z E w after it solves e c u^2 - (c (e n - b P) - e b P) u - b P (e n + Y) = 0, where n, Y are
        sum z and sum_v Y_vk and c is sum L z E w over sum z E w (counts-modes.md 6).
        """
        if self.point:
            return sums
        e, spread, tokens = self.weight_shape, self.word_shape * len(sums.y), sums.y.sum(axis=0)
        lit = sums.on > 0
        amount = np.where(lit, sums.amount, 1.0)
        relative = np.where(lit, sums.exposed, 1.0) / amount
        slope = relative * (e * sums.on - spread) - e * spread
        last = spread * (e * sums.on + tokens)
        root = np.sqrt(slope**2 + 4 * e * relative * last)
        high = (slope + root) / (2 * e * relative)
        best = np.where(slope > 0, high, 2 * last / np.where(slope > 0, 1.0, root - slope))
        length = np.where(lit, amount / np.where(lit, best, 1.0), 1.0)
        grown = e * sums.on @ np.log(length) + e * sums.amount @ (1 / length - 1)
        return replace(
            sums,
            amount=sums.amount / length,
            exposed=sums.exposed / length,
            rest=sums.rest - tokens @ np.log(length),
            divergence=sums.divergence + grown,
        )

    def updated(self, sums: FactorisedSums) -> FactorisedParams:
        """q(Phi) given the sums, at its optimum."""
        spread = self._word_shape * len(sums.y)
        return FactorisedParams(shape=self._word_shape + sums.y, rate=np.maximum(spread + sums.exposed, TINY))

    def score(self, params: FactorisedParams, sums: FactorisedSums) -> dict[str, float]:
        """Terms of the objective: E log p(x | z, w, Phi) with the law of the tokens, -KL of w, -KL of Phi."""
        fitted = np.sum(sums.y * self.log_words(params)) + sums.rest - sums.exposed @ self.size(params)
        return {
            "counts": float(fitted - sums.log_factorials),
            "weights": -float(sums.divergence),
            "words": 0.0 if self.point else -self._word_divergence(params),
        }

    def law(self, params: FactorisedParams, rows: RowModes, floor: float = 0.0) -> Float:
        """(row, column) laws of words, sum_k E(z w) E Phi normalised, with `floor` more tokens of each word
        and feature. A row without features has the law of all of them."""
        words, amount = params.shape + floor, self.amounts(params, rows)
        amount = np.where(amount.sum(axis=1, keepdims=True) > 0, amount, words.sum(axis=0))
        found: Float = amount / amount.sum(axis=1, keepdims=True) @ (words / words.sum(axis=0)).T
        return found

    def amounts(self, params: FactorisedParams, rows: RowModes) -> Float:
        """(row, feature) tokens that a row is expected to have of a feature, over its exposure."""
        size = self.size(params)
        rate = self._weight_shape + rows.exposure[:, None] * size
        found: Float = rows.on * (self._weight_shape + rows.y) / np.maximum(rate, TINY) * size
        return found

    def tokens(self, params: FactorisedParams) -> Float:
        """(column, feature) tokens that the dictionary was made of."""
        found: Float = np.maximum(params.shape - self._word_shape, 0.0)
        return found

    @property
    def _weight_shape(self) -> float:
        return 0.0 if self.point else float(self.weight_shape)

    @property
    def _word_shape(self) -> float:
        return 0.0 if self.point else float(self.word_shape)

    def _word_divergence(self, params: FactorisedParams) -> float:
        """sum KL(q(Phi) || p(Phi))."""
        b, shape, rate = self.word_shape, params.shape, params.rate
        prior = b * len(shape)
        each = (shape - b) * digamma(shape) - gammaln(shape) + math.lgamma(b)
        return float(np.sum(each + b * np.log(rate / prior) + shape * (prior - rate) / rate))


def everywhere(tokens: Float, features: int, exposure: Float) -> RowModes:
    """Rows that have every feature, with equal parts of their tokens (row)."""
    y = np.repeat(tokens[:, None] / features, features, axis=1)
    return RowModes(np.ones(y.shape, np.int8), y, exposure)


def largest(rows: RowModes) -> RowModes:
    """The feature with the most tokens of each row, the first of equal ones; none of a row without tokens."""
    features = np.arange(rows.y.shape[1])
    on: Any = (features == rows.y.argmax(axis=1)[:, None]) & (rows.y > 0)
    return RowModes(on.astype(np.int8), rows.y * on, rows.exposure)
