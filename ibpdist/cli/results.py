"""Commands that read a run: show, evaluate, transform, reconstruct, export, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ibpdist.base.errors import OK, StorageError
from ibpdist.base.progress import counting
from ibpdist.base.streams import inform
from ibpdist.cli._options import PATH, SEED, chains, given, overwrite, talk, threads


@click.command()
@click.argument("run", type=PATH)
def show(run: Path) -> None:
    """Print the result of a fit or a campaign.

    For a fit: the active features with their prevalence and what they explain, things to check,
    what the moves gained, the noise, the held-out score, and why it stopped. For a campaign: its
    best fit, and the best of the restarts of each kind of fit.
    """
    from ibpdist.campaigns.directory import is_campaign

    if is_campaign(run):
        from ibpdist.campaigns.campaign import open_campaign
        from ibpdist.report import campaign

        click.echo(campaign.summary(open_campaign(run)))
        return
    from ibpdist.report.summary import summary
    from ibpdist.runs.result import open_result

    click.echo(summary(open_result(run)))


@click.command()
@click.argument("run", type=PATH)
@click.argument("store", type=PATH, required=False)
@click.option(
    "--visible",
    type=click.Choice(["even", "odd"]),
    help="Visible columns of STORE; the others are predicted.",
)
@chains
@SEED
@threads
@talk
def evaluate(run: Path, store: Path | None, quiet: bool, verbose: bool, **options: Any) -> None:
    """Score held-out cells, or tokens of counts.

    Prints the score in nats per cell and its Monte Carlo error. Without STORE the cells held out
    from the fit are scored; with STORE the rows of another dataset, some columns predicted from the
    others. Of counts one half of the tokens of each row is predicted from the other, and the error is
    that over rows; restarts are averaged, those of the best fit of a campaign too.
    """
    from ibpdist.evaluate.heldout import evaluate as evaluate_
    from ibpdist.evaluate.heldout import summary

    with counting("evaluate", quiet=quiet) as progress:
        scored = evaluate_(_to_score(run), store, progress=progress, **given(**options))
    click.echo(summary(scored))


@click.command()
@click.argument("run", type=PATH)
@click.argument("store", type=PATH)
@click.argument("out", type=PATH)
@click.option(
    "--estimate",
    type=click.Choice(["posterior", "mean-field"]),
    help="Posterior means, the default: 20 to 500 ms a row where there are too many patterns to enumerate. "
    "Or the row step of the fit: under 1 ms, and no cells.",
)
@chains
@SEED
@threads
@overwrite
@talk
def transform(run: Path, store: Path, out: Path, quiet: bool, verbose: bool, **options: Any) -> None:
    """Find the features of new rows.

    RUN is a finished fit, STORE the new rows with the columns of the fit, OUT the Zarr store
    to write. It has the posterior means of the features and weights of each row, of its precision,
    and of its cells with their standard deviation; with --estimate mean-field no cells.
    """
    from ibpdist.evaluate.transform import transform as transform_

    with counting("transform", quiet=quiet) as progress:
        transform_(_fit_of(run), store, out, progress=progress, **given(**options))
    if not quiet:
        inform(f"written to {out}")


@click.command()
@click.argument("run", type=PATH)
@click.argument("out", type=PATH)
@click.option("--data", type=PATH, help="New rows with the columns of the fit. Default: the data of the fit.")
@click.option(
    "--units",
    type=click.Choice(["source", "stored"]),
    help="Units of what was ingested, or of the dataset, if it was centred, scaled or logged.",
)
@chains
@SEED
@threads
@overwrite
@talk
def reconstruct(run: Path, out: Path, quiet: bool, verbose: bool, **options: Any) -> None:
    """Fill in missing cells.

    RUN is a finished fit, OUT the Zarr store to write. It has for each cell the observed or the filled-in
    value, its mean and standard deviation, a 95 % interval, and whether it was hidden.
    """
    from ibpdist.evaluate.reconstruct import reconstruct as reconstruct_

    with counting("reconstruct", quiet=quiet) as progress:
        reconstruct_(_fit_of(run), out=out, progress=progress, **given(**options))
    if not quiet:
        inform(f"written to {out}")


@click.command()
@click.argument("run", type=PATH)
@click.argument("directory", metavar="DIR", type=PATH)
@overwrite
@talk
def export(run: Path, directory: Path, overwrite: bool, quiet: bool, verbose: bool) -> None:
    """Write the result as CSV with labels, one file for each array."""
    from ibpdist.runs.export import export as export_

    with counting("export", quiet=quiet) as progress:
        files = export_(_fit_of(run), directory, overwrite=overwrite, progress=progress)
    if not quiet:
        for file in files:
            inform(file)


def _to_score(run: Path) -> list[Path]:
    """The path of a fit; of a campaign of counts those of all restarts of its best fit."""
    from ibpdist.campaigns.campaign import runs_to_score

    runs = runs_to_score(run)
    if len(runs) == 1:
        return [_fit_of(run)]
    click.echo(f"ibpdist: {run} is a campaign; averaging the {len(runs)} restarts of its best fit", err=True)
    return runs


def _fit_of(run: Path) -> Path:
    """The path of a fit; of a campaign that of its best fit."""
    from ibpdist.campaigns.campaign import run_of

    fit = run_of(run)
    if fit != run:
        click.echo(f"ibpdist: {run} is a campaign; using its best fit, {fit}", err=True)
    return fit


@click.command()
@click.argument("path", metavar="RUN-or-STORE", type=PATH)
def verify(path: Path) -> int:
    """Check every stored byte of a run or dataset."""
    from ibpdist.campaigns.verify import verify as verify_

    problems = verify_(path)
    for problem in problems:
        click.echo(f"ibpdist: {problem}", err=True)
    if not problems:
        click.echo(f"{path}: no problems")
    return StorageError.code if problems else OK
