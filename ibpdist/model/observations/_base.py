"""The observation axis: how rows are made of features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import NOTHING, Array, Named, Nothing, dims, record, struct
from ibpdist.data._base import Chunk
from ibpdist.model.observations.row_noise import RowPrecision
from ibpdist.model.weights._base import EntryPrior, Weights

Matrix = NDArray[Any]


class CountsRows(Protocol):
    """A record of sums over rows."""

    @property
    def rows(self) -> Array:
        """The number of rows."""
        ...


Params = TypeVar("Params")
"""Global parameters of an observation: a stored record."""
Sums = TypeVar("Sums", bound=CountsRows)
"""Sums over rows that its parameters are updated from: a record."""


@struct("survey", since=1)
class Survey:
    """Facts of the data that are needed once.

    `missing` is a sum, modulo 2^64, of a hash of the rows in which a column is missing:
    equal values mean missing in the same rows. Of some rows of each chunk `looked` counts the observed cells,
    and `common` those that have the most frequent value, both less one.
    """

    rows: Array = dims()
    cells: Array = dims("column")
    total: Array = dims("column")
    squares: Array = dims("column")
    missing: Array = dims("column")
    looked: Array = dims("column", default=0.0)
    common: Array = dims("column", default=0.0)


@struct("row-state", since=1)
class RowState:
    """What a chunk's rows keep between steps: E z, and E[w | z = 1] unless weights are unit.

    `ids` names the features as they were when this was written; `precision` is that of rows with a noise of
    their own.
    """

    ids: Array = dims("feature", reduce="same")
    z: Array = dims("feature row", reduce="concat")
    w: Array = dims("weight row", reduce="concat")
    precision: RowPrecision | Nothing = record(default=NOTHING, kw_only=True)


@struct
class RowSums:
    """Sums over rows that belong to z and w, from the sweep over features: of E z, E y (E |y| of weights that
    are two-sided), E y^2, the entropy of z, and what weights cost where their prior has no parameters."""

    on: Array = dims("feature")
    first: Array = dims("feature")
    second: Array = dims("feature")
    entropy: Array = dims("feature")
    cost: Array = dims("feature")


@dataclass(frozen=True)
class Score:
    """Terms of the objective by name, and the size of the largest ones that cancel, which rounding is
    relative to."""

    terms: Mapping[str, float]
    magnitude: float


class ObservationKind(Protocol):
    """What the catalog and readers of results know of observations, of real-valued data and of counts."""

    name: ClassVar[str]
    counts: ClassVar[bool]
    """Whether the cells are counts."""
    has_row_density: ClassVar[bool]
    """Whether hidden cells of new rows have a density, which scores need."""
    dense: ClassVar[bool]
    """Whether every row must have every feature."""
    rules: ClassVar[frozenset[Rule]]
    fit_settings: ClassVar[Mapping[str, object]]
    """Settings unless told otherwise that are not those of their weights."""


class Observation(ObservationKind, Protocol[Params, Sums]):
    """How rows are made of features: a frozen dataclass of settings, which owns the loop over features.

    What only some observations can do is in capabilities.py.
    """

    def summarise(self, chunk: Chunk) -> Survey:
        """Facts of the data that are needed once; reduced over chunks like sums."""
        ...

    def init(self, survey: Survey, features: int, rng: np.random.Generator) -> Params:
        """Random parameters."""
        ...

    def adopt(self, params: Params, survey: Survey) -> Params:
        """Parameters found on other data, or on fewer rows, with the facts of these."""
        ...

    def sweep(
        self,
        chunk: Chunk,
        params: Params,
        prior: EntryPrior,
        weights: Weights,
        rules: Rules,
        state: RowState,
        draws: Draws,
        inner: int,
    ) -> tuple[RowState, RowSums, Sums]:
        """`inner` Gauss-Seidel sweeps over the features of every row, then the sums."""
        ...

    def update(self, params: Params, sums: Sums, rule: Rule, rng: np.random.Generator) -> Params:
        """Parameters at their optimum given the sums, or a draw of them."""
        ...

    def score(self, params: Params, sums: Sums) -> Score:
        """Terms of the objective."""
        ...

    def describe(self, params: Params, order: NDArray[np.intp]) -> Named:
        """Arrays of a result by name, features in the given order."""
        ...
