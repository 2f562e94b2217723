"""The command that writes the page of a run."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ibpdist.base.streams import inform
from ibpdist.cli._options import PATH, overwrite


def _size(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Height and width from 28x20."""
    if text is None:
        return None
    parts = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
    if parts is None:
        raise click.BadParameter(f"{text!r} is not HEIGHTxWIDTH, such as 28x28", ctx, option)
    return int(parts[1]), int(parts[2])


@click.command()
@click.argument("run", type=PATH)
@click.option("--output", metavar="FILE", type=PATH, help="Where to write it; RUN/report.html otherwise.")
@click.option("--image", metavar="HxW", callback=_size, help="Draw features as images of this size.")
@overwrite
def report(run: Path, output: Path | None, image: tuple[int, int] | None, overwrite: bool) -> None:
    """Write the report of a fit or a campaign: one page of HTML.

    RUN is a finished fit or campaign. The page needs no network and no other file. A report that
    is there is replaced; any other file only with --overwrite.
    """
    from ibpdist.report.page import report as report_

    inform(report_(run, output, image=image, overwrite=overwrite))
