"""A section of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Html, tag


@dataclass(frozen=True)
class Section:
    """A part of the page: its name in links, its heading, and the function that makes it from the facts.

    `body` gives None when the facts hold nothing to say; then the section is left out.
    """

    name: str
    title: str
    body: Callable[[Facts], Html | None]

    def html(self, facts: Facts) -> Html | None:
        content = self.body(facts)
        if content is None:
            return None
        heading = tag("h2", self.title, id=f"{self.name}-title")
        return tag("section", heading, content, id=self.name, aria_labelledby=f"{self.name}-title")
