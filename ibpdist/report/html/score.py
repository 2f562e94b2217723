"""The held-out score of the fit that is shown, wherever it is kept."""

from __future__ import annotations

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.numbers import Number

FULL = "variance"
"""The estimate that counts the uncertainty of the features."""


def heldout(facts: Facts, name: str = "score") -> Number | None:
    """`score` or its `error` in nats per hidden cell, of the newest evaluation; None without one."""
    if not facts.has(f"heldout/{name}"):
        return _of_campaign(facts) if name == "score" else None
    scores = facts.result["heldout"]
    estimates = [str(one) for one in scores["estimate"].values]
    at = estimates.index(FULL) if FULL in estimates else 0
    return facts.one(f"heldout/{name}", evaluation=scores.sizes["evaluation"] - 1, estimate=at)


def _of_campaign(facts: Facts) -> Number | None:
    """As the summary of a campaign has it."""
    if not facts.has("summary/heldout"):
        return None
    score = facts.one("summary/heldout", **facts.best_at)
    return score if score.known else None
