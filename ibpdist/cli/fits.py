"""Commands that fit: fit, resume, demo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ibpdist.base.errors import OK, STEP_LIMIT
from ibpdist.base.progress import stepping, sweeping
from ibpdist.base.streams import inform
from ibpdist.base.words import command
from ibpdist.cli._forecast import of_options, of_run
from ibpdist.cli._options import (
    COUNT,
    PATH,
    SEED,
    FeatureCount,
    given,
    memory,
    number_or_word,
    overwrite,
    settings,
    talk,
    where,
)
from ibpdist.cli.campaigns import sweep


@click.command()
@click.argument("store", type=PATH)
@click.argument("run", type=PATH)
@click.option("--system", required=True, help="A name that `ibpdist systems` lists.")
@click.option(
    "-K", "--truncation", "K", type=FeatureCount(), required=True, help="Maximum number of features, or auto."
)
@SEED
@click.option("--steps", type=COUNT, help="Maximum number of steps.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Stop at this relative gain of the bound.")
@click.option("--inner", type=COUNT, help="Sweeps over the features in a step.")
@click.option("--restarts", type=COUNT, help="Number of starts; the one with the best objective is kept.")
@click.option("--chains", type=COUNT, help="Number of chains of a sampler, run side by side.")
@click.option(
    "--burn",
    type=click.IntRange(min=0),
    help="Burn-in: first steps of each chain, not kept; half of the steps by default.",
)
@click.option("--thin", type=COUNT, help="After burn-in, keep every Nth step.")
@click.option(
    "--holdout",
    metavar="SHARE|RECIPE",
    callback=number_or_word,
    help="Share of the columns to hide in half of the rows, or rows:share=0.1; for `evaluate`.",
)
@click.option(
    "--stability",
    type=click.IntRange(min=2),
    metavar="M",
    help="Fit M subsamples of the rows as well, and say how often each feature comes back.",
)
@click.option(
    "--subsample",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Share of the rows in each subsample; half of them by default.",
)
@click.option("--checkpoint", type=COUNT, help="Steps from one checkpoint to the next.")
@click.option(
    "--start",
    "begin",
    metavar="NAME",
    help="How to begin: spectral, principal, independent, best, random, rows or svd; samplers: fit, empty; "
    "counts: documents.",
)
@click.option("--from", "start", type=PATH, help="Start from the features of a RUN.")
@click.option(
    "--estimate", is_flag=True, help="Print where it would run and the memory it needs, without fitting."
)
@settings
@where
@memory
@overwrite
@talk
def fit(
    store: Path,
    run: Path,
    estimate: bool,
    quiet: bool,
    verbose: bool,
    begin: str | None,
    settings: dict[str, Any],
    **options: Any,
) -> int:
    """Fit a system to a dataset.

    STORE is a dataset made by ingest or synth; RUN is the directory to write. Continue an
    interrupted fit with `ibpdist resume RUN`.
    """
    settings = _begun(settings, begin, options["start"])
    if estimate:
        from ibpdist.runs.fit import estimate as estimate_

        asked = {name: value for name, value in options.items() if name not in ("start", "overwrite")}
        click.echo(estimate_(store, **given(**asked), **settings))
        return OK
    from ibpdist.runs.fit import fit as fit_

    known = of_options(options)
    with _resumable(run), stepping("fit", quiet=quiet, verbose=verbose, **known) as progress:
        result = fit_(store, run=run, progress=progress, **given(**options), **settings)
    return _finish(run, result, quiet)


@click.command()
@click.argument("run", type=PATH)
@where
@memory
@talk
@click.pass_context
def resume(ctx: click.Context, /, run: Path, quiet: bool, verbose: bool, **options: Any) -> int:
    """Continue a fit or a campaign that was interrupted.

    The result has the bits of a fit that was not interrupted. A complete RUN is left as it is.
    """
    from ibpdist.campaigns.directory import is_campaign

    if is_campaign(run):
        again = {"campaign": run / "campaign.yaml", "run": run, "quiet": quiet, "verbose": verbose}
        return int(ctx.invoke(sweep, estimate=False, **again, **options))
    from ibpdist.runs.fit import resume as resume_

    with _resumable(run), stepping("resume", quiet=quiet, verbose=verbose, **of_run(run)) as progress:
        result = resume_(run, progress=progress, **given(**options))
    return _finish(run, result, quiet)


@click.command()
@click.argument("directory", metavar="[DIR]", type=PATH, default="ibpdist-demo")
@where
@overwrite
@talk
def demo(directory: Path, quiet: bool, verbose: bool, **options: Any) -> None:
    """Run a complete example in DIR (ibpdist-demo).

    Images with four planted shapes are made and stored; a small campaign fits them on a local
    cluster; the best fit is scored on new images, drawn, and reported on a page of HTML.
    """
    from ibpdist.cli.example import demo as demo_

    def say(line: str) -> None:
        if not quiet:
            inform(line)

    with sweeping("demo", quiet=quiet, verbose=verbose) as progress:
        demo_(directory, progress=progress, say=say, **given(**options))


def _begun(settings: dict[str, Any], begin: str | None, run: Path | None) -> dict[str, Any]:
    """The settings with the start; refuses a start that is given twice."""
    if begin is not None and "start" in settings:
        raise click.UsageError("--start and --set start=... set the same option: give one of them")
    chosen = settings if begin is None else settings | {"start": begin}
    if "start" not in chosen:
        return chosen
    if run is not None:
        raise click.UsageError("--start and --from exclude each other: give one of them")
    from ibpdist.catalog.systems import STARTS

    if chosen["start"] not in STARTS:
        raise click.BadParameter(f"{chosen['start']!r}: expected {', '.join(STARTS)}", param_hint="'--start'")
    return chosen


def _finish(run: Path, result: Any, quiet: bool) -> int:
    """Print the result; the exit code says whether the default limit of steps stopped the fit."""
    from ibpdist.report.summary import summary

    if not quiet:
        inform(summary(result))
        inform(f"written to {run}; more with: {command('show', run)}")
    return STEP_LIMIT if _cut_short(result.attrs) else OK


def _cut_short(facts: Mapping[str, Any]) -> bool:
    """Whether a fit that could have converged stopped at the default limit of steps."""
    from ibpdist.base.rules import Rule
    from ibpdist.catalog.systems import find

    can_converge = find(facts["system"]).rules.z is not Rule.DRAW
    return bool(facts["stop"] == "step limit" and facts["steps"] == _default_steps() and can_converge)


def _default_steps() -> int:
    from ibpdist.catalog.spec import FitSpec

    return int(FitSpec.model_fields["steps"].default)


@contextmanager
def _resumable(run: Path) -> Iterator[None]:
    """When the user stops a fit, print the command that continues it."""
    try:
        yield
    except KeyboardInterrupt:
        if (run / "spec.yaml").exists():
            click.echo(f"ibpdist: continue with: {command('resume', run)}", err=True)
        raise
