"""How rows are scored, by how their density is found given which features they have.

Weights say which it is (`Weights.density`); all that scores need to know of it is one record here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ibpdist.model.weights._base import RowDensity
from ibpdist.predict.predict import CERTAIN, Density, Mask, Matrix, NormalDensity, Predictor, UnitDensity

if TYPE_CHECKING:
    from ibpdist.predict.estimates import Numbers, Sampled, Sampling
    from ibpdist.predict.walks import Walk

Estimate = Callable[[Predictor, Matrix, Mask, Mask, "Sampling", "Numbers"], "tuple[Sampled, Sampled]"]
"""Scores of rows (predictor, x, visible, hidden, plan, numbers of the rows), with the mean of the
dictionary and with its variance."""


@dataclass(frozen=True)
class Kind:
    """Patterns of up to `enumerated` features are summed under `density`; of more, scores are estimated from
    chains that `walk`, and `words` say how. `everywhere` scores rows that have every feature for certain,
    where that is a special case. Chains draw weights too where these are `drawn`; `density` is then that
    given y."""

    density: Callable[[Predictor], Density]
    enumerated: int
    walk: Callable[[Predictor], Walk]
    estimate: Estimate
    words: str
    everywhere: Estimate | None = None
    drawn: bool = False

    def undecided(self, of: Predictor) -> NDArray[np.intp]:
        """Features of which there is more than one pattern: those that are not certain, and all of them
        where weights are drawn."""
        return np.flatnonzero((np.abs(of.log_odds) < CERTAIN) | self.drawn)

    def enumerates(self, features: int) -> bool:
        """Whether all patterns of this many features are summed."""
        return features <= self.enumerated

    def closed(self, of: Predictor) -> Estimate | None:
        """What scores rows without a sum over patterns, where they have every feature."""
        return self.everywhere if (of.log_odds >= CERTAIN).all() else None

    def description(self, plan: Sampling) -> str:
        """The estimate in words."""
        return self.words.format(chains=plan.chains, draws=plan.draws)


def kind_of(of: Predictor) -> Kind:
    """How rows of a predictor are scored."""
    return kinds()[of.weights.density]


@cache
def kinds() -> Mapping[RowDensity, Kind]:
    """Normal weights need a factorisation for each pattern, so fewer features are enumerated."""
    from ibpdist.kernels.annealing import Normal, Unit
    from ibpdist.predict.sampled import sampled
    from ibpdist.predict.sequential import closed, sequential
    from ibpdist.predict.walks import Entries, Flips

    drawn = "{chains} annealed chains of {draws} draws a row"
    integrated = "{chains} annealed chains a row"
    return {
        RowDensity.INDEPENDENT: Kind(UnitDensity, 16, lambda of: Flips(Unit()), sampled, drawn),
        # Without a feature there is no weight, and then cells are independent.
        RowDensity.SAMPLED: Kind(
            UnitDensity, 0, lambda of: Entries(of.weights), sequential, integrated, drawn=True
        ),
        RowDensity.CLOSED: Kind(
            NormalDensity, 12, lambda of: Flips(Normal()), sequential, integrated, closed
        ),
    }
