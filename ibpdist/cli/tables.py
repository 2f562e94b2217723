"""Commands that print tables: systems, bound."""

from __future__ import annotations

import click

from ibpdist.base.errors import UsageError
from ibpdist.cli._options import COUNT


@click.command()
def systems() -> None:
    """List the systems that can be fitted."""
    from ibpdist.catalog.systems import SYSTEMS

    rows = [
        ("system", "prior", "weights", "observation", ""),
        *((row.name, row.prior, row.weights, row.observation, row.summary) for row in SYSTEMS.values()),
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(5)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


@click.command()
@click.option("--rows", type=COUNT, required=True, help="Rows of the dataset.")
@click.option(
    "--mass", type=click.FloatRange(min=0, min_open=True), required=True, help="Expected features of a row."
)
@click.option(
    "--concentration",
    type=click.FloatRange(min=0, min_open=True),
    help="Concentration of a beta process; rounds are counted instead of features.",
)
@click.option("--rounds", type=COUNT, help="Print the bounds after this many rounds of a beta process.")
@click.option(
    "--error",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Wanted probability that any row has more; 0.01 when nothing is given.",
)
@click.option(
    "-K",
    "--truncation",
    type=COUNT,
    help="Print the bounds for this many features, or for a beta process how likely they are enough.",
)
def bound(
    rows: int,
    mass: float,
    concentration: float | None,
    rounds: int | None,
    error: float | None,
    truncation: int | None,
) -> None:
    """Find how many features to provide.

    An infinite prior is cut off at K features. Prints bounds on the probability that any row
    has a feature beyond K, side by side, each with the smallest K for the wanted error.

    With --concentration the prior is a beta process, cut off after a number of rounds: prints bounds on
    the probability that any row has an atom of a later round, and how many atoms these rounds have.
    """
    from ibpdist.model import bounds, round_bounds

    if concentration is not None:
        if rounds is None and error is None:
            error = 0.01
        lines = round_bounds.table(rows, mass, concentration, error, rounds)
        click.echo(round_bounds.render(lines, mass, truncation))
        return
    if rounds is not None:
        raise UsageError("--rounds: only a beta process has rounds; give --concentration too")
    if error is None and truncation is None:
        error = 0.01
    click.echo(bounds.render(bounds.table(rows, mass, error, truncation)))
