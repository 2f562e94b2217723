"""Planted sources that are on in some rows: problems, how well sources are recovered, FastICA."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.catalog import systems as catalog
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Chunk
from ibpdist.data.arrays import as_source
from ibpdist.engine import provenance
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.work import Workbench
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import ModelParams
from ibpdist.model.observations._base import RowState, Survey
from ibpdist.model.observations.capabilities import Projected, require
from ibpdist.runs.job import Job
from ibpdist.runs.loop import in_memory

Matrix = NDArray[np.float64]
AMPLITUDES = ("laplace", "student", "gaussian")
FREEDOM = 3
"""Degrees of freedom of Student amplitudes."""
CONTRASTS = ("logcosh", "exp", "cube")


@dataclass(frozen=True)
class SourceProblem:
    """`sources` that a row has with probability `share`; with probability `kept` whether it has one is as in
    the row before, else it is drawn anew. The mixing matrix has standard normal entries. `noise` is a
    standard deviation. Amplitudes have the variance 2 whatever their law."""

    seed: int
    noise: float
    rows: int = 245
    columns: int = 10
    sources: int = 5
    share: float = 0.4
    kept: float = 0.9
    amplitudes: str = "laplace"

    @cached_property
    def planted(self) -> PlantedSources:
        """The sources and the data of this problem."""
        rng = np.random.default_rng([self.seed, self.rows, self.columns, self.sources])
        shape = self.sources, self.rows
        z = np.empty(shape, np.bool_)
        fresh, anew = rng.random(shape) < self.share, rng.random(shape) >= self.kept
        z[:, 0] = fresh[:, 0]
        for n in range(1, self.rows):
            z[:, n] = np.where(anew[:, n], fresh[:, n], z[:, n - 1])
        w = amplitudes(self.amplitudes, shape, rng)
        mixing = rng.standard_normal((self.sources, self.columns))
        error = rng.standard_normal((self.rows, self.columns))
        return PlantedSources((z * w).T @ mixing + self.noise * error, z, w, mixing)


@dataclass(frozen=True)
class PlantedSources:
    """`x` (row, column), `z` and `w` (source, row), `mixing` (source, column)."""

    x: Matrix
    z: NDArray[np.bool_]
    w: Matrix
    mixing: Matrix

    @property
    def y(self) -> Matrix:
        """(source, row) what rows have of each source."""
        made: Matrix = self.z * self.w
        return made


def amplitudes(law: str, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:
    """Amplitudes of variance 2."""
    if law == "laplace":
        return rng.laplace(size=shape)
    if law == "student":
        return rng.standard_t(FREEDOM, size=shape) * np.sqrt(2 * (FREEDOM - 2) / FREEDOM)
    return rng.normal(size=shape) * np.sqrt(2)


def correlation(found: Matrix, planted: Matrix) -> float:
    """Mean |correlation| of planted sources (source, row) with found ones (component, row), assigned one to
    one; zero for a source without a component."""
    alive = found[found.std(axis=1) > 0]
    if not len(alive):
        return 0.0
    size = len(planted)
    near = np.abs(np.corrcoef(planted, alive)[:size, size:])
    return float(near[linear_sum_assignment(-near)].sum() / size)


def recovered(result: xr.DataTree) -> Matrix:
    """(feature, row) E y of a fit."""
    rows = result["rows"].to_dataset()
    made: Matrix = (rows["z"] * rows["w"]).transpose("feature", "row").values.astype(float)
    return made


def fast_ica(x: Matrix, y: Matrix) -> float:
    """The mean |correlation| of the best contrast of FastICA, which is told the number of sources; NaN where
    scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        return float("nan")
    from sklearn.decomposition import FastICA

    scores = []
    for contrast in CONTRASTS:
        method = FastICA(len(y), fun=contrast, random_state=0, max_iter=2000, whiten="unit-variance")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores.append(correlation(method.fit_transform(x).T, y))
    return max(scores)


@dataclass(frozen=True)
class FromTruth(Coordinate[Any, Any]):
    """Coordinate ascent that begins at the planted sources."""

    planted: PlantedSources = field(kw_only=True)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> ModelParams[Any]:
        params = super().init(survey, draws, known)
        observation = require(self.model.observation, Projected, "a start at the truth")
        left = self.planted.x - self.planted.y.T @ self.planted.mixing
        seen = observation.initial(params.observation, self.planted.mixing, np.square(left).mean(axis=0))
        return replace(params, observation=seen)

    def start(self, chunk: Chunk, params: ModelParams[Any], draws: Draws) -> RowState:
        rows = slice(chunk.start, chunk.start + chunk.rows)
        z, w = (np.array(of[:, rows], chunk.x.dtype, order="C") for of in (self.planted.z, self.planted.w))
        return RowState(ids=params.ids, z=z, w=w)


def truth_started(planted: PlantedSources, system: str, settings: Mapping[str, Any]) -> xr.DataTree:
    """The fit that begins at the planted sources, without moves."""
    chosen = {**settings, "start": "random", "moves": False}
    spec = FitSpec.make(data="memory", system=system, truncation=len(planted.z), seed=0, set=chosen)
    source = as_source(planted.x)
    usual = catalog.build(system, len(planted.z), inner=spec.inner, settings=spec.set)
    assert isinstance(usual, Coordinate)
    algorithm = FromTruth(usual.model, usual.features, usual.inner, planted=planted)
    engine = Serial(Workbench(algorithm, source, MemoryHistory(), spec.seed, cache=planted.x.nbytes))
    return in_memory(Job(spec, algorithm, source), engine, provenance.facts(source))
