"""Reading the page of a report as a program does, and what its numbers must be."""

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np

from ibpdist.evaluate import groups, posterior
from tests.support.groups_reference import shared_by_pairs

VOID = {"br", "meta", "link", "img", "hr", "col"}
NAMED = ("data-variable", "data-label", "data-axis", "data-remark", "data-limit")
"""Attributes that say what a number is: a value, a label, a mark on an axis, part of a remark, a limit."""
LEAF = {"circle", "polyline"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    text: str = ""
    """Of the element and all below it."""
    children: list["Element"] = field(default_factory=list)

    def has_above(self, names: tuple[str, ...]) -> bool:
        here: Element | None = self
        while here is not None:
            if any(name in here.attributes for name in names):
                return True
            here = here.parent
        return False


class Page(HTMLParser):
    """All elements of a page, in order, and faults of its structure."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source, self.elements, self.faults, self.naked = text, [], [], []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        self.faults += [f"{one.tag} is not closed" for one in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"{tag} has an attribute twice")
        parent = self._open[-1] if self._open else None
        made = Element(tag, {name: value or "" for name, value in attrs}, parent)
        self.elements.append(made)
        if parent is not None:
            parent.children.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            self.faults.append(f"unexpected end of {tag}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for one in self._open:
            one.text += data
        here = self._open[-1] if self._open else None
        hidden = here is not None and here.tag in ("style", "title")
        if re.search(r"\d", data) and not hidden and (here is None or not here.has_above(NAMED)):
            self.naked.append(data.strip())

    def all(self, tag: str) -> list[Element]:
        return [one for one in self.elements if one.tag == tag]

    @property
    def numbers(self) -> list[Element]:
        return [one for one in self.elements if "data-value" in one.attributes]

    @property
    def texts(self) -> list[Element]:
        """Elements that repeat words of the result."""
        return [
            one
            for one in self.elements
            if "data-variable" in one.attributes
            and "data-value" not in one.attributes
            and one.tag not in LEAF
        ]


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def written_right(one: Element) -> bool:
    """Whether the digits on the page are the value, rounded to as many as there are."""
    value = float(one.attributes["data-value"]) * float(one.attributes.get("data-scale", "1"))
    if not math.isfinite(value):
        return one.text == "–"
    text = one.text.replace("\u2212", "-").replace(",", "")
    mantissa, _, power = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    half = 0.5 * 10.0 ** (int(power or 0) - decimals)
    return abs(float(text) - value) <= half * 1.0001 + 1e-12


class Truth:
    """What the numbers of a page must be, worked out from the result and the summary alone."""

    def __init__(self, result: Any, summary: Any = None, stability: Any = None, logs: Any = ()) -> None:
        self.result, self.summary, self.stability, self.logs = result.load(), summary, stability, list(logs)
        self.rows = result["rows"].to_dataset() if "rows" in result.children else None
        self.features, self.number = None, None
        if "draws" in result.children:
            self.features, self.number = posterior.features(result), posterior.number(result).to_dataset()
            self.members = posterior.rows(result) if "z" in result["draws"] else None
        by = None if self.rows is None or "draws" in result.children else groups.covariate(self.rows)
        self.groups = None if by is None else shared_by_pairs(self.rows, result["params"], by)

    def of(self, one: Element) -> float:
        variable, of = one.attributes["data-variable"], one.attributes.get("data-of", "")
        at = _index(one.attributes.get("data-index", ""))
        node, _, name = variable.partition("/")
        if node == "events":
            return self._event(name, of)
        if variable == "members/z":
            return self._member(of, at)
        if variable in ("rows/z", "rows/w") and (of or variable == "rows/w"):
            return self._row(variable, of, at)
        if node == "attrs":
            whole = float(self.result.attrs[name])
            return whole * float(self.result.attrs["columns"]) if of == "times columns" else whole
        return self._made(node, name, of, at)

    def _made(self, node: str, name: str, of: str, at: dict[str, int]) -> float:
        if (node in ("number", "features") and of not in ("", "rows", "min", "max")) or of in (
            "chains",
            "draws",
        ):
            return self._drawn(f"{node}/{name}", of)
        if (node, of) in (("trace", "tried"), ("trace", "accepted"), ("trace", "gained")):
            return self._moves(of, at["move"])
        if of.endswith("perplexity"):
            return self._perplexity(node, name, of, at)
        values = self._node(node)[name]
        if of == "share of all":
            return float(values.values[at["feature"]] / values.values.sum())
        if of == "not scored":
            ended = np.isfinite(self.summary["objective"].values)
            return float(((values.values == "failed") & ended).sum())
        part = values.isel({dim: k for dim, k in at.items() if dim in values.dims})
        numbers = np.asarray(part.values, float)
        if not of:
            assert numbers.ndim == 0, f"{node}/{name}{at} is no single number"
            return float(numbers)
        return self._reduced(node, of, numbers)

    def _perplexity(self, node: str, name: str, of: str, at: dict[str, int]) -> float:
        """Of a score in nats a token, of all hidden tokens of the rows in nats, or its error."""
        if of == "error of the perplexity":
            score = self._made(node, "score", "", at)
            return math.exp(-score) * self._made(node, name, "", at)
        tokens = float(self.result["params"]["scored_tokens"]) if name == "objective" else 1.0
        return math.exp(-self._made(node, name, of.removesuffix("perplexity").strip(), at) / tokens)

    def _reduced(self, node: str, of: str, numbers: Any) -> float:
        finite = numbers[np.isfinite(numbers)]
        if of in ("size", "missing", "count"):
            return float(
                {"size": numbers.size, "missing": numbers.size - finite.size, "count": finite.size}[of]
            )
        if of == "kinds":
            return float(numbers.size / self.summary.sizes["restart"])
        if of == "settings":
            return float(numbers.size / (self.summary.sizes["truncation"] * self.summary.sizes["restart"]))
        simple = {
            "mean": np.mean,
            "sum": np.sum,
            "max": np.max,
            "min": np.min,
            "median": np.median,
            "spread": np.ptp,
        }
        if of in simple:
            return float(simple[of](finite)) if finite.size else math.nan
        if of == "rows":
            return float(numbers) * self.result.attrs["rows"]
        if of.endswith("extreme of the features that vary"):
            return self._extreme() * (-1.0 if of.startswith("minus") else 1.0)
        raise AssertionError(f"nobody knows what {of!r} of {node} is")

    def _drawn(self, variable: str, of: str) -> float:
        """Of a sampler."""
        share, most = self.number["share"].values, int(self.result.attrs["truncation"])
        listed = int((self.features["share"].values >= 0.05).sum())
        means = self.features["mean"].values[:listed]
        made = {
            "posterior/features chains": self.result["posterior"].sizes["chain"],
            "posterior/features draws": self.result["posterior"].sizes["draw"],
            "number/share all used": share[self.number["features"].values == most].sum(),
            "features/share not shown": self.features.sizes["feature"] - listed,
            "features/mean extreme of the features that vary": np.abs(means).max(initial=0),
            "features/mean minus the extreme of the features that vary": -np.abs(means).max(initial=0),
        }
        return float(made[f"{variable} {of}"])

    def _extreme(self) -> float:
        active = self.result["params"]["active"].values
        varying = active & ~self.result["diagnosis"]["constant"].values
        return float(np.abs(self.result["params"]["mean"].values[varying if varying.any() else active]).max())

    def _moves(self, of: str, move: int) -> float:
        trace = self.result["trace"].to_dataset().load()
        mine = trace["move"].values == move
        kept = mine & (trace["accepted"].values > 0)
        return float(
            {"tried": mine.sum(), "accepted": kept.sum(), "gained": trace["gain"].values[kept].sum()}[of]
        )

    def _row(self, variable: str, of: str, at: dict[str, int]) -> float:
        rows = self.rows
        z = rows["z"].values.astype(float)
        if of == "share together":
            both = (z[:, at["feature"]] * z[:, at["feature_"]]).sum()
            return float(both / z[:, at["feature"]].sum())
        if variable == "rows/w":
            weight = float(rows["w"].values[at["row"], at["feature"]])
            return weight * z[at["row"], at["feature"]] if of == "times z" else weight
        assert of == "share of the row"
        y = z * (rows["w"].values if "w" in rows else 1.0)
        parts = (y[at["row"]] ** 2) * (self.result["params"]["mean"].values ** 2).sum(1)
        if "scored_tokens" in self.result["params"]:
            parts = y[at["row"]]
        return float(parts[at["feature"]] / parts.sum())

    def _member(self, of: str, at: dict[str, int]) -> float:
        """The same of a sampler: from the draws of all."""
        if of == "share together":
            both = self.members["together"].values
            return float(both[at["feature"], at["feature_"]] / both[at["feature"], at["feature"]])
        assert of == "share of the row"
        parts = self.members["z"].values[at["row"]] ** 2 * (self.features["mean"].values ** 2).sum(1)
        return float(parts[at["feature"]] / parts.sum())

    def _event(self, name: str, of: str) -> float:
        steps = [float(e["seconds"]) for log in self.logs for e in log if e["event"] == "step"]
        made = {
            "seconds size": len(steps),
            "seconds median": np.median(steps),
            "seconds max": max(steps),
            "seconds sum": math.fsum(steps),
            "begin starts": len(self.logs),
            "time span": math.fsum(log[-1]["time"] - log[0]["time"] for log in self.logs),
        }
        return float(made[f"{name} {of}"])

    def _node(self, name: str) -> Any:
        made = ("summary", "stability", "features", "number", "groups")
        return getattr(self, name) if name in made else self.result[name]


def words_of(result: Any, one: Element) -> str:
    """What a text of the page that names an attribute of the result must be."""
    name, of = one.attributes["data-variable"].removeprefix("attrs/"), one.attributes.get("data-of")
    held = str(result.attrs[name])
    if of == "sha256":
        return hashlib.sha256(held.encode()).hexdigest()
    key = one.attributes.get("data-index")
    return str(json.loads(held)[key]) if key else held


def _index(text: str) -> dict[str, int]:
    parts = (part.partition("=") for part in text.split(",") if part)
    return {dim: int(at) for dim, _, at in parts}
