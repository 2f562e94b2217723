"""HTML that is escaped unless it was made here.

`tag` makes elements; everything but `Html` is escaped as text. Joining or formatting an `Html` gives a plain
`str`, which is escaped when it is used: a mistake shows as visible markup and never runs.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters and halves of pairs, which a page cannot hold."""
_VOID = {"br", "meta", "link", "img", "hr", "col"}
LONGEST = 120
"""Characters of a label that are shown, from both of its ends; all of it is in its tooltip."""
_TOOLTIP = 1000


class Html(str):
    """Text of a page that may be put into it as it is."""

    __slots__ = ()


Child = str | None | Iterable["Child"]


def escape(text: object) -> Html:
    """Any text, harmless in an element and in a quoted attribute."""
    return Html(html.escape(_UNSEEN.sub("\ufffd", str(text)), quote=True))


def tag(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element; `class_` stands for class, `data_index` for data-index; None leaves an attribute out."""
    given = {_attribute(key): value for key, value in attributes.items() if value is not None}
    opening = "".join([f"<{name}", *(f' {key}="{escape(value)}"' for key, value in given.items()), ">"])
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Parts of a page, one after the other."""
    return Html("".join(_flat(children)))


def label(text: object, dim: str) -> Html:
    """A label that came with the data: isolated, so that its direction turns nothing else around; accents
    without a letter have a dotted circle, and the style clips those that pile up."""
    whole = " ".join(str(text).split()) or "(empty)"
    half = LONGEST // 2
    cut = whole if len(whole) <= LONGEST else f"{whole[: half - 1]}…{whole[-half:]}"
    under = "\N{DOTTED CIRCLE}" if unicodedata.category(whole[0]).startswith("M") else None
    return tag("bdi", under, cut, class_="label", data_label=dim, title=whole[:_TOOLTIP])


def sentence(*parts: Child) -> Html:
    return tag("p", *parts)


def figure(caption: Child, *children: Child, class_: str | None = None) -> Html:
    return tag("figure", *children, tag("figcaption", caption), class_=class_)


def table(
    caption: Child, head: Iterable[Child], lines: Iterable[Iterable[Child]], class_: str | None = None
) -> Html:
    """A table whose first cell of each line is its header; a wide one scrolls."""
    top = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [_line(list(line)) for line in lines]
    element = tag(
        "table", tag("caption", tag("span", caption)), tag("thead", top), tag("tbody", body), class_=class_
    )
    return tag("div", element, class_="wide", tabindex="0", role="group")


def _line(cells: list[Child]) -> Html:
    first, *others = cells
    return tag("tr", tag("th", first, scope="row"), [tag("td", cell) for cell in others])


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield escape(child)
        else:
            yield from _flat(child)
