"""The command that chooses between systems: choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ibpdist.base.progress import stepping
from ibpdist.base.words import command
from ibpdist.cli._forecast import of_system
from ibpdist.cli._options import COUNT, PATH, SEED, given, memory, settings, talk, where

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("store", type=PATH)
@click.option("-K", "--truncation", "K", type=COUNT, required=True, help="Maximum number of features.")
@click.option(
    "--system",
    "systems",
    multiple=True,
    help="A system to compare; may be repeated. Default: sparse and dense factors.",
)
@click.option("--share", type=SHARE, help="Share of the rows to hold out. Default: 0.1.")
@click.option("--steps", type=COUNT, help="Maximum number of steps of each fit.")
@SEED
@settings
@where
@memory
@talk
def choose(
    store: Path,
    quiet: bool,
    verbose: bool,
    settings: dict[str, Any],
    systems: tuple[str, ...],
    **options: Any,
) -> None:
    """Choose the system to fit: sparse or dense factors.

    Each system is fitted to STORE without some of its rows, and predicts half of the columns of
    these rows from the other half; the better one is printed. With --quiet only its name is printed.
    """
    from ibpdist.evaluate.choose import SYSTEMS
    from ibpdist.evaluate.choose import choose as choose_

    asked, names = given(**options), systems or SYSTEMS
    known = of_system(names[0], options["K"], options["steps"], fits=len(names))
    with stepping("choose", names=names, quiet=quiet, verbose=verbose, **known) as progress:
        choice = choose_(store, systems=names, progress=progress, **asked, **settings)
    if quiet:
        click.echo(choice.system)
        return
    click.echo(choice)
    way = command("fit", store, "RUN", "--system", choice.system, "-K", options["K"])
    click.echo(f"fit it to all rows: {way}")
