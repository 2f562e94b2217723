"""The sections of the page, in their order. A new one is a file here and a line below."""

from __future__ import annotations

from ibpdist.report.html.sections import (
    campaign,
    cooccurrence,
    cost,
    features,
    groups,
    posterior,
    rounds,
    rows,
    run,
    stability,
    trace,
    uncertainty,
    words,
)
from ibpdist.report.html.sections._base import Section

SECTIONS: tuple[Section, ...] = (
    uncertainty.SECTION,
    posterior.NUMBER,
    features.CARDS,
    words.SECTION,
    features.FREQUENCIES,
    stability.SECTION,
    stability.SUBSAMPLES,
    cooccurrence.SECTION,
    rounds.SECTION,
    groups.SECTION,
    rows.SECTION,
    campaign.SECTION,
    posterior.AGREEMENT,
    trace.SECTION,
    cost.SECTION,
    run.SECTION,
)
