"""Which features of a fit come back when it is fitted to subsamples of the rows (scores.md 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.progress import Stage
from ibpdist.base.threads import one_thread
from ibpdist.base.words import counted
from ibpdist.catalog import systems
from ibpdist.data.splits import SomeRows
from ibpdist.runs import variables
from ibpdist.runs.job import Job, subsample_of
from ibpdist.runs.matching import SIMILAR, STABLE, Matches, active, by_cosine, column_units, matched

Array = NDArray[Any]
FEWEST = 2
"""Rows of a subsample."""


def refuse_small(job: Job) -> None:
    """Refuse subsamples with fewer than two rows, or with fewer rows than features that are asked for."""
    spec = job.spec
    for member in range(spec.stability or 0):
        rows, of = subsample_of(spec, member).rows(job.source), counted(job.source.rows, "row")
        if rows < FEWEST:
            raise UsageError(
                f"stability is {spec.stability}, but subsample {member + 1} has {rows} of {of}: expected at "
                "least 2; give more rows, or fit without stability"
            )
        if spec.truncation != "auto" and rows < spec.truncation:
            raise UsageError(
                f"K is {spec.truncation}, but subsample {member + 1} has {rows} of {of}: give a smaller K, "
                "or a larger subsample such as 0.9"
            )


def groups(
    whole: xr.DataTree, subsamples: Sequence[xr.DataTree], rows: Sequence[SomeRows], tell: Stage
) -> dict[str, xr.Dataset]:
    """The groups `stability` and `consensus` of a fit of all rows, from those of subsamples.

    `rows` are those of each subsample, `tell` is told how many have been compared.
    """
    reference, unit = active(whole), column_units(whole)
    signed = systems.of_result(whole.attrs).weights_type.signed
    pairing, found, agreement = by_cosine(signed), [], []
    for at, (one, own) in enumerate(zip(subsamples, rows, strict=True)):
        tell("comparing subsamples", at, len(rows))
        with one_thread():
            made = matched(active(one), reference.mean, pairing, signed=signed, unit=unit)
        found.append(made)
        agreement.append(_agreement(whole, one, own, reference.at, made))
    present = np.array([made.present for made in found])
    stable = present.mean(0) >= STABLE
    values = {
        "returns": present.mean(0),
        "stable": stable,
        "present": present,
        "match": np.array([made.match for made in found]),
        "similarity": np.array([made.similarity for made in found]),
        "agreement": np.array(agreement),
        "rows": [own.rows for own in rows],
        "stop": [str(one.attrs["stop"]) for one in subsamples],
    }
    coords = {"subsample": np.arange(len(rows)), "feature": reference.at}
    limits = {"matched": SIMILAR, "least": STABLE}
    table = xr.Dataset(variables.STABILITY.named(values), coords, limits)
    return {"stability": table, "consensus": _consensus(whole, found, stable)}


def _consensus(whole: xr.DataTree, found: Sequence[Matches], stable: Array) -> xr.Dataset:
    """Mean and spread of each stable feature over the subsamples that have it."""
    params = whole["params"].to_dataset()
    means, spreads = [], []
    for k in np.flatnonzero(stable):
        same = np.array([made.mean[k] for made in found if made.present[k]])
        means.append(same.mean(0))
        spreads.append(same.std(0, ddof=1))
    shape = (len(means), params.sizes["column"])
    values = {"mean": np.reshape(means, shape), "sd": np.reshape(spreads, shape)}
    labels = {name: held for name, held in params.coords.items() if held.dims == ("column",)}
    coords: dict[Any, Any] = {"feature": active(whole).at[stable], **labels}
    return xr.Dataset(variables.CONSENSUS.named(values), coords)


def _agreement(whole: xr.DataTree, one: xr.DataTree, rows: SomeRows, at: Array, made: Matches) -> Array:
    """(feature) the share of the rows of a subsample in which its fit and that of all rows agree who has a
    feature; NaN where the subsample does not have the feature."""
    ours, theirs = whole["rows"].to_dataset()["z"], one["rows"].to_dataset()["z"]
    same, first = np.zeros(len(at)), 0
    for index in range(rows.chunks):
        origin = rows.origin(index)
        start, stop = int(origin[0]), int(origin[-1]) + 1
        z = np.asarray(ours[start:stop].values)[origin - start][:, at] > 0.5
        other = np.asarray(theirs[first : first + len(origin)].values)[:, made.match] > 0.5
        same += (z == other).sum(0)
        first += len(origin)
    share: Array = np.where(made.present, same / rows.rows, np.nan)
    return share
