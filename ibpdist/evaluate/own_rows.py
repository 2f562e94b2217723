"""The rows of a fit, with what it did not see of them."""

from __future__ import annotations

import xarray as xr

from ibpdist.base.errors import InputError, UsageError
from ibpdist.catalog import systems
from ibpdist.data._base import Source
from ibpdist.data.splits import Split, as_split
from ibpdist.evaluate.fitted import name_of, rows_for, spec_of


def own_rows(result: xr.DataTree, data: object) -> tuple[Source, Split, Source]:
    """The data of a fit, what it held out of them, and what it saw; `data` are those of a fit in memory."""
    spec = spec_of(result)
    if not spec.holdout:
        unit = "token" if systems.find(spec.system).counts else "cell"
        raise UsageError(
            f"the fit saw every {unit}, so none is held out; give new rows, or fit with a holdout"
        )
    if data is None and spec.data == "memory":
        raise UsageError("the fit was in memory, so its data are not kept: pass them with visible='fitted'")
    source = rows_for(result, spec.data if data is None else data)
    split = as_split(spec.holdout)
    seen = split.train(source)
    if seen.fingerprint != result.attrs["fingerprint"]:
        reason = "these are not the data of the fit: their fingerprints differ; give those that were fitted"
        raise InputError(reason, file=spec.data if data is None else name_of(data))
    return source, split, seen
