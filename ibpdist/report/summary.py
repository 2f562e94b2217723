"""A result in words: the answer first, then what is odd about it, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.catalog import systems
from ibpdist.predict import units
from ibpdist.report import cells, chains, diagnosis, subsamples, tokens
from ibpdist.report.lines import Column, percent

LISTED = 20
"""Features that are listed one by one."""
CENTRED = "columns are far from zero, so the fit took the mean off each: features are of centred values"


class Kind(Protocol):
    """What a kind of data has to say of a result: of its features, of what is odd, and of scores.

    order: positions of the features that are listed; smallest: the last one of a list that is cut.
    columns, words: what a line of a feature says beside its prevalence, numbers and words of the features
    in a dataset. over_draws: features over the draws of a sampler. heldout: of one evaluation.
    """

    def order(self, result: Any, /) -> NDArray[np.intp]: ...
    def smallest(self, result: Any, k: int, /) -> str: ...
    def columns(self, result: Any, /) -> Iterator[Column]: ...
    def words(self, features: Any, /) -> Iterator[Column]: ...
    def over_draws(self, result: Any, /) -> Any: ...
    def remarks(self, result: Any, /) -> Iterator[str]: ...
    def values(self, result: Any, /) -> Iterator[tuple[str, str]]: ...
    def heldout(self, scores: Any, /) -> str: ...
    def restarts(self, result: Any, /) -> str: ...


def summary(result: Any) -> str:
    """A page of plain text about a result (an xarray DataTree as `open_result` gives it)."""
    drawn = "posterior" in result.children
    kind = kind_of(result)
    facts = list(_facts(result, kind))
    width = max(10, *(len(name) for name, _ in facts))
    found = (chains.remarks if drawn else kind.remarks)(result)
    remarks = [f"- {text}" for text in (*found, *diagnosis.remarks_on_parameters(result["params"]))]
    lines = [
        (chains.answer if drawn else _answer)(result),
        *_again(result),
        *(_over_draws if drawn else _features)(result, kind),
        *(["", *remarks] if remarks else []),
        "",
        *(f"{name:<{width}} {text}" for name, text in facts),
    ]
    return "\n".join(lines)


def kind_of(result: Any) -> Kind:
    """The kind of the data that a result is of."""
    return tokens if systems.of_result(result.attrs).counts else cells


def _answer(result: Any) -> str:
    active = int(result["params"]["active"].values.sum())
    words = f"{active} feature{'' if active == 1 else 's'}, of at most {result.attrs['truncation']}"
    if "diagnosis" not in result.children or not active:
        return words
    share = float(result["diagnosis"]["explained_together"])
    words += _always_on(result["diagnosis"], active)
    return f"{words}; {'they explain' if active > 1 else 'it explains'} {percent(share)} of the variance"


def _always_on(diagnosis: Any, active: int) -> str:
    """How many of the active features are in nearly every row, if there are some."""
    dense = int(diagnosis["dense"].values.sum()) if "dense" in diagnosis else 0
    return f": {active - dense} sparse, {dense} always on" if dense else ""


def _again(result: Any) -> Iterator[str]:
    """How many features come back in subsamples, if some were fitted and there are any."""
    if "stability" in result.children and result["stability"].sizes["feature"]:
        yield subsamples.answer(result["stability"])


def _features(result: Any, kind: Kind) -> Iterator[str]:
    """A line for each active feature, in the order of the kind."""
    params, rows = result["params"], int(result.attrs["rows"])
    prevalence, shown = params["prevalence"].values, kind.order(result)
    more = [*kind.columns(result), *_of_subsamples(result)]
    more += kind.words(params)
    if len(shown):
        heads = "".join(column.cell(column.head) for column in more)
        yield f"{'feature':>9} {'prevalence':>11} {'rows':>12}{heads}".rstrip()
    for k in shown[:LISTED]:
        cells = "".join(column.cell(column.of(int(k))) for column in more)
        yield f"{k:>9} {prevalence[k]:>11.4f} {prevalence[k] * rows:>12,.1f}{cells}".rstrip()
    if len(shown) > LISTED:
        yield f"{'...':>9} {len(shown) - LISTED} more, {kind.smallest(result, int(shown[-1]))}"


def _of_subsamples(result: Any) -> Iterator[Column]:
    if "stability" in result.children:
        yield from subsamples.columns(result["stability"])


def _over_draws(result: Any, kind: Kind) -> Iterator[str]:
    """A line for each feature of a sampler."""
    over = kind.over_draws(result)
    return chains.features(over, int(result.attrs["rows"]), list(kind.words(over)))


def _facts(result: Any, kind: Kind) -> Iterator[tuple[str, str]]:
    facts = result.attrs
    yield from chains.facts(result) if "posterior" in result.children else kind.values(result)
    if "heldout" in result.children:
        scores = result["heldout"].to_dataset()
        each = range(scores.sizes["evaluation"])
        yield from (("held out", kind.heldout(scores.isel(evaluation=at))) for at in each)
    yield "stopped", f"{facts['stopped']} (step {facts['steps']})"
    if "restarts" in result.children:
        yield "restarts", kind.restarts(result)
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
