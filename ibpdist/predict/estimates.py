"""Scores of rows with their Monte Carlo error, and the error of their sum.

The error is that of the score given these rows: how far it is from the score that enumeration would give.
It says nothing of other rows that might have been scored. Errors of rows are independent, since their random
numbers are, except for the bias of a logarithm of a mean: its estimate is subtracted from a row's score,
what remains of it has the same sign in all rows, and so it is added up over rows before it is squared:

    variance of the sum = sum_n (error_n^2 - bias_n^2) + (sum_n bias_n)^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Numbers = int | NDArray[np.intp]
"""Global numbers of rows: that of the first, or those of all."""


def row_numbers(start: Numbers, rows: int) -> NDArray[np.intp]:
    """(row) global numbers of rows."""
    return start + np.arange(rows) if isinstance(start, int | np.integer) else start


@dataclass(frozen=True)
class Sampling:
    """Chains a row, kept draws a chain, and the seed."""

    chains: int = 8
    draws: int = 25
    seed: int = 0


@dataclass(frozen=True)
class Shared:
    """Error of the sum of the scores of a block of rows: `parts` (part) that are independent of each other
    and the same in every block, and the variance of what is the block's own."""

    parts: Vector
    own: float


@dataclass(frozen=True)
class Sampled:
    """(row,) log p(hidden | visible) and its Monte Carlo error, for one way to treat the dictionary.

    `bias` (row) is what the error has in common with those of other rows, `apart` (row) the share of the
    density that comes from chains that disagree. `shared` is there when rows have more in common.
    `evidence` (row) is log p(visible), of which the hidden cells have no part, and `evidence_error` its Monte
    Carlo error; a mixture over several laws has none.
    """

    score: Vector
    error: Vector
    shared: Shared | None = None
    bias: Vector | float = 0.0
    apart: Vector | float = 0.0
    evidence: Vector | float = 0.0
    evidence_error: Vector | float = 0.0

    @property
    def own(self) -> Vector:
        """(row) variances that are independent of those of other rows."""
        made: Vector = np.maximum(np.square(self.error) - np.square(self.bias), 0.0)
        return made

    @property
    def disagree(self) -> NDArray[np.bool_]:
        """(row) whether most of the density comes from chains that disagree."""
        return np.broadcast_to(np.asarray(self.apart) > 0.5, self.score.shape)

    def summed(self) -> Shared:
        """The error of the sum of the rows."""
        if self.shared is not None:
            return self.shared
        bias = np.broadcast_to(self.bias, self.score.shape).sum(keepdims=True)
        return Shared(bias, float(self.own.sum()))


def together(blocks: Sequence[Sampled]) -> float:
    """Monte Carlo error of the sum of the scores of all rows of several blocks."""
    each = [block.summed() for block in blocks]
    common = np.sum([one.parts for one in each], axis=0)
    return float(np.sqrt(sum(one.own for one in each) + np.square(common).sum()))


def adjoining(parts: Sequence[Sampled], before: int, after: int) -> Sampled:
    """Scores of adjoining rows, with rows that score zero on either side."""

    def whole(name: str) -> Vector:
        each = [np.broadcast_to(getattr(part, name), part.score.shape) for part in parts]
        return np.pad(np.concatenate(each), (before, after))

    return Sampled(whole("score"), whole("error"), None, whole("bias"), whole("apart"))


@dataclass(frozen=True)
class LogRatio:
    """(row) log of a ratio of means over chains, its bias and standard error by the jackknife, and the
    effective number of chains."""

    plain: Vector
    bias: Vector
    error: Vector
    effective: Vector

    @property
    def score(self) -> Vector:
        """Without the bias."""
        return self.plain - self.bias


def jackknife(above: Matrix, below: Matrix) -> LogRatio:
    """The log ratio of means over chains (chain, row), each chain left out once.

    The bias is at most log(chains): where one chain alone has found the row, it would be taken for as much
    as the chain is above the others.
    """
    chains = len(above)
    plain = logsumexp(above, axis=0) - logsumexp(below, axis=0)
    effective = np.minimum(_effective(above), _effective(below))
    if chains == 1:
        return LogRatio(plain, np.zeros(plain.shape), np.full(plain.shape, np.nan), effective)
    left_out = _left_out(above) - _left_out(below)
    mean = left_out.mean(axis=0)
    error = np.sqrt((chains - 1) / chains * np.square(left_out - mean).sum(axis=0))
    most = np.log(chains)
    return LogRatio(plain, np.clip((chains - 1) * (mean - plain), -most, most), error, effective)


def _left_out(logs: Matrix) -> Matrix:
    """(chain, row) log of the sum over all other chains."""
    none = np.full((1, logs.shape[1]), -np.inf)
    before = np.concatenate([none, np.logaddexp.accumulate(logs, axis=0)[:-1]])
    after = np.concatenate([none, np.logaddexp.accumulate(logs[::-1], axis=0)[:-1]])[::-1]
    made: Matrix = np.logaddexp(before, after)
    return made


def _effective(logs: Matrix) -> Vector:
    """(row) (sum W)^2 / sum W^2 of weights (chain, row)."""
    made: Vector = np.exp(2 * logsumexp(logs, axis=0) - logsumexp(2 * logs, axis=0))
    return made
