"""A diagnosis in sentences: things to check about a feature, and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

NAMED = 6
"""Features, and pairs of them, that are named one by one."""
MOSTLY = 0.7
"""Share of the most frequent value above which a column has mostly one value."""
COMPARABLE = 0.001
"""Nats a cell within which short fits from different starts are equally good."""
ROUND_OFF = 1e-9
"""Objectives that differ by a smaller share are the same."""
LARGER = "try a larger K (-K {1})"
COMPARE = "compare several K with ibpdist choose (-K {0},{1})"
"""What to do where all K features are used: where objectives of different K do not compare, the second."""


def remarks(diagnosis: Any, truncation: int, weighted: bool) -> Iterator[str]:
    """Sentences about a diagnosis (an xarray Dataset as `ibpdist.runs.diagnosis` makes it).

    `weighted`: features have weights.
    """
    yield from _constant(np.flatnonzero(diagnosis["constant"].values))
    if "dense" in diagnosis:
        yield from _dense(np.flatnonzero(diagnosis["dense"].values))
    yield from _idle(np.flatnonzero(diagnosis["idle"].values))
    yield from _rare(np.flatnonzero(diagnosis["rare"].values))
    yield from _same_rows(diagnosis)
    yield from _same_shape(diagnosis, weighted)
    if bool(diagnosis["used_up"]):
        yield used_up(truncation)


def remarks_on_parameters(params: Any) -> Iterator[str]:
    """Sentences about the columns of the data and about the start, from the parameters of a result."""
    if "common" in params:
        yield from _mostly_one_value(params["common"])
    if "start_objective" in params:
        yield from _other_starts(params)


def _mostly_one_value(common: Any) -> Iterator[str]:
    """Columns where a density says little."""
    which = np.flatnonzero(common.values > MOSTLY)
    if not len(which):
        return
    labels = common["column"].values if "column" in common.coords else np.arange(common.size)
    many = len(which) > 1
    names = listed([labels[at] for at in which], "column")
    yield (
        f"{names} {'have' if many else 'has'} mostly one value: compare errors of predicted cells there, "
        "since scores in nats say little"
    )


def _other_starts(params: Any) -> Iterator[str]:
    """A start that is as good and finds another number of features."""
    objective, active = params["start_objective"].values, params["start_active"].values
    best = int(np.argmax(objective))
    close = (objective >= objective[best] - COMPARABLE) & (active != active[best])
    if close.any():
        others = [str(int(number)) for number in np.unique(active[close])]
        yield (
            "the number of features is what the start found: the best short fit had "
            f"{int(active[best])}, and others that are nearly as good had {and_join(others)}"
        )


def used_up(truncation: int, way: str = LARGER) -> str:
    """For a fit in which every available feature is active, and what to do."""
    what = "the one available feature is" if truncation == 1 else f"all {truncation} available features are"
    return f"{what} used, so there may be more: {way.format(truncation, 2 * truncation)}"


def _constant(which: Any) -> Iterator[str]:
    if len(which):
        one = "is in every row: a constant, which explains"
        verb = one if len(which) == 1 else "are in every row: constants, which explain"
        yield f"{listed(which)} {verb} the mean of the data and none of its variance"


def _dense(which: Any) -> Iterator[str]:
    if len(which):
        verb = "is a dense factor: it is" if len(which) == 1 else "are dense factors: they are"
        yield f"{listed(which)} {verb} in more than 95 % of the rows, in different amounts"


def _idle(which: Any) -> Iterator[str]:
    if len(which):
        verb = "explains" if len(which) == 1 else "explain"
        yield f"{listed(which)} {verb} nothing: a smaller K does as well"


def _rare(which: Any) -> Iterator[str]:
    if len(which):
        verb = "is" if len(which) == 1 else "are"
        yield f"{listed(which)} {verb} barely used, in fewer than 1 % of the rows or in a single one"


def _same_rows(diagnosis: Any) -> Iterator[str]:
    for k, j, value in _pairs(diagnosis, "same_rows", "correlation"):
        yield (
            f"features {k} and {j} look like one: they are in the same rows (correlation {value:.2f}); "
            "try other starts (--restarts 4)"
        )


def _same_shape(diagnosis: Any, weighted: bool) -> Iterator[str]:
    advice = "try other starts (--restarts 4)"
    if not weighted:
        advice = "if it comes in different amounts, try a system with weights (fa-vi-infinite)"
    for k, j, value in _pairs(diagnosis, "same_shape", "cosine"):
        how = "the same shape" if value > 0 else "opposite shapes"
        yield f"features {k} and {j} look like one: they have {how} (cosine {value:.2f}); {advice}"


def _pairs(diagnosis: Any, which: str, how: str) -> Iterator[tuple[int, int, float]]:
    """The pairs that are most alike, those most alike first."""
    pairs = np.argwhere(diagnosis[which].values)
    values = diagnosis[how].values[tuple(pairs.T)]
    for at in np.argsort(-np.abs(values), kind="stable")[:NAMED]:
        yield int(pairs[at][0]), int(pairs[at][1]), float(values[at])


def listed(which: Any, noun: str = "feature") -> str:
    """feature 3; features 3 and 7; features 3, 4, 7 and 2 more."""
    names = [str(k) for k in which[:NAMED]]
    if len(which) > NAMED:
        names.append(f"{len(which) - NAMED} more")
    return f"{noun}{'s' if len(names) > 1 else ''} {and_join(names)}"


def and_join(words: Sequence[str]) -> str:
    """3; 3 and 7; 3, 4 and 7."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def agree(objectives: Any) -> bool:
    """Whether objectives differ by no more than round-off."""
    return bool(np.ptp(objectives) <= ROUND_OFF * np.abs(objectives).max() < np.inf)
