"""Which system to fit and with how many features, by the prediction of rows that the fits do not see.

The objective does not tell: with few rows it is higher for sparse factors where dense ones predict
better, and on real data it rises with K (factors.md 6). So a share of the rows is held out of every fit,
each half of the columns of these rows is predicted from the other, and scores are compared row by row.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ibpdist.base.progress import Stage, after, planned
from ibpdist.catalog import systems as catalog
from ibpdist.data._base import Source
from ibpdist.data.splits import HeldRows, describe
from ibpdist.evaluate.choice import Choice, RowScores, best_of
from ibpdist.evaluate.heldout import evaluate
from ibpdist.evaluate.trials import (
    Trial,
    counts,
    grid_for,
    planned_fits,
    refuse_options,
    refuse_small,
    refuse_systems,
    trials_of,
    without_others,
)
from ibpdist.runs.fit import fit
from ibpdist.runs.job import opened
from ibpdist.runs.scores import headline

SYSTEMS = ("fa-vi-infinite", "fa-vi-dense")
"""Features that some rows have, and features that all rows have."""
HALVES = ("even", "odd")
"""Columns that are visible."""
MOST_FREEDOM = 400.0
"""Degrees of freedom at which rows are as noisy as each other: the upper end of what is learned."""


def choose(
    data: Any,
    *,
    K: int | Sequence[int] | Literal["auto"],
    systems: Sequence[str] = SYSTEMS,
    share: float = 0.1,
    seed: int = 0,
    progress: Any = None,
    **options: Any,
) -> Choice:
    """Fit systems with several K to the data without a `share` of the rows and score them on those.

    `K` is a maximum number of features, several of them, or "auto" for those of 5, 10, 20, 40 and 80 within
    the rows and columns. A system that learns the noise of rows is fitted without it as well where
    the fit finds that rows differ. `options` are those of `fit`. The choice is a function of the data and the
    seed. Fit it then to all rows: `fit(data, system=choice.system, K=choice.K, **choice.settings)`.
    """
    refuse_options(options)
    grid = None if isinstance(K, str) and K == "auto" else counts(K)
    refuse_systems(systems, grid)
    held = HeldRows(share=share, seed=seed)
    with _each_warning_once():
        tokens = catalog.find(systems[0]).counts
        source = opened(data, systems[0])
        fitted = refuse_small(held, source, tokens)
        trials = trials_of(systems, grid or grid_for(fitted, source.columns), options)
        return best_of(list(_scored(data, source, held, trials, options, progress)))


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Fits of the same data warn of the same."""
    told: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def first(message: Warning | str, *where: Any, **how: Any) -> None:
            if str(message) not in told:
                told.add(str(message))
                show(message, *where, **how)

        warnings.showwarning = first
        yield


def _scored(
    data: Any, source: Source, held: HeldRows, trials: list[Trial], options: dict[str, Any], progress: Any
) -> Iterator[RowScores]:
    """Each fit with the scores of its rows; a fit without row noise is left out where the one before it
    found that rows do not differ."""
    rows, at = held.test(source), 0
    given = data if isinstance(data, str | Path) else source
    while at < len(trials):
        trial, tell = trials[at], planned(progress)
        tell(planned_fits(trials, options), at)
        settings = options | dict(trial.settings)
        result = fit(
            given,
            system=trial.system,
            K=trial.K,
            seed=held.seed,
            holdout=describe(held),
            progress=progress,
            **settings,
        )
        needed = trials if _differ(result) else without_others(trials, at)
        if len(needed) < len(trials):
            trials = needed
            tell(planned_fits(trials, options), at)
        scores = _row_scores(result, rows, trial, settings, held.seed, progress)
        del result  # features of all rows, beside which the next fit would be made
        yield scores
        at += 1


def _differ(result: Any) -> bool:
    """Whether a fit found that some rows are noisier than others."""
    params = result["params"]
    return "row_freedom" in params and float(params["row_freedom"]) < MOST_FREEDOM


def _row_scores(
    result: Any, rows: Source, trial: Trial, settings: Mapping[str, Any], seed: int, progress: Any
) -> RowScores:
    """Scores of rows over both halves of the columns; of counts over one half of their tokens."""
    tokens = catalog.find(trial.system).counts
    halves, visible = [], HALVES[: 1 if tokens else 2]
    for at, half in enumerate(visible):
        tell = partial(_tell_rows, after(progress), at, len(visible))
        scored = evaluate(result, rows, visible=half, seed=seed, progress=tell)
        halves.append(scored.sel(estimate=headline(scored)))
    nats, cells = (np.sum([half[name].values for half in halves], axis=0) for name in ("row_score", "cells"))
    errors = [0.0 if tokens else float(half.error) * int(half.cells.sum()) for half in halves]
    known = catalog.settings_of(trial.system)
    return RowScores(
        system=trial.system,
        K=trial.K,
        row_noise=trial.row_noise,
        settings={name: value for name, value in settings.items() if name in known},
        nats=nats,
        cells=cells,
        error=float(np.linalg.norm(errors)) / int(cells.sum()),
        active=int(result["params"]["active"].sum()),
        unit="token" if tokens else "cell",
    )


def _tell_rows(tell: Stage, half: int, halves: int, done: int, whole: int | None) -> None:
    """Tell the rows that are scored with one half visible, of those of all halves."""
    rows = whole or 0
    tell("scoring rows", half * rows + done, halves * rows)
