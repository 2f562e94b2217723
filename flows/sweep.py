"""The flow of all fits of a campaign."""

from __future__ import annotations

from typing import Any

from prefect import flow

import ibpdist as ibp
from flows import artifacts
from flows.ownership import owned
from flows.progress import sweeping
from flows.steps import Where, perform, step
from ibpdist.base.errors import IbpError
from ibpdist.base.words import counted
from ibpdist.campaigns.spec import in_words
from ibpdist.report.campaign import summary


@step("sweep")
def sweep_step(campaign: str, run: str, where: dict[str, Any]) -> str:
    """Make the missing fits of a grid; the path of the campaign."""
    with sweeping(run) as progress:
        result = ibp.sweep(campaign, run, progress=progress, **where)
    artifacts.say(run, "answer", summary(result))
    artifacts.table(run, result.summary)
    return run


@flow(name="sweep")
def sweep(campaign: str, run: str, where: Where = Where()) -> str:  # noqa: B008  (frozen)
    """Make the missing fits of a campaign; failed fits are repeated.

    Args:
        campaign: The YAML file of the campaign.
        run: The directory of the campaign.
        where: Where it runs; the results have the same bits.
    """
    with owned(run):
        perform(sweep_step, campaign, run, where.options())
        refuse_failed(run)
    return run


def refuse_failed(run: str) -> None:
    """Fail the flow when fits of its campaign failed, with the reason and exit code of the first."""
    campaign = ibp.open_campaign(run)
    if campaign.failed:
        fit, reason, code = campaign.failed[0]
        count = f"{len(campaign.failed)} of {counted(len(campaign.manifest.fits), 'fit')} failed"
        error = IbpError(f"{run}: {count}, first {in_words(fit.labels)}: {reason}")
        error.code = code
        raise error
