"""Results as xarray trees, in memory and on disk.

`variables.py` lists the groups and their variables. /rows is read when it is used; /params is in the units
of the data as the fit sees them, (x - center) / scale or (log(1 + x) - center) / scale where /transform has
`center` and `scale`.

Attributes of the tree: spec, seed, versions, chunk sizes, BLAS, fingerprint, why it stopped, and the
names of the moves whose numbers, counted from 1, are in the trace.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.errors import StorageError
from ibpdist.data._base import Labels, Source
from ibpdist.data.centring import done_to
from ibpdist.data.urls import refuse_urls
from ibpdist.engine._base import Engine
from ibpdist.engine.sweeps import reduced
from ibpdist.inference._base import AnyParallel, Named
from ibpdist.inference.ascent.search import Search
from ibpdist.inference.stopping import AnySnapshot, Stop
from ibpdist.predict import units
from ibpdist.runs import layout, scores, variables
from ibpdist.runs.diagnosis import Moments, diagnose
from ibpdist.runs.rows import WRITE, in_memory, join_parts, lay_out, row_labels
from ibpdist.storage import raw_zarr, records, sealed
from ibpdist.storage.checked import CheckedStore, refuse_damage

Trace = Mapping[int, Mapping[str, float]]
_READ_LATER = ("rows", "draws")
"""Groups whose chunks are checked when they are read."""


@dataclass(frozen=True)
class Ending:
    """The last step of a fit, the terms of all its steps, and why it stopped.

    `at` is the step of the engine whose rows are those of the end, when the fit ended before others.
    """

    last: AnySnapshot
    stop: Stop
    trace: Trace
    attributes: Mapping[str, Any]
    at: int | None = None

    @property
    def step(self) -> int:
        return self.last.step if self.at is None else self.at


def tree(algorithm: AnyParallel, engine: Engine, source: Source, ending: Ending) -> xr.DataTree:
    """The result in memory."""
    result = _without_rows(algorithm, source, ending)
    rows, row_moments = in_memory(engine, ending.step)
    result["rows"] = xr.DataTree(xr.Dataset(rows, _along("row", row_labels(source))))
    for name, node in _diagnosis(algorithm, ending, row_moments).items():
        result[name] = node
    return variables.labelled(result)


def write(run: Path, algorithm: AnyParallel, engine: Engine, source: Source, ending: Ending) -> None:
    """Write RUN/result.zarr under another name, then give it its own."""
    publish(run, stage(run, algorithm, engine, source, ending))


def stage(
    run: Path,
    algorithm: AnyParallel,
    engine: Engine,
    source: Source,
    ending: Ending,
    more: Mapping[str, xr.Dataset] | None = None,
) -> Path:
    """Write a result under another name, with the groups of `more` added or in place of its own."""
    staged = run / "result.zarr.partial"
    shutil.rmtree(staged, ignore_errors=True)
    result = _without_rows(algorithm, source, ending)
    result["rows"] = xr.DataTree(xr.Dataset(coords=_along("row", row_labels(source))))
    for name, group in (more or {}).items():
        result[name] = xr.DataTree(group)
    result = layout.on_disk(result)
    result.attrs["format"] = layout.FORMAT
    store(result, staged)
    rows = lay_out(engine, source, ending.step, staged)
    row_moments = reduced(engine.some(WRITE, ending.step, str(staged), *rows))
    join_parts(source, staged, rows)
    for name, node in _diagnosis(algorithm, ending, row_moments).items():
        raw_zarr.write(staged / name, node.to_dataset())
    return staged


def store(result: xr.DataTree, path: Path) -> None:
    """Write a tree: every chunk with a check sum."""
    for node in result.subtree:
        raw_zarr.write(path / node.path[1:], node.to_dataset(inherit=False), exist_ok=True)


def load(result: xr.DataTree) -> xr.DataTree:
    """A tree with all of its arrays in memory."""
    loaded: xr.DataTree = xr.map_over_datasets(xr.Dataset.load, result)
    return loaded


def publish(run: Path, staged: Path) -> None:
    """Hash the files of a complete result, then rename it into place."""
    shutil.rmtree(run / "result.zarr", ignore_errors=True)
    for left in staged.rglob(f"*{raw_zarr.LITTER}"):
        left.unlink()
    sealed.write(run / "result.json", hashes(staged))
    staged.rename(run / "result.zarr")
    records.sync_folder(run)


def hashes(store: Path) -> dict[str, str]:
    """sha256 of every file of a folder by relative name."""
    files = sorted(path for path in store.rglob("*") if path.is_file())
    return {path.relative_to(store).as_posix(): _file_hash(path) for path in files}


def is_complete(run: Path) -> bool:
    return (run / "result.zarr").is_dir() and (run / "result.json").is_file()


def open_result(run: str | Path) -> xr.DataTree:
    """The result of a finished run, or one that was copied from a run; arrays of rows are read when they
    are used."""
    refuse_urls(run)
    path = Path(run)
    store = _store_of(path)
    try:
        place: Any = _checked(store)
        stored = xr.open_datatree(place, engine="zarr", chunks={}, consolidated=False)
        result = layout.in_memory(stored)
    except StorageError as error:
        raise error if str(store) in str(error) else StorageError(f"{store}: {error}") from error
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"{store}: cannot be read: {error}; check it with verify") from error
    heldout = scores.read(path)
    if heldout is not None:
        result["heldout"] = xr.DataTree(heldout)
    return variables.labelled(result)


def _without_rows(algorithm: AnyParallel, source: Source, ending: Ending) -> xr.DataTree:
    params = ending.last.params
    described: Named = algorithm.describe(params)
    shown = {name: held for name, held in described.items() if name not in layout.HIDDEN}
    labels, done = _along("column", source.column_coords()), done_to(source)
    groups = {
        "params": xr.Dataset(shown, labels),
        "trace": trace(ending.trace),
        layout.INTERNALS: layout.internals(algorithm.handover_params(params), described),
        **units.described(done, labels),
    }
    result = xr.DataTree(children={name: xr.DataTree(group) for name, group in groups.items()})
    objective = ending.last.info.objective
    result.attrs = {
        **ending.attributes,
        "steps": ending.last.step,
        "objective": objective,
        "stop": ending.stop.code.value,
        "stopped": ending.stop.sentence,
        **units.attributes(source),
        "moves": algorithm.agenda.names if isinstance(algorithm, Search) else [],
    }
    return result


def _diagnosis(algorithm: AnyParallel, ending: Ending, row_moments: Moments) -> dict[str, xr.DataTree]:
    """The group of this name, unless the model has no dictionary."""
    described = algorithm.describe(ending.last.params)
    diagnosis = diagnose(described, row_moments, int(ending.attributes["truncation"]))
    return {} if diagnosis is None else {"diagnosis": xr.DataTree(diagnosis)}


def _store_of(path: Path) -> Path:
    """Where the result lies of a run, or of what is a result itself, whatever its name."""
    store = path if path.name == "result.zarr" else path / "result.zarr"
    if store.is_dir():
        return store
    if all((path / group / "zarr.json").is_file() for group in ("params", "rows")):
        return path
    if (path / "run.json").is_file():
        raise StorageError(f"{path}: is not finished; continue it with resume")
    what = (
        "result.zarr is missing" if path.is_dir() else "it is a file" if path.exists() else "nothing is there"
    )
    raise StorageError(f"{path}: is not a run ({what}); name the directory that fit wrote")


def _checked(store: Path) -> CheckedStore | Path:
    """The store that Zarr reads a result from; a result copied out of its run has no list of hashes."""
    listing = store.with_name("result.json")
    if store.name != "result.zarr" or not (listing.exists() or store.with_name("run.json").exists()):
        return store
    expected = sealed.read(listing)
    refuse_damage(store, expected, later=_READ_LATER)
    return CheckedStore(store, expected)


def trace(terms_by_step: Trace) -> xr.Dataset:
    """Terms by name along the steps; NaN where a step has no such term."""
    steps = sorted(terms_by_step)
    terms = dict.fromkeys(name for step in steps for name in terms_by_step[step])
    values = {name: ("step", np.array([terms_by_step[s].get(name, np.nan) for s in steps])) for name in terms}
    return xr.Dataset(values, {"step": steps})


def _along(dim: str, labels: Mapping[str, Labels]) -> dict[str, tuple[str, Labels]]:
    return {name: (dim, values) for name, values in labels.items()}


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
