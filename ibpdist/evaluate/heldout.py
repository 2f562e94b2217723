"""The held-out score of a fit: nats per hidden cell, given the visible cells of the same row.

Two protocols. New rows: some columns are visible, the others hidden. The rows of the fit: the
cells that the fit did not see are hidden, all others visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.progress import Count
from ibpdist.base.words import counted
from ibpdist.catalog import systems
from ibpdist.data._base import Chunk, Source
from ibpdist.data.splits import HeldRows
from ibpdist.data.store import Dataset, open_dataset
from ibpdist.engine.place import Place
from ibpdist.evaluate import perplexity
from ibpdist.evaluate.counts import alike, hidden_tokens, token_predictors
from ibpdist.evaluate.fitted import Run, name_of, predictors_of, result_of, rows_for, spec_of
from ibpdist.evaluate.own_rows import own_rows
from ibpdist.evaluate.perplexity import token_scores
from ibpdist.evaluate.synthetic import stored
from ibpdist.predict.averaged import Averaged, Scores, Tick, silent
from ibpdist.predict.chunks import Shares, over_chunks
from ibpdist.predict.estimates import adjoining
from ibpdist.predict.exact import enumerable, estimate_of, expected_idle, without_idle
from ibpdist.predict.kinds import Estimate, kind_of
from ibpdist.predict.precision_nodes import VALUES
from ibpdist.predict.predict import Mask, Predictor, predictor
from ibpdist.predict.row_precision import Inferred
from ibpdist.predict.rownoise import EVEN, UNEVEN, RowNoise
from ibpdist.predict.sampled import Sampled, Sampling, together
from ibpdist.runs import scores

ESTIMATES = ("plug_in", "variance")
"""Taking the mean of the dictionary for the dictionary, and with its variance under q."""

ROWS = 512
"""Rows that are scored at once, and told of."""


@dataclass(frozen=True)
class Protocol:
    """Which cells of a chunk are visible and which hidden, and that in words."""

    cells: Callable[[Chunk], tuple[Mask, Mask]]
    words: str


@dataclass(frozen=True)
class Scorer:
    """A predictor, how its patterns of features are summed, and how much noisier rows can be."""

    of: Predictor
    estimate: Estimate
    words: str
    plan: Sampling
    row_noise: RowNoise

    def __call__(
        self, x: NDArray[Any], visible: Mask, hidden: Mask, start: int, tick: Tick = silent
    ) -> tuple[Sampled, Sampled]:
        """Scores of rows, plug-in and with variance; rows that hide nothing score zero."""
        some = np.flatnonzero(hidden.any(1))
        first, last = (int(some[0]), int(some[-1]) + 1) if some.size else (0, 0)
        parts = []
        for a in range(first, max(last, first + 1), ROWS):
            b = min(a + ROWS, last)
            parts.append(self._some(x[a:b], visible[a:b], hidden[a:b], start + a))
            tick((b - first) / (last - first) if some.size else 1.0)
        plug, full = (adjoining([part[i] for part in parts], first, len(x) - last) for i in (0, 1))
        return plug, full

    def _some(self, x: NDArray[Any], visible: Mask, hidden: Mask, start: int) -> tuple[Sampled, Sampled]:
        rows = x.astype(float)
        if self.of.intercept is not None:
            rows -= self.of.intercept.mean
        parts = [
            self.estimate(replace(self.of, extra=level), rows, visible, hidden, self.plan, start)
            for level in self.row_noise.levels
        ]
        plug, full = (self.row_noise.mixed([part[i] for part in parts]) for i in (0, 1))
        return plug, full


def evaluate(
    run: Run | Sequence[Run],
    data: object = None,
    *,
    visible: ArrayLike = "even",
    chains: int = 8,
    draws: int = 25,
    uneven: bool | None = None,
    seed: int = 0,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    progress: Count | None = None,
) -> xr.Dataset:
    """Score a fit on new rows, or without `data` on what was held out from it.

    Of a fit of counts half of the tokens of each new row are scored given the others; the result has, by
    `estimate` (prediction, with dispersion, unigram), nats per token, perplexity, and their errors over rows.
    All restarts of a run on disk are averaged, and so are several runs, whose score is not kept. The rest of
    this text is about cells of real-valued data.

    `visible` is "even", "odd", one flag a column, or "fitted" when `data` are those of the fit:
    then the cells that it saw. Data that were ingested raw, and arrays, are centred and scaled as those of
    the fit were, and scores are in its units. The result has, by `estimate`, the score in nats per hidden
    cell, its Monte Carlo error (zero when patterns are enumerated, unless draws of a sampler are averaged),
    the number of rows in which chains disagree (annealed.py), and the same for each row. The error is that of
    the score of these rows, not of how much it would vary with other rows.
    The noise of rows is inferred from their visible cells where the fit has a law of it (row_precision.py).
    With `uneven` rows may be noisier than others (rownoise.py); unless told otherwise they may where
    features have weights and the noise of rows is not inferred. `workers` are threads. `summary` puts a
    score in words. A `run` on disk keeps the score, without that of each row: `show` prints it, and its
    result has it under `heldout`.
    """
    place = Place(workers, serial, scheduler)
    runs: list[Run] = [run] if isinstance(run, str | Path | xr.DataTree) else list(run)
    result = alike([result_of(one) for one in runs])
    named = visible if isinstance(visible, str) else ""
    if systems.of_result(result.attrs).counts:
        if named not in ("even", "fitted"):
            raise UsageError("visible hides columns, and of counts half of the tokens of each row are hidden")
        source, hidden = hidden_tokens(result, data, named == "fitted", seed)
        of_tokens = [predictor for one in runs for predictor in token_predictors(one)]
        scored = token_scores(of_tokens, source, hidden, place.threads(source), progress)
    else:
        of = predictors_of(result)
        if data is None and named not in ("even", "fitted"):
            raise UsageError("visible is for new rows: of the fit's own the cells that it saw are visible")
        if data is None or named == "fitted":
            source, protocol = _own_rows(result, data)
        else:
            source, protocol = rows_for(result, data), columns_visible(visible, len(of[0].noise))
        plan, threads = Sampling(chains, draws, seed), place.threads(source)
        scored = score(of, source, protocol, plan, uneven=uneven, threads=threads, progress=progress)
    if len(runs) == 1 and not isinstance(runs[0], xr.DataTree):
        scores.keep(runs[0], scored, _name(result, data), source.fingerprint)
    return scored


def evaluate_truth(data: Dataset | str, *, visible: ArrayLike = "even", seed: int = 0) -> xr.Dataset:
    """The score of the planted truth on the rows of a synthetic store: what no fit can beat by much."""
    store = data if isinstance(data, Dataset) else open_dataset(data)
    named = {"mean": "dictionary", "prevalence": "prevalence", "noise": "noise"}
    planted = {name: stored(store, kept) for name, kept in named.items()}
    truth = predictor(planted, str(store.attributes["weights"]))
    return score(truth, store, columns_visible(visible, store.columns), Sampling(seed=seed), uneven=False)


def score(
    of: Predictor | Sequence[Predictor],
    source: Source,
    protocol: Protocol,
    plan: Sampling | None = None,
    *,
    uneven: bool | None = None,
    threads: int = 1,
    progress: Count | None = None,
) -> xr.Dataset:
    """Score a predictor on the rows of a source; of several the mean of their densities counts."""
    each = [of] if isinstance(of, Predictor) else of
    scorers: list[Scores] = [scorer_of(one, plan or Sampling(), uneven) for one in each]
    scorer: Scores = scorers[0] if len(scorers) == 1 else Averaged(scorers)
    cells, parts, told = [], [], Shares(source, progress)

    def one(index: int) -> tuple[NDArray[np.int_], tuple[Sampled, Sampled]]:
        chunk = source.read(index)
        visible, hidden = protocol.cells(chunk)
        return hidden.sum(1), scorer(chunk.x, visible, hidden, chunk.start, partial(told.tell, index))

    for hidden, part in over_chunks(one, source.chunks, threads):
        cells.append(hidden)
        parts.append(part)
    counts = np.concatenate(cells)
    if not counts.sum():
        raise UsageError("no cell is hidden, so there is nothing to score; hide some columns")
    return _dataset(_stacked(parts), counts, {"method": scorer.words, "protocol": protocol.words})


def columns_visible(visible: ArrayLike, columns: int) -> Protocol:
    """The protocol for new rows: visible columns are "even", "odd", or one flag a column."""
    if isinstance(visible, str):
        if visible not in ("even", "odd"):
            raise UsageError(f"visible is {visible!r}; expected even, odd or one flag for each column")
        shown = np.arange(columns) % 2 == (visible == "odd")
        words = f"{visible} columns visible, the others hidden"
    else:
        shown = np.asarray(visible, dtype=bool)
        words = f"{int(shown.sum())} of {columns} columns visible, the others hidden"
    if shown.shape != (columns,):
        raise UsageError(f"visible has {shown.size} flags, expected one for each of {columns} columns")

    def cells(chunk: Chunk) -> tuple[Mask, Mask]:
        observed = _observed(chunk)
        return observed & shown, observed & ~shown

    return Protocol(cells, words)


def scorer_of(of: Predictor, plan: Sampling, uneven: bool | None = None) -> Scorer:
    """Enumerate when there are few features, without idle ones if they cannot matter; else draw.

    The noise of rows is inferred where it has a law. Rows may be noisier than others (`uneven`) where
    features have weights and the noise of rows has no law, unless told otherwise.
    """
    noisy = of.weights.has_weights and of.freedom is None if uneven is None else uneven
    row_noise = UNEVEN if noisy else EVEN
    of, words = _scored_as(of, plan)
    estimate = estimate_of(of) if of.freedom is None else Inferred(estimate_of(of))
    return Scorer(of, estimate, words + _told(of, row_noise), plan, row_noise)


def _scored_as(of: Predictor, plan: Sampling) -> tuple[Predictor, str]:
    """The predictor without idle features that cannot matter, and how its rows are scored, in words."""
    kind = kind_of(of)
    if kind.closed(of) is not None:
        return of, f"exact, every row has all of {of.features} features"
    few, expected = without_idle(of), expected_idle(of)
    idle, of = of.features - few.features, few
    dropped = f", without {idle} idle features ({expected:.1g} expected in a row)" if idle else ""
    if enumerable(of):
        return of, f"exact over {2**of.features:,} patterns of features{dropped}"
    return of, f"{kind.description(plan)}, {of.features} features{dropped}"


def _told(of: Predictor, row_noise: RowNoise) -> str:
    levels = len(row_noise.levels)
    inferred = "" if of.freedom is None else f", noise of rows inferred at up to {VALUES} levels"
    return inferred + (f", rows at {levels} levels of noise" if levels > 1 else "")


def summary(scored: xr.Dataset) -> str:
    """The score in words."""
    if "prediction" in scored.estimate:
        return perplexity.summary(scored)
    rows, cells = int((scored.cells > 0).sum()), int(scored.cells.sum())
    full, plug = (_number(scored, estimate) for estimate in ("variance", "plug_in"))
    lines = [
        f"held-out score: {full} nats per hidden cell",
        *([f"with the features taken as certain: {plug}"] if plug != full else []),
        *_disagreement(scored, rows),
        f"{counted(cells, 'hidden cell')} in {counted(rows, 'row')}: {scored.attrs['protocol']}",
        scored.attrs["method"],
    ]
    return "\n".join(lines)


def _disagreement(scored: xr.Dataset, rows: int) -> list[str]:
    """In how many rows chains disagree, and what to do, unless they agree in all."""
    apart = int(scored.disagree.sel(estimate="variance"))
    if not apart:
        return []
    where = f"the chains disagree in {apart:,} of {counted(rows, 'row')}"
    return [f"{where}, whose scores are uncertain: more chains may agree (--chains)"]


def _number(scored: xr.Dataset, estimate: str) -> str:
    one = scored.sel(estimate=estimate)
    error = f" +- {float(one.error):.4f} (Monte Carlo)" if float(one.error) else ""
    return f"{float(one.score):.4f}{error}"


def _own_rows(result: xr.DataTree, data: object) -> tuple[Source, Protocol]:
    """The data of the fit, and as hidden cells those that it did not see."""
    source, split, seen = own_rows(result, data)
    if isinstance(split, HeldRows):
        rows = split.test(source)
        even = columns_visible("even", rows.columns)
        return rows, replace(even, words=f"rows held out from the fit ({split.text}), {even.words}")

    def cells(chunk: Chunk) -> tuple[Mask, Mask]:
        visible = _observed(seen.read(chunk.index))
        return visible, _observed(chunk) & ~visible

    return source, Protocol(cells, f"cells held out from the fit ({split.text})")


def _name(result: xr.DataTree, data: object) -> str:
    return spec_of(result).data if data is None else name_of(data) or "memory"


def _observed(chunk: Chunk) -> Mask:
    return np.ones(chunk.x.shape, dtype=bool) if chunk.observed is None else chunk.observed


def _stacked(parts: list[tuple[Sampled, Sampled]]) -> dict[str, NDArray[np.float64]]:
    """(estimate, row) scores and errors of all chunks, and (estimate) the error of their sum."""
    rows = {
        name: np.concatenate([[getattr(one, name) for one in part] for part in parts], axis=1)
        for name in ("score", "error", "disagree")
    }
    return rows | {"together": np.array([together(one) for one in zip(*parts, strict=True)])}


def _dataset(
    rows: dict[str, NDArray[np.float64]], cells: NDArray[np.int_], attrs: dict[str, str]
) -> xr.Dataset:
    total = cells.sum()
    by_row = ("estimate", "row")
    held = {
        "score": ("estimate", rows["score"].sum(1) / total),
        "error": ("estimate", rows["together"] / total),
        "row_score": (by_row, rows["score"]),
        "row_error": (by_row, rows["error"]),
        "disagree": ("estimate", rows["disagree"].sum(1)),
        "row_disagree": (by_row, rows["disagree"]),
        "cells": ("row", cells),
    }
    units = {"units": "nats per hidden cell"}
    made = xr.Dataset(held, {"estimate": list(ESTIMATES)}, attrs)
    made.score.attrs.update(units)
    return made
