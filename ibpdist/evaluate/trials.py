"""The fits that `choose` compares: systems, numbers of features and row noise; and which it refuses."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ibpdist.base.errors import UsageError
from ibpdist.base.timeleft import stopping
from ibpdist.base.timetable import PlannedFit
from ibpdist.base.words import counted
from ibpdist.catalog import systems as catalog
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Source
from ibpdist.data.splits import HeldRows

GRID = (5, 10, 20, 40, 80)
"""Numbers of features that `auto` stands for, within the rows and columns."""
NOISES = ("learn", "none")
"""Settings of row noise that are compared, for systems that learn it unless told otherwise."""
OWN = ("holdout", "run", "stability", "subsample", "overwrite")
"""Options of `fit` that are no options here: rows are held out by the share, and no fit is kept."""


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
        return f"{self.system}, K={self.K}{noise}"


def trials_of(names: Sequence[str], grid: Sequence[int], options: Mapping[str, Any]) -> list[Trial]:
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


def without_others(trials: list[Trial], at: int) -> list[Trial]:
    """All but those to come that have another row noise and nothing else than the one at `at`."""
    alike = (trials[at].system, trials[at].K)
    return trials[: at + 1] + [one for one in trials[at + 1 :] if (one.system, one.K) != alike]


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


def planned_fits(trials: Sequence[Trial], options: Mapping[str, Any]) -> list[PlannedFit]:
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


def grid_for(rows: int, columns: int) -> list[int]:
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


def refuse_options(options: Mapping[str, Any]) -> None:
    for name in OWN:
        if options.get(name):
            raise UsageError(f"{name}: choose has no such option; use it when you fit what was chosen")


def refuse_systems(names: Sequence[str], grid: list[int] | None) -> None:
    """Refuse before any fit what cannot be compared after it."""
    from ibpdist.model.priors._base import Number

    if not names:
        raise UsageError("systems: empty; expected at least one name of the catalog")
    for at, name in enumerate(names):
        system = catalog.find(name)
        if name in names[:at]:
            raise UsageError(f"systems: {name} is given twice; give every system once")
        if system.counts != catalog.find(names[0]).counts:
            raise UsageError(
                f"systems: {names[0]} and {name} are for other kinds of data, and scores of cells and of "
                "tokens do not compare"
            )
        if system.prior_type.number is Number.UNLIMITED and (grid is None or len(grid) > 1):
            raise UsageError(f"K: {name} has no limit of features, so there is no K to choose; give one K")


def refuse_small(held: HeldRows, source: Source, counts: bool) -> int:
    """The number of rows to fit; refuse data without at least two rows on either side and two columns."""
    out = sum(int(held.hidden(*source.bounds(index)).sum()) for index in range(source.chunks))
    if out < 2 or source.rows - out < 2:
        raise UsageError(
            f"share: {held.share:g} of {counted(source.rows, 'row')} holds {out} out: "
            "expected at least 2 held out and 2 left to fit; choose another share or seed"
        )
    if source.columns < 2 and not counts:
        raise UsageError("columns cannot be predicted from each other: expected at least 2, the data have 1")
    return source.rows - out
