"""The weights axis: how much of a feature a row has when it has it; y = z w."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING, Array, Nothing, dims, replace, struct
from ibpdist.model.observations.variances import Evidence

Matrix = NDArray[Any]


@struct("slab", since=1)
class Slab:
    """Parameters of the prior of weights, given that a row has the feature."""

    mean: Array = dims("feature")


@dataclass(frozen=True)
class WeightSums:
    """Sums over rows (feature) of E z, of E y (E |y| of weights that are two-sided) and of E y^2; `cost` is
    sum_n E z KL(q(w | z = 1) || p(w)), or -log p(w) of the draws, where p has no parameters."""

    on: Matrix
    first: Matrix
    second: Matrix
    cost: Matrix

    def take(self, keep: NDArray[np.intp]) -> WeightSums:
        """The sums of some features."""
        return WeightSums(self.on[keep], self.first[keep], self.second[keep], self.cost[keep])


@dataclass(frozen=True)
class EntryPrior:
    """What is known of the entries of a row before its cells are seen: `log_odds` of z, (feature,) or
    (feature, row), and `tilt` (feature), the linear evidence for w."""

    log_odds: Matrix
    tilt: Matrix

    @classmethod
    def untilted(cls, log_odds: Matrix) -> EntryPrior:
        """Of weights whose prior has no parameters."""
        return cls(log_odds, np.zeros(len(log_odds)))


def slab_at(slab: Slab | Nothing, places: NDArray[np.intp]) -> Slab | Nothing:
    """The parameters of the features at these places; -1 is a new feature, whose mean is zero."""
    return slab if isinstance(slab, Nothing) else replace(slab, mean=np.append(slab.mean, 0.0)[places])


def slab_joined(old: Slab | Nothing, new: Slab | Nothing, order: NDArray[np.intp]) -> Slab | Nothing:
    """The parameters of old and then new features, taken in an order."""
    if isinstance(old, Nothing) or isinstance(new, Nothing):
        return NOTHING
    return Slab(np.append(old.mean, new.mean)[order])


class RowDensity(Enum):
    """How the density of a row is found, given which features it has."""

    INDEPENDENT = "independent"
    """Its cells are independent: there is no weight."""
    CLOSED = "closed"
    """Its weights are integrated out in closed form."""
    SAMPLED = "sampled"
    """Its weights are drawn together with its features, each from the compiled response."""


class WeightsKind(Protocol):
    """What the catalog and readers of results know of weights, of real-valued data and of counts."""

    name: ClassVar[str]
    counts: ClassVar[bool]
    """Whether they are weights of counts, or of real-valued data."""
    has_weights: ClassVar[bool]
    """Whether rows carry a weight as state (unit weights do not), so that the length of a feature is open."""
    signed: ClassVar[bool]
    """Whether weights have signs, so that the sign of a feature is open."""
    default_start: ClassVar[str]
    """The start of a fit unless another one is given."""
    most_features: ClassVar[int]
    """The most features of a fit whose number of features is left to the data."""
    fit_settings: ClassVar[Mapping[str, object]]
    """Settings of the other axes unless told otherwise, where they are not the defaults of those axes."""
    rows_have: ClassVar[str]
    """What features of rows are, for messages: "the features of a fit ..."."""
    rules: ClassVar[frozenset[Rule]]


class Weights(WeightsKind, Protocol):
    """A frozen dataclass of settings; the arithmetic of one entry is compiled (kernels/respond.py)."""

    density: ClassVar[RowDensity]
    """How rows are scored (predict/kinds.py)."""
    second: ClassVar[float]
    """E w^2 under the prior."""
    two_sided: ClassVar[bool]
    """Whether rows add up E |y| in place of E y: the prior depends on |w|, and weights have both signs."""

    @property
    def rehearsal(self) -> Weights | None:
        """Weights that a short fit may begin with, where these allow for them: positive ones."""
        ...

    def respond(self) -> tuple[Any, ...]:
        """The compiled response of these weights: a tagged tuple, see kernels/respond.py."""
        ...

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        """E y (feature, row) from E z and E[w | z = 1]; `w` is empty when rows keep none."""
        ...

    def slab(self, features: int, known: Slab | Nothing = NOTHING) -> Slab | Nothing:
        """Parameters of the prior of the weights where a fit begins: those `known` of another fit, if they
        are learned; nothing where it has none."""
        ...

    def entry_prior(self, log_odds: Matrix, slab: Slab | Nothing) -> EntryPrior:
        """The prior of entries, given that of z: its log odds, (feature,) or (feature, row)."""
        ...

    def best(
        self, slab: Slab | Nothing, sums: WeightSums, energy: Matrix, beside: Evidence | None
    ) -> tuple[Slab | Nothing, Matrix]:
        """Parameters of the prior, and (feature) lengths c, where the objective is highest when weights are
        divided by c and features multiplied.

        `energy` (feature) is what a feature explains of a row, in units of the noise; `beside` is the part
        of the dictionary's prior, without which lengths are given.
        """
        ...

    def rescaled(self, sums: WeightSums, lengths: Matrix) -> WeightSums:
        """The sums when weights are divided by `lengths` (feature)."""
        ...

    def variance(self, chance: Matrix) -> Matrix:
        """Variance of y where z is on with this chance; of weights with mean zero that is E z w^2."""
        ...

    def neg_log_prior(self, w: Matrix) -> Matrix:
        """-log p(w), of the shape of w."""
        ...

    def score(self, sums: WeightSums, slab: Slab | Nothing) -> dict[str, float]:
        """Terms of the objective by name."""
        ...

    def drawn(self, slab: Slab | Nothing, sums: WeightSums, rng: np.random.Generator) -> Slab | Nothing:
        """Parameters of the prior drawn given the weights of the rows, if they are learned."""
        ...

    def newborn(self, uniforms: Matrix) -> Slab | Nothing:
        """Parameters of features (feature) that no row has yet, from their own prior."""
        ...

    def slab_score(self, slab: Slab | Nothing) -> dict[str, float]:
        """Log density of the parameters that are drawn, by name."""
        ...

    def sample(self, features: int, rows: int, normals: Matrix, slab: Slab | Nothing = NOTHING) -> Matrix:
        """(feature, row) weights from standard normals of that shape."""
        ...


class FixedWeights:
    """What weights share whose prior has no parameters and whose lengths stay as they are."""

    two_sided: ClassVar[bool] = False

    @property
    def rehearsal(self) -> None:
        return None

    def slab(self, features: int, known: Slab | Nothing = NOTHING) -> Nothing:
        return NOTHING

    def entry_prior(self, log_odds: Matrix, slab: Slab | Nothing) -> EntryPrior:
        return EntryPrior.untilted(log_odds)

    def best(
        self, slab: Slab | Nothing, sums: WeightSums, energy: Matrix, beside: Evidence | None
    ) -> tuple[Slab | Nothing, Matrix]:
        return slab, np.ones(len(sums.on))

    def rescaled(self, sums: WeightSums, lengths: Matrix) -> WeightSums:
        return sums

    def drawn(self, slab: Slab | Nothing, sums: WeightSums, rng: np.random.Generator) -> Slab | Nothing:
        return slab

    def newborn(self, uniforms: Matrix) -> Nothing:
        return NOTHING

    def slab_score(self, slab: Slab | Nothing) -> dict[str, float]:
        return {}

    def score(self, sums: WeightSums, slab: Slab | Nothing) -> dict[str, float]:
        return {"weights": -float(sums.cost.sum())}
