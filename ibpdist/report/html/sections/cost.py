"""Time and cost: of a single run from its log, of a campaign from its summary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import numpy as np

from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, tag
from ibpdist.report.html.numbers import COUNT, Number, duration
from ibpdist.report.html.sections._base import Section


def body(facts: Facts) -> Html | None:
    """None without a log or a summary."""
    if facts.has("summary/seconds") and facts.has("summary/steps"):
        return _described(_of_campaign(facts))
    seconds = [float(e["seconds"]) for log in facts.logs for e in log if e["event"] == "step"]
    if not seconds:
        return None
    return _described(_lines(facts, seconds))


def _described(lines: Iterator[tuple[str, Child]]) -> Html:
    return tag("dl", [join(tag("dt", words), tag("dd", value)) for words, value in lines])


def _of_campaign(facts: Facts) -> Iterator[tuple[str, Child]]:
    def seconds(of: str) -> Html:
        number = facts.reduced("summary/seconds", of)
        return number.html(duration(number.value))

    known = float(np.isfinite(facts.values("summary/objective")).sum())
    yield "fits with a result", Number("summary/objective", known, of="count").html(COUNT)
    yield "steps of all fits", facts.reduced("summary/steps", "sum").html(COUNT)
    yield "time of all fits", seconds("sum")
    yield "a fit took", [seconds("median"), " (median), ", seconds("max"), " (longest)"]


def _lines(facts: Facts, seconds: list[float]) -> Iterator[tuple[str, Child]]:
    cells = math.prod(int(facts.attrs[name]) for name in ("rows", "columns"))
    of = Number("attrs/rows", float(cells), of="times columns").html(COUNT)
    steps = Number("events/seconds", float(len(seconds)), of="size").html(COUNT)
    starts = len(facts.logs)
    count = Number("events/begin", float(starts), of="starts").html(COUNT)
    yield (
        "passes over the data",
        [steps, " steps, each a pass over ", of, " cells"]
        + ([", in ", count, " starts"] if starts > 1 else []),
    )
    middle, total = statistics.median(seconds), math.fsum(seconds)
    yield "a step took", [_time("median", middle), " (median), ", _time("max", max(seconds)), " (longest)"]
    yield "all steps took", _time("sum", total)
    between = math.fsum(log[-1]["time"] - log[0]["time"] for log in facts.logs if log)
    yield (
        "from beginning to end",
        Number("events/time", between, of="span").html(duration(between)),
    )
    again = sum(int(e.get("replayed", 0)) for log in facts.logs for e in log if e["event"] == "step")
    begun = sum(e["event"] == "begin" for log in facts.logs for e in log) - starts
    if begun > 0 or again:
        times = Number("events/begin", float(begun), of="resumed").html(COUNT)
        work = Number("events/replayed", float(again), of="sum").html(COUNT)
        yield "interruptions", ["resumed ", times, " times; steps of chunks made again: ", work]


def _time(of: str, value: float) -> Html:
    return Number("events/seconds", value, of=of).html(duration(value))


SECTION = Section("cost", "Time and cost", body)
