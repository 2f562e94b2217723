"""The methods of the recovery benchmark on one problem, beside the reference and the unit of time."""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import ibpdist
from ibpdist.base.threads import one_thread
from ibpdist.evaluate.recovery import compare
from tests.support.planted import Matrix, Planted, Problem, draw
from tests.support.recovery_rows import Row
from tests.support.truth_start import plain, truth_started

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Options:
    """What a study is of; `settings` are pairs of name and value for every fit."""

    problems: str
    seed: int
    methods: tuple[str, ...]
    system: str = "lg-vi-infinite"
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Found:
    """What a method found: features (feature, column), and how long it took."""

    features: Matrix
    seconds: float
    cpu: float
    objective: float = math.nan
    steps: int = 0
    stop: str = ""
    free: bool = False

    def matched(self, planted: Matrix) -> Flags:
        """(planted,) which planted features are matched."""
        if not len(self.features):
            return np.zeros(len(planted), dtype=bool)
        flags: Flags = compare(self.features, planted, free=self.free)["matched"].values
        return flags


class Study:
    """One problem with its reference and its unit of time, each made when it is first needed."""

    def __init__(self, planted: Planted, of: Problem, options: Options) -> None:
        self.planted, self.of, self.options = planted, of, options
        self.settings = dict(options.settings)

    @cached_property
    def truth(self) -> Found:
        x, z = self.planted.x, self.planted.z
        return fitted(lambda: truth_started(x, z, self.options.system, self.settings))

    @cached_property
    def random(self) -> Found:
        return self.fit(plain(self.options.system))

    @cached_property
    def moved(self) -> Found:
        begin = {name: value for name, value in plain(self.options.system).items() if name == "start"}
        return self.fit(begin)

    @cached_property
    def default(self) -> Found:
        return self.fit({})

    @cached_property
    def fa(self) -> Found:
        return timed(lambda: components(self.planted.x, "FactorAnalysis", self.of.features))

    @cached_property
    def ica(self) -> Found:
        return timed(lambda: components(self.planted.x, "FastICA", self.of.features))

    def fit(self, more: dict[str, Any]) -> Found:
        x, options = self.planted.x, self.options
        size = {"system": options.system, "K": self.of.truncation, "seed": options.seed}
        return fitted(lambda: ibpdist.fit(x, serial=True, **size, **(self.settings | more)))

    def row(self, number: int, method: str) -> Row:
        """The method beside the reference; an exception becomes a row with its error."""
        of = self.of
        named = {name: getattr(of, name) for name in ("rows", "columns", "features", "prevalence", "noise")}
        named |= {"problems": self.options.problems, "truncation": of.truncation}
        try:
            return Row(number=number, method=method, **named, **self.judged(METHODS[method](self)))
        except Exception as error:  # noqa: BLE001  # none is dropped
            at = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(at.filename).name}:{at.lineno}"
            return Row(
                number=number, method=method, **named, error=f"{type(error).__name__} in {where}: {error}"
            )

    def judged(self, found: Found) -> dict[str, Any]:
        truth, unit, planted = self.truth, self.random, self.planted
        ours, theirs = found.matched(planted.dictionary), truth.matched(planted.dictionary)
        short = truth.objective - found.objective
        return {
            "active": len(found.features),
            "active_truth": len(truth.features),
            "matched": int(ours.sum()),
            "matched_truth": int(theirs.sum()),
            "matched_both": int((ours & theirs).sum()),
            "objective": found.objective,
            "objective_truth": truth.objective,
            "gap": short / abs(truth.objective),
            "gap_nats": short / planted.cells,
            "steps": found.steps,
            "seconds": found.seconds,
            "cpu": found.cpu,
            "times": found.seconds / unit.seconds,
            "cpu_times": found.cpu / unit.cpu,
            "free": found.free,
            "stop": found.stop,
        }


METHODS: dict[str, Callable[[Study], Found]] = {
    "default": lambda study: study.default,
    "random": lambda study: study.random,
    "moved": lambda study: study.moved,
    "truth": lambda study: study.truth,
    "fa": lambda study: study.fa,
    "ica": lambda study: study.ica,
}


def fitted(make: Callable[[], xr.DataTree]) -> Found:
    """A fit, timed; its active features."""

    def found() -> tuple[Matrix, dict[str, Any]]:
        made = make()
        params = made["params"].to_dataset()
        features = params["mean"].values[params["active"].values]
        objective = float(made.attrs["objective"])
        return features, {"objective": objective, "steps": made.attrs["steps"], "stop": made.attrs["stop"]}

    return timed(found)


def timed(make: Callable[[], tuple[Matrix, dict[str, Any]]]) -> Found:
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        features, facts = make()
    return Found(features, time.perf_counter() - wall, time.process_time() - cpu, **facts)


def components(x: Matrix, name: str, features: int) -> tuple[Matrix, dict[str, Any]]:
    """Components (feature, column) of a method of scikit-learn; missing cells are at the column's mean."""
    made = getattr(import_module("sklearn.decomposition"), name)
    complete = np.where(np.isfinite(x), x, np.nanmean(x, axis=0))
    if name == "FactorAnalysis":
        model = made(features, rotation="varimax", random_state=0).fit(complete)
        return model.components_, {"steps": model.n_iter_, "free": True}
    model = made(features, whiten="unit-variance", random_state=0, max_iter=500).fit(complete)
    return model.mixing_.T, {"steps": model.n_iter_, "free": True}


def warm(options: Options) -> None:
    """Everything once on small data, so that no measured fit compiles or imports."""
    of = Problem(60, 12, 3, "0.5", 0.1, 4, (0,))
    for missing in (0.0, 0.1):
        study = Study(draw(replace(of, missing=missing)), of, options)
        for method in {*options.methods, "truth", "random"}:
            study.row(0, method)
