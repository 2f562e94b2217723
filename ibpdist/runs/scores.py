"""Held-out scores of a run: RUN/heldout.json, one entry for each dataset and way of hiding cells."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.errors import OutputInUse, StorageError
from ibpdist.runs import sealed
from ibpdist.runs.directory import is_run
from ibpdist.runs.lock import Lock

NAME = "heldout.json"
HELD = "cells held out from the fit"
"""How the words of a protocol begin that hides what the fit did not see."""
_WORDS = ("data", "fingerprint", "protocol", "method")
_COUNTS = ("cells", "rows")
Entry = dict[str, Any]


def keep(run: str | Path, scored: xr.Dataset, data: str, fingerprint: str) -> None:
    """Put a score into its run; a run that cannot be written gives a warning, the score is there anyway."""
    path = _home(Path(run))
    if not is_run(path):  # a result that was copied to another place
        return
    entry = _entry(scored, data, fingerprint)
    try:
        _add(path, entry)
    except (OutputInUse, StorageError) as error:
        warnings.warn(f"the score is not kept in the run: {error}", stacklevel=3)


def read(run: Path) -> xr.Dataset | None:
    """Scores (evaluation, estimate) of a run in the order in which they were made, None without any."""
    path = _home(run) / NAME
    if not path.exists():
        return None
    entries: list[Entry] = sealed.read(path)
    held: dict[str, Any] = {
        name: (("evaluation", "estimate"), np.array([list(entry[name].values()) for entry in entries]))
        for name in ("score", "error")
    }
    for name in (*_WORDS, *_COUNTS):
        held[name] = ("evaluation", np.array([entry[name] for entry in entries]))
    made = xr.Dataset(held, {"estimate": list(entries[0]["score"])})
    made.score.attrs["units"] = "nats per hidden cell"
    return made


def own(found: xr.Dataset | None, data: str) -> int | None:
    """Which evaluation is that of what was held out from the fit: of hidden cells as its protocol says, of
    held-out rows the first on `data`, those of the fit. None without any."""
    if found is None:
        return None
    words, of = found["protocol"].values, found["data"].values
    hidden = [at for at, one in enumerate(words) if str(one).startswith(HELD)]
    return next(iter(hidden or np.flatnonzero(of == data).tolist()), None)


def _home(run: Path) -> Path:
    return run.parent if run.name == "result.zarr" else run


def _add(path: Path, entry: Entry) -> None:
    lock = Lock(path / "lock")
    try:
        known: list[Entry] = sealed.read(path / NAME) if (path / NAME).exists() else []
        others = [one for one in known if _which(one) != _which(entry)]
        sealed.write(path / NAME, [*others, entry])
    finally:
        lock.release()


def _which(entry: Entry) -> tuple[str, str]:
    return entry["fingerprint"], entry["protocol"]


def _entry(scored: xr.Dataset, data: str, fingerprint: str) -> Entry:
    numbers = {
        name: dict(zip(scored.estimate.values.tolist(), scored[name].values.tolist(), strict=True))
        for name in ("score", "error")
    }
    counts = {"cells": int(scored.cells.sum()), "rows": int((scored.cells > 0).sum())}
    said = {name: scored.attrs[name] for name in ("protocol", "method")}
    return {"data": data, "fingerprint": fingerprint, **said, **numbers, **counts}
