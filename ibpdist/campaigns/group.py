"""Groups of a campaign: which of its fits advance together now, and what becomes of each (runs/group.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ibpdist.base.errors import BUG, UsageError
from ibpdist.campaigns.directory import CampaignDirectory, Fit, fit_folder
from ibpdist.data._base import Source
from ibpdist.engine._base import Engine
from ibpdist.inference.stopping import AnySnapshot
from ibpdist.runs import group as groups
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.group import FitEnd, Group


def under_way(campaign: Path, wanted: Sequence[Fit]) -> list[list[Fit]]:
    """Groups that began and did not end and have fits that are wanted, without labels where they are not."""
    by_id = {fit.id: fit for fit in wanted}
    known = groups.under_way(campaign, by_id)
    return [[by_id.get(one) or Fit(one, {}, spec) for one, spec in fits] for fits in known]


def opened(campaign: Path, fits: Sequence[Fit], source: Source) -> AbstractContextManager[RunDirectory]:
    """The run of a group, new or under way."""
    return groups.opened(campaign, [fit.id for fit in fits], [fit.spec for fit in fits], source)


def finish(
    campaign: CampaignDirectory,
    run: RunDirectory,
    fits: Sequence[Fit],
    group: Group,
    engine: Engine,
    progress: Callable[[AnySnapshot], None] | None = None,
) -> None:
    """Take a group to the results of its fits; those that fail are noted."""

    def tell(end: FitEnd) -> None:
        fit = fits[end.at]
        if end.failed:
            campaign.fail(fit, end.stop.sentence, code_of(end.stop.sentence))
        else:
            campaign.events.add("fit", fit=fit.id, steps=end.steps, seconds=end.seconds)

    folders = [fit_folder(campaign.path, fit.id) for fit in fits]
    groups.finish(run, group, folders, engine, tell, progress)


def code_of(reason: str) -> int:
    """The exit code of a fit that failed in a group, from the sentence of its failure."""
    return BUG if reason.endswith("this is a bug") else UsageError.code
