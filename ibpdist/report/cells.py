"""What `show` says of features of real-valued data: variances, weights, and scores of hidden cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.evaluate import posterior
from ibpdist.model.observations.facts import mostly_one_value
from ibpdist.model.observations.noise_and_scale import shared_ratios
from ibpdist.report import diagnosis, moves
from ibpdist.report.lines import Column, levels, percent, prior_words
from ibpdist.runs.scores import headline

ONE_SIGN = 1.0
"""Mean of weights of variance 1 from which they are said to have one sign: five in six of them have it."""
EVEN = 100.0
"""Degrees of freedom above which rows have nearly the same noise."""
ONE_LEVEL = "one level for all columns, since they have mostly one value"


def order(result: Any) -> NDArray[np.intp]:
    """The active features, most frequent first."""
    return np.flatnonzero(result["params"]["active"].values)


def smallest(result: Any, k: int) -> str:
    """The last feature of that order, in words."""
    return f"the least frequent {float(result['params']['prevalence'][k]):.4g}"


def columns(result: Any) -> Iterator[Column]:
    """What a line of a feature says beside its prevalence."""
    params = result["params"]
    if "weight_mean" in params:
        means = params["weight_mean"].values
        yield Column("weights", lambda k: _sign(float(means[k])))
    if "diagnosis" in result.children:
        explained = result["diagnosis"]["explained"].values
        yield Column("explains", lambda k: percent(explained[k]))


def words(features: Any) -> Iterator[Column]:
    """No features of real-valued data are told in words."""
    yield from ()


def over_draws(result: Any) -> Any:
    """Features over the draws of a sampler."""
    return posterior.prevalences(result)


def remarks(result: Any) -> Iterator[str]:
    """Things to check, and a word where the number of features is not an answer."""
    params, truncation = result["params"], int(result.attrs["truncation"])
    if "diagnosis" in result.children:
        weighted = "rows" in result.children and "w" in result["rows"]
        yield from diagnosis.remarks(result["diagnosis"], truncation, weighted)
    elif params["active"].values.sum() >= truncation:
        yield diagnosis.used_up(truncation)


def values(result: Any) -> Iterator[tuple[str, str]]:
    """Variances, mass, the objective, and what moves gained."""
    params, facts = result["params"], result.attrs
    noise = f"variance; {ONE_LEVEL}" if _one_level(params) else "variance"
    variances = {"noise": noise, "scale": "variance of the dictionary"}
    yield from levels(params, variances | prior_words(params))
    yield from _row_noise(result)
    yield "objective", f"{facts['objective']:,.4f}"
    if "trace" in result.children:
        sentences = moves.sentences(result["trace"], list(facts.get("moves", [])))
        yield from zip(("moves", ""), sentences, strict=False)


def heldout(scores: Any) -> str:
    """One evaluation: the score with the variance of the features, and of what it is."""
    full = scores.sel(estimate=headline(scores))
    error = f" +- {float(full.error):.4f}" if float(full.error) else ""
    of = f"{int(scores.cells):,} cells of {scores.data.item()}, {scores.protocol.item()}"
    if int(full.disagree):
        of += f"; annealed chains disagree in {int(full.disagree):,} of {int(scores.rows):,} rows"
    return f"{float(full.score):.4f}{error} nats per hidden cell; {of}"


def restarts(result: Any) -> str:
    """How many starts there were, and how far their objectives are apart."""
    objectives = np.asarray(result["restarts"]["objective"].values)
    if diagnosis.agree(objectives):
        return f"{objectives.size}; all reached the same objective"
    best = int(np.argmax(objectives))
    return f"{objectives.size}; the best is {best}, {np.ptp(objectives):.6g} above the worst"


def _sign(mean: float) -> str:
    """What the mean of the weights says of them."""
    if abs(mean) < ONE_SIGN:
        return "signed"
    return "positive" if mean > 0 else "negative"


def _one_level(params: Any) -> bool:
    """Whether the noise of columns has one level, as it has where they have mostly one value."""
    if (
        "noise" not in params
        or params["noise"].size < 2
        or "common" not in params
        or not mostly_one_value(params["common"].values)
    ):
        return False
    over = params["noise"].values / shared_ratios(params["spread"].values)
    return bool(np.allclose(over, over[0], rtol=1e-9))


def _row_noise(result: Any) -> Iterator[tuple[str, str]]:
    """How much rows differ in their noise, or why that was not asked."""
    if "row_freedom" in result["params"]:
        freedom = float(result["params"]["row_freedom"])
        off = "off: columns have mostly one value, where it says nothing"
        how = "nearly the same in all rows" if freedom > EVEN else "uneven"
        yield "row noise", f"{how}: {freedom:.3g} degrees of freedom" if np.isfinite(freedom) else off
