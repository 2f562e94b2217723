"""A campaign from its data to its report; without a server: python -m flows.campaign CAMPAIGN.yaml [RUN]"""

from __future__ import annotations

from pathlib import Path

from prefect import flow

import ibpdist as ibp
from flows.evaluate import evaluate_step
from flows.ingest import ingest_step
from flows.ownership import owned
from flows.report import report_step
from flows.steps import Where, perform
from flows.sweep import refuse_failed, sweep_step
from ibpdist.campaigns.directory import fit_folder
from ibpdist.campaigns.run import spec_of


@flow(name="campaign")
def campaign(
    campaign: str,
    run: str,
    source: str | None = None,
    new: str | None = None,
    where: Where = Where(),  # noqa: B008  (frozen)
) -> str:
    """Take a campaign to its report. Finished work is kept, an interrupted campaign is continued.

    Args:
        campaign: The YAML file of the campaign.
        run: The directory of the campaign.
        source: A matrix to store first as the data of the campaign, unless they are there.
        new: A dataset of new rows on which the best fit is scored, of each hold-out.
        where: Where it runs; the results have the same bits.
    """
    with owned(run):
        if source is not None:
            perform(ingest_step, source, spec_of(campaign).data)
        perform(sweep_step, campaign, run, where.options())
        if not any_finished(run):
            refuse_failed(run)
        for best in bests_of(run) if new is not None else []:
            perform(evaluate_step, best, new, where.threads())
        page = perform(report_step, run)
        refuse_failed(run)
    return page


def any_finished(run: str) -> bool:
    return bool((ibp.open_campaign(run).summary["status"] == "finished").any())


def bests_of(run: str) -> list[str]:
    """The run of the best fit of a campaign; where several hold-outs are swept, of the best of each."""
    return [str(fit_folder(Path(run), fit.id)) for fit in ibp.open_campaign(run).bests()]


if __name__ == "__main__":
    from flows.command import main

    main()
