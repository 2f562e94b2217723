"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class FeatureCount(click.ParamType):  # type: ignore[type-arg]
    """A number of features, or auto."""

    name = "integer|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else COUNT.convert(value, param, ctx)


class FeatureCounts(click.ParamType):  # type: ignore[type-arg]
    """Numbers of features, or auto; the library refuses those that cannot be."""

    name = "integers|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ibpdist.catalog.spec import scalar

        return value if value == "auto" else [scalar(part.strip()) for part in value.split(",")]


class LocalPath(click.Path):
    """A path of data or results; a URL is refused as it was typed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ibpdist.data.urls import refuse_urls

        refuse_urls(value)
        return super().convert(value, param, ctx)


COUNT = click.IntRange(min=1)
PATH = LocalPath(path_type=Path)
SEED = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random numbers."
)

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def size(text: str) -> int:
    """Bytes of a size such as 500MB, 1.5GB or 2GiB."""
    parts = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", text)
    if parts is None or parts[2].upper() not in _UNITS:
        raise click.BadParameter(f"{text!r} is not a size such as 500MB or 2GiB")
    return int(float(parts[1]) * _UNITS[parts[2].upper()])


def where(command: F) -> F:
    """Options for the place of the work: `workers`, `serial`, `scheduler`."""
    return _stack(
        command,
        click.option("--workers", type=COUNT, help="Number of local processes. Default: one for each core."),
        click.option("--serial", is_flag=True, help="Run in this process; the default under 64 MB of data."),
        click.option(
            "--scheduler", metavar="ADDRESS", help="Address of a running Dask cluster, tcp:// or tls://."
        ),
    )


def threads(command: F) -> F:
    """Options for the number of threads: `workers`, `serial`."""
    return _stack(
        command,
        click.option(
            "--workers",
            type=COUNT,
            help="Number of threads. Default: one for each core from 64 MB of data on.",
        ),
        click.option("--serial", is_flag=True, help="Run in one thread."),
    )


def chains(command: F) -> F:
    """Options for rows with too many patterns of features to enumerate: `chains`, `draws`."""
    return _stack(
        command,
        click.option(
            "--chains",
            type=COUNT,
            help="Annealed chains for each row, when there are too many patterns to enumerate.",
        ),
        click.option("--draws", type=COUNT, help="Draws of each chain."),
    )


def memory(command: F) -> F:
    """Options for the memory of a process: `memory`, `cache`."""
    return _stack(
        command,
        click.option("--memory", type=size, help="Memory limit of a process, such as 1GB."),
        click.option("--cache", type=size, help="Size of the data that a process may keep in memory."),
    )


def talk(command: F) -> F:
    """Options for the amount of output: `quiet`, `verbose`."""
    return _stack(
        command,
        click.option("-q", "--quiet", is_flag=True, help="Print only errors."),
        click.option("-v", "--verbose", is_flag=True, help="Print one line for every step."),
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


def given(**options: Any) -> dict[str, Any]:
    """The options that were given; the library has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def number_or_word(ctx: click.Context, option: click.Parameter, text: str | None) -> object:
    """The value of an option as YAML would read it."""
    from ibpdist.catalog.spec import scalar

    return None if text is None else scalar(text)


def _parse(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    from ibpdist.catalog.spec import scalar

    parsed: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, option)
        if name in parsed:
            raise click.BadParameter(f"{name} is given twice", ctx, option)
        parsed[name] = scalar(value)
    return parsed


def _stack(command: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        command = option(command)
    return command
