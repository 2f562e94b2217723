"""A result in words: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

LISTED = 20
"""Features that are listed one by one."""


def summary(result: Any) -> str:
    """A page of plain text about a result (an xarray DataTree as `open_result` gives it)."""
    params, facts = result["params"], result.attrs
    active = np.asarray(params["active"].values)
    lines = [
        f"{int(active.sum())} of {active.size} features are active",
        *_doubt(active),
        *_features(np.asarray(params["prevalence"].values), active, int(facts["rows"])),
        "",
        *(f"{name:<10} {text}" for name, text in _facts(result)),
    ]
    return "\n".join(lines)


def _doubt(active: Any) -> Iterator[str]:
    """A word where the number of features is not an answer."""
    if active.size and active.all():
        yield "every feature provided is in use: there may be more, so provide more (-K) and try --restarts"


def _features(prevalence: Any, active: Any, rows: int) -> Iterator[str]:
    """A line for each active feature, most frequent first."""
    if active.any():
        yield f"{'feature':>9} {'prevalence':>11} {'rows':>12}"
    shown = np.flatnonzero(active)
    for k in shown[:LISTED]:
        yield f"{k:>9} {prevalence[k]:>11.4f} {prevalence[k] * rows:>12,.1f}"
    if len(shown) > LISTED:
        yield f"{'...':>9} {len(shown) - LISTED} more, the least frequent {prevalence[shown[-1]]:.4g}"


def _facts(result: Any) -> Iterator[tuple[str, str]]:
    params, facts = result["params"], result.attrs
    for name, words in (("noise", "variance"), ("scale", "variance of the dictionary"), ("mass", "")):
        if name in params:
            yield name, _spread(np.asarray(params[name].values)) + (f"  ({words})" if words else "")
    yield "objective", f"{facts['objective']:,.4f}"
    if "heldout" in result.children:
        yield from (("held out", text) for text in _heldout(result["heldout"].to_dataset()))
    yield "stopped", f"{facts['stopped']} (step {facts['steps']})"
    if "restarts" in result.children:
        yield "restarts", _restarts(np.asarray(result["restarts"]["objective"].values))
    yield (
        "data",
        f"{facts['rows']:,} rows x {facts['columns']:,} columns, fingerprint {facts['fingerprint'][:12]}",
    )
    yield "system", f"{facts['system']}, K = {facts['truncation']}, seed {facts['seed']}"


def _heldout(scores: Any) -> Iterator[str]:
    """A line for each evaluation: the score with the variance of the features, and of what it is."""
    for at in range(scores.sizes["evaluation"]):
        one = scores.isel(evaluation=at)
        full = one.sel(estimate="variance")
        error = f" +- {float(full.error):.4f}" if float(full.error) else ""
        of = f"{int(one.cells):,} cells of {one.data.item()}, {one.protocol.item()}"
        yield f"{float(full.score):.4f}{error} nats per hidden cell; {of}"


def _spread(values: Any) -> str:
    if values.size == 1:
        return f"{values.item():.6g}"
    return f"{np.median(values):.6g} median, {values.min():.6g} to {values.max():.6g}, {values.size} columns"


def _restarts(objectives: Any) -> str:
    best = int(np.argmax(objectives))
    return f"{objectives.size}; the best is {best}, {np.ptp(objectives):.6g} above the worst"
