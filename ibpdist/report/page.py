"""The report: one page of HTML that needs nothing but itself."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from ibpdist.report.html import portraits
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Html, join, tag
from ibpdist.report.html.sections import SECTIONS, answer
from ibpdist.report.html.sections._base import Section
from ibpdist.report.place import GENERATOR, folder_of, place


def report(
    run: str | Path,
    output: str | Path | None = None,
    *,
    image: tuple[int, int] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the page of a finished run or campaign, RUN/report.html unless `output` is given; its path.

    image: (height, width) of the images that rows are. Without it a square number of columns that
    have no labels is taken for an image.
    overwrite: replace a file that is not a report; a report is replaced without it.
    """
    from ibpdist.storage.records import replace_file

    path = place(Path(run), None if output is None else Path(output), overwrite)
    replace_file(path, [page(read(Path(run), image)).encode("utf-8")])
    return path


def read(run: Path, image: tuple[int, int] | None = None) -> Facts:
    """The facts of a run, or of a campaign and its best fit."""
    from ibpdist.campaigns.directory import is_campaign
    from ibpdist.runs.result import open_result

    if is_campaign(run):
        import ibpdist

        campaign = ibpdist.open_campaign(run)
        fit = campaign.shown()
        best = campaign.open(fit)
        again = None if "draws" in best.children else _stability(campaign, fit)
        return Facts(run, best, campaign, _logs(run), image, again)
    return Facts(run, open_result(run), logs=_logs(run), image=image)


def _stability(campaign: Any, fit: Any) -> Any:
    """Of the features of a fit over the finished restarts of its kind; None with fewer than two, and where
    the result of the fit tells of subsamples."""
    from ibpdist.campaigns.campaign import kind_of

    kind = kind_of(fit)
    compared = fit.spec.stability is None and len(campaign.restarts(**kind)) > 1
    return None if not compared else campaign.stability(**kind)


def page(facts: Facts, sections: tuple[Section, ...] = SECTIONS) -> Html:
    """The whole page."""
    name = facts.path.absolute().name
    contents = [(section, html) for section in sections if (html := section.html(facts)) is not None]
    links = [tag("li", tag("a", section.title, href=f"#{section.name}")) for section, _ in contents]
    body = [
        tag("a", "To the answer", href="#answer", class_="skip"),
        _head(facts, name),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("main", [html for _, html in contents]),
        _foot(facts),
    ]
    return join(
        Html("<!DOCTYPE html>\n"), tag("html", _meta(facts, name), tag("body", body), lang="en"), "\n"
    )


def _meta(facts: Facts, name: str) -> Html:
    css = files("ibpdist.report.html").joinpath("page.css").read_text("utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content=GENERATOR),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name}: ibpdist report"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(css), portraits.style(facts)),
    )


def _head(facts: Facts, name: str) -> Html:
    kind = "campaign" if facts.campaign is not None else "fit"
    return tag(
        "header",
        tag("p", f"Report of the {kind} ", tag("bdi", name, data_label="run"), class_="eyebrow"),
        tag("h1", answer.headline(facts)),
        answer.opening(facts),
        answer.glance(facts),
        id="answer",
    )


def _foot(facts: Facts) -> Html:
    version = facts.record("versions").get("ibpdist")
    element = tag("span", str(version), data_variable="attrs/versions", data_index="ibpdist")
    note = (
        "Every number on this page carries the name of its variable, its place and its exact value as "
        "attributes; look at the source of the page, or open the result with xarray."
    )
    return tag("footer", tag("p", note), tag("p", "ibpdist ", element) if version else None)


def _logs(run: Path) -> list[list[Any]]:
    """Events of each start."""
    from ibpdist.storage.events import read as events

    folder = folder_of(run)
    starts = sorted(folder.glob("restarts/*/events.jsonl")) or [folder / "events.jsonl"]
    return [log for path in starts if (log := events(path))]
