"""What is not markup made here is text."""

import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.report.html.markup import LONGEST, Html, escape, figure, join, label, table, tag
from tests.support.report_page import Page

TEXT = st.text(st.characters(blacklist_categories=()), max_size=40)


def test_text_is_escaped_and_markup_is_not() -> None:
    inner = tag("b", "<i>")
    assert inner == "<b>&lt;i&gt;</b>"
    assert tag("p", inner, " & ", None, [["nested"], inner]) == f"<p>{inner} &amp; nested{inner}</p>"


def test_joined_as_plain_text_it_is_escaped_again() -> None:
    made = tag("b", "x")
    assert tag("p", f"{made}") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert tag("p", made + "y") == "<p>&lt;b&gt;x&lt;/b&gt;y</p>"
    assert type(join(made, "y")) is Html


def test_attributes() -> None:
    made = tag("a", class_="c", data_index="k=3", aria_label='"<', title=None, viewBox="0 0 1 1", name="n")
    assert made == '<a class="c" data-index="k=3" aria-label="&quot;&lt;" viewBox="0 0 1 1" name="n"></a>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'


@given(TEXT, TEXT)
def test_any_text_stays_text(text: str, value: str) -> None:
    found = Page(tag("p", text, title=value))
    assert found.faults == []
    assert [one.tag for one in found.elements] == ["p"]
    assert list(found.elements[0].attributes) == ["title"]
    for given_, shown in ((text, found.elements[0].text), (value, found.elements[0].attributes["title"])):
        assert len(shown) == len(given_)
        assert all(a in (b, "\ufffd") for a, b in zip(shown, given_, strict=True))
    found.source.encode("utf-8")


@given(TEXT)
def test_a_label_is_isolated(text: str) -> None:
    found = Page(label(text, "column"))
    assert [one.tag for one in found.elements] == ["bdi"]
    assert found.elements[0].attributes["data-label"] == "column"
    assert found.elements[0].text.strip()


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1, 5000])
def test_a_long_label_is_cut(length: int) -> None:
    (found,) = Page(label("x" * length, "column")).elements
    assert len(found.text) == min(length, LONGEST)
    assert ("…" in found.text) is (length > LONGEST)
    assert found.text[0] == found.text[-1] == "x", "labels differ at their ends"
    assert found.attributes["title"].startswith("x" * min(length, 1000))


@pytest.mark.parametrize(("text", "shown"), [("", "(empty)"), (" \n\t", "(empty)"), (" a \n b ", "a b")])
def test_white_space_of_a_label(text: str, shown: str) -> None:
    assert Page(label(text, "row")).elements[0].text == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\u0301", "\u25cc\u0301"), ("\u0489\u0301b", "\u25cc\u0489\u0301b"), ("e\u0301", "e\u0301")],
)
def test_accents_without_a_letter_can_be_seen(text: str, shown: str) -> None:
    (found,) = Page(label(text, "column")).elements
    assert (found.text, found.attributes["title"]) == (shown, text)


def test_what_piles_up_on_a_label_is_clipped() -> None:
    css = files("ibpdist.report.html").joinpath("page.css").read_text("utf-8")
    (rule,) = re.findall(r"^\.label \{(.*)\}$", css, re.MULTILINE)
    assert "overflow: hidden;" in rule
    assert "display: inline-block;" in rule, "nothing in the flow of a line is clipped"
    assert not re.findall(r"\.label \{[^}]*(?:overflow: visible|display: inline;)", css)


def test_control_characters_and_halves_of_pairs() -> None:
    assert escape("a\x00b\x1bc\x85\ud800\uffff") == "a\ufffdb\ufffdc\ufffd\ufffd\ufffd"
    assert escape("a\tb\nc") == "a\tb\nc"
    assert escape(3) == "3"


def test_a_table_has_headers_both_ways() -> None:
    found = Page(table("About <it>", ["x", "y"], [["a", "1"], ["b", tag("i", "2")]], class_="k"))
    assert found.faults == []
    assert found.all("caption")[0].text == "About <it>"
    assert [(one.text, one.attributes["scope"]) for one in found.all("th")] == [
        ("x", "col"), ("y", "col"), ("a", "row"), ("b", "row"),
    ]  # fmt: skip
    assert [one.text for one in found.all("td")] == ["1", "2"]
    assert found.elements[0].attributes == {"class": "wide", "tabindex": "0", "role": "group"}
    assert found.all("table")[0].attributes == {"class": "k"}


def test_a_figure_says_what_it_is() -> None:
    found = Page(figure(["a ", "<b>"], tag("svg")))
    assert [one.tag for one in found.elements] == ["figure", "svg", "figcaption"]
    assert found.all("figcaption")[0].text == "a <b>"
