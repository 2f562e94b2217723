"""Held-out scores of a run: RUN/heldout.json, one entry for each dataset and way of hiding cells."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.runs import variables
from ibpdist.runs.directory import is_run
from ibpdist.storage import records, sealed
from ibpdist.storage.lock import Lock

NAME = "heldout.json"
HELD = ("cells held out from the fit", "tokens held out from the fit")
"""How the words of a protocol begin that hides what the fit did not see."""
HEADLINES = ("variance", "prediction")
"""The estimate that counts, of cells and of tokens."""
_WORDS = ("data", "fingerprint", "protocol", "method")
_COUNTS = ("cells", "rows")
Entry = dict[str, Any]


class NotKept(UserWarning):
    """A score was made, but could not be written to its run."""

    def __init__(self, error: OutputInUse | StorageError) -> None:
        super().__init__(f"the score is not kept in the run: {error}")
        self.error = error


@contextmanager
def required() -> Iterator[None]:
    """Raise when a score is not kept. For one thread: filters of warnings are of the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotKept)
        try:
            yield
        except NotKept as lost:
            raise lost.error from lost


def keep(run: str | Path, scored: xr.Dataset, data: str, fingerprint: str) -> None:
    """Add a score to its run; warn when the run cannot be written."""
    path = _home(Path(run))
    if not is_run(path):  # a result that was copied to another place
        return
    entry = _entry(scored, data, fingerprint)
    try:
        _add(path, entry)
    except (OutputInUse, StorageError) as error:
        warnings.warn(NotKept(error), stacklevel=3)


def read(run: Path) -> xr.Dataset | None:
    """Scores (evaluation, estimate) of a run in the order in which they were made, None without any."""
    entries = _entries(_home(run))
    if not entries:
        return None
    values: dict[str, Any] = {
        name: [list(entry[name].values()) for entry in entries] for name in ("score", "error")
    }
    values["disagree"] = [
        list(entry.get("disagree", dict.fromkeys(entry["score"], 0)).values()) for entry in entries
    ]
    values |= {name: [entry[name] for entry in entries] for name in (*_WORDS, *_COUNTS)}
    scores = xr.Dataset(variables.HELDOUT.named(values), {"estimate": list(entries[0]["score"])})
    scores.score.attrs["units"] = str(entries[0].get("units", variables.PER_CELL))
    return scores


def headline(scores: xr.Dataset) -> str:
    """The estimate that counts."""
    return next(name for name in HEADLINES if name in scores["estimate"].values)


def mend(run: Path) -> None:
    """Remove scores that cannot be read, so that they can be made again."""
    try:
        _entries(run)
    except StorageError:
        with records.storage_errors(run):
            (run / NAME).unlink(missing_ok=True)


def own(scores: xr.Dataset | None, data: str) -> int | None:
    """Index of the evaluation on what the fit held out: on hidden cells if there is one, otherwise the
    first on `data`, the data of the fit; None without either."""
    if scores is None:
        return None
    words, of = scores["protocol"].values, scores["data"].values
    hidden = [at for at, one in enumerate(words) if str(one).startswith(HELD)]
    return next(iter(hidden or np.flatnonzero(of == data).tolist()), None)


def _entries(path: Path) -> list[Entry]:
    """The scores of a run; StorageError with the way out when they are damaged."""
    file = path / NAME
    try:
        entries: list[Entry] = sealed.read(file) if file.exists() else []
    except StorageError as error:
        raise StorageError(f"{error}; remove it, and evaluate or sweep makes scores again") from error
    return entries


def _home(run: Path) -> Path:
    return run.parent if run.name == "result.zarr" else run


def _add(path: Path, entry: Entry) -> None:
    lock = Lock(path / "lock")
    try:
        others = [one for one in _entries(path) if _which(one) != _which(entry)]
        sealed.write(path / NAME, [*others, entry])
    finally:
        lock.release()


def _which(entry: Entry) -> tuple[str, str]:
    return entry["fingerprint"], entry["protocol"]


def _entry(scored: xr.Dataset, data: str, fingerprint: str) -> Entry:
    numbers = {
        name: dict(zip(scored.estimate.values.tolist(), scored[name].values.tolist(), strict=True))
        for name in ("score", "error", "disagree")
    }
    counts = {"cells": int(scored.cells.sum()), "rows": int((scored.cells > 0).sum())}
    words = {name: scored.attrs[name] for name in ("protocol", "method")}
    units = {"units": scored.score.attrs["units"]}
    return {"data": data, "fingerprint": fingerprint, **words, **units, **numbers, **counts}
