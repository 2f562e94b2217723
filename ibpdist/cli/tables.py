"""Commands that print tables: systems, bound."""

from __future__ import annotations

import click

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
    "--error",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Wanted probability that any row has more; 0.01 when nothing is given.",
)
@click.option("-K", "--truncation", type=COUNT, help="Print the bounds for this many features instead.")
def bound(rows: int, mass: float, error: float | None, truncation: int | None) -> None:
    """Find how many features to provide.

    An infinite prior is cut off at K features. Prints bounds on the probability that any row
    has a feature beyond K, side by side, each with the smallest K for the wanted error.
    """
    from ibpdist.model.bounds import render, table

    if error is None and truncation is None:
        error = 0.01
    click.echo(render(table(rows, mass, error, truncation)))
