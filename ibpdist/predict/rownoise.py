"""Rows that are noisier than others: a mixture over a noise that all cells of a row have in common.

A feature that few rows have can leave hardly any noise in its columns, and a new row that breaks the
pattern is then charged hundreds of nats (scores.md 5). The predictive density is therefore

    p(hidden | visible) = sum_j share_j p(hidden | visible, noise + level_j unit),

`unit` (column) being the variance of the columns, or their median variance where that is larger. It
is a density; it costs a row at most log(1 / share_0). The shares stay what they are whatever the
visible cells say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ibpdist.predict.sampled import Sampled


@dataclass(frozen=True)
class RowNoise:
    """Levels in units of the variances of the columns, and the share of the rows at each."""

    levels: tuple[float, ...]
    shares: tuple[float, ...]

    def mixed(self, parts: Sequence[Sampled]) -> Sampled:
        """Mixture of the scores over the levels of noise. Errors are propagated to first order, and that of a
        level is at most what the score would lose without it."""
        terms = np.array([np.log(share) + part.score for share, part in zip(self.shares, parts, strict=True)])
        total = logsumexp(terms, axis=0)
        weights = np.exp(terms - total)
        lost = -np.log1p(-np.minimum(weights, 1 - 1e-12))
        own = np.minimum(weights * np.array([np.sqrt(part.own) for part in parts]), lost)
        biases = [w * part.bias for w, part in zip(weights, parts, strict=True)]
        bias = np.clip(biases, -lost, lost).sum(axis=0)
        apart = np.sum([w * part.apart for w, part in zip(weights, parts, strict=True)], axis=0)
        return Sampled(total, np.sqrt(np.square(own).sum(axis=0) + bias**2), None, bias, apart)


EVEN = RowNoise((0.0,), (1.0,))
UNEVEN = RowNoise((0.0, 0.02, 0.1, 0.3, 1.0), (0.7, 0.075, 0.075, 0.075, 0.075))
"""Found on two splits of two sets and confirmed on sixteen others; not searched (scores.md 17)."""
