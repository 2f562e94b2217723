"""Features of new rows by the row step of a fit with its parameters, as the fit found those of its own rows.

The step is repeated with the parameters fixed, from where a fit with such parameters would start its rows
(hot, so that they do not stay where they happen to start), until no entry changes any more. Samplers give the
mean of their draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, count, islice, pairwise
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.catalog import systems
from ibpdist.data._base import Chunk, Source
from ibpdist.evaluate.fitted import spec_of
from ibpdist.evaluate.tables import Rows
from ibpdist.inference._base import Named, RowInference
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import AnyModelParams
from ibpdist.inference.in_turn.sequential import Sequential
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.capabilities import Grouped
from ibpdist.model.observations.row_noise import RowPrecision
from ibpdist.predict.averaged import silent

TOLERANCE = 1e-5
LIMIT = 500
"""Most passes over a chunk."""

_INNER = 4
_BURN, _KEEP = 20, 100


@dataclass(frozen=True)
class MeanField:
    """Rows, and an algorithm with the parameters of a fit."""

    source: Source
    algorithm: RowInference
    params: AnyModelParams
    seed: int = 0
    tolerance: float = TOLERANCE
    words: ClassVar[str] = "the row step of the fit, repeated"

    def rows(self, index: int, tick: Callable[[float], None] = silent) -> Rows:
        """z (and w) of the rows of a chunk; `tick` is called with the share of them that is done."""
        chunk = self.source.read(index)
        parts = [
            self._named(part, replace(self.params, observation=seen)) for part, seen in self._blocks(chunk)
        ]
        joined = {name: np.concatenate([part[name][1] for part in parts], axis=-1) for name in parts[0]}
        found: Named = {
            name: (("row", "feature")[: table.ndim], np.ascontiguousarray(table.T))
            for name, table in joined.items()
        }
        tick(1.0)
        return Rows(chunk.start, found, self.source.row_coords(index))

    def _blocks(self, chunk: Chunk) -> Iterator[tuple[Chunk, Any]]:
        """Rows with the parameters of the observation for the cells that they miss."""
        observation, params = self.algorithm.model.observation, self.params.observation
        if isinstance(observation, Grouped):
            return observation.per_row_params(params, chunk)
        return iter([(chunk, params)])

    def _named(self, chunk: Chunk, params: AnyModelParams) -> Named:
        state = self.algorithm.start(chunk, params, Draws(self.seed))
        steps = accumulate(
            count(1),
            lambda now, step: self.algorithm.local(chunk, now, params, Draws(self.seed, step))[0],
            initial=state,
        )
        ended = self._converged(steps) if self.algorithm.monotone() else _mean(steps)
        return self.algorithm.describe_rows(ended, params)

    def _converged(self, steps: Iterator[RowState]) -> RowState:
        for before, now in islice(pairwise(steps), LIMIT):
            if _change(before, now) < self.tolerance:
                break
        return now


def mean_field(result: xr.DataTree, source: Source, tolerance: float = TOLERANCE) -> MeanField:
    """Rows in the units of a fit, with the algorithm of the fit and its parameters."""
    from ibpdist.runs.layout import state_of

    spec = spec_of(result)
    built = systems.build(spec.system, int(result.attrs["truncation"]), inner=_INNER, settings=spec.set)
    if isinstance(built, Sequential):
        algorithm: RowInference = Coordinate(built.model, 1, _INNER)
    else:
        algorithm = built.row_inference()
    return MeanField(source, algorithm, state_of(result), spec.seed, tolerance)


def _mean(steps: Iterator[RowState]) -> RowState:
    """Mean of z and of precisions over draws, and of w over the draws that have the feature."""
    state = next(steps)
    z, y, precision = np.zeros(state.z.shape), np.zeros(state.w.shape), np.zeros(state.z.shape[1])
    for drawn in islice(steps, _BURN, _BURN + _KEEP):
        z += drawn.z
        y += drawn.z * drawn.w if drawn.w.size else 0
        precision += 0 if isinstance(drawn.precision, Nothing) else drawn.precision.mean
    w = np.divide(y, z, out=np.zeros_like(y), where=z > 0) if y.size else y
    own = NOTHING if isinstance(drawn.precision, Nothing) else RowPrecision(precision / _KEEP)
    return replace(drawn, z=(z / _KEEP).astype(state.z.dtype), w=w.astype(state.w.dtype), precision=own)


def _change(before: RowState, now: RowState) -> float:
    """Largest change of an entry of z, or of z w as a share of the largest w."""
    if not now.z.size:
        return 0.0
    change = float(np.abs(now.z - before.z).max())
    if not now.w.size:
        return change
    largest = max(float(np.abs(now.w).max()), 1.0)
    return max(change, float(np.abs(now.z * now.w - before.z * before.w).max()) / largest)
