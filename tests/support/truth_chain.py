"""A collapsed chain that begins where the planted z is: what other chains should come to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.catalog.spec import FitSpec
from ibpdist.data.arrays import as_source
from ibpdist.engine import provenance
from ibpdist.engine.place import Place
from ibpdist.runs import fit as pipeline
from ibpdist.runs import result
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.job import job_of

SYSTEM = "lg-collapsed-infinite"


@dataclass(frozen=True)
class Planted:
    """Who has what is known: `known` (row, feature)."""

    known: NDArray[np.bool_]

    def z(self, rows: int, features: int, start: int, draws: Draws) -> NDArray[np.float64]:
        return np.ascontiguousarray(self.known[start : start + rows].T.astype(np.float64))


def truth_chain(
    x: NDArray[np.float64], z: NDArray[np.bool_], folder: Path, *, steps: int, thin: int, seed: int = 0
) -> xr.DataTree:
    """The result of a chain of x (row, column) from z (row, feature), of which the later half is kept."""
    store, run = folder / "data.zarr", folder / "run"
    pipeline._store(as_source(x), store)
    spec = FitSpec.make(
        data=str(store), system=SYSTEM, truncation=z.shape[1], seed=seed, steps=steps, burn=steps // 2,
        thin=thin, set={"start": "random"},
    )  # fmt: skip
    job = job_of(spec)
    sampler = dataclasses.replace(job.algorithm.sampler, begin=Planted(z))
    job = dataclasses.replace(job, algorithm=dataclasses.replace(job.algorithm, sampler=sampler))
    place = Place(serial=True)
    made = RunDirectory.create(run, spec.dump(), lambda: provenance.facts(job.source))
    try:
        pipeline.advance(made, job, place, None)
    finally:
        made.close()
    return result.load(result.open_result(run))
