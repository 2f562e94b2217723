"""The command of campaigns: sweep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ibpdist.base.errors import OK, STEP_LIMIT
from ibpdist.base.progress import sweeping
from ibpdist.base.streams import inform
from ibpdist.base.words import command, counted
from ibpdist.cli._options import PATH, given, memory, talk, where


@click.command()
@click.argument("campaign", metavar="CAMPAIGN.yaml", type=PATH)
@click.argument("run", type=PATH)
@click.option(
    "--estimate", is_flag=True, help="Print the number of fits, and the memory, disk and time they need."
)
@where
@memory
@talk
def sweep(campaign: Path, run: Path, estimate: bool, quiet: bool, verbose: bool, **options: Any) -> int:
    """Make all fits of a grid, side by side.

    CAMPAIGN.yaml has the keys data, system, truncation, restarts, seed, steps, rtol, inner, holdout,
    start and set, with single values or lists, for samplers chains, burn and thin, and for other
    systems stability, a number of subsamples, and subsample. RUN is the directory to write. The same
    command continues an interrupted campaign, repeats failed fits, and computes only the new fits of
    a larger grid.
    """
    if estimate:
        from ibpdist.campaigns.estimate import estimate as estimate_

        click.echo(estimate_(campaign, run, **given(**options)))
        return OK
    from ibpdist.storage.lock import refuse_held

    refuse_held(run / "lock")
    from ibpdist.campaigns.run import sweep as sweep_
    from ibpdist.report.campaign import summary

    with _resumable(campaign, run), sweeping("sweep", quiet=quiet, verbose=verbose) as progress:
        result = sweep_(campaign, run, progress=progress, **given(**options))
    if not quiet:
        inform(summary(result))
        inform(f"written to {run}; more with: {command('show', run)}")
    return _code(result)


def _code(campaign: Any) -> int:
    """The code of the first failed fit, else whether a fit stopped at the default limit of steps."""
    from ibpdist.campaigns.spec import in_words

    if not campaign.failed:
        return STEP_LIMIT if campaign.cut_short else OK
    fit, reason, code = campaign.failed[0]
    count = f"{len(campaign.failed)} of {counted(len(campaign.manifest.fits), 'fit')} failed"
    click.echo(f"ibpdist: {count}, first {in_words(fit.labels)}: {' '.join(reason.split())}", err=True)
    return int(code)


@contextmanager
def _resumable(campaign: Path, run: Path) -> Iterator[None]:
    """When the user stops a campaign, print the command that continues it."""
    try:
        yield
    except KeyboardInterrupt:
        if (run / "manifest.json").exists():
            click.echo(f"ibpdist: continue with: {command('sweep', campaign, run)}", err=True)
        raise
