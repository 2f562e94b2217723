"""Which system to fit and with how many features, by the prediction of rows that the fits do not see.

The objective does not tell: with few rows it is higher for sparse factors where dense ones predict
better, and on real data it rises with K (factors.md 6). So a share of the rows is held out of every fit,
each half of the columns of these rows is predicted from the other, and scores are compared row by row.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ibpdist.base.errors import UsageError
from ibpdist.base.progress import Stage, after, planned
from ibpdist.base.timeleft import stopping
from ibpdist.base.timetable import PlannedFit
from ibpdist.base.words import counted
from ibpdist.catalog import systems as catalog
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.data.arrays import as_source
from ibpdist.data.splits import HeldRows, describe
from ibpdist.evaluate.choice import Choice, RowScores, best_of
from ibpdist.evaluate.heldout import evaluate
from ibpdist.runs.fit import fit

SYSTEMS = ("fa-vi-infinite", "fa-vi-dense")
"""Features that some rows have, and features that all rows have."""
HALVES = ("even", "odd")
"""Columns that are visible."""
GRID = (5, 10, 20, 40, 80)
"""Numbers of features that `auto` stands for, within the rows and columns."""
NOISES = ("learn", "none")
"""Settings of row noise that are compared, for systems that learn it unless told otherwise."""
MOST_FREEDOM = 400.0
"""Degrees of freedom at which rows are as noisy as each other: the upper end of what is learned."""
OWN = ("holdout", "run", "stability", "subsample", "overwrite")
"""Options of `fit` that are no options here: rows are held out by the share, and no fit is kept."""


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
    _refuse_options(options)
    grid = None if isinstance(K, str) and K == "auto" else counts(K)
    _refuse_systems(systems, grid)
    source = as_source(data)
    held = HeldRows(share=share, seed=seed)
    rows = _refuse_small(held, source)
    trials = _trials(systems, grid or _grid(rows, source.columns), options)
    of = data if isinstance(data, str | Path) else source
    return best_of(list(_scored(of, held, trials, options, progress)))


def counts(K: object) -> list[int]:
    """Numbers of features in rising order."""
    given = [K] if isinstance(K, str) or not isinstance(K, Sequence | np.ndarray) else list(K)
    if not given:
        raise UsageError("K: empty; expected at least one number of features")
    found = sorted(_count(one) for one in given)
    for one, other in pairwise(found):
        if one == other:
            raise UsageError(f"K: {one} is given twice; give every number of features once")
    return found


@dataclass(frozen=True)
class Trial:
    """A fit to be made: a system, K, and its row noise with the settings that say so."""

    system: str
    K: int
    row_noise: str
    settings: Mapping[str, object]

    @property
    def name(self) -> str:
        noise = "".join(f", {name}={value}" for name, value in self.settings.items())
        return f"{self.system} with K = {self.K}{noise}"


def _trials(names: Sequence[str], grid: Sequence[int], options: Mapping[str, Any]) -> list[Trial]:
    """All fits that may be made, the smallest K first: those say soon how long the others take."""
    return [
        Trial(name, count, noise, settings)
        for count in grid
        for name in names
        for noise, settings in _noises(name, options)
    ]


def _noises(system: str, options: Mapping[str, Any]) -> list[tuple[str, dict[str, object]]]:
    """Settings of row noise that a system is compared with: one, unless it learns row noise by default."""
    usual, without = NOISES
    if "row_noise" in options:
        return [(str(options["row_noise"]), {})]
    if catalog.find(system).defaults.get("row_noise") != usual:
        return [(without, {})]
    return [(usual, {}), (without, {"row_noise": without})]


def _scored(
    data: Any, held: HeldRows, trials: list[Trial], options: dict[str, Any], progress: Any
) -> Iterator[RowScores]:
    """Each fit with the scores of its rows; a fit without row noise is left out where the one before it
    found that rows do not differ."""
    rows, at = held.test(as_source(data, judged=False)), 0
    while at < len(trials):
        trial, tell = trials[at], planned(progress)
        tell(_planned(trials, options), at)
        settings = options | dict(trial.settings)
        result = fit(
            data,
            system=trial.system,
            K=trial.K,
            seed=held.seed,
            holdout=describe(held),
            progress=progress,
            **settings,
        )
        needed = trials if _differ(result) else _others(trials, at)
        if len(needed) < len(trials):
            trials = needed
            tell(_planned(trials, options), at)
        scores = _row_scores(result, rows, trial, settings, held.seed, progress)
        del result  # features of all rows, beside which the next fit would be made
        yield scores
        at += 1


def _others(trials: list[Trial], at: int) -> list[Trial]:
    """All but those to come that have another row noise and nothing else than the one at `at`."""
    alike = (trials[at].system, trials[at].K)
    return trials[: at + 1] + [one for one in trials[at + 1 :] if (one.system, one.K) != alike]


def _differ(result: Any) -> bool:
    """Whether a fit found that some rows are noisier than others."""
    params = result["params"]
    return "row_freedom" in params and float(params["row_freedom"]) < MOST_FREEDOM


def _row_scores(
    result: Any, rows: Source, trial: Trial, settings: Mapping[str, Any], seed: int, progress: Any
) -> RowScores:
    """Scores of rows over both halves of the columns."""
    halves = []
    for at, half in enumerate(HALVES):
        tell = partial(_tell_rows, after(progress), at)
        scored = evaluate(result, rows, visible=half, seed=seed, progress=tell)
        halves.append(scored.sel(estimate="variance"))
    nats, cells = (np.sum([half[name].values for half in halves], axis=0) for name in ("row_score", "cells"))
    errors = [float(half.error) * int(half.cells.sum()) for half in halves]
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
    )


def _tell_rows(tell: Stage, half: int, done: int, whole: int | None) -> None:
    """Tell the rows that are scored with one half of the columns visible, of those of both halves."""
    rows = whole or 0
    tell("scoring rows", half * rows + done, len(HALVES) * rows)


def _planned(trials: Sequence[Trial], options: Mapping[str, Any]) -> list[PlannedFit]:
    """What progress must know of the fits to tell the time left."""
    limits = {name: options.get(name) for name in ("steps", "rtol")}
    usual = {name: FitSpec.model_fields[name].default for name in limits}
    known = {name: usual[name] if value is None else value for name, value in limits.items()}
    starts = options.get("restarts") or 1
    return [
        PlannedFit(
            one.name,
            one.system,
            one.K,
            stopping(catalog.find(one.system).sampler, known["steps"], known["rtol"], one.K),
            starts,
        )
        for one in trials
    ]


def _grid(rows: int, columns: int) -> list[int]:
    """Those of the geometric grid that are not more than rows or columns."""
    most = min(rows, columns)
    return [count for count in GRID if count <= most] or [most]


def _count(value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if isinstance(value, bool | np.bool_) or number < 1:
        raise UsageError(f"K: {value!r}: expected auto or whole numbers of at least 1, such as 5, 10 and 20")
    return number


def _refuse_options(options: Mapping[str, Any]) -> None:
    for name in OWN:
        if options.get(name):
            raise UsageError(f"{name}: choose has no such option; use it when you fit what was chosen")


def _refuse_systems(names: Sequence[str], grid: list[int] | None) -> None:
    """Refuse before any fit what cannot be compared after it."""
    from ibpdist.model.priors._base import Number

    if not names:
        raise UsageError("systems: empty; expected at least one name of the catalog")
    for at, name in enumerate(names):
        system = catalog.find(name)
        if name in names[:at]:
            raise UsageError(f"systems: {name} is given twice; give every system once")
        if not system.observation_type.has_row_density:
            raise UsageError(f"{name}: rows of {system.observation} observations cannot be scored yet")
        if system.prior_type.number is Number.UNLIMITED and (grid is None or len(grid) > 1):
            raise UsageError(f"K: {name} has no limit of features, so there is no K to choose; give one K")


def _refuse_small(held: HeldRows, source: Source) -> int:
    """The number of rows to fit; refuse data without at least two rows on either side and two columns."""
    out = sum(int(held.hidden(*source.bounds(index)).sum()) for index in range(source.chunks))
    if out < 2 or source.rows - out < 2:
        raise UsageError(
            f"share: {held.share:g} of {counted(source.rows, 'row')} holds {out} out: "
            "expected at least 2 held out and 2 left to fit; choose another share or seed"
        )
    if source.columns < 2:
        raise UsageError("columns cannot be predicted from each other: expected at least 2, the data have 1")
    return source.rows - out
