"""The summary of a campaign: numbers of all fits by label, as RUN/summary.

Dims are those of the grid: system, truncation, every swept key, restart. What is not there yet, or
failed, is NaN in the numbers and told by `status` and `stop`; a fit that failed only when it was scored
has its other numbers. One whose files are damaged counts as failed. RUN/summary.json has the hashes of
RUN/summary.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.errors import StorageError
from ibpdist.campaigns.directory import Fit, Manifest, failure, fit_folder, is_finished
from ibpdist.runs import result, scores
from ibpdist.storage import events, sealed, zarr_groups

NUMBERS = {
    "objective": "bound with the tail of the prior; of counts without a bound log density of hidden tokens; "
    "of a sampler the mean log joint density of its draws",
    "heldout": "nats per hidden cell, of counts per hidden token",
    "heldout_error": "Monte Carlo error of heldout, of counts its error over rows",
    "active": "features in more than half a row; of a sampler their most frequent number",
    "stable": "features that come back in subsamples; without subsamples unknown",
    "seconds": "its share of the time of the steps",
    "steps": "passes over the data; of a sampler of each chain",
}
WORDS = {
    "status": "finished, failed or waiting",
    "stop": "why it ended",
    "seed": "of all that is random",
    "fit": "name of its folder in fits/",
}
SEAL = "summary.json"
Row = dict[str, Any]


def summary(path: Path, manifest: Manifest) -> xr.Dataset:
    """The numbers and words of every fit of a campaign now."""
    dims = manifest.spec.dims()
    shape = tuple(len(values) for values in dims.values())
    scored = {event["fit"] for event in events.read(path / "events.jsonl") if event["event"] == "scored"}
    rows = [row(path, fit, fit.id in scored) for fit in manifest.fits]
    where = [tuple(dims[name].index(fit.labels[name]) for name in dims) for fit in manifest.fits]
    held = {}
    for name, words in (NUMBERS | WORDS).items():
        kind, missing = (float, np.nan) if name in NUMBERS else (object, "")
        values = np.full(shape, missing, kind)
        for at, line in zip(where, rows, strict=True):
            values[at] = line.get(name, missing)
        column = values if name in NUMBERS else values.astype(str)
        held[name] = (tuple(dims), column, {"long_name": words})
    about = {"data": manifest.spec.data, "fingerprint": manifest.fingerprint}
    return xr.Dataset(held, {name: coordinate(values) for name, values in dims.items()}, about)


def row(path: Path, fit: Fit, scored: bool = False) -> Row:
    """Numbers and words of one fit; when it was `scored` its score must be there."""
    line: Row = {"fit": fit.id, "seed": str(fit.spec.seed), "status": "waiting"}
    failed = failure(path, fit.id)
    if is_finished(path, fit.id):
        try:
            line |= _found(path, fit, scored)
        except StorageError as error:
            line |= {"status": "failed", "stop": str(error)}
    if failed is not None:
        line |= {"status": "failed", "stop": failed["reason"]}
    return line


def _found(path: Path, fit: Fit, scored: bool) -> Row:
    ending = ended(fit_folder(path, fit.id))
    names = {"objective": "objective", "active": "active", "seconds": "seconds", "step": "steps"}
    numbers = {ours: ending[theirs] for theirs, ours in names.items()}
    numbers["stable"] = ending.get("stable", np.nan)
    return {"status": "finished", "stop": ending["reason"], **numbers, **_heldout(path, fit, scored)}


def coordinate(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Labels along a dim: numbers if all are, else words."""
    if all(isinstance(value, bool) for value in values):
        return np.array(values)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values)
    return np.array([str(value) for value in values], object)


def write(path: Path, manifest: Manifest) -> xr.Dataset:
    """Write RUN/summary under another name, note its hashes, then give it its own name."""
    table, staged = summary(path, manifest), path / "summary.partial"
    shutil.rmtree(staged, ignore_errors=True)
    result.store(xr.DataTree(table), staged)
    zarr_groups.consolidate(staged)
    shutil.rmtree(path / "summary", ignore_errors=True)
    sealed.write(path / SEAL, result.hashes(staged))
    staged.rename(path / "summary")
    return table


def ended(folder: Path) -> Row:
    """The last event of the log of a finished fit; StorageError when it is missing."""
    log, way = folder / "events.jsonl", "remove the folder of this fit, and sweep makes the fit again"
    try:
        endings = [event for event in events.read(log) if event["event"] == "ended"]
    except StorageError as error:
        raise StorageError(f"{error}; {way}") from error
    if not endings:
        raise StorageError(f"{log}: is missing or does not say how the fit ended; {way}")
    return endings[-1]


def _heldout(path: Path, fit: Fit, scored: bool) -> Row:
    """The score of the cells that were held out from this fit."""
    file = fit_folder(path, fit.id) / scores.NAME
    if scored and not file.exists():
        raise StorageError(f"{file}: is missing; sweep makes the score again")
    found = scores.read(fit_folder(path, fit.id)) if fit.spec.holdout else None
    at = scores.own(found, fit.spec.data)
    if found is None or at is None:
        return {}
    one = found.isel(evaluation=at).sel(estimate=scores.headline(found))
    return {"heldout": float(one.score), "heldout_error": float(one.error)}
