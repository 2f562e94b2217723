"""What a flow leaves on the pages of the server: a sentence, a table, the link to the report.

Without a server the sentence is printed and the rest is where it always is, in the run directory.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from flows.steps import is_served
from ibpdist.base.streams import inform

LISTED = 200
"""Fits in a table; the others are in the summary of the campaign."""
SHOWN = ("heldout", "objective", "active", "steps", "seconds", "status", "seed", "fit")
Row = dict[str, Any]


def key(run: str | Path, what: str) -> str:
    """The key of an artifact: lower case letters, numbers and dashes; the same when a run is continued."""
    name = re.sub(r"[^a-z0-9]+", "-", Path(run).name.lower()).strip("-")
    return f"{name or 'run'}-{what}"


def say(run: str | Path, what: str, sentence: str) -> None:
    """Words about a run, printed or kept as an artifact: as a block of code, in which nothing is markup."""
    if is_served():
        create_markdown_artifact(textwrap.indent(sentence, "    "), key=key(run, what), description=str(run))
    else:
        inform(sentence)


def link(run: str | Path, page: Path) -> None:
    """The link to the report of a run."""
    if is_served():
        create_link_artifact(page.absolute().as_uri(), link_text=str(page), key=key(run, "report"))
    else:
        inform(f"report: {page}")


def table(run: str | Path, summary: Any) -> None:
    """The fits of a campaign, best first: held-out score where there is one, else objective. Those of
    different hold-outs cannot be compared and come one after the other."""
    if is_served():
        order = summary["holdout"].values.tolist() if "holdout" in summary.dims else [None]
        rows = sorted(rows_of(summary), key=lambda row: (order.index(row.get("holdout")), _rank(row)))
        within = " within each hold-out" if len(order) > 1 else ""
        shown = f"{min(len(rows), LISTED)} of {len(rows)} fits of {run}, best first{within}"
        create_table_artifact(rows[:LISTED], key=key(run, "summary"), description=shown)


def rows_of(summary: Any) -> Iterator[Row]:
    """One row for each fit of a summary (a Dataset over the grid), with the values of its dims by name."""
    dims = list(summary.sizes)
    labels = [summary[dim].values.tolist() for dim in dims]
    columns = {name: summary[name].transpose(*dims).values for name in SHOWN}
    for index in itertools.product(*(range(len(values)) for values in labels)):
        named = {dim: values[at] for dim, values, at in zip(dims, labels, index, strict=True)}
        yield named | {name: _plain(values[index].item()) for name, values in columns.items()}


def _plain(value: Any) -> Any:
    """A value that JSON has: no number is an empty cell, a large one a word."""
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return str(value) if isinstance(value, int) and abs(value) >= 1 << 53 else value


def _rank(row: Row) -> tuple[bool, float, bool, float]:
    """Fits with a score come first, the highest one first of all."""
    scores = [row.get(name) for name in ("heldout", "objective")]
    (missing, heldout), (absent, objective) = [(s is None, 0.0 if s is None else -float(s)) for s in scores]
    return missing, heldout, absent, objective
