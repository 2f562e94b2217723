"""Whether chains can be trusted: R-hat and effective sample sizes of what does not depend on labels.

Features have no names in a sampler, and those of two draws need not be the same, so only numbers that
do not change when features change places are looked at (samplers.md 15): how many there are, how many
entries are on, the log joint density, the variances, the mass. Rank-normalised split R-hat,
bulk and tail effective sample size are those of arviz-stats.

What some draws do not have, such as a scale where there is no feature, is judged by the draws that have
it: the last ones of every chain, as many as the chain with the fewest has.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.words import counted
from ibpdist.runs import variables

Float = NDArray[np.float64]

MIXED, ENOUGH, FEW = 1.01, 400.0, 4
"""The largest R-hat of chains that have mixed, the effective draws that are enough, and draws of a
chain below which nothing can be said."""
UNLIKELY = 60
"""Draws in which a chain of independent draws shows a number of features that 1 draw in 20 has, with
probability 0.95 (1 - 0.95^60): one that shows none has an answer that is too sure, or it is stuck."""
HOPELESS = 100.0
TAIL = (0.05, 0.95)
COLUMNS = ("mean", "sd", "mcse", "rhat", "ess_bulk", "ess_tail", "draws")


def diagnostics(posterior: xr.Dataset) -> xr.Dataset:
    """By `variable` of `posterior` (chain, draw): mean, sd, its Monte Carlo error, R-hat, effective draws,
    and the `draws` of each chain that have it."""
    scalars = [str(name) for name, held in posterior.data_vars.items() if held.dims == ("chain", "draw")]
    lines = np.array([_row(posterior[name].values.astype(float)) for name in scalars])
    table = lines.reshape(len(scalars), len(COLUMNS))
    values = {name: table[:, at] for at, name in enumerate(COLUMNS)}
    return xr.Dataset(variables.DIAGNOSTICS.named(values), {"variable": np.array(scalars, dtype=str)})


def remarks(table: xr.Dataset, chains: int, draws: int) -> Iterator[str]:
    """Remarks on whether chains with this number of draws can be used."""
    yield from _few(table, draws)
    if chains == 1:
        yield (
            "one chain cannot show that it has forgotten where it began: run several, such as with --chains 4"
        )
    rhat = _worst(table, "rhat", largest=True)
    if rhat is not None and rhat[1] > MIXED:
        yield (
            f"the chains have not mixed: R-hat of {rhat[0]} is {said(rhat[1])} (up to {MIXED} is good); "
            "make more steps"
        )
    for name, words in (("ess_bulk", "the centre"), ("ess_tail", "the tails")):
        least = _worst(table, name, largest=False)
        if least is not None and least[1] < ENOUGH:
            yield (f"{least[1]:.0f} effective draws for {words} of {least[0]} ({ENOUGH:.0f} are enough)")


def stuck(features: xr.DataArray) -> Iterator[str]:
    """Of the numbers of features (chain, draw): chains in which they never changed, in enough draws."""
    if features.sizes["draw"] < UNLIKELY:
        return
    still: dict[int, list[str]] = {}
    for chain, numbers in enumerate(features.values):
        if np.ptp(numbers) == 0:
            still.setdefault(int(numbers[0]), []).append(str(chain))
    for number, chains in still.items():
        who, but = _who(chains, features.sizes["chain"])
        yield (
            f"{who} kept {counted(number, 'feature')} in every draw: {but}; compare chains that begin with "
            "another K or --seed"
        )


def _who(chains: list[str], count: int) -> tuple[str, str]:
    """The chains by number, and what may be wrong with them."""
    *most, last = chains
    if not most:
        return f"chain {last}", "it may be stuck"
    if len(chains) == count:
        return "all chains", "that number is certain, or they are stuck"
    return f"chains {', '.join(most)} and {last}", "they may be stuck"


def said(rhat: float) -> str:
    """R-hat with its significant digits."""
    return "above 100" if rhat > HOPELESS else f"{rhat:.3f}"


def _few(table: xr.Dataset, draws: int) -> Iterator[str]:
    """Remarks on variables with too few draws; none on those that no draw has."""
    least = f"at least {FEW} are needed"
    if draws < FEW:
        yield f"too few draws to judge ({draws} a chain; {least})"
        return
    have = table["draws"].values if "draws" in table else np.full(table.sizes["variable"], draws)
    for at in np.flatnonzero((have < FEW) & np.isfinite(table["mean"].values)):
        name = str(table["variable"].values[at]).replace("_", " ")
        yield f"too few draws to judge {name} ({have[at]:.0f} of a chain have one; {least})"


def _row(values: Float) -> list[float]:
    """The columns of one variable (chain, draw); NaN where too few draws have it."""
    known = [chain[np.isfinite(chain)] for chain in values]
    draws, pooled = min(map(len, known)), np.concatenate(known)
    if not pooled.size:
        return [*[np.nan] * (len(COLUMNS) - 1), 0.0]
    constant = np.ptp(pooled) == 0
    mean, sd = float(pooled.mean()), 0.0 if constant else float(pooled.std(ddof=1))
    if draws < FEW or constant:
        return [mean, sd, np.nan, np.nan, np.nan, np.nan, draws]
    table = np.array([chain[-draws:] for chain in known])
    return [mean, sd, *_judged(table), draws]


def _judged(values: Float) -> Iterator[float]:
    """Monte Carlo error, R-hat, and effective draws for the centre and the tails."""
    stats = _stats()
    with np.errstate(all="ignore"):
        yield float(stats.mcse(values, chain_axis=0, draw_axis=1))
        yield float(stats.rhat(values, chain_axis=0, draw_axis=1, method="rank"))
        yield float(stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))
        yield float(stats.ess(values, chain_axis=0, draw_axis=1, method="tail", prob=TAIL))


def _worst(table: xr.Dataset, name: str, *, largest: bool) -> tuple[str, float] | None:
    """The variable with the largest or least value, if any is known."""
    values = table[name].values
    known = np.flatnonzero(~np.isnan(values))
    if not known.size:
        return None
    at = known[np.argmax(values[known]) if largest else np.argmin(values[known])]
    return str(table["variable"].values[at]).replace("_", " "), float(values[at])


def _stats() -> Any:
    base: Any = import_module("arviz_stats.base")  # takes seconds
    return base.array_stats
