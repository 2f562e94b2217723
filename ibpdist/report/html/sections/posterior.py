"""Of a sampler: how many features the draws have, and whether the chains agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ibpdist.report import chains
from ibpdist.report.html.charts import bar
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, sentence, table, tag
from ibpdist.report.html.numbers import COUNT, PERCENT, VALUE, WHOLE_PERCENT, Form, Number, fixed, significant
from ibpdist.report.html.sections._base import Section
from ibpdist.runs import diagnostics

MOST = 24
"""Numbers of features that are listed."""
LEVEL, RHAT = significant(5), fixed(3)


def headline(facts: Facts) -> Html:
    """4 features in 80 % of the draws; 4 to 5 in 95 %."""
    at = chains.span(facts.values("number/share"))
    best, low, high = (facts.entry("number/features", features=k) for k in (at.best, at.low, at.high))
    noun = " feature in " if best.value == 1 else " features in "
    share = facts.entry("number/share", features=at.best).html(WHOLE_PERCENT)
    words = [best.html(COUNT), noun, share, " of the draws"]
    if at.low == at.high:
        return join(words)
    covered = tag("span", f"{100 * chains.COVERED:.0f}\u00a0%", data_limit="draws")
    return join(words, "; ", low.html(COUNT), " to ", high.html(COUNT), " in ", covered)


def drawn(facts: Facts) -> list[Child]:
    """3 chains of 100 draws each."""
    count, each = sizes(facts)
    return [
        count.html(COUNT),
        " chain" if count.value == 1 else " chains",
        " of ",
        each.html(COUNT),
        " draws",
    ]


def sizes(facts: Facts) -> tuple[Number, Number]:
    """Chains, and draws of each."""
    held = facts.result["posterior"].sizes
    count, each = (Number("posterior/features", float(held[dim]), of=f"{dim}s") for dim in ("chain", "draw"))
    return count, each


def worst(facts: Facts) -> Number | None:
    """The largest R-hat, None when there are too few draws for any."""
    rhat = facts.reduced("diagnostics/rhat", "max")
    return rhat if rhat.known else None


def body(facts: Facts) -> Html | None:
    """How often each number of features is drawn."""
    if not facts.sampled:
        return None
    share = facts.values("number/share")
    known = np.flatnonzero(share > 0)
    shown = np.sort(known[np.argsort(-share[known], kind="stable")][:MOST])
    lines = [list(_line(facts, int(at))) for at in shown]
    caption = "How often each number of features is drawn."
    element = table(caption, ["features", "share of the draws, %"], lines, class_="bars")
    if len(shown) == len(known):
        return element
    return join(
        element, sentence("Only the ", tag("span", str(MOST), data_limit="numbers"), " likeliest are listed.")
    )


def _line(facts: Facts, at: int) -> Iterator[Child]:
    yield facts.entry("number/features", features=at).html(COUNT)
    share = facts.entry("number/share", features=at)
    yield [share.html(PERCENT, unit=False), bar(share.value)]


def agreement(facts: Facts) -> Html | None:
    """R-hat and effective draws of what does not depend on how features are named."""
    if not facts.sampled:
        return None
    names = [str(name) for name in facts.result["diagnostics"]["variable"].values]
    order = sorted(range(len(names)), key=lambda at: names[at])
    lines = [
        [tag("span", names[at].replace("_", " "), data_label="scalar"), *_row(facts, at)] for at in order
    ]
    head: list[Child] = ["", "mean", "sd", "Monte Carlo error", "R-hat", "effective draws", "in the tails"]
    good, enough = (
        tag("span", str(limit), data_limit="chains") for limit in (diagnostics.MIXED, int(diagnostics.ENOUGH))
    )
    caption = [
        "R-hat compares the chains; up to ",
        good,
        " is good. ",
        enough,
        " effective draws are enough. ",
    ]
    why = "Only numbers that stay the same when features change places can be compared."
    return join(tag("p", drawn(facts), ".", class_="lead"), table(join(caption, why), head, lines))


def _row(facts: Facts, at: int) -> Iterator[Child]:
    for name, form, bad in COLUMNS:
        number = facts.entry(f"diagnostics/{name}", variable=at)
        shown = number.html(form)
        yield tag("strong", shown, class_="bad") if bad(number.value) else shown


def _fine(value: float) -> bool:
    return False


def _apart(rhat: float) -> bool:
    return rhat > diagnostics.MIXED


def _few(draws: float) -> bool:
    return draws < diagnostics.ENOUGH


COLUMNS: tuple[tuple[str, Form, Callable[[float], bool]], ...] = (
    ("mean", LEVEL, _fine),
    ("sd", VALUE, _fine),
    ("mcse", VALUE, _fine),
    ("rhat", RHAT, _apart),
    ("ess_bulk", COUNT, _few),
    ("ess_tail", COUNT, _few),
)
"""Of the table of diagnostics: how it is written, and what is bad."""
NUMBER = Section("number", "How many features", body)
AGREEMENT = Section("chains", "Whether the chains agree", agreement)
