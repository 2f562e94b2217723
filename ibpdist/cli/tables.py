"""Commands that print tables: systems, bound."""

from __future__ import annotations

import click

from ibpdist.cli._options import COUNT


@click.command()
def systems() -> None:
    """List the systems that can be fitted."""
    from ibpdist.catalog import SYSTEMS

    width = max(map(len, SYSTEMS))
    for name, system in SYSTEMS.items():
        click.echo(f"{name:<{width}}  {system}")


@click.command()
@click.option("--rows", type=COUNT, required=True, help="Rows of the dataset.")
@click.option(
    "--mass", type=click.FloatRange(min=0, min_open=True), required=True, help="Expected features of a row."
)
@click.option(
    "--error", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.01, show_default=True
)
def bound(rows: int, mass: float, error: float) -> None:
    """Find how many features to provide.

    An infinite prior is cut off at K features. Prints bounds on the probability that any row
    has a feature beyond K, side by side, and the smallest K for the wanted error.
    """
    from ibpdist import bounds

    click.echo(bounds.table(rows, mass, error))
