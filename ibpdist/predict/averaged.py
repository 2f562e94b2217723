"""Scores of a sampler: the density of hidden cells averaged over draws (log-mean-exp, scores.md 7).

Each draw predicts the rows by itself, with its own features, variances and prevalences. Draws are
taken at even distances along all chains.

The error says how much the score varies with the draws. They hang together along a chain, so it is the
jackknife over batches of draws that follow each other; all rows are predicted by the same draws, so the
sum over rows is what is left out a batch at a time, and not the errors of rows are summed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ibpdist.catalog import systems
from ibpdist.predict.kinds import kinds
from ibpdist.predict.predict import Mask, Matrix, Predictor, predictor
from ibpdist.predict.sampled import Sampled, Shared

LEAST, MOST = 40, 200
"""The most draws that are averaged over: fewer where they have many features."""
WORK, NUMBERS = MOST << 9, 1 << 25
"""Patterns of features that are enumerated for a row over all draws, and numbers in all dictionaries."""
BATCHES = 20
"""Parts of the draws, each left out once."""
PRECISIONS = 1 << 7
"""How much longer a row takes whose precision is inferred, in patterns."""
NAMES = ("prevalence", "mean", "chance", "noise", "intercept", "weight_mean", "row_freedom")
"""What a draw predicts with, as far as it has it."""
PLACED = ("mean", "chance", "weight_mean")
"""What is of a feature."""
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?![\w.])")
Tick = Callable[[float], None]


def silent(share: float) -> None:
    """Nobody is told."""


class Scores(Protocol):
    """Scores of rows, with the mean of the dictionary and with its variance; `tick` hears which share of
    them is done."""

    @property
    def words(self) -> str: ...

    def __call__(
        self, x: NDArray[Any], visible: Mask, hidden: Mask, start: int, tick: Tick = silent
    ) -> tuple[Sampled, Sampled]: ...


@dataclass(frozen=True)
class Averaged:
    """The mean of the densities of several."""

    each: Sequence[Scores]

    @property
    def words(self) -> str:
        kinds = _kinds([one.words for one in self.each])
        return f"mean over {len(self.each)} draws of the posterior: {' or '.join(kinds)}"

    def __call__(
        self, x: NDArray[Any], visible: Mask, hidden: Mask, start: int, tick: Tick = silent
    ) -> tuple[Sampled, Sampled]:
        parts, count = [], len(self.each)
        for at, one in enumerate(self.each):
            parts.append(one(x, visible, hidden, start, _after(tick, at, count)))
        plug, full = (averaged([part[i] for part in parts]) for i in (0, 1))
        return plug, full


def _after(tick: Tick, at: int, count: int) -> Tick:
    """Tells of the share of one of several, after those before it."""
    return lambda share: tick((at + share) / count)


def averaged(parts: Sequence[Sampled]) -> Sampled:
    """log of the mean of exp(score) by row, and its Monte Carlo error: that of each part to first order, and
    that of having these draws and no others."""
    scores = np.array([part.score for part in parts])
    shares, common = softmax(scores, axis=0), _jackknife(scores)
    own = np.sum([share**2 * part.own for share, part in zip(shares, parts, strict=True)], axis=0)
    bias = np.sum([share * part.bias for share, part in zip(shares, parts, strict=True)], axis=0)
    apart = np.sum([share * part.apart for share, part in zip(shares, parts, strict=True)], axis=0)
    shared = Shared(np.append(common.sum(axis=1), bias.sum()), float(own.sum()))
    error = np.sqrt(own + bias**2 + (common**2).sum(axis=0))
    return Sampled(_log_mean(scores), error, shared, bias, apart)


def _jackknife(scores: Matrix) -> Matrix:
    """(batch, row) deviations of the log-mean-exp without each batch of draws (draw, row), scaled so that
    their squares sum up to its variance."""
    count = min(BATCHES, len(scores))
    batches = np.array_split(np.arange(len(scores)), count)
    without = np.array([_log_mean(np.delete(scores, batch, axis=0)) for batch in batches])
    made: Matrix = np.sqrt((count - 1) / count) * (without - without.mean(axis=0))
    return made


def _log_mean(scores: Matrix) -> NDArray[np.float64]:
    made: NDArray[np.float64] = logsumexp(scores, axis=0) - np.log(len(scores))
    return made


def _kinds(words: Sequence[str]) -> Iterator[str]:
    """Each once; those that differ in a number alone as one, up to the largest."""
    alike: dict[str, list[list[int]]] = {}
    for one in words:
        found = [int(number.replace(",", "")) for number in _NUMBER.findall(one)]
        alike.setdefault(_NUMBER.sub("{}", one), []).append(found)
    for form, numbers in alike.items():
        columns = [(min(column), max(column)) for column in zip(*numbers, strict=True)]
        said = form.format(*(f"{high:,}" if low == high else f"up to {high:,}" for low, high in columns))
        yield said.replace(" over up to ", ", up to ")


def predictors(result: xr.DataTree, weights: str, most: int | None = None) -> list[Predictor]:
    """Of draws at even distances, each with the features that occur in it."""
    draws = result["draws"].to_dataset()
    chains, kept = draws.sizes["chain"], draws.sizes["draw"]
    most = _worth(draws, weights) if most is None else most
    names = [name for name in NAMES if name in draws]
    places = np.unique(np.linspace(0, chains * kept - 1, min(most, chains * kept)).astype(int))
    spread, made = np.asarray(result["params"]["spread"].values), []
    for chain in range(chains):
        own = places[places // kept == chain] % kept
        some = draws[names].isel(chain=chain, draw=own).load()
        made += [_of(some.isel(draw=at), weights, spread) for at in range(len(own))]
    return made


def _worth(draws: xr.Dataset, weights: str) -> int:
    """How many draws are averaged: as many as can be scored and held with little ado."""
    features = (draws["prevalence"].values > 0).sum(axis=-1)
    most = kinds()[systems.weights_of(weights).density].enumerated
    patterns = np.exp2(np.minimum(features, most)).mean()
    numbers = max(1.0, float(features.mean())) * draws.sizes["column"]
    if "row_freedom" in draws:  # rows are scored at several precisions each
        patterns *= PRECISIONS
    return int(np.clip(min(WORK / patterns, NUMBERS / numbers), LEAST, MOST))


def _of(draw: xr.Dataset, weights: str, spread: NDArray[Any]) -> Predictor:
    has = draw["prevalence"].values > 0
    named = {str(name): values.values for name, values in draw.data_vars.items() if name != "prevalence"}
    named |= {name: values[has] for name, values in named.items() if name in PLACED}
    return predictor({**named, "spread": spread}, weights)
