"""How long a campaign may take: from a trial of each kind of fit on some of the rows.

A plain step (from a random start, without moves) is timed for every number of features. What a fit of
a system takes beyond it, its start and its moves, is measured in plain steps on a few real ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ibpdist.base.randomness import Draws
from ibpdist.base.threads import one_thread
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Chunk, Source
from ibpdist.data.arrays import as_source
from ibpdist.data.dense_rows import by_entries
from ibpdist.data.sparse_array import SparseArray
from ibpdist.data.splits import held
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.engine.work import Workbench
from ibpdist.inference.batch import terms_of
from ibpdist.runs.job import SamplerJob, features_for, job_on, seen_by_fits
from ibpdist.runs.planning import features, share_of_rows
from ibpdist.runs.stability import refuse_small

PLAIN = {"start": "random", "moves": False}
"""A step like any other, from a start that asks nothing of the data."""
CELLS, ENTRIES, STEPS, FEW, SCORED = 1 << 19, 1 << 15, 5, 4, 128
"""Of a trial: cells, entries of counts, steps, and rows that are scored, a few and some."""
HIDDEN = 5
"""One of this number of columns is hidden."""
LESS = 3
"""Features that a trial of a score has less."""
BLOCK = 512
"""Rows that are scored at once (evaluate/heldout.py)."""
WRITING, DIAGNOSED, RATE = 0.25, 0.75, 100e6
"""Seconds that a result takes whatever its size (some 40 files that are synced), those of a sampler's
diagnostics, and bytes a second."""
WORKERS = 5.0
"""Seconds until local workers are there."""
DRAWS = 40
"""Predictors of a sampler that are averaged over (predict/averaged.py)."""


@dataclass(frozen=True)
class Trial:
    """Of a kind of fit: its start and its steps in plain steps, and how many features it found."""

    begin: float
    each: float
    active: int


def _first_cells(chunk: Chunk) -> Source:
    """The first rows of a chunk, with about `CELLS` cells."""
    some = max(1, min(chunk.rows, CELLS // max(1, chunk.columns)))
    x = np.array(chunk.x[:some])
    if chunk.observed is not None:
        x[~chunk.observed[:some]] = np.nan
    return as_source(x, judged=False)


def _first_counts(chunk: Chunk) -> Source:
    """The first rows of a chunk of counts, with about `ENTRIES` entries."""
    starts = chunk.entries.starts
    some = chunk.entries.between(0, max(1, int(np.searchsorted(starts, ENTRIES, side="right")) - 1))
    return SparseArray(csr_array((some.counts, some.columns, some.starts), (some.rows, chunk.columns)))


@dataclass
class Timing:
    """The trials so far, and the time of compiling in them."""

    source: Source
    processes: int
    reading: float = field(init=False)
    """Seconds for a chunk."""
    rows: Source = field(init=False)
    """Some rows of the first chunk."""
    compiling: float = 0.0
    plain: dict[Any, tuple[float, float]] = field(default_factory=dict)
    trials: dict[Any, Trial] = field(default_factory=dict)
    scores: dict[Any, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chunk, self.reading = clocked(lambda: self.source.read(0))
        self.rows = _first_counts(chunk) if by_entries(self.source) else _first_cells(chunk)

    @property
    def share(self) -> float:
        """Rows of a process over the rows of a trial."""
        return self.source.rows / self.rows.rows / self.processes

    def seen(self, spec: FitSpec) -> Source:
        """The rows of a trial as a fit sees them: it takes longer where cells are hidden."""
        return seen_by_fits(self.rows, spec)

    def seconds(self, spec: FitSpec, stored: int) -> float:
        """Seconds of a fit: its start, its steps, writing `stored` bytes of result, and its score."""
        row, update = self._plain(spec)
        trial = self._trial(spec)
        steps = (trial.begin + spec.steps * trial.each) * (row * self._share_of(spec) + update)
        score = self.score(spec, trial.active) if spec.holdout and spec.member is None else 0.0
        ending = WRITING + stored / RATE + (DIAGNOSED if systems.find(spec.system).sampler else 0.0)
        return steps + ending + score

    def check(self, spec: FitSpec) -> None:
        """Refuse, as its first step would, a fit that cannot begin."""
        refuse_small(job_on(spec, held(self.source, spec.holdout) if spec.holdout else self.source))
        if not systems.find(spec.system).in_turn:
            plain = _plain_of(spec, self._features(spec))
            with one_thread():
                plain.init(plain.summarise(self.seen(spec).read(0)), Draws(spec.seed).at(0))

    def _share_of(self, spec: FitSpec) -> float:
        """Chains that take rows in turn are the tasks of their steps; else chunks are."""
        if not systems.find(spec.system).in_turn:
            return self.share * share_of_rows(spec)
        return self.share * self.processes / min(self.processes, spec.chains)

    def _features(self, spec: FitSpec) -> int:
        return min(features(spec), features_for(spec, self.source))

    def _plain(self, spec: FitSpec) -> tuple[float, float]:
        """Seconds of a plain step of all chains: of the rows of a trial, and of the update."""
        kind = spec.system, self._features(spec), spec.inner, spec.holdout
        if kind not in self.plain:
            measure = self._sweep if systems.find(spec.system).in_turn else self._step
            chunk = self.seen(spec).read(0)
            with one_thread():
                self.plain[kind] = measure(_plain_of(spec, self._features(spec)), chunk, Draws(spec.seed))
        row, update = self.plain[kind]
        return spec.chains * row, spec.chains * update

    def _sweep(self, sampler: Any, chunk: Chunk, draws: Draws) -> tuple[float, float]:
        chain = sampler.start(chunk, sampler.model.observation.summarise(chunk), draws.at(0))
        self._warm(lambda: sampler.sweep(chunk, chain, draws.at(1)))
        return clocked(lambda: sampler.sweep(chunk, chain, draws.at(1)))[1], 0.0

    def _step(self, fit: Any, chunk: Chunk, draws: Draws) -> tuple[float, float]:
        params = fit.init(fit.summarise(chunk), draws.at(0))
        local = fit.start(chunk, params, draws.at(0))
        self._warm(lambda: fit.local(chunk, local, params, draws.at(1)))
        (_, sums), rows = clocked(lambda: fit.local(chunk, local, params, draws.at(1)))
        return rows, clocked(lambda: fit.update(params, sums, draws.at(1)))[1]

    def _trial(self, spec: FitSpec) -> Trial:
        """Of fits that begin and move in the same way, by the first that is asked for."""
        kind = spec.system, spec.inner, bool(spec.holdout), spec.set.get("start"), spec.set.get("moves")
        if kind not in self.trials:
            unit = sum(self._plain(spec))
            (first, *_), _ = self._made(spec, 1)
            times, active = self._made(spec, STEPS)
            self.compiling += max(0.0, first - times[0])
            each = float(np.median(np.diff(times))) / unit
            self.trials[kind] = Trial(max(0.0, times[0] / unit - each), max(1.0, each), active)
        return self.trials[kind]

    def _made(self, spec: FitSpec, steps: int) -> tuple[list[float], int]:
        """Seconds after each of `steps` steps of a fit of some rows, and its number of features then."""
        job = job_on(spec.model_copy(update={"truncation": self._features(spec)}), self.seen(spec))
        engine = Serial(Workbench(job.algorithm, job.seen, MemoryHistory(), spec.seed, cache=1 << 30))
        times: list[float] = []
        trace: Mapping[str, float] = {}
        began = time.perf_counter()
        for now in islice(sweeps(job.algorithm, engine, spec.seed), steps):
            times.append(time.perf_counter() - began)
            trace = terms_of(0, now.trace) if isinstance(job, SamplerJob) else now.trace
        return times, max(1, int(trace.get("active", features(spec))))

    def score(self, spec: FitSpec, active: int) -> float:
        """Seconds for the hidden cells of half of the rows, with `active` features."""
        if systems.find(spec.system).counts:
            return self._tokens_scored(self._features(spec)) * self.source.rows / 2 / self.processes
        found, sampler = min(active, self._features(spec)), systems.find(spec.system).sampler
        kind = systems.find(spec.system).weights, found, 0.0 if sampler else 0.1
        if kind not in self.scores:
            self.scores[kind] = self._rows_scored(*kind)
        kept = spec.chains * ((spec.steps - spec.burned) // spec.thin)
        times = min(DRAWS, max(1, kept)) if sampler else 1
        return self.scores[kind] * times * self.source.rows / 2 / self.processes

    def _rows_scored(self, weights: str, count: int, sd: float) -> float:
        """Seconds for a row, with features whose means have this standard deviation.

        Where all patterns are summed, each feature less halves them: the trial has some features less. It has
        as many rows as are scored at once, since they share what takes longest. The quicker of two counts: a
        moment in which the machine is busy would be multiplied by all rows.
        """
        from ibpdist.predict.kinds import kinds

        enumerated = kinds()[systems.weights_of(weights).density].enumerates(count)
        less, rows = (min(LESS, count - 1), BLOCK) if enumerated else (0, SCORED)
        self._warm(lambda: self._scored(weights, count - less, sd, FEW))
        spent = min(clocked(lambda: self._scored(weights, count - less, sd, rows))[1] for _ in range(2))
        return float(2**less * spent / min(rows, self.rows.rows))

    def _tokens_scored(self, count: int) -> float:
        """Seconds for the hidden tokens of a row of counts."""
        from ibpdist.evaluate.perplexity import new_documents, token_scores
        from ibpdist.predict.tokens import TokenPredictor

        y = Draws(0).uniform("estimate", 0, self.rows.columns, count).T
        of = TokenPredictor(y, np.full(count, 0.1), np.zeros(count), 0.02, 0.1 * count)
        self._warm(lambda: token_scores([of], self.rows, new_documents()))
        return clocked(lambda: token_scores([of], self.rows, new_documents()))[1] / self.rows.rows

    def _scored(self, weights: str, count: int, sd: float, most: int) -> None:
        from ibpdist.evaluate.heldout import columns_visible, score
        from ibpdist.predict.predict import predictor

        rows = as_source(self.rows.read(0).x[:most], judged=False)
        mean = Draws(0).normal("estimate", 0, count, rows.columns).T
        named = {"mean": mean, "prevalence": np.full(count, 0.3), "noise": np.ones(rows.columns)}
        named |= {"mean_sd": np.full(mean.shape, sd), "spread": np.ones(rows.columns)}
        score(
            predictor(named, weights),
            rows,
            columns_visible(np.arange(rows.columns) % HIDDEN > 0, rows.columns),
        )

    def _warm(self, work: Callable[[], Any]) -> None:
        """Call once a function that may compile, and note how much longer it took than the second time."""
        first, again = clocked(work)[1], clocked(work)[1]
        self.compiling += max(0.0, first - again)


def seconds(
    groups: Sequence[Sequence[FitSpec]], timing: Timing, stored: Callable[[FitSpec], int], local: bool
) -> float:
    """All groups one after the other; `local`: workers are started first."""
    chunks = timing.source.chunks / timing.processes
    passes = sum(max(spec.steps for spec in group) for group in groups)
    fits = sum(timing.seconds(spec, stored(spec)) for group in groups for spec in group)
    return passes * timing.reading * chunks + fits + timing.compiling + (WORKERS if local else 0.0)


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """The value of a function, and the seconds that it took."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def _plain_of(spec: FitSpec, count: int) -> Any:
    known = systems.settings_of(spec.system)
    settings = {**spec.set, **{name: value for name, value in PLAIN.items() if name in known}}
    return systems.build(spec.system, count, inner=spec.inner, settings=settings)
