"""The prior axis: how likely is a feature to be on.

An exchangeable prior sees the rows only through how many there are and how many have each
feature. Its parameters are a struct with at least `log_on` and `log_off` (feature): what
stands for log pi and log(1 - pi) in the update of z and in the objective, in feature order;
`tau` (feature, side); `mass` (scalar).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, struct

Vector = NDArray[np.float64]


@struct
class PriorSums:
    """Sums of the rows that a prior needs: `on` is sum_n E z_nk, `rows` is n."""

    on: Array = dims("feature")
    rows: Array = dims()


class Number(StrEnum):
    """What the number of features K that a fit is given means to a prior."""

    GIVEN = "given"
    TRUNCATED = "truncated"
    """The most features there may be of an unknown number."""
    CAPACITY = "capacity"
    """The most features there may be, where another K is another objective."""
    UNLIMITED = "unlimited"
    """Where a sampler begins."""


class Prior(Protocol):
    """A frozen dataclass of settings with the functions below; state lives in its params."""

    name: ClassVar[str]
    dense: ClassVar[bool]
    """Whether every row has every feature."""
    number: ClassVar[Number]
    uses_truncation: ClassVar[bool]
    """Whether K is part of the prior of each feature, so that another K is another prior."""
    fit_settings: ClassVar[Mapping[str, object]]
    """Settings of the other axes that it needs, where they are not their defaults."""

    @property
    def rules(self) -> frozenset[Rule]:
        """Rules under which the sticks or prevalences can be updated."""
        ...

    def init(self, features: int, rows: int) -> Any:
        """Parameters before any data: the prior itself."""
        ...

    def log_odds(self, params: Any) -> Vector:
        """(feature,) prior log odds of z = 1 in use: log_on - log_off."""
        ...

    def expected(self, params: Any) -> Vector:
        """(feature,) E pi given the counts: how likely a new row has the feature before it is seen."""
        ...

    def update(self, params: Any, sums: PriorSums, rule: Rule, rng: np.random.Generator) -> Any:
        """Parameters given the sums, solved to convergence; never lowers sum(score)."""
        ...

    def score(self, params: Any, sums: PriorSums) -> dict[str, float]:
        """Terms of the objective by name: E log p(z), -KL of the sticks, tail, prior of the mass."""
        ...

    def select(self, params: Any, keep: NDArray[np.intp]) -> Any:
        """Parameters of the features `keep`, in that order."""
        ...

    def capacity(self, params: Any) -> int | None:
        """Most features the model can have; None: no limit."""
        ...

    def resized(self, params: Any, features: int, continued: NDArray[np.intp] | None = None) -> Any:
        """Parameters for another number of features in use, within the capacity: those of before any data,
        or where an update had better begin if `continued` (feature) says where each was; -1 is new."""
        ...

    def describe(self, params: Any, order: NDArray[np.intp]) -> Named:
        """What results tell of the parameters, by name; features in this order."""
        ...

    def sample(self, features: int, rng: np.random.Generator) -> Vector:
        """(feature,) prevalences drawn from the prior (truncated to `features`)."""
        ...
