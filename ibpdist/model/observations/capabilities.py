"""What some observations can do beside the seven members of every one (_base.py).

An algorithm that cannot do without a capability asks for it once, with `require`, and an observation that
lacks it is refused in a sentence. One that can do without looks with `isinstance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.data._base import Chunk
from ibpdist.model.observations._base import Params, RowState, Sums, Survey
from ibpdist.model.observations.variances import Evidence

Float = NDArray[np.float64]
Capability = TypeVar("Capability")
Params_contra = TypeVar("Params_contra", contravariant=True)


@runtime_checkable
class Scalable(Protocol[Params, Sums]):
    """Features have a free length: a dictionary times c and weights divided by c explain the same."""

    def length_prior(self, params: Params) -> Evidence | None:
        """What the dictionary's prior says of c^2, as of a sum of squares; None: lengths are given."""
        ...

    def rescaled(self, params: Params, sums: Sums, lengths: Float) -> tuple[Params, Sums]:
        """Parameters and sums when each feature of the dictionary is longer by `lengths` (feature)."""
        ...

    def strength(self, params: Params) -> Float:
        """(feature) what an entry of 1 explains of a row, in units of the noise."""
        ...

    def last_lengths(self, params: Params) -> Float:
        """(feature) by how much the last update rescaled each feature, which row state does not know yet."""
        ...

    def without_rescaling(self, params: Params) -> Params:
        """The same for rows whose state is made under these parameters."""
        ...

    def in_current_units(self, state: RowState, params: Params) -> RowState:
        """Row state after the last update rescaled the features."""
        ...


@runtime_checkable
class Tempered(Protocol[Params]):
    """Variances can be raised, so that rows do not stay where they happen to start."""

    def cooling_path(self, params: Params) -> Iterator[Params]:
        """The same with falling noise, down to its own; none for parameters that were never fitted."""
        ...

    def tempered(self, params: Params, heat: float) -> Params:
        """The same with its variances `heat` times as large."""
        ...


@runtime_checkable
class Projected(Protocol[Params]):
    """Columns can be projected on a subspace, where a start is looked for."""

    @property
    def noise_by_column(self) -> bool:
        """Whether the noise of columns may differ."""
        ...

    def isotropic(self) -> Any:
        """The observation of data in which all columns have the same noise."""
        ...

    def origin(self, survey: Survey) -> Float:
        """(column) where rows without features are taken to be when a fit begins."""
        ...

    def units(self, survey: Survey) -> Float:
        """(column) units in which all columns count alike."""
        ...

    def initial(self, params: Params, mean: Float, noise: Float | None = None) -> Params:
        """Initial parameters with a dictionary (feature, column) and the noise (column) that it leaves;
        without `noise` variances stay as they are."""
        ...

    def moved(self, params: Params, origin: Float) -> Params:
        """The same with rows that have no feature at `origin` (column), where there is an intercept."""
        ...

    def widened(self, params: Params, survey: Survey, grown: float) -> Params:
        """Parameters for all rows from those of a sample, of which there are `grown` times as many."""
        ...

    def lifted(
        self,
        coarse: Params,
        survey: Survey,
        basis: Float,
        unit: Float,
        grown: float,
        rng: np.random.Generator,
    ) -> Params:
        """Parameters for all columns from those of data projected on `basis` (column, component) in units
        `unit` (column), with `grown` times as many rows."""
        ...


@runtime_checkable
class Grouped(Protocol[Params]):
    """Parameters depend on which columns are missing together."""

    def per_row_params(self, params: Params, chunk: Chunk) -> Iterator[tuple[Chunk, Params]]:
        """Rows of other data in blocks, each with the parameters for the cells that they miss."""
        ...


@runtime_checkable
class Padded(Protocol[Params]):
    """Features can be added of which nothing is known."""

    def padded(self, params: Params, features: int) -> Params:
        """Parameters with this many features more, at the end."""
        ...


@runtime_checkable
class Additive(Protocol[Params_contra]):
    """Sums of rows that will not be visited again can be kept."""

    def additive(self, params: Params_contra) -> bool:
        """Whether sums can be added to those of rows that are missing in other columns."""
        ...


def require(observation: Any, capability: type[Capability], purpose: str) -> Capability:
    """The observation, as what has the capability; refused where it lacks it."""
    if isinstance(observation, capability):
        return observation
    name = capability.__name__.lower()
    raise UsageError(f"{purpose} needs an observation that is {name}, and {observation.name} is not")
