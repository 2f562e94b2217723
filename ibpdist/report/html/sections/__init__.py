"""The sections of the page, in their order. A new one is a file here and a line below."""

from __future__ import annotations

from ibpdist.report.html.sections import (
    campaign,
    cost,
    features,
    posterior,
    rows,
    run,
    stability,
    sure,
    together,
    trace,
)
from ibpdist.report.html.sections._base import Section

SECTIONS: tuple[Section, ...] = (
    sure.SECTION,
    posterior.NUMBER,
    features.CARDS,
    features.FREQUENCIES,
    stability.SECTION,
    together.SECTION,
    rows.SECTION,
    campaign.SECTION,
    posterior.AGREEMENT,
    trace.SECTION,
    cost.SECTION,
    run.SECTION,
)
