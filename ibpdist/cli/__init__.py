"""The command line: parse, call the library, print.

Libraries are imported inside the commands, so that `ibpdist --help` answers at once. Every
failure is one line on standard error and an exit code of its own (`ibpdist.base.errors`); only a
bug shows a traceback.
"""

from __future__ import annotations

import click

from ibpdist import __version__
from ibpdist.cli._outcome import Cli
from ibpdist.cli.campaigns import sweep
from ibpdist.cli.choose import choose
from ibpdist.cli.data import ingest, synth
from ibpdist.cli.fits import demo, fit, resume
from ibpdist.cli.report import report
from ibpdist.cli.results import evaluate, export, reconstruct, show, transform, verify
from ibpdist.cli.tables import bound, systems

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Cli, invoke_without_command=True, context_settings=SETTINGS)
@click.pass_context
@click.version_option(__version__, prog_name="ibpdist", message="%(prog)s %(version)s")
def main(ctx: click.Context) -> None:
    """Latent feature models of unknown size, for matrices larger than memory.

    Start with `ibpdist demo`. Every command explains itself: `ibpdist fit --help`.

    \b
    Exit codes: 0 ok, 1 bug, 2 usage, 3 bad input, 4 storage, 5 cluster lost (resumable),
    6 output in use, 7 stopped at the step limit, 130 and 143 interrupted.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


COMMANDS = (
    demo, synth, ingest, choose, fit, resume, sweep, show, report, evaluate, transform, reconstruct, export,
    verify, systems, bound,
)  # fmt: skip
for _command in COMMANDS:
    main.add_command(_command)
