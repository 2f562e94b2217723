"""Words come in bursts: the law of words of a row with a rate of its own for each word (counts.md 8).

    x_v ~ Poisson(g_v L law_v),   g_v ~ Gamma(a, a):   law'_v ~ law_v (a + x_v) / (a + L law_v)

with x the seen tokens of the row and L their number. a is one number of all rows; it has the largest
likelihood of their seen tokens. The likelihood needs the rate of every cell, so cells are counted by their
rate: whole numbers, whose sum is the same in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from ibpdist.data.entries import Entries

Matrix = NDArray[np.float64]
Whole = NDArray[np.int64]

FINE, LEAST, MOST = 64, -60, 30
"""Bins of rates in a factor of two, and the powers of two from which and to which they are."""
RATES = 2.0 ** (LEAST + (np.arange((MOST - LEAST) * FINE) + 0.5) / FINE)
"""(bin) the rate that stands for all rates of its bin, which differ from it by at most .6 %."""
BOUNDS = (-8.0, 6.0)
"""log a."""


@dataclass(frozen=True)
class RateCounts:
    """Cells of rows and their seen tokens by rate: `cells` (bin), `tokens` (bin), and `sizes` (x), the
    number of cells that have x tokens."""

    cells: Whole
    tokens: Whole
    sizes: Whole

    def __add__(self, other: RateCounts) -> RateCounts:
        sizes = np.zeros(max(self.sizes.size, other.sizes.size), np.int64)
        sizes[: self.sizes.size] += self.sizes
        sizes[: other.sizes.size] += other.sizes
        return RateCounts(self.cells + other.cells, self.tokens + other.tokens, sizes)

    def log_likelihood(self, a: float) -> float:
        """Of the tokens given a, up to a constant."""
        found = self.sizes @ (gammaln(a + np.arange(self.sizes.size)) - gammaln(a))
        return float(found - a * (self.cells @ np.log1p(RATES / a)) - self.tokens @ np.log(a + RATES))

    def dispersion(self) -> float:
        """The most likely a; large where words do not come in bursts."""
        found = minimize_scalar(lambda log_a: -self.log_likelihood(np.exp(log_a)), bounds=BOUNDS)
        return float(np.exp(found.x))


def no_rates() -> RateCounts:
    """The counts of no rows."""
    cells, tokens = np.zeros((2, RATES.size), np.int64)
    return RateCounts(cells, tokens, np.zeros(1, np.int64))


def count_rates(laws: Matrix, seen: Entries) -> RateCounts:
    """The counts of rows with these laws (row, column) and seen tokens."""
    rates = np.maximum(laws * seen.lengths[:, None], RATES[0])
    bins = np.minimum(((np.log2(rates) - LEAST) * FINE).astype(np.int64), RATES.size - 1)
    row = np.repeat(np.arange(seen.rows), np.diff(seen.starts))
    tokens = np.zeros(RATES.size, np.int64)
    np.add.at(tokens, bins[row, seen.columns], seen.counts)
    cells = np.bincount(bins.ravel(), minlength=RATES.size)
    return RateCounts(cells, tokens, np.bincount(seen.counts))


def dispersed(laws: Matrix, seen: Entries, a: float) -> Matrix:
    """Laws (row, column) of rows with a rate of its own for each word."""
    x = seen.dense(laws.shape[1], laws.dtype)
    found = laws * (a + x) / (a + laws * seen.lengths[:, None])
    return np.asarray(found / found.sum(axis=1, keepdims=True))
