"""Whether chains can be trusted: R-hat and effective sample sizes of what does not depend on labels.

Features have no names in a sampler, and those of two draws need not be the same, so only numbers that
do not change when features change places are looked at (nsfa 12): how many there are, how many
entries are on, the log joint density, the variances, the mass. Rank-normalised split R-hat,
bulk and tail effective sample size are those of arviz-stats.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

Float = NDArray[np.float64]

MIXED, ENOUGH, FEW = 1.01, 400.0, 4
"""The largest R-hat of chains that have mixed, the effective draws that are enough, and draws of a
chain below which nothing can be said."""
HOPELESS = 100.0
TAIL = (0.05, 0.95)
COLUMNS = ("mean", "sd", "mcse", "rhat", "ess_bulk", "ess_tail")


def diagnostics(posterior: xr.Dataset) -> xr.Dataset:
    """By `variable` of `posterior` (chain, draw): mean, sd, its Monte Carlo error, R-hat, effective draws."""
    scalars = [str(name) for name, held in posterior.data_vars.items() if held.dims == ("chain", "draw")]
    found = np.array([_row(posterior[name].values.astype(float)) for name in scalars])
    table = found.reshape(len(scalars), len(COLUMNS))
    held = {name: ("variable", table[:, at]) for at, name in enumerate(COLUMNS)}
    return xr.Dataset(held, {"variable": np.array(scalars, dtype=str)})


def remarks(found: xr.Dataset, chains: int) -> Iterator[str]:
    """What a person should know before using the draws, in words."""
    if chains == 1:
        yield (
            "one chain cannot show that it has forgotten where it began: run several, such as with --chains 4"
        )
    rhat = _worst(found, "rhat", largest=True)
    if rhat is not None and rhat[1] > MIXED:
        yield (
            f"the chains have not mixed: R-hat of {rhat[0]} is {said(rhat[1])} (up to {MIXED} is good); "
            "make more steps"
        )
    for name, words in (("ess_bulk", "the centre"), ("ess_tail", "the tails")):
        least = _worst(found, name, largest=False)
        if least is not None and least[1] < ENOUGH:
            yield (f"{least[1]:.0f} effective draws for {words} of {least[0]} ({ENOUGH:.0f} are enough)")


def said(rhat: float) -> str:
    """R-hat in digits that mean something."""
    return "above 100" if rhat > HOPELESS else f"{rhat:.3f}"


def _row(values: Float) -> list[float]:
    """The columns of one variable (chain, draw); those that cannot be had are NaN."""
    mean, sd = float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0
    if values.shape[1] < FEW or not np.isfinite(values).all() or np.ptp(values) == 0:
        return [mean, sd, np.nan, np.nan, np.nan, np.nan]
    stats = _stats()
    with np.errstate(all="ignore"):
        mcse = stats.mcse(values, chain_axis=0, draw_axis=1)
        rhat = stats.rhat(values, chain_axis=0, draw_axis=1, method="rank")
        bulk = stats.ess(values, chain_axis=0, draw_axis=1, method="bulk")
        tail = stats.ess(values, chain_axis=0, draw_axis=1, method="tail", prob=TAIL)
    return [mean, sd, *(float(one) for one in (mcse, rhat, bulk, tail))]


def _worst(found: xr.Dataset, name: str, *, largest: bool) -> tuple[str, float] | None:
    """The variable with the largest or least value, if any is known."""
    values = found[name].values
    known = np.flatnonzero(~np.isnan(values))
    if not known.size:
        return None
    at = known[np.argmax(values[known]) if largest else np.argmin(values[known])]
    return str(found["variable"].values[at]).replace("_", " "), float(values[at])


def _stats() -> Any:
    base: Any = import_module("arviz_stats.base")  # takes seconds
    return base.array_stats
