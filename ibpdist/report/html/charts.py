"""Charts as SVG that takes its colours from the page. Points carry the number they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ibpdist.report.html.markup import Html, label, tag
from ibpdist.report.html.numbers import Form, Number, fixed, significant

WIDTH, HEIGHT = 420, 236
RIGHT, TOP, BOTTOM = 20, 14, 40
"""Pixels of the whole chart, and around the frame."""
TITLE, DIGIT, LEAST_LEFT = 24.0, 7.3, 54.0
"""Pixels to the left of the frame: for the title and a gap, for each digit of the longest tick in the
widest of the fonts, and at the least."""
LONGEST = 20
"""Digits of a tick; what is longer is written with a power of ten."""
MOST_POINTS = 400
"""Points of a curve that are drawn."""
COLOURS = 6
Point = tuple[float, Number]
"""Where along the first axis, and what is there."""


@dataclass(frozen=True)
class Curve:
    """Points of one kind; `joined` by a line, with a mark each if `marked`."""

    name: str
    points: Sequence[Point]
    colour: int = 0
    joined: bool = True
    marked: bool = False

    @property
    def known(self) -> list[Point]:
        return [(x, y) for x, y in self.points if y.known]


@dataclass(frozen=True)
class Chart:
    """Curves over one axis of numbers or, when `places` names them, of places 0, 1, ..."""

    title: str
    across: str
    up: str
    form: Form
    curves: Sequence[Curve]
    places: Sequence[str] = field(default=())
    low: float | None = None
    """What is below lies outside the frame."""
    whole: bool = False
    """Whether only whole numbers are marked."""

    def html(self) -> Html | None:
        """None when there is nothing to draw."""
        known = [y.value for curve in self.curves for _, y in curve.known]
        if not known:
            return None
        frame = Frame(self, known)
        parts = [*frame.horizontal(), *frame.vertical()]
        parts += [mark for curve in self.curves for mark in frame.drawn(curve)]
        box = f"0 0 {WIDTH} {HEIGHT}"
        return tag("svg", tag("title", self.title), parts, viewBox=box, role="img", aria_label=self.title)

    def legend(self) -> Html | None:
        drawn = (curve for curve in self.curves if curve.name and curve.known)
        named = list({curve.name: curve.colour for curve in drawn}.items())
        if len(named) < 2:
            return None
        entries = [tag("li", tag("i", class_=f"c{colour}"), label(name, "curve")) for name, colour in named]
        return tag("ul", entries, class_="legend")


class Frame:
    """Places of a chart in pixels."""

    def __init__(self, chart: Chart, known: Sequence[float]) -> None:
        self.chart = chart
        low = min(known) if chart.low is None else min(max(chart.low, min(known)), max(known))
        self.ticks = ticks(low, max(known), least=1.0 if chart.whole else 0.0)
        self.low, self.high = min(low, self.ticks[0]), max(max(known), self.ticks[-1])
        across = [x for curve in chart.curves for x, _ in curve.known]
        self.first, self.last = min(across), max(across)
        if chart.places:
            self.first, self.last = -0.5, len(chart.places) - 0.5
        self.base = HEIGHT - BOTTOM
        decimals = fixed(tick_decimals(self.ticks))
        self.said = [_tick(decimals.text(tick), tick) for tick in self.ticks]
        self.left = max(LEAST_LEFT, TITLE + DIGIT * max(map(len, self.said)))

    def x(self, value: float) -> float:
        share = (value - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return round(self.left + share * (WIDTH - self.left - RIGHT), 2)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.base - share * (self.base - TOP), 2)

    def horizontal(self) -> Iterator[Html]:
        """Lines at round values, and what the axis means."""
        for tick, text in zip(self.ticks, self.said, strict=True):
            at = self.y(tick)
            yield tag("line", x1=self.left, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid")
            yield tag("text", text, x=self.left - 7, y=at + 4, class_="tick end", data_axis=self.chart.up)
        turned = f"rotate(-90) translate({-(self.base + TOP) / 2:g} 12)"
        yield tag("text", self.chart.up, transform=turned, class_="axis middle")

    def vertical(self) -> Iterator[Html]:
        middle = (self.left + WIDTH - RIGHT) / 2
        for value, text in self._stops():
            at = self.x(value)
            yield tag("text", text, x=at, y=self.base + 17, class_="tick middle", data_axis=self.chart.across)
        yield tag("line", x1=self.left, x2=WIDTH - RIGHT, y1=self.base, y2=self.base, class_="base")
        yield tag("text", self.chart.across, x=middle, y=HEIGHT - 5, class_="axis middle")

    def drawn(self, curve: Curve) -> Iterator[Html]:
        points = [(x, y) for x, y in curve.known if y.value >= self.low]
        kind = f"c{curve.colour % COLOURS}"
        if curve.joined and len(points) > 1:
            yield self._line(thinned(points), kind)
        if curve.marked or len(points) == 1:
            yield from (self._mark(x, y, kind, curve.name) for x, y in points)

    def _line(self, points: Sequence[Point], kind: str) -> Html:
        path = " ".join(f"{self.x(x):g},{self.y(y.value):g}" for x, y in points)
        return tag("polyline", points=path, class_=f"curve {kind}", data_variable=points[0][1].variable)

    def _mark(self, x: float, y: Number, kind: str, name: str) -> Html:
        prefix = f"{name}: " if name else ""
        return tag(
            "circle",
            tag("title", f"{prefix}{self.chart.form.text(y.value)} {self.chart.form.unit}"),
            cx=self.x(x),
            cy=self.y(y.value),
            r=3.4,
            class_=f"mark {kind}",
            data_variable=y.variable,
            data_index=y.where or None,
            data_of=y.of or None,
            data_value=repr(y.value),
        )

    def _stops(self) -> list[tuple[float, str]]:
        names = self.chart.places
        if not names:
            stops = ticks(self.first, self.last, 5, least=1.0)
            return [(s, f"{s:,.0f}") for s in stops if self.first <= s <= self.last]
        every = -(-len(names) // 8)
        return [(at, name[:12]) for at, name in enumerate(names) if at % every == 0]


def ticks(low: float, high: float, about: int = 4, least: float = 0.0) -> list[float]:
    """Round values from at or below `low` to at or above `high`, at least `least` apart."""
    if not low < high:
        return [low]
    rough = max((high - low) / about, least)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * by for by in (1, 2, 2.5, 5, 10) if size * by >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [at * step for at in range(first, last + 1)]


def tick_decimals(values: Sequence[float]) -> int:
    """Decimals that distinguish neighbouring values, or show a single value."""
    step = values[1] - values[0] if len(values) > 1 else values[0]
    return next((d for d in range(9) if math.isclose(step, round(step, d), rel_tol=1e-3)), 9)


def _tick(text: str, value: float) -> str:
    return text if len(text) <= LONGEST else significant(6).text(value)


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """About MOST_POINTS of the points, always with the first and the last."""
    every = -(-len(points) // MOST_POINTS)
    return [*points[:-1:every], points[-1]] if every > 1 else points


def bar(share: float) -> Html:
    """A bar from the left whose length is a share of its room; the number stands beside it."""
    long = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    return tag("i", class_="bar", style=f"--v:{long:.4f}", aria_hidden="true")
