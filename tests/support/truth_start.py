"""The reference of the recovery benchmark: a fit started at the planted z with the planted K.

It learns and stops as `ibpdist.fit` does. Afterwards features that hardly any row has, or that
hardly any lacks, are left out one at a time wherever that raises the objective.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine
from ibpdist.catalog import systems as catalog
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Chunk, Source
from ibpdist.data.arrays import as_source
from ibpdist.engine import provenance
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.work import Workbench
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import ModelParams, ModelSums
from ibpdist.model.observations._base import RowState, RowSums, Survey
from ibpdist.model.observations.gaussian_params import GaussianParams, ScatteredParams
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.runs.job import Job
from ibpdist.runs.loop import in_memory

Matrix = NDArray[np.float64]

SURE = 0.999
PLAIN = {"start": "random", "moves": False}
"""Settings of a plain coordinate ascent from a random start, where the system has them."""

FEW = 5
"""Features with fewer rows, or lacked by fewer, may explain less than they cost."""


@dataclass(frozen=True)
class FromTruth(Coordinate):
    """Coordinate with the row state `z` (row, feature) to begin with, and parameters updated from it."""

    z: Matrix = field(kw_only=True)
    source: Source = field(kw_only=True)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> ModelParams:
        """Where cells are missing in no pattern, the dictionary of exact sums by groups of columns."""
        params = super().init(survey, draws, known)
        if isinstance(params.observation, ScatteredParams):
            observation = replace(self.model.observation, missing="groups")
            by_groups = replace(self, model=replace(self.model, observation=observation))
            return self.adopt(by_groups.init(survey, draws, known), survey)
        total: Any = None
        for index in range(self.source.chunks):
            sums = self._sums(self.source.read(index), params.observation)
            total = sums if total is None else combine(total, sums)
        return self.update(params, total, draws)[0]

    def start(self, chunk: Chunk, params: ModelParams, draws: Draws) -> RowState:
        z = self._rows(chunk).astype(chunk.x.dtype)
        return RowState(ids=params.ids, z=z, w=np.zeros((0, chunk.rows), chunk.x.dtype))

    def _rows(self, chunk: Chunk) -> Matrix:
        rows = self.z[chunk.start : chunk.start + chunk.rows].T
        return np.ascontiguousarray(np.clip(rows, 1 - SURE, SURE))

    def _sums(self, chunk: Chunk, params: GaussianParams) -> ModelSums:
        """The sums of a sweep that changes nothing, for unit weights."""
        z, x = self._rows(chunk), chunk.x.astype(np.float64)
        groups = int(params.group.max()) + 1
        seen = np.ones((groups, chunk.rows))
        if chunk.observed is not None:
            seen[params.group] = chunk.observed.T
        gram = np.einsum("kn,gn,ln->gkl", z, seen, z, optimize=True)
        gram[:, np.arange(len(z)), np.arange(len(z))] = seen @ z.T
        observed = GaussianSums(
            rows=np.asarray(float(chunk.rows)),
            gram=gram,
            cross=z @ x,
        )
        on, entropy = z.sum(axis=1), -(z * np.log(z) + (1 - z) * np.log1p(-z)).sum(axis=1)
        of_rows = {"on": on, "first": on, "second": on, "entropy": entropy, "cost": np.zeros(len(z))}
        return ModelSums(RowSums(**{f.name: of_rows[f.name] for f in fields(RowSums)}), observed)


def plain(system: str) -> dict[str, Any]:
    known = catalog.settings_of(system)
    return {name: value for name, value in PLAIN.items() if name in known}


def truth_started(
    x: Matrix, z: NDArray[Any], system: str = "lg-vi-infinite", settings: Mapping[str, Any] | None = None
) -> xr.DataTree:
    """The fit of `x` from the planted `z` (row, feature), rare and constant features left out."""
    best = _fit(x, np.asarray(z, dtype=float), system, settings or {})
    refused: set[int] = set()
    while (candidate := _least(best, refused)) is not None:
        rest = np.delete(_z(best), candidate, axis=1)
        shorter = _fit(x, rest, system, settings or {})
        if shorter.attrs["objective"] > best.attrs["objective"]:
            best, refused = shorter, set()
        else:
            refused.add(candidate)
    return best


def _least(found: xr.DataTree, refused: set[int]) -> int | None:
    """The feature nearest to being in no row or in all rows that is worth a trial, if there is one."""
    z = _z(found)
    away = np.minimum(z.sum(0), (1 - z).sum(0))
    worth = [int(k) for k in np.argsort(away, kind="stable") if away[k] < FEW and int(k) not in refused]
    return worth[0] if worth and z.shape[1] > 1 else None


def _z(found: xr.DataTree) -> Matrix:
    return found["rows"].to_dataset()["z"].values.astype(float)


def _fit(x: Matrix, z: Matrix, system: str, settings: Mapping[str, Any]) -> xr.DataTree:
    chosen = {**settings, **plain(system)}
    spec = FitSpec.make(data="memory", system=system, truncation=z.shape[1], seed=0, set=chosen)
    source = as_source(x)
    usual = catalog.build(system, z.shape[1], inner=spec.inner, settings=spec.set)
    assert isinstance(usual, Coordinate)
    algorithm = FromTruth(usual.model, usual.features, usual.inner, z=z, source=source)
    engine = Serial(Workbench(algorithm, source, MemoryHistory(), spec.seed, cache=x.nbytes))
    return in_memory(Job(spec, algorithm, source), engine, provenance.facts(source))
