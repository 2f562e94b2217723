"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
COUNT = click.IntRange(min=1)


def where(command: F) -> F:
    """Where it runs: `workers`, `serial`, `scheduler`."""
    return _stack(
        command,
        click.option("--workers", type=COUNT, help="Local processes; one a core when not given."),
        click.option("--serial", is_flag=True, help="In this process; the default under 64 MB of data."),
        click.option("--scheduler", metavar="ADDRESS", help="A running Dask cluster, as tcp:// or tls://."),
    )


def talk(command: F) -> F:
    """How much is said: `quiet`, `verbose`."""
    return _stack(
        command,
        click.option("-q", "--quiet", is_flag=True, help="Say nothing unless it fails."),
        click.option("-v", "--verbose", is_flag=True, help="One line for every step."),
    )


def overwrite(command: F) -> F:
    return click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")(command)


def settings(command: F) -> F:
    """`--set name=value`, as a dict of numbers, booleans and words."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_parse,
        help="A setting of the system, such as noise=column or mass=5; may be repeated.",
    )(command)


def one_place(workers: int | None, serial: bool, scheduler: str | None) -> dict[str, Any]:
    """The place to run as the library takes it; refused when two are named."""
    named = [
        name
        for name, given in (("--workers", workers), ("--serial", serial), ("--scheduler", scheduler))
        if given
    ]
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} exclude each other; give one of them")
    return {"workers": workers, "serial": serial or None, "scheduler": scheduler}


def _parse(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    from ibpdist.spec import scalar

    made: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, option)
        if name in made:
            raise click.BadParameter(f"{name} is given twice", ctx, option)
        made[name] = scalar(value)
    return made


def _stack(command: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        command = option(command)
    return command
