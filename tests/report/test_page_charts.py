"""Charts: where points lie, how axes are marked, and what is left out."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.report.html import charts
from ibpdist.report.html.charts import Chart, Curve, bar, thinned, tick_decimals, ticks
from ibpdist.report.html.numbers import COUNT, NATS, Number
from tests.support.report_page import Page


def points(values: list[float], variable: str = "trace/objective") -> list[tuple[float, Number]]:
    return [(float(at), Number(variable, value, (("step", at),))) for at, value in enumerate(values)]


def drawn(chart: Chart) -> Page:
    made = chart.html()
    assert made is not None
    found = Page(made)
    assert found.faults == []
    return found


def simple(values: list[float], **more: object) -> Chart:
    curve = Curve("one", points(values), marked=bool(more.pop("marked", False)))
    return Chart("A <title>", "step", "nats", NATS, [curve], **more)  # type: ignore[arg-type]


@given(st.floats(-1e6, 1e6), st.floats(1e-2, 1e9), st.integers(2, 8))
def test_ticks_are_round_and_hold_the_values(low: float, size: float, about: int) -> None:
    found = ticks(low, low + size, about)
    step = found[1] - found[0]
    assert found[0] <= low + 1e-6 * step
    assert found[-1] >= low + size - 1e-6 * step
    assert 2 <= len(found) <= 2 * about + 2
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert any(math.isclose(mantissa, round_, rel_tol=1e-4) for round_ in (1, 2, 2.5, 5, 10))


def test_ticks_of_one_value_and_of_whole_numbers() -> None:
    assert ticks(3.0, 3.0) == [3.0]
    assert ticks(4.0, 5.0, least=1.0) == [4.0, 5.0]
    assert ticks(4.0, 5.0)[1] < 5.0


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0, 1], 0),
        ([0, 0.5], 1),
        ([0, 0.25], 2),
        ([-2e-5, 0], 5),
        ([0, 500], 0),
        ([7], 0),
        ([0], 0),
        ([-16023.295], 0),
        ([-0.7486], 3),
        ([0.5], 1),
    ],
)
def test_decimals_tell_ticks_apart(values: list[float], decimals: int) -> None:
    assert tick_decimals(values) == decimals


@pytest.mark.parametrize(
    ("values", "longest"),
    [
        ([0.0, 1.0], "0.0"),
        ([-16000.0, -15000.0], "−16,000"),
        ([-123456789.125, -123456789.121], "−123,456,789.125"),
        ([-1e30, -1e29], "−1.00000e+30"),
    ],
)
def test_ticks_have_the_room_that_they_need(values: list[float], longest: str) -> None:
    found = drawn(simple(values))
    marks = [one for one in found.all("text") if one.attributes.get("data-axis") == "nats"]
    assert max(len(one.text) for one in marks) >= len(longest) or longest == "0.0"
    ends = {float(one.attributes["x"]) for one in marks}
    assert len(ends) == 1
    assert ends.pop() - 7.3 * max(len(one.text) for one in marks) >= 16, (
        "the title is 12 pixels from the edge"
    )
    left = {float(one.attributes["x1"]) for one in found.all("line")}
    assert max(left) < 0.6 * charts.WIDTH


def test_a_single_count_has_no_decimals() -> None:
    curve = Curve("", points([4.0, 4.0], "summary/active"), marked=True)
    found = drawn(Chart("t", "K", "features", COUNT, [curve], ("2", "4"), whole=True))
    assert [one.text for one in found.all("text") if one.attributes.get("data-axis") == "features"] == ["4"]


def test_a_legend_has_only_what_is_drawn() -> None:
    curves = [Curve("a", points([1.0]), 0), Curve("b", points([math.nan]), 1), Curve("c", points([3.0]), 2)]
    legend = Chart("t", "x", "y", NATS, curves).legend()
    assert legend is not None
    assert [one.text for one in Page(legend).all("li")] == ["a", "c"]
    assert Chart("t", "x", "y", NATS, curves[:2]).legend() is None


def test_higher_is_higher_and_later_is_further_right() -> None:
    line = drawn(simple([1.0, 3.0, 2.0])).all("polyline")[0].attributes["points"]
    (x0, y0), (x1, y1), (x2, y2) = (map(float, pair.split(",")) for pair in line.split())
    assert x0 < x1 < x2
    assert y1 < y2 < y0


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30))
def test_everything_lies_inside(values: list[float]) -> None:
    found = drawn(simple(values, marked=True))
    for mark in found.all("circle"):
        assert 0 <= float(mark.attributes["cx"]) <= charts.WIDTH
        assert 0 <= float(mark.attributes["cy"]) <= charts.HEIGHT
    assert len(found.all("circle")) == len(values)


def test_points_carry_their_numbers() -> None:
    marks = drawn(simple([1.5, 2.5], marked=True)).all("circle")
    assert [(m.attributes["data-index"], m.attributes["data-value"]) for m in marks] == [
        ("step=0", "1.5"), ("step=1", "2.5"),
    ]  # fmt: skip
    assert marks[0].text == "one: 1.5 nats"


def test_what_is_not_there_is_not_drawn() -> None:
    assert simple([math.nan, math.inf]).html() is None
    assert Chart("t", "x", "y", NATS, []).html() is None
    assert len(drawn(simple([1.0, math.nan, 2.0], marked=True)).all("circle")) == 2


def test_what_lies_below_the_frame_is_cut() -> None:
    found = drawn(simple([-1e6, 1.0, 2.0, 3.0], low=0.5))
    assert len(found.all("polyline")[0].attributes["points"].split()) == 3
    said = [one.text for one in found.all("text") if one.attributes.get("data-axis") == "nats"]
    assert said == ["0", "1", "2", "3"]


def test_axes_are_named_and_their_numbers_marked() -> None:
    found = drawn(simple([1.0, 2.0]))
    assert [one.text for one in found.all("text") if one.attributes["class"].startswith("axis")] == [
        "nats",
        "step",
    ]
    assert found.naked == []
    assert found.all("title")[0].text == "A <title>"
    assert found.all("svg")[0].attributes["aria-label"] == "A <title>"


def test_places_have_names() -> None:
    curve = Curve("", points([1.0, 2.0, 4.0], "summary/active"), joined=False, marked=True)
    found = drawn(Chart("t", "K", "features", COUNT, [curve], ("2", "<4>", "auto"), whole=True))
    assert [one.text for one in found.all("text") if one.attributes.get("data-axis") == "K"] == [
        "2",
        "<4>",
        "auto",
    ]
    xs = [float(one.attributes["cx"]) for one in found.all("circle")]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.02)
    ups = [float(one.text) for one in found.all("text") if one.attributes.get("data-axis") == "features"]
    assert all(value == int(value) for value in ups)


def test_many_places_are_thinned() -> None:
    names = tuple(str(k) for k in range(30))
    curve = Curve("", points([1.0] * 30), marked=True)
    found = drawn(Chart("t", "K", "y", COUNT, [curve], names))
    said = [one.text for one in found.all("text") if one.attributes.get("data-axis") == "K"]
    assert said == [str(k) for k in range(0, 30, 4)]


def test_a_long_curve_is_thinned_to_its_ends() -> None:
    many = points([float(at) for at in range(5003)])
    kept = thinned(many)
    assert len(kept) <= charts.MOST_POINTS + 1
    assert (kept[0], kept[-1]) == (many[0], many[-1])
    assert all(a[0] < b[0] for a, b in itertools.pairwise(kept))
    assert thinned(many[:10]) == many[:10]


def test_a_legend_only_when_there_is_something_to_tell_apart() -> None:
    assert simple([1.0]).legend() is None
    curves = [Curve("<a>", points([1.0]), 0), Curve("b", points([2.0]), 1), Curve("b", points([3.0]), 1)]
    legend = Chart("t", "x", "y", NATS, curves).legend()
    assert legend is not None
    assert [one.text for one in Page(legend).all("li")] == ["<a>", "b"]


@pytest.mark.parametrize(
    ("share", "long"), [(0.5, "0.5000"), (-1, "0.0000"), (7, "1.0000"), (math.nan, "0.0000")]
)
def test_a_bar_stays_in_its_room(share: float, long: str) -> None:
    assert Page(bar(share)).elements[0].attributes["style"] == f"--v:{long}"
