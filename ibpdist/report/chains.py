"""The chains of a sampler in words: how many features and how sure, which they are, and whether
to believe it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibpdist.catalog import systems
from ibpdist.evaluate import posterior
from ibpdist.model.priors._base import Number
from ibpdist.report.lines import Column
from ibpdist.runs import diagnostics

LISTED = 20
"""Features that are listed one by one."""
RARE = 0.05
"""Features that fewer of the draws have are counted together."""
COVERED = 0.95


@dataclass(frozen=True)
class Span:
    """Places along numbers of features: the most frequent one, and the ends of the shortest run of
    them that COVERED of the draws have."""

    best: int
    low: int
    high: int


def span(share: Any) -> Span:
    """The span of numbers of features from the share of the draws that have each."""
    total = np.concatenate([[0.0], np.cumsum(share)])
    spans = [
        (high - low, low, high)
        for low in range(len(share))
        for high in range(low, len(share))
        if total[high + 1] - total[low] >= COVERED
    ]
    _, low, high = min(spans)
    return Span(int(np.argmax(share)), low, high)


def answer(result: Any) -> str:
    """The most frequent number of features, and how many others there may be."""
    shares = posterior.number(result)
    share, count, at = shares.values, shares["features"].values, span(shares.values)
    best = count[at.best]
    words = f"{best} feature{'' if best == 1 else 's'} in {100 * share[at.best]:.0f} % of the draws"
    ends = f"{count[at.low]} to {count[at.high]}"
    return words if at.low == at.high else f"{words}; {ends} in {100 * COVERED:.0f} %"


def features(prevalences: Any, rows: int, more: Sequence[Column] = ()) -> Iterator[str]:
    """A line for each feature that some share of the draws have, those most have first, with more columns.

    prevalences: features over the draws as `posterior.prevalences` gives them.
    """
    share = prevalences["share"].values
    shown = np.flatnonzero(share >= RARE)
    if shown.size:
        span = " to ".join(f"{100 * end:.0f} %" for end in prevalences.attrs["interval"])
        heads = "".join(column.cell(column.head) for column in more)
        yield f"{'feature':>9} {'in draws':>9} {'prevalence':>11} {span:>17} {'rows':>12}{heads}".rstrip()
    for k in shown[:LISTED]:
        one = {
            name: float(prevalences[name][k]) for name in ("prevalence", "prevalence_low", "prevalence_high")
        }
        between = f"{one['prevalence_low']:.4f} to {one['prevalence_high']:.4f}"
        held = one["prevalence"]
        cells = "".join(column.cell(column.of(int(k))) for column in more)
        line = f"{k:>9} {100 * share[k]:>7.0f} % {held:>11.4f} {between:>17} {held * rows:>12,.1f}{cells}"
        yield line.rstrip()
    if shown.size > LISTED:
        yield f"{'...':>9} {shown.size - LISTED} more"
    if shown.size < share.size:
        yield f"{'rare':>9} {share.size - shown.size} more that few draws have"


def began(result: Any) -> str:
    """K; of a sampler without a limit it is where the chains began."""
    size = f"K = {result.attrs['truncation']}"
    if not may_grow(result):
        return size
    empty = "start: empty" in str(result.attrs.get("spec", ""))
    return "begun without a feature" if empty else f"begun with {size}"


def remarks(result: Any) -> Iterator[str]:
    """Whether the draws can be used."""
    sizes = result["posterior"].sizes
    table = result["diagnostics"].to_dataset()
    yield from diagnostics.remarks(table, int(sizes["chain"]), int(sizes["draw"]))
    if "features" in result["posterior"] and may_grow(result):
        yield from diagnostics.stuck(result["posterior"]["features"])


def may_grow(result: Any) -> bool:
    """Whether the number of features has no limit, so that it should change from draw to draw."""
    return systems.of_result(result.attrs).prior_type.number is Number.UNLIMITED


def facts(result: Any) -> Iterator[tuple[str, str]]:
    """Mean, spread and diagnostics of each scalar."""
    sizes, table = result["posterior"].sizes, result["diagnostics"].to_dataset()
    yield "chains", f"{sizes['chain']} of {sizes['draw']} draws each"
    for at, name in enumerate(table["variable"].values):
        one = {key: float(held.values[at]) for key, held in table.data_vars.items()}
        yield str(name).replace("_", " "), _scalar(one, int(sizes["draw"]))


def _scalar(one: Mapping[str, float], draws: int) -> str:
    """In how many draws of each chain the variable is known."""
    have = one.get("draws", draws)
    if np.isnan(one["mean"]):
        return "no draw has one"
    text = f"{one['mean']:.6g} +- {one['sd']:.3g}"
    if not np.isnan(one["rhat"]):
        text += f"  R-hat {diagnostics.said(one['rhat'])}, {one['ess_bulk']:.0f} effective draws"
    return text if have == draws else f"{text}; a chain has one in {have:.0f} of {draws} draws"
