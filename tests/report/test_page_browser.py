"""The page in a real browser: no complaint, nothing overflows, the same numbers, light and dark."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.report.html.facts import Facts
from ibpdist.report.page import page, read, report
from tests.support import report_fits
from tests.support.browser import CHROMIUM, measure, open_page
from tests.support.report_page import Page, Truth, same

KINDS = ("images", "labelled", "counts", "drawn", "named", "campaign", "narrow")
WIDTHS = [360, 390, 768, 1280]
browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


def chains(folder: Path) -> Path:
    return report_fits.drawn(folder, "lg-gibbs-infinite")


def named(folder: Path) -> Path:
    return report_fits.labelled(folder, system="fa-gibbs-finite", K=4, steps=30, chains=2, restarts=1)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Truth]]:
    folder = tmp_path_factory.mktemp("browser")
    made = {}
    fits = {"images": report_fits.images, "labelled": report_fits.labelled, "drawn": chains, "named": named}
    fits["counts"] = report_fits.counts
    for kind, fit in fits.items():
        run = fit(folder / kind)
        made[kind] = report(run), Truth(ibp.open_result(run), logs=read(run).logs)
    best = ibp.open_result(folder / "images")
    held = report_fits.campaign(best)
    stability = held.stability()
    path = folder / "campaign.html"
    path.write_text(page(Facts(folder / "images", best, held, stability=stability)), "utf-8")
    made |= {"campaign": (path, Truth(best, held.summary, stability))}
    return made | {"narrow": narrow(folder, best)}


def narrow(folder: Path, best: Any) -> tuple[Path, Truth]:
    """A campaign of large objectives that are nearly the same, so that ticks have many digits."""
    held = report_fits.campaign(best)
    dims, shape = held.summary["objective"].dims, held.summary["objective"].shape
    rise = np.linspace(0, 0.004, int(np.prod(shape))).reshape(shape)
    held.summary = held.summary.assign(
        objective=(dims, -123456789.125 + rise),
        heldout=(dims, -12.34567 + rise / 1000),
        active=(dims, np.full(shape, 4.0)),
    )
    path = folder / "narrow.html"
    path.write_text(page(Facts(folder / "images", best, held)), "utf-8")
    return path, Truth(best, held.summary)


@pytest.fixture(scope="module")
def measured(pages: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Sizes of a page by width, and the console; a page is opened once for all widths."""

    @cache
    def of(kind: str, dark: bool) -> tuple[dict[int, dict[str, Any]], list[str]]:
        return measure(pages[kind][0], tmp_path_factory.mktemp("measured"), WIDTHS, dark)

    return of


@browser
@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_overflows_and_nothing_complains(kind: str, width: int, dark: bool, measured: Any) -> None:
    sizes, console = measured(kind, dark)
    assert console == []
    found = sizes[width]
    assert found["scroll"] <= width
    assert found["beyond"] == []
    assert found["over"] == [], "texts of charts lie on one another"
    assert found["broken"] == "undefined"
    assert found["rules"] > 60
    lightness = [sum(map(int, re.findall(r"\d+", found[name])[:3])) for name in ("paper", "ink")]
    assert (lightness[0] < lightness[1]) is dark
    for wide, high, image in found["pictures"]:
        assert wide == pytest.approx(high, rel=0.02)
        assert wide > 60
        assert image.startswith('url("data:image/png;base64')


@browser
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_browser_has_the_numbers_of_the_result(kind: str, pages: Any) -> None:
    path, truth = pages[kind]
    seen = open_page(path)
    assert seen.console == []
    found = Page(seen.document)
    written = Page(path.read_text("utf-8"))
    assert len(found.numbers) == len(written.numbers) > 60
    assert found.naked == []
    assert [one.text for one in found.numbers] == [one.text for one in written.numbers]
    assert [
        one.attributes
        for one in found.numbers
        if not same(float(one.attributes["data-value"]), truth.of(one))
    ] == []
    assert not [one for one in found.elements if one.tag == "script"]


def colours(style: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", style))


def luminance(colour: str) -> float:
    """Of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_can_be_read_on_its_paper(mode: str) -> None:
    css = files("ibpdist.report.html").joinpath("page.css").read_text("utf-8")
    light, dark, *_ = (colours(part) for part in re.split(r"@media", css))
    paper = colours(re.split(r"@media print", css)[1]).items()
    of = {"light": light, "dark": light | dark, "print": light | dict(paper)}[mode]
    for text in ("ink", "soft", "accent", "good", "doubt", "open"):
        for under in ("paper", "card"):
            assert contrast(of[text], of[under]) >= 4.5, (text, under)
    for drawn in ("c0", "c1", "c2", "c3", "c4", "c5", "above", "below"):
        assert contrast(of[drawn], of["paper"]) >= 3, drawn


@browser
@pytest.mark.slow
def test_a_page_that_overflows_and_complains_is_found(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><html><head><style>p{}</style></head><body><p style='width:500px'>wide</p>"
        "<script>window.broken = 1; console.error('an error')</script></body></html>"
    )
    sizes, console = measure(bad, tmp_path, [360])
    found = sizes[360]
    assert any("an error" in line for line in console)
    assert found["broken"] == "number"
    assert found["scroll"] > 360
    assert "<p style" in found["beyond"][0]
