"""Held-out scores of the fit that is shown: that of what was held out from it, and those of other rows."""

from __future__ import annotations

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.numbers import Number
from ibpdist.runs import scores


def heldout(facts: Facts, name: str = "score") -> Number | None:
    """`score` or its `error` in nats per hidden cell, or token, of what was held out from the fit; None
    without one.

    In a campaign it is what fits are ranked by, so no later score of other rows takes its place; of a fit
    by itself that has no other the newest counts.
    """
    at = own(facts)
    if at is None:
        return _of_campaign(facts) if name == "score" else None
    return scored(facts, at, name)


def scored(facts: Facts, at: int, name: str = "score", estimate: str = "") -> Number:
    """`score` or its `error` of one evaluation by an estimate, unless given the one that counts."""
    held = facts.result["heldout"].to_dataset()
    which = held["estimate"].values.tolist().index(estimate or scores.headline(held))
    return facts.entry(f"heldout/{name}", evaluation=at, estimate=which)


def own(facts: Facts) -> int | None:
    """Which evaluation that is."""
    if not facts.has("heldout/score"):
        return None
    found, spec = facts.result["heldout"].to_dataset(), facts.spec
    at = scores.own(found, spec.data) if spec is not None and spec.holdout else None
    return found.sizes["evaluation"] - 1 if at is None and facts.summary is None else at


def others(facts: Facts) -> list[int]:
    """All other evaluations, in the order in which they were made."""
    if not facts.has("heldout/score"):
        return []
    return [at for at in range(facts.result["heldout"].sizes["evaluation"]) if at != own(facts)]


def _of_campaign(facts: Facts) -> Number | None:
    """The score in the summary of a campaign."""
    if not facts.scored or not facts.best_at:
        return None
    score = facts.entry("summary/heldout", **facts.best_at)
    return score if score.known else None
