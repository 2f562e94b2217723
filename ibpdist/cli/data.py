"""Commands that make datasets: synth, ingest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ibpdist.base.progress import counting
from ibpdist.base.streams import inform
from ibpdist.base.words import counted
from ibpdist.cli._options import COUNT, PATH, SEED, given, overwrite, talk

VARIANCE = click.FloatRange(min=0, min_open=True)


@click.command()
@click.argument("kind")
@click.argument("store", type=PATH)
@click.option("--rows", type=COUNT, required=True, help="Rows to make.")
@click.option("--columns", type=COUNT, help="Fixed for images.")
@click.option("--features", type=click.IntRange(min=0), help="Planted features; fixed for images.")
@click.option("--noise", type=VARIANCE, help="Variance of the noise.")
@click.option("--scale", type=VARIANCE, help="Variance of the dictionary.")
@click.option("--mass", type=VARIANCE, help="Expected features of a row.")
@click.option("--prior", help="beta-bernoulli or stick-breaking.")
@click.option("--weights", help="Weights of the features, instead of those of the kind.")
@click.option("--missing", type=click.FloatRange(0, 1, max_open=True), help="Share of missing cells.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), help="Numbers as stored.")
@SEED
@overwrite
@talk
def synth(kind: str, store: Path, quiet: bool, verbose: bool, **options: Any) -> None:
    """Make data with planted features.

    KIND is linear-gaussian, factor-analysis, positive-factors or images; STORE is the dataset to write. The
    truth is kept in the store.
    """
    from ibpdist.evaluate.synthetic import synthesise

    with counting("synth", quiet=quiet) as progress:
        synthesise(kind, store, progress=progress, **given(**options))
    if not quiet:
        inform(f"{store}: {counted(options['rows'], 'row')} of {kind}")


@click.command()
@click.argument("source", type=PATH)
@click.argument("store", type=PATH)
@click.option(
    "--rows-in",
    type=click.Choice(["rows", "columns"]),
    default="rows",
    show_default=True,
    help="Whether the rows of the fit are rows or columns of SOURCE; columns transposes the matrix.",
)
@click.option("--key", help="The array of an npz file or a Zarr group.")
@click.option(
    "--delimiter", help="Between the cells of a text table; a comma, or a tab in .tsv, when not given."
)
@click.option("--header/--no-header", default=None, help="Whether the first line names the columns.")
@click.option("--label-column", help="The column that names the rows.")
@click.option(
    "--covariate", "covariates", multiple=True, help="A column to keep beside the rows; repeatable."
)
@click.option("--vocabulary", type=PATH, help="A file with a word a line, for files of counts.")
@click.option("--center", is_flag=True, help="Subtract the mean of each column.")
@click.option("--scale", is_flag=True, help="Divide each column by its standard deviation.")
@click.option("--log1p", is_flag=True, help="Take log(1 + x), for counts.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), help="Numbers as stored.")
@overwrite
@talk
def ingest(source: Path, store: Path, quiet: bool, verbose: bool, **options: Any) -> None:
    """Check a matrix and store it in chunks, in one pass.

    SOURCE is an npy, npz, CSV or TSV file (plain or gz) or a Zarr array, or counts by their cells that
    are not zero: docword, LDA-C, Matrix Market, npz of scipy, h5ad. STORE is the dataset to write.
    Empty cells, NA and NaN are missing cells. Nothing is centred or scaled unless asked.
    """
    from ibpdist.data.ingest import ingest as ingest_

    header = {} if options["header"] is None else {"header": options["header"]}
    with counting("ingest", quiet=quiet) as progress:
        report = ingest_(source, store, progress=progress, **given(**options) | header)
    for warning in report.warnings:
        click.echo(f"ibpdist: warning: {warning}", err=True)
    if not quiet:
        missing = f", {counted(report.missing, 'cell')} missing" if report.missing else ""
        inform(f"{store}: {counted(report.rows, 'row')} x {counted(report.columns, 'column')}{missing}")
