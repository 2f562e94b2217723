"""The command that chooses a system and its number of features: choose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ibpdist.base.progress import stepping
from ibpdist.base.words import command
from ibpdist.cli._options import COUNT, PATH, SEED, FeatureCounts, given, memory, settings, talk, where

if TYPE_CHECKING:
    from ibpdist.evaluate.choice import Choice

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("store", type=PATH)
@click.option(
    "-K",
    "--truncation",
    "K",
    type=FeatureCounts(),
    required=True,
    help="Maximum numbers of features to compare, such as 5,10,20, or auto: 5 to 80.",
)
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
    """Choose the system to fit and its K.

    Systems (sparse and dense factors, with and without row noise) are fitted to STORE with each number of
    features K, but without some of the rows, and predict half of the columns of these rows from the other
    half. The scores are printed, with what predicts best and the smallest K that predicts about as well.
    With --quiet only the best system and its K are printed.
    """
    from ibpdist.evaluate.choose import SYSTEMS
    from ibpdist.evaluate.choose import choose as choose_

    with stepping("choose", quiet=quiet, verbose=verbose) as progress:
        choice = choose_(store, systems=systems or SYSTEMS, progress=progress, **given(**options), **settings)
    if quiet:
        click.echo(f"{choice.system} {choice.K}")
        return
    click.echo(choice)
    for line in fit_commands(store, choice):
        click.echo(line)


def fit_commands(store: Path, choice: Choice) -> list[str]:
    """The commands that fit the best K, and the smallest one if it is another."""
    counts = dict.fromkeys((choice.K, choice.K_smallest))
    purposes = ("fit it to all rows", "with fewer features")
    pairs = zip(purposes, counts, strict=False)
    return [f"{purpose}: {_fit(store, choice, count)}" for purpose, count in pairs]


def _fit(store: Path, choice: Choice, count: int) -> str:
    chosen = [word for name, value in choice.settings.items() for word in ("--set", _setting(name, value))]
    return command("fit", store, "RUN", "--system", choice.system, "-K", count, *chosen)


def _setting(name: str, value: object) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
