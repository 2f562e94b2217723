"""Commands that print tables: systems, bound."""

from __future__ import annotations

import click

from ibpdist.cli._options import COUNT


@click.command()
def systems() -> None:
    """List the systems that can be fitted."""
    from ibpdist.catalog import SYSTEMS

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
    default=0.01,
    show_default=True,
    help="Probability that the truncation shows.",
)
def bound(rows: int, mass: float, error: float) -> None:
    """Find how many features to provide.

    An infinite prior is cut off at K features. Prints bounds on the probability that any row
    has a feature beyond K, side by side, and the smallest K for the wanted error.
    """
    from ibpdist import bounds

    click.echo(bounds.table(rows, mass, error))
