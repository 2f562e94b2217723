"""The report of a run, one page of HTML."""

from __future__ import annotations

from prefect import flow

import ibpdist as ibp
from flows import artifacts
from flows.steps import perform, step


@step("report")
def report_step(run: str) -> str:
    """Write RUN/report.html; its path."""
    page = ibp.report(run)
    artifacts.link(run, page)
    return str(page)


@flow(name="report")
def report(run: str) -> str:
    """Write the report of a fit or a campaign.

    Args:
        run: The run directory of a fit or a campaign.
    """
    return perform(report_step, run)
