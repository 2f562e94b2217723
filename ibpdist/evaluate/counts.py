"""Scores of fits of counts: which predictors, and which tokens of which rows are hidden.

Restarts of a run that is on disk are averaged, and so are draws of a sampler: the mean of several predictions
is better than any of them (counts.md 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logit

from ibpdist.base.errors import UsageError
from ibpdist.catalog import systems
from ibpdist.data._base import Source
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.data.splits import HeldRows
from ibpdist.evaluate.fitted import Run, result_of, rows_for, spec_of
from ibpdist.evaluate.own_rows import own_rows
from ibpdist.evaluate.perplexity import TokenProtocol, held_from_fit, new_documents
from ibpdist.evaluate.tables import Rows
from ibpdist.inference._base import Named
from ibpdist.inference.counts.modes import TokenModes
from ibpdist.predict.averaged import silent
from ibpdist.predict.factor_rows import FactorPredictor
from ibpdist.predict.tokens import PredictsTokens, TokenPredictor, token_predictor
from ibpdist.runs.layout import state_of

DRAWS = 15
"""Most draws of a sampler that are averaged."""


def alike(results: Sequence[xr.DataTree]) -> xr.DataTree:
    """The first of some fits whose predictions are averaged: of the same rows of counts."""
    if not results:
        raise UsageError("no run is given")
    first = results[0]
    for other in results[1:]:
        if not all(systems.of_result(one.attrs).counts for one in (first, other)):
            raise UsageError("predictions of several runs are averaged for counts only: give one run")
        if other.attrs["fingerprint"] != first.attrs["fingerprint"]:
            raise UsageError(
                "the runs did not see the same rows: their fingerprints differ; score them apart"
            )
    return first


def token_predictors(run: Run) -> list[PredictsTokens]:
    """The predictor of a fit of counts, or those of its restarts, or of the draws of a sampler."""
    result = result_of(run)
    if "draws" in result.children:
        return list(_of_draws(result["draws"].to_dataset()))
    return [_of_fit(one) for one in _starts(run, result)]


def _starts(run: Run, result: xr.DataTree) -> list[xr.DataTree]:
    """Results of all starts of a run that keeps them, the result itself otherwise."""
    folder = Path(run) if not isinstance(run, xr.DataTree) else Path()
    count = result["restarts"].sizes["restart"] if "restarts" in result.children else 1
    if isinstance(run, xr.DataTree) or count == 1 or not (folder / "restarts").is_dir():
        return [result]
    from ibpdist.runs.restarts import folder as place

    return [result_of(place(folder, at)) for at in range(count)]


def _of_fit(result: xr.DataTree) -> PredictsTokens:
    spec, named = spec_of(result), _arrays(result["params"].to_dataset())
    if "eta" in named:  # of a draw
        return token_predictor(named, float(named["eta"]))
    built: Any = systems.build(spec.system, int(result.attrs["truncation"]), settings=spec.set)
    observation = built.model.observation
    if not isinstance(built, TokenModes):
        return token_predictor(named, observation.smoothing)
    params, prior = state_of(result), built.model.prior
    odds = prior.log_odds(params.prior)
    return FactorPredictor(built.counts, params.words, odds, prior.dense, observation.floor)


def _of_draws(draws: xr.Dataset) -> Iterator[TokenPredictor]:
    """Of draws at even distances; the words of a draw are means given its tokens and its eta."""
    chains, kept = draws.sizes["chain"], draws.sizes["draw"]
    for at in np.unique(np.linspace(0, chains * kept - 1, min(DRAWS, chains * kept)).astype(int)):
        names = ("mean", "tokens", "weight_shape", "prevalence", "chance", "eta")
        named = _arrays(draws[list(names)].isel(chain=at // kept, draw=at % kept))
        yield token_predictor(named | {"log_odds": logit(named["chance"])}, float(named["eta"]))


def _arrays(group: xr.Dataset) -> dict[str, Any]:
    return {str(name): np.asarray(held.values) for name, held in group.variables.items()}


def hidden_tokens(result: xr.DataTree, data: object, fitted: bool, seed: int) -> tuple[Source, TokenProtocol]:
    """Rows and which of their tokens are scored: half of those of new rows and of rows that were held out,
    or the tokens that the fit did not see."""
    if data is not None and not fitted:
        return rows_for(result, data), new_documents(seed)
    source, split, _ = own_rows(result, data)
    if isinstance(split, HeldTokens):
        return source, held_from_fit(split)
    if isinstance(split, HeldRows):
        protocol = new_documents(seed)
        words = f"rows held out from the fit ({split.text}), {protocol.words}"
        return split.test(source), TokenProtocol(protocol.split, words)
    raise UsageError(f"{split.text}: cells of counts are not scored; hold out rows or tokens")


@dataclass(frozen=True)
class FoldedRows:
    """Rows of counts whose tokens look for their features among those of a fit."""

    source: Source
    of: PredictsTokens

    @property
    def words(self) -> str:
        return f"the row step of the fit, {self.of.how}"

    def rows(self, index: int, tick: Callable[[float], None] = silent) -> Rows:
        """z, and w so that z w are the tokens that a row is expected to have of a feature."""
        chunk = self.source.read(index)
        placed = self.of.place(chunk.entries)
        weights = self.of.weights(placed)
        w = np.divide(weights, placed.f, out=np.zeros_like(weights), where=placed.f > 0)
        found: Named = {
            name: (("row", "feature"), values.astype(chunk.dtype))
            for name, values in (("z", placed.f), ("w", w))
        }
        tick(1.0)
        return Rows(chunk.start, found, self.source.row_coords(index))


def folded_rows(result: xr.DataTree, source: Source) -> FoldedRows:
    """Of a sampler, the features of the draw in its `params`."""
    return FoldedRows(source, _of_fit(result))
