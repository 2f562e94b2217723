"""Fits that are made of parts, all rows and subsamples of them, which advance as fits of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ibpdist.base.progress import after
from ibpdist.campaigns import summary as table
from ibpdist.campaigns.directory import CampaignDirectory, Fit, fit_folder, is_finished
from ibpdist.engine import provenance
from ibpdist.runs import combine
from ibpdist.runs.directory import RunDirectory, is_run
from ibpdist.runs.job import Job
from ibpdist.runs.nested import nested_fits


def begin(campaign: CampaignDirectory, fit: Fit, job: Job) -> None:
    """Make the run of a fit, in whose folder its parts are put, unless it is there."""
    folder = fit_folder(campaign.path, fit.id)
    if is_run(folder):
        return
    run = RunDirectory.create(folder, fit.spec.dump(), lambda: provenance.facts(job.source))
    try:
        combine.begin(run, job)
    finally:
        run.close()


def can_complete(campaign: CampaignDirectory, fit: Fit) -> bool:
    """Whether all of its parts are there."""
    return all(is_finished(campaign.path, part.id) for part in fit.parts)


def complete(campaign: CampaignDirectory, fit: Fit, job: Job) -> None:
    """Make the result of a fit from those of its parts."""
    seconds = round(_seconds(campaign, fit.parts), 3)
    run = RunDirectory.open(fit_folder(campaign.path, fit.id))
    try:
        for one in nested_fits(fit.spec):
            run.events.add(one.kind, **one.facts)
        combine.complete(run, job, after(None), seconds=seconds)
    finally:
        run.close()
    steps = table.ended(run.path)["step"]
    campaign.events.add("fit", fit=fit.id, steps=steps, seconds=seconds)


def _seconds(campaign: CampaignDirectory, parts: Sequence[Fit]) -> float:
    return float(sum(table.ended(fit_folder(campaign.path, part.id))["seconds"] for part in parts))
