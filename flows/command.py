"""The command line of the campaign flow: on the server that Prefect is set to use, else in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from flows.campaign import campaign as campaign_flow
from flows.steps import Where, launch
from ibpdist.cli._options import PATH, given, memory, where
from ibpdist.cli._outcome import Cli


@click.command("flows.campaign")
@click.argument("campaign", metavar="CAMPAIGN.yaml", type=PATH)
@click.argument("run", metavar="[RUN]", type=PATH, required=False)
@click.option("--source", type=PATH, help="A matrix to store first as the data, unless they are there.")
@click.option("--new", type=PATH, help="A dataset of new rows on which the best fit is scored.")
@where
@memory
def command(campaign: Path, run: Path | None, source: Path | None, new: Path | None, **options: Any) -> None:
    """Take a campaign to its report.

    RUN is CAMPAIGN.run beside the file when it is not given. Run it again to continue.
    """
    named = {"campaign": campaign, "run": run or campaign.with_suffix(".run"), "source": source, "new": new}
    paths = {name: str(path.absolute()) for name, path in given(**named).items()}
    launch(campaign_flow, paths | {"where": Where(**given(**options))})


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code, as every command of ibpdist does."""
    cli = Cli(commands={"flows.campaign": command})
    cli.program = "python -m"
    cli.main(["flows.campaign", *(sys.argv[1:] if arguments is None else arguments)])
