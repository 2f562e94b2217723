"""The result of a run from the fits within it: the best of the starts, compared with those of subsamples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.progress import Stage
from ibpdist.runs import restarts, result
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.job import Job
from ibpdist.runs.nested import nested_fits
from ibpdist.runs.stability import groups


def begin(directory: RunDirectory, job: Job) -> None:
    """Note which fits a run is made of, before the first of them."""
    directory.events.add("nested", fits=[fit.place for fit in nested_fits(job.spec)])


def complete(directory: RunDirectory, job: Job, tell: Stage, **facts: Any) -> None:
    """Make the result of a run whose fits have all ended; `facts` are told of its end besides.

    `tell` is told how many subsamples have been compared.
    """
    run, fits = directory.path, nested_fits(job.spec)
    starts = [result.open_result(fit.folder(run)) for fit in fits if fit.of_all_rows]
    parts = [result.open_result(fit.folder(run)) for fit in fits if not fit.of_all_rows]
    more = compared(job, starts, parts, tell)
    directory.events.add("ended", **_ending(starts[restarts.best(starts)], more), **facts)
    restarts.choose(run, starts, more)
    directory.events.add("finished")


def compared(
    job: Job, starts: Sequence[xr.DataTree], parts: Sequence[xr.DataTree], tell: Stage
) -> dict[str, xr.Dataset]:
    """Groups about the best of the starts beside the fits of subsamples, if there are any."""
    rows = [fit.rows(job) for fit in nested_fits(job.spec) if not fit.of_all_rows]
    return groups(starts[restarts.best(starts)], parts, rows, tell) if rows else {}


def _ending(best: xr.DataTree, more: dict[str, xr.Dataset]) -> dict[str, Any]:
    """What the log of a run says of its end."""
    attrs, active = best.attrs, int(np.sum(best["params"].to_dataset()["active"].values))
    said = {"step": attrs["steps"], "stop": attrs["stop"], "reason": attrs["stopped"]}
    stable = {"stable": int(np.sum(more["stability"]["stable"].values))} if more else {}
    return {**said, "objective": attrs["objective"], "active": active, **stable}
