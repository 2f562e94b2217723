"""Several starts of one fit: each is a run of its own in RUN/restarts/NNN, the best one is the result."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import xarray as xr

from ibpdist.catalog.spec import FitSpec
from ibpdist.data.subsample import HALF
from ibpdist.runs import result, variables
from ibpdist.storage import raw_zarr


def spec_of(spec: FitSpec, restart: int) -> FitSpec:
    """The spec of one start; the first has the seed of the whole, the others seeds derived from it."""
    alone = {"restarts": 1, "stability": None, "subsample": HALF}
    return spec.model_copy(update=alone | {"seed": seed_of(spec.seed, restart)})


def seed_of(seed: int, restart: int) -> int:
    if restart == 0:
        return seed
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(b"restart"), restart))
    return int(sequence.generate_state(1, np.uint64)[0])


def best(results: Sequence[xr.DataTree]) -> int:
    """The start with the highest objective; the first of equal ones."""
    return int(np.argmax([found.attrs["objective"] for found in results]))


def table(results: Sequence[xr.DataTree]) -> xr.Dataset:
    """Seed, objective, steps and reason of each start."""
    values = {
        "seed": [str(found.attrs["seed"]) for found in results],
        "objective": [float(found.attrs["objective"]) for found in results],
        "steps": [int(found.attrs["steps"]) for found in results],
        "stop": [str(found.attrs["stop"]) for found in results],
    }
    return xr.Dataset(variables.RESTARTS.named(values), {"restart": np.arange(len(results))})


def chosen(
    results: Sequence[xr.DataTree], more: Mapping[str, xr.Dataset] = MappingProxyType({})
) -> xr.DataTree:
    """The best of the results in memory, with a table of all when there are several, and more groups."""
    found = results[best(results)]
    for name, group in {**_table_of_several(results), **more}.items():
        found[name] = xr.DataTree(group)
    return variables.labelled(found)


def _table_of_several(results: Sequence[xr.DataTree]) -> dict[str, xr.Dataset]:
    return {"restarts": table(results).assign_attrs(chosen=best(results))} if len(results) > 1 else {}


def folder(run: Path, restart: int) -> Path:
    return run / "restarts" / f"{restart:03d}"


def choose(run: Path, results: Sequence[xr.DataTree], more: Mapping[str, xr.Dataset]) -> None:
    """Make the result of the best of the finished starts that of the whole run, with more groups added."""
    at = best(results)
    staged = run / "result.zarr.partial"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(folder(run, at) / "result.zarr", staged)
    for name, group in {**_table_of_several(results), **more}.items():
        raw_zarr.write(staged / name, group)
    result.publish(run, staged)
