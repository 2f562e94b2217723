"""Numbers of the page: what they say of themselves, and how they are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.report.html.numbers import (
    COUNT,
    NATS,
    NONE,
    PERCENT,
    SCORE,
    VALUE,
    WHOLE_PERCENT,
    Form,
    Number,
    duration,
    fixed,
    significant,
)
from tests.support.report_page import Page, written_right


def test_a_number_says_where_it_comes_from() -> None:
    number = Number("params/mean", 0.41234, (("feature", 3), ("column", 7)))
    (found,) = Page(number.html(fixed(2))).elements
    assert found.text == "0.41"
    assert found.attributes == {
        "class": "n",
        "data-variable": "params/mean",
        "data-index": "feature=3,column=7",
        "data-value": "0.41234",
    }


def test_what_was_made_of_it_and_its_scale() -> None:
    (found,) = Page(Number("params/active", 0.5, of="sum").html(PERCENT, unit=False)).elements
    assert (found.attributes["data-of"], found.attributes["data-scale"]) == ("sum", "100")
    assert "data-index" not in found.attributes


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (COUNT, 1234567.0, "1,234,567"),
        (NATS, -16023.295, "−16,023.3\u00a0nats"),
        (SCORE, -0.74861, "−0.7486\u00a0nats per hidden cell"),
        (PERCENT, 0.8679, "86.8\u00a0%"),
        (WHOLE_PERCENT, 0.8679, "87\u00a0%"),
        (VALUE, 0.0, "0"),
        (VALUE, 1.23456, "1.23"),
        (VALUE, -0.00012345, "−0.000123"),
        (VALUE, 123456.0, "123,456"),
        (VALUE, 1.23456e-9, "1.23e−09"),
        (VALUE, 4.2e12, "4.20e+12"),
        (significant(2, "x"), 0.999, "1.00\u00a0x"),
        (fixed(0), -0.2, "−0"),
    ],
)
def test_how_numbers_are_written(form: Form, value: float, text: str) -> None:
    assert "".join(Page(f"<p>{Number('a/b', value).html(form)}</p>").elements[0].text) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_there_has_no_unit(value: float) -> None:
    number = Number("summary/heldout", value)
    assert not number.known
    assert Page(f"<p>{number.html(SCORE)}</p>").elements[0].text == NONE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00321, "3.21\u00a0ms"),
        (0.0999, "99.9\u00a0ms"),
        (0.1, "0.100\u00a0seconds"),
        (59.94, "59.9\u00a0seconds"),
        (90.0, "1.50\u00a0minutes"),
        (5399.0, "90.0\u00a0minutes"),
        (7200.0, "2.00\u00a0hours"),
        (0.0, "0\u00a0ms"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert Page(f"<p>{Number('a/b', seconds).html(duration(seconds))}</p>").elements[0].text == text


@given(
    st.floats() | st.floats(-1e6, 1e6),
    st.sampled_from([COUNT, NATS, SCORE, PERCENT, VALUE, significant(5), duration(0.01), duration(1e4)]),
)
def test_what_is_written_is_the_value(value: float, form: Form) -> None:
    (found,) = Page(Number("a/b", value).html(form, unit=False)).elements
    if abs(value) > 1e12 and form != VALUE:
        return  # beyond what a double holds after the point
    assert written_right(found)
    held = float(found.attributes["data-value"])
    assert held == value or (math.isnan(held) and math.isnan(value))
