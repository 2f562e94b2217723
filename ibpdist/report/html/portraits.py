"""Features as they are shown on the page: a name, a picture if columns form an image, else top columns."""

from __future__ import annotations

import numpy as np

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Html, join, label, tag
from ibpdist.report.html.numbers import VALUE, Number
from ibpdist.report.pictures import data_uri
from ibpdist.report.words import largest, word_of

TOP = 8
"""Columns that are listed for a feature."""
FIRST = 2
"""Words that stand beside the number of a feature."""


def name(facts: Facts, k: int, capital: bool = False, small: bool = False) -> Html:
    """Feature 3, with a stamp of its picture or its first words; only the number when `small`."""
    word = None if small else ("Feature " if capital else "feature ")
    stamp = tag("i", class_=f"stamp f{k}", aria_hidden="true") if facts.image and not capital else None
    shown = tag("span", stamp, word, str(k), class_="feature", data_label="feature")
    return shown if small or capital or not facts.listed else join(shown, " ", _first_words(facts, k))


def _first_words(facts: Facts, k: int) -> Html:
    shares = facts.values(f"{facts.feature_node}/mean")[k]
    words = (word_of(facts.columns, int(d)) for d in largest(shares, FIRST))
    return tag("small", label(", ".join(words), "words"))


def style(facts: Facts) -> Html:
    """Rules that hold each picture once, for its portrait and its stamps."""
    if facts.image is None:
        return Html("")
    mean, most = facts.values(f"{facts.feature_node}/mean"), limit(facts).value
    rules = [f'.f{k}{{background-image:url("{data_uri(mean[k], facts.image, most)}")}}' for k in facts.shown]
    return Html("\n".join(rules))


def limit(facts: Facts) -> Number:
    """The magnitude that takes the strongest colour: the largest among the features that vary."""
    mean = facts.values(f"{facts.feature_node}/mean")
    constant = facts.values("diagnosis/constant") if facts.has("diagnosis/constant") else np.zeros(len(mean))
    drawn = [k for k in facts.shown if not constant[k]] or facts.shown
    value = float(np.nanmax(np.abs(mean[drawn]), initial=0.0)) if drawn else 0.0
    return Number(f"{facts.feature_node}/mean", value, of="extreme of the features that vary")


def portrait(facts: Facts, k: int) -> Html:
    return _picture(facts, k, facts.image) if facts.image else _columns(facts, k)


def _picture(facts: Facts, k: int, image: tuple[int, int]) -> Html:
    high, wide = image
    low, most = (facts.reduced(f"{facts.feature_node}/mean", of, feature=k) for of in ("min", "max"))
    words = f"Feature {k} as an image of {high} by {wide}, values from {low.value:.3g} to {most.value:.3g}"
    return tag(
        "div", class_=f"picture f{k}", role="img", aria_label=words, style=f"aspect-ratio:{wide}/{high}"
    )


def _columns(facts: Facts, k: int) -> Html:
    """The columns with the largest magnitudes: label, bar, value and standard deviation."""
    mean = facts.values(f"{facts.feature_node}/mean")[k]
    most = float(np.abs(mean).max(initial=0.0)) or 1.0
    top = np.argsort(-np.abs(mean), kind="stable")[:TOP]
    lines = [_column(facts, k, int(d), float(mean[d]) / most) for d in top]
    return tag("ul", lines, class_="columns", aria_label=f"Columns with the largest values of feature {k}")


def _column(facts: Facts, k: int, d: int, share: float) -> Html:
    labels = facts.columns
    words = (
        label(labels[d], "column")
        if labels is not None
        else tag("span", f"column {d}", class_="label", data_label="column")
    )
    number = facts.entry(f"{facts.feature_node}/mean", feature=k, column=d).html(VALUE)
    side = "above" if share >= 0 else "below"
    shown = tag("i", class_=f"swing {side}", style=f"--v:{abs(share):.4f}", aria_hidden="true")
    return tag("li", words, shown, tag("span", number, _width(facts, k, d), class_="value"))


def _width(facts: Facts, k: int, d: int) -> Html | None:
    """How uncertain a value is: its standard deviation, or over draws an interval."""
    if facts.sampled:
        low, high = (
            facts.entry(f"features/{end}", feature=k, column=d).html(VALUE) for end in ("low", "high")
        )
        return join(" (", low, " to ", high, ")")
    if facts.uncertain:
        return join(" ± ", facts.entry("params/mean_sd", feature=k, column=d).html(VALUE))
    return None
