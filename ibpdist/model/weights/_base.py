"""The weights axis: how much of a feature a row has when it has it; y = z w."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, dims, struct
from ibpdist.model.observations.variances import Evidence

Matrix = NDArray[Any]


@struct
class WeightSums:
    """`cost` is sum_n E z KL(q(w | z = 1) || p(w)), or -log p(w) of the draws."""

    cost: Array = dims("feature")


class RowDensity(Enum):
    """How the density of a row is found, given which features it has."""

    INDEPENDENT = "independent"
    """Its cells are independent: there is no weight."""
    CLOSED = "closed"
    """Its weights are integrated out in closed form."""
    SAMPLED = "sampled"
    """Its weights are drawn together with its features, each from the compiled response."""


class Weights(Protocol):
    """A frozen dataclass of settings; the arithmetic of one entry is compiled (kernels/respond.py)."""

    name: ClassVar[str]
    has_weights: ClassVar[bool]
    """Whether rows carry a weight as state (unit weights do not), so that the length of a feature is open."""
    density: ClassVar[RowDensity]
    """How rows are scored (predict/kinds.py)."""
    second: ClassVar[float]
    """E w^2 under the prior."""
    signed: ClassVar[bool]
    """Whether weights have signs, so that the sign of a feature is open."""
    default_start: ClassVar[str]
    """The start of a fit unless another one is given."""
    most_features: ClassVar[int]
    """The most features of a fit whose number of features is left to the data."""
    fit_settings: ClassVar[Mapping[str, object]]
    """Settings of the other axes in variational fits, where they are not the defaults of those axes."""
    rows_have: ClassVar[str]
    """What features of rows are, for messages: "the features of a fit ..."."""
    rules: ClassVar[frozenset[Rule]]

    def respond(self) -> tuple[Any, ...]:
        """The compiled response of these weights: a tagged tuple, see kernels/respond.py."""
        ...

    def combine(self, z: Matrix, w: Matrix) -> Matrix:
        """E y (feature, row) from E z and E[w | z = 1]; `w` is empty when rows keep none."""
        ...

    def best_length(self, on: Matrix, second: Matrix, beside: Evidence) -> Matrix:
        """(feature) c where the objective is highest when weights are divided by c and features multiplied.

        `on` and `second` (feature) are sums of E z and E y^2, `beside` is the part of the dictionary's prior.
        """
        ...

    def rescaled(self, sums: WeightSums, on: Matrix, second: Matrix, lengths: Matrix) -> WeightSums:
        """The sums when weights are divided by `lengths` (feature)."""
        ...

    def variance(self, chance: Matrix) -> Matrix:
        """Variance of y where z is on with this chance; of weights with mean zero that is E z w^2."""
        ...

    def neg_log_prior(self, w: Matrix) -> Matrix:
        """-log p(w), of the shape of w."""
        ...

    def score(self, sums: WeightSums) -> dict[str, float]:
        """Terms of the objective by name."""
        ...

    def sample(self, features: int, rows: int, normals: Matrix) -> Matrix:
        """(feature, row) weights from standard normals of that shape."""
        ...
