"""A campaign in words: the answer first, then a line for each kind of fit, then failed fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ibpdist.base.words import PREDICTION, counted, duration
from ibpdist.campaigns.spec import in_words
from ibpdist.catalog import systems
from ibpdist.report import subsamples


def summary(campaign: Any) -> str:
    """A page of plain text about a campaign (as `open_campaign` gives it)."""
    lines = [*_answer(campaign), "", *_table(campaign), "", *_counts(campaign)]
    return "\n".join(lines)


def _answer(campaign: Any) -> Iterator[str]:
    """The best fit of each hold-out: its number of features, and how many other restarts find again."""
    bests = campaign.bests()
    if not bests:
        yield "no fit has ended"
        return
    if campaign.holdouts:
        yield "fits with different hold-outs cannot be compared: the best of each"
    for best in bests:
        scored = np.isfinite(campaign.number(best, "heldout"))
        active = counted(int(campaign.number(best, "active")), "feature")
        judged = "held-out score" if scored else systems.find(best.spec.system).objective
        yield f"{active}, by the {judged} the best: {in_words(best.labels)}"
        yield from _again(campaign, best)


def _again(campaign: Any, best: Any) -> Iterator[str]:
    """How many features of a fit come back in subsamples; without those how many of them other restarts find
    again, and how similar these are."""
    kind = {name: value for name, value in best.labels.items() if name != "restart"}
    if best.spec.stability is not None:
        stability = campaign.stability(**best.labels)
        if stability.sizes["feature"]:
            yield subsamples.answer(stability)
        return
    restarts = campaign.restarts(**kind)
    if len(restarts) > 1 and not systems.find(best.spec.system).sampler:
        stability = campaign.stability(**kind)
        features = counted(stability.sizes["feature"], "feature")
        often = f"{int(stability['stable'].sum())} of {features} found again"
        others = counted(stability.sizes["restart"], "other restart")
        yield f"{often} in at least {stability.attrs['least']:.0%} of {others}{_alike(stability)}"


def _alike(stability: Any) -> str:
    """The cosines of the features that were found again with those of the best fit."""
    similar = stability["similarity"].values[stability["present"].values]
    return f", with similarity {similar.min():.2f} to {similar.max():.2f}" if similar.size else ""


def _table(campaign: Any) -> Iterator[str]:
    """The best of the restarts of each kind of fit."""
    dims = [name for name in campaign.spec.dims() if name != "restart"]
    heads = [
        *dims,
        _objective(campaign),
        *(["held out"] if campaign.is_scored else []),
        "features",
        "steps",
        "ended",
    ]
    rows = [heads, *(_row(campaign, dims, fits) for fits in _kinds(campaign))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(heads))]
    for row in rows:
        cells = [
            text.ljust(width) if at < len(dims) else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _objective(campaign: Any) -> str:
    """The head of the objectives of all fits."""
    named = {systems.find(fit.spec.system).objective for fit in campaign.manifest.fits}
    return "prediction" if named == {PREDICTION} else "objective"


def _kinds(campaign: Any) -> list[list[Any]]:
    """Fits that differ only in their restart, together."""
    kinds: dict[tuple[str, ...], list[Any]] = {}
    for fit in campaign.manifest.fits:
        kind = tuple(str(value) for name, value in fit.labels.items() if name != "restart")
        kinds.setdefault(kind, []).append(fit)
    return list(kinds.values())


def _row(campaign: Any, dims: Sequence[str], fits: Sequence[Any]) -> list[str]:
    ended = _ended(campaign, fits)
    cells = [str(fits[0].labels[name]) for name in dims]
    scored = campaign.is_scored
    if not ended:
        return [*cells, *["-"] * (4 if scored else 3), f"0 of {len(fits)}"]
    best = max(ended, key=lambda fit: float(campaign.number(fit, "objective")))
    held = np.array([campaign.number(fit, "heldout") for fit in ended])
    score = [f"{np.nanmax(held):.4f}" if np.isfinite(held).any() else "-"] if scored else []
    return [
        *cells,
        f"{campaign.number(best, 'objective'):,.4f}",
        *score,
        _range([int(campaign.number(fit, "active")) for fit in ended]),
        _range([int(campaign.number(fit, "steps")) for fit in ended]),
        f"{len(ended)} of {len(fits)}",
    ]


def _counts(campaign: Any) -> Iterator[str]:
    fits, failed = campaign.manifest.fits, campaign.failed
    seconds = float(campaign.summary["seconds"].sum())
    counts = f"{len(_ended(campaign, fits))} of {counted(len(fits), 'fit')} ended"
    yield f"{counts}, {duration(seconds)} of steps" + (f"; {len(failed)} failed:" if failed else "")
    for fit, reason, _ in failed:
        yield f"- {in_words(fit.labels)}: {reason}"
    yield f"data {campaign.spec.data}, fingerprint {campaign.manifest.fingerprint[:12]}"


def _ended(campaign: Any, fits: Sequence[Any]) -> list[Any]:
    return [fit for fit in fits if campaign.number(fit, "status") == "finished"]


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
