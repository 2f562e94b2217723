"""The observation axis: how rows are made of features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule, Rules
from ibpdist.base.structs import Array, Named, dims, struct
from ibpdist.data._base import Chunk
from ibpdist.model.observations.variances import Evidence
from ibpdist.model.weights._base import Weights

Matrix = NDArray[Any]


@struct("survey", since=1)
class Survey:
    """Facts of the data that are needed once.

    `missing` is a sum, modulo 2^64, of a hash of the rows in which a column is missing:
    equal values mean missing in the same rows.
    """

    rows: Array = dims()
    cells: Array = dims("column")
    total: Array = dims("column")
    squares: Array = dims("column")
    missing: Array = dims("column")


@struct("row-state", since=1)
class RowState:
    """What a chunk's rows keep between steps: E z, and E[w | z = 1] unless weights are unit.

    `ids` names the features as they were when this was written.
    """

    ids: Array = dims("feature", reduce="same")
    z: Array = dims("feature row", reduce="concat")
    w: Array = dims("weight row", reduce="concat")


@struct
class RowSums:
    """Sums over rows that belong to z and w, from the sweep over features; `second` is that of E y^2."""

    on: Array = dims("feature")
    second: Array = dims("feature")
    entropy: Array = dims("feature")
    cost: Array = dims("feature")


class Observation(Protocol):
    """A frozen dataclass of settings; owns the loop over features."""

    name: ClassVar[str]
    has_row_density: ClassVar[bool]
    """Whether hidden cells of new rows have a density, which scores need."""
    dense: ClassVar[bool]
    """Whether every row must have every feature."""
    rules: ClassVar[frozenset[Rule]]

    def survey(self, chunk: Chunk) -> Survey: ...

    def init(self, survey: Survey, features: int, rng: np.random.Generator) -> Any: ...

    def adopt(self, params: Any, survey: Survey) -> Any:
        """Parameters found on other data, or on fewer rows, with the facts of these."""
        ...

    def met(self, params: Any, chunk: Chunk) -> Iterator[tuple[Chunk, Any]]:
        """Rows of other data in blocks, each with the parameters for the cells that they miss."""
        ...

    def isotropic(self) -> Observation:
        """The same for data in which all columns have the same noise."""
        ...

    def lifted(
        self,
        coarse: Any,
        survey: Survey,
        basis: Matrix,
        unit: Matrix,
        grown: float,
        rng: np.random.Generator,
    ) -> Any:
        """Parameters for all columns from those of data projected on `basis` (column, component) in units
        `unit` (column), with `grown` times as many rows."""
        ...

    def units(self, survey: Survey) -> NDArray[np.float64]:
        """(column) units in which all columns count alike."""
        ...

    def begun(self, params: Any, mean: NDArray[np.float64], noise: NDArray[np.float64]) -> Any:
        """Initial parameters with a dictionary (feature, column) and the noise (column) that it leaves."""
        ...

    def cooling_path(self, params: Any) -> Iterator[Any]:
        """The same with falling noise, down to its own; none for parameters that were never fitted."""
        ...

    def tempered(self, params: Any, heat: float) -> Any:
        """The same with its variances so many times as large."""
        ...

    def length_prior(self, params: Any) -> Evidence | None:
        """How long a feature may be: its dictionary times c and its weights divided by c explain the
        same, and this is what its prior says of c^2 (as of a sum of squares). None: the length is given."""
        ...

    def stretched(self, params: Any, sums: Any, stretch: NDArray[np.float64]) -> tuple[Any, Any]:
        """Parameters and sums when each feature of the dictionary is longer by `stretch` (feature)."""
        ...

    def current(self, state: RowState, params: Any) -> RowState:
        """Row state as it is after what the last update did to the lengths of features."""
        ...

    def sweep(
        self,
        chunk: Chunk,
        params: Any,
        log_odds: NDArray[np.float64],
        weights: Weights,
        rules: Rules,
        state: RowState,
        draws: Draws,
        inner: int,
    ) -> tuple[RowState, RowSums, Any]:
        """`inner` Gauss-Seidel sweeps over the features of every row, then the sums; log odds are
        (feature,) or (feature, row)."""
        ...

    def update(self, params: Any, sums: Any, rule: Rule, rng: np.random.Generator) -> Any: ...

    def magnitude(self, params: Any) -> float:
        """Size of the largest terms that cancel in the score; its rounding is relative to it."""
        ...

    def score(self, params: Any, sums: Any) -> dict[str, float]: ...

    def additive(self, params: Any) -> bool:
        """Whether sums can be added to those of rows that are missing in other columns."""
        ...

    def describe(self, params: Any, order: NDArray[np.intp]) -> Named:
        """Arrays of a result by name, features in the given order."""
        ...
