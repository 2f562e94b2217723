"""The flow that scores a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

import ibpdist as ibp
from flows import artifacts
from flows.steps import Where, perform, step
from ibpdist.catalog.spec import FitSpec
from ibpdist.evaluate import heldout
from ibpdist.runs import scores


@step("evaluate")
def evaluate_step(run: str, store: str | None, where: dict[str, Any]) -> float:
    """Score a fit, unless the run has this score; nats per hidden cell or token."""
    known = kept(run, store)
    if known is not None:
        return known
    scored = heldout.evaluate(run, store, **where)
    artifacts.say(run, "score", heldout.summary(scored))
    return float(scored["score"].sel(estimate=scores.headline(scored)))


@flow(name="evaluate")
def evaluate(run: str, store: str | None = None, where: Where = Where()) -> float:  # noqa: B008  (frozen)
    """Score a finished fit on new rows, or on the cells that were held out from it.

    Args:
        run: The run directory of a finished fit.
        store: A dataset of new rows with the columns of the fit; the cells held out when not given.
        where: Workers are threads here.
    """
    return perform(evaluate_step, run, store, where.threads())


def kept(run: str, store: str | None) -> float | None:
    """The score that a run keeps of these rows; of those that were held out when there is no `store`."""
    known = scores.read(Path(run))
    if known is None:
        return None
    levels = known["score"].sel(estimate=scores.headline(known)).values
    if store is None:
        own = scores.own(known, FitSpec.read(Path(run) / "spec.yaml").data)
        return None if own is None else float(levels[own])
    scores_of_rows = levels[known["fingerprint"].values == ibp.open_dataset(store).fingerprint]
    return float(scores_of_rows[-1]) if len(scores_of_rows) else None
