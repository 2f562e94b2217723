"""A result in words: the answer first, then what is odd about it, then what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ibpdist.model.observations.facts import mostly_one_value
from ibpdist.model.observations.noise_and_scale import shared_ratios
from ibpdist.predict import units
from ibpdist.report import chains, diagnosis, moves, subsamples

LISTED = 20
"""Features that are listed one by one."""
ONE_SIGN = 1.0
"""Mean of weights of variance 1 from which they are said to have one sign: five in six of them have it."""
EVEN = 100.0
"""Degrees of freedom above which rows have nearly the same noise."""
CENTRED = "columns are far from zero, so the fit took the mean off each: features are of centred values"


def summary(result: Any) -> str:
    """A page of plain text about a result (an xarray DataTree as `open_result` gives it)."""
    drawn = "posterior" in result.children
    facts = list(_facts(result))
    width = max(10, *(len(name) for name, _ in facts))
    found = (chains.remarks if drawn else _remarks)(result)
    remarks = [f"- {text}" for text in (*found, *diagnosis.remarks_on_parameters(result["params"]))]
    lines = [
        (chains.answer if drawn else _answer)(result),
        *_again(result),
        *(chains.features if drawn else _features)(result),
        *(["", *remarks] if remarks else []),
        "",
        *(f"{name:<{width}} {text}" for name, text in facts),
    ]
    return "\n".join(lines)


def _answer(result: Any) -> str:
    active = int(result["params"]["active"].values.sum())
    words = f"{active} feature{'' if active == 1 else 's'}, of at most {result.attrs['truncation']}"
    if "diagnosis" not in result.children or not active:
        return words
    share = float(result["diagnosis"]["explained_together"])
    words += _always_on(result["diagnosis"], active)
    return f"{words}; {'they explain' if active > 1 else 'it explains'} {_percent(share)} of the variance"


def _always_on(diagnosis: Any, active: int) -> str:
    """How many of the active features are in nearly every row, if there are some."""
    dense = int(diagnosis["dense"].values.sum()) if "dense" in diagnosis else 0
    return f": {active - dense} sparse, {dense} always on" if dense else ""


def _again(result: Any) -> Iterator[str]:
    """How many features come back in subsamples, if some were fitted and there are any."""
    if "stability" in result.children and result["stability"].sizes["feature"]:
        yield subsamples.answer(result["stability"])


def _features(result: Any) -> Iterator[str]:
    """A line for each active feature, most frequent first."""
    params, rows = result["params"], int(result.attrs["rows"])
    prevalence, shown = params["prevalence"].values, np.flatnonzero(params["active"].values)
    more = list(_more_columns(result))
    if len(shown):
        heads = "".join(f" {head:>{max(9, len(head))}}" for head, _ in more)
        yield f"{'feature':>9} {'prevalence':>11} {'rows':>12}{heads}"
    for k in shown[:LISTED]:
        cells = "".join(f" {cell(int(k)):>{max(9, len(head))}}" for head, cell in more)
        yield f"{k:>9} {prevalence[k]:>11.4f} {prevalence[k] * rows:>12,.1f}{cells}"
    if len(shown) > LISTED:
        yield f"{'...':>9} {len(shown) - LISTED} more, the least frequent {prevalence[shown[-1]]:.4g}"


def _more_columns(result: Any) -> Iterator[tuple[str, Callable[[int], str]]]:
    """Further columns of the features, if the result has them: the head, and the cell of a feature."""
    params = result["params"]
    if "weight_mean" in params:
        means = params["weight_mean"].values
        yield "weights", lambda k: _sign(float(means[k]))
    if "diagnosis" in result.children:
        explained = result["diagnosis"]["explained"].values
        yield "explains", lambda k: _percent(explained[k])
    if "stability" in result.children:
        stability = result["stability"]
        yield "comes back", lambda k: subsamples.times(stability, k)
        yield "same rows", lambda k: subsamples.agreement(stability, k)


def _sign(mean: float) -> str:
    """What the mean of the weights says of them."""
    if abs(mean) < ONE_SIGN:
        return "signed"
    return "positive" if mean > 0 else "negative"


def _remarks(result: Any) -> Iterator[str]:
    """Things to check, and a word where their number is not an answer."""
    params, truncation = result["params"], int(result.attrs["truncation"])
    if "diagnosis" in result.children:
        weighted = "rows" in result.children and "w" in result["rows"]
        yield from diagnosis.remarks(result["diagnosis"], truncation, weighted)
    elif params["active"].values.sum() >= truncation:
        yield diagnosis.used_up(truncation)


def _facts(result: Any) -> Iterator[tuple[str, str]]:
    facts = result.attrs
    yield from chains.facts(result) if "posterior" in result.children else _values(result)
    if "heldout" in result.children:
        yield from (("held out", text) for text in _heldout(result["heldout"].to_dataset()))
    yield "stopped", f"{facts['stopped']} (step {facts['steps']})"
    if "restarts" in result.children:
        yield "restarts", _restarts(np.asarray(result["restarts"]["objective"].values))
    yield (
        "data",
        f"{facts['rows']:,} rows x {facts['columns']:,} columns, fingerprint {facts['fingerprint'][:12]}",
    )
    if units.centred_by_fit(result):
        yield "centred", CENTRED
    auto = "truncation: auto" in str(facts.get("spec", "")).splitlines()
    given = f"auto, at most {facts['truncation']}" if auto else str(facts["truncation"])
    size = chains.began(result) if "posterior" in result.children else f"K = {given}"
    yield "system", f"{facts['system']}, {size}, seed {facts['seed']}"


def _values(result: Any) -> Iterator[tuple[str, str]]:
    """Variances, mass, the objective, and what moves gained."""
    params, facts = result["params"], result.attrs
    of_mass = "expected atoms of a round" if "round_chance" in params else ""
    known = {
        "noise": "variance",
        "scale": "variance of the dictionary",
        "mass": of_mass,
        "concentration": "",
    }
    for name, words in known.items():
        if name in params:
            what = "columns" if "column" in params[name].dims else "features"
            text = _spread(np.asarray(params[name].values), what)
            if name == "noise" and _one_level(params):
                words += "; one level for all columns, since they have mostly one value"
            yield name, text + (f"  ({words})" if words else "")
    yield from _row_noise(result)
    yield "objective", f"{facts['objective']:,.4f}"
    if "trace" in result.children:
        sentences = moves.sentences(result["trace"], list(facts.get("moves", [])))
        yield from zip(("moves", ""), sentences, strict=False)


def _one_level(params: Any) -> bool:
    """Whether the noise of columns has one level, as it has where they have mostly one value."""
    if params["noise"].size < 2 or "common" not in params or not mostly_one_value(params["common"].values):
        return False
    levels = params["noise"].values / shared_ratios(params["spread"].values)
    return bool(np.allclose(levels, levels[0], rtol=1e-9))


def _row_noise(result: Any) -> Iterator[tuple[str, str]]:
    """How much rows differ in their noise, or why that was not asked."""
    if "row_freedom" in result["params"]:
        freedom = float(result["params"]["row_freedom"])
        off = "off: columns have mostly one value, where it says nothing"
        how = "nearly the same in all rows" if freedom > EVEN else "uneven"
        yield "row noise", f"{how}: {freedom:.3g} degrees of freedom" if np.isfinite(freedom) else off


def _heldout(scores: Any) -> Iterator[str]:
    """A line for each evaluation: the score with the variance of the features, and of what it is."""
    for at in range(scores.sizes["evaluation"]):
        one = scores.isel(evaluation=at)
        full = one.sel(estimate="variance")
        error = f" +- {float(full.error):.4f}" if float(full.error) else ""
        of = f"{int(one.cells):,} cells of {one.data.item()}, {one.protocol.item()}"
        if int(full.disagree):
            of += f"; annealed chains disagree in {int(full.disagree):,} of {int(one.rows):,} rows"
        yield f"{float(full.score):.4f}{error} nats per hidden cell; {of}"


def _spread(values: Any, what: str) -> str:
    if values.size == 1:
        return f"{values.item():.6g}"
    if not values.size:
        return "none"
    return f"{np.median(values):.6g} median, {values.min():.6g} to {values.max():.6g}, {values.size} {what}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _restarts(objectives: Any) -> str:
    if diagnosis.agree(objectives):
        return f"{objectives.size}; all reached the same objective"
    best = int(np.argmax(objectives))
    return f"{objectives.size}; the best is {best}, {np.ptp(objectives):.6g} above the worst"
