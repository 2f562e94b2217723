"""How sure the answer is, sentence by sentence, and what is odd about the features."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ibpdist.report import chains, diagnosis, subsamples
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, label, tag
from ibpdist.report.html.measures import PERPLEXITY, perplexity
from ibpdist.report.html.numbers import COUNT, SCORE, VALUE, WHOLE_PERCENT, Number, fixed
from ibpdist.report.html.score import heldout, others, own, scored
from ibpdist.report.html.sections._base import Section
from ibpdist.report.html.sections.answer import stable
from ibpdist.report.html.sections.posterior import RHAT, worst
from ibpdist.report.summary import kind_of

GOOD, DOUBT, OPEN, FACT = "good", "doubt", "open", "fact"
Verdict = tuple[str, Child]

_FEATURES = re.compile(r"\bfeatures? (\d+(?:, \d+)*(?: and \d+)?)")
_VALUE = re.compile(r"\((correlation|cosine) (-?[\d.]+)\)")


def body(facts: Facts) -> Html:
    own = (
        (_chains, _room_of_draws) if facts.sampled else (_restarts, _subsamples, _convergence, _room, _starts)
    )
    verdicts = [one for say in (*own, _heldout, _fits, _notices) for one in say(facts)]
    entries = [_entry(kind, sentence) for kind, sentence in verdicts]
    texts = (*_remarks(facts), *diagnosis.remarks_on_parameters(facts.result["params"]))
    odd = [tag("li", _remark(facts, text), data_remark="diagnosis") for text in texts]
    more = [tag("h3", "Things to check"), tag("ul", odd, class_="remarks")] if odd else None
    return join(tag("ul", entries, class_="verdicts"), more, _narrow(facts))


def _entry(kind: str, sentence: Child) -> Html:
    return tag("li", tag("b", kind, class_="verdict"), tag("span", sentence), class_=kind)


def _chains(facts: Facts) -> Iterator[Verdict]:
    """Of a sampler: whether its draws can be used, as `show` says it."""
    doubts = list(chains.remarks(facts.result))
    yield from (
        (DOUBT, tag("span", f"{text[:1].upper()}{text[1:]}.", data_remark="diagnostics")) for text in doubts
    )
    rhat = worst(facts)
    if rhat is None and not doubts:
        yield OPEN, "There are too few draws to say whether the chains agree."
    elif rhat is not None and not doubts:
        yield GOOD, ["The chains agree: R-hat is at most ", rhat.html(RHAT), "."]


def _room_of_draws(facts: Facts) -> Iterator[Verdict]:
    """Of a sampler that is given a number of features: whether it uses them all."""

    if chains.may_grow(facts):
        return
    most = facts.attribute("truncation").html(COUNT)
    all_used = facts.values("number/features") == int(facts.attrs["truncation"])
    share = Number("number/share", float(facts.values("number/share")[all_used].sum()), of="all used")
    if share.value > chains.RARE:
        more = f" available features, so there may be more: {facts.measures.used_up}."
        words = [" of the draws use all ", most, more]
        yield DOUBT, [share.html(WHOLE_PERCENT), words]
    else:
        yield GOOD, ["Hardly any draw uses all ", most, " available features, so K was large enough."]


def _convergence(facts: Facts) -> Iterator[Verdict]:
    reason = tag("span", facts.attrs["stopped"], data_variable="attrs/stopped")
    if facts.attrs["stop"] == "converged":
        yield GOOD, ["The fit ", reason, "."]
    else:
        how = "Continue with more steps (--steps)"
        if facts.campaign is not None:
            how = "Give its fits more steps (steps: in the campaign file)"
        yield DOUBT, ["The fit has not converged: it was ", reason, f". {how}."]


def _room(facts: Facts) -> Iterator[Verdict]:
    active, most = facts.reduced("params/active", "sum"), facts.attribute("truncation")
    of = [active.html(COUNT), " of ", most.html(COUNT)]
    full = active.value == most.value
    if facts.has("diagnosis/used_up"):
        full = bool(facts.values("diagnosis/used_up"))
    larger = _larger(facts)
    if full and larger is not None:
        yield (
            GOOD,
            [
                of,
                " available features are used, but fits with up to ",
                larger.html(COUNT),
                " are no better.",
            ],
        )
    elif full:
        more = f" available features are used, so there may be more: {facts.measures.used_up}."
        yield DOUBT, [of, more]
    elif active.value < most.value:
        yield GOOD, [of, " available features are used, so K was large enough."]


def _larger(facts: Facts) -> Number | None:
    """The largest truncation of a campaign, if it is larger than that of the best fit and has a result."""
    if facts.summary is None or "truncation" not in facts.best_at:
        return None
    tried = [str(k) for k in facts.summary["truncation"].values]
    here = {dim: at for dim, at in facts.best_at.items() if dim != "restart"}
    fits = [
        (int(k), at)
        for at, k in enumerate(tried)
        if k.isdigit() and facts.reduced("summary/objective", "max", **here | {"truncation": at}).known
    ]
    most, at = max(fits, default=(0, 0))
    return facts.entry("summary/truncation", truncation=at) if most > int(facts.attrs["truncation"]) else None


def _starts(facts: Facts) -> Iterator[Verdict]:
    """Of a fit that no restarts of a campaign are compared with."""
    several = facts.summary is not None and facts.summary.sizes.get("restart", 1) > 1
    if facts.stability is not None or several:
        return
    if not facts.has("restarts/objective"):
        yield OPEN, "One start was made. Whether another seed gives the same features is not known."
        return
    objectives = facts.values("restarts/objective")
    count = Number("restarts/objective", float(objectives.size), of="size").html(COUNT)
    if diagnosis.agree(objectives):
        yield FACT, ["The ", count, " starts have come to the same objective."]
        return
    shown = ["The best of ", count, " starts is shown; their "]
    if facts.predicts:
        tokens = facts.entry("params/scored_tokens").value
        ends = [perplexity(facts.reduced("restarts/objective", of), tokens) for of in ("max", "min")]
        low, high = (one.html(PERPLEXITY) for one in ends)
        yield OPEN, [shown, "perplexities of hidden tokens are ", low, " to ", high, "."]
        return
    spread = facts.reduced("restarts/objective", "spread").html(VALUE)
    yield OPEN, [shown, "objectives span ", spread, " nats."]


def _restarts(facts: Facts) -> Iterator[Verdict]:
    """Of a campaign: how many features the other starts find again."""
    again = stable(facts)
    if again is None or facts.stability is None:
        return
    least = f"{facts.stability.attrs['least']:.0%}".replace("%", "\u00a0%")
    limit = tag("span", least, data_limit="stability")
    words = [again.html(COUNT), " of ", facts.reduced("params/active", "sum").html(COUNT)]
    kind = GOOD if again.value == len(facts.active) else DOUBT
    yield kind, [words, " features are found in at least ", limit, " of the other starts."]


def _subsamples(facts: Facts) -> Iterator[Verdict]:
    """How many features come back in fits of subsamples."""
    if not facts.has("stability/returns") or not facts.active:
        return
    again = facts.reduced("stability/stable", "sum")
    limit = tag("span", subsamples.enough(facts.result["stability"]), data_limit="stability")
    words = [again.html(COUNT), " of ", facts.reduced("params/active", "sum").html(COUNT)]
    kind = GOOD if again.value == len(facts.active) else DOUBT
    yield kind, [words, " features come back in at least ", limit, " subsamples of the rows."]


def _heldout(facts: Facts) -> Iterator[Verdict]:
    """The score of what was held out from the fit, then those of other rows."""
    score, more, hidden = heldout(facts), others(facts), f"hidden {facts.measures.hidden}s"
    if score is None and not more:
        yield OPEN, facts.measures.unscored
    if score is not None:
        at = own(facts)
        of = f"On {hidden}" if at is None else ["On ", *_cells(facts, at), hidden]
        better = "lower" if facts.counts else "higher"
        yield FACT, [of, *_level(facts, at, score, heldout(facts, "error")), f"; {better} is better."]
    for at in more:
        held = facts.result["heldout"]
        where = str(held["data"].values[at])
        new: Child = "On its own rows"
        if facts.spec is None or where != facts.spec.data:
            new = ["On new rows of ", label(Path(where).name or where, "data")]
        level, error = (scored(facts, at, name) for name in ("score", "error"))
        protocol = _words(facts, "protocol", at)
        yield FACT, [new, *_level(facts, at, level, error), " (", protocol, ")."]


def _level(facts: Facts, at: int | None, score: Number, error: Number | None) -> list[Child]:
    """The score of an evaluation; of counts perplexities, with dispersion and of the baseline where these
    are known."""
    if not facts.counts:
        return [" it scores ", score.html(SCORE), *_margin(error)]
    full = perplexity(score)
    if error is not None:
        value = full.value * error.value
        error = Number(error.variable, value, error.index, "error of the perplexity")
    words = [" its perplexity is ", full.html(PERPLEXITY), *_margin(error)]
    if at is None:
        return words
    bursts, baseline = (
        perplexity(scored(facts, at, estimate=name)).html(PERPLEXITY) for name in ("dispersed", "unigram")
    )
    words += [", ", bursts, " with dispersion, and ", baseline, " by one law of words for all rows"]
    return [*words, " (", _words(facts, "method", at), ")"]


def _words(facts: Facts, name: str, at: int) -> Html:
    """What is told of an evaluation in words."""
    held = str(facts.result["heldout"][name].values[at])
    return tag("span", held, data_variable=f"heldout/{name}", data_index=f"evaluation={at}")


def _cells(facts: Facts, at: int) -> list[Child]:
    known = facts.has("heldout/cells")
    return [facts.entry("heldout/cells", evaluation=at).html(COUNT), " "] if known else []


def _margin(error: Number | None) -> list[Child]:
    return [" ± ", error.html(VALUE)] if error is not None and error.value else []


def _fits(facts: Facts) -> Iterator[Verdict]:
    """Of a campaign: fits without a result."""
    if facts.summary is None:
        return
    objective = facts.values("summary/objective")
    lost = Number("summary/objective", float((objective != objective).sum()), of="missing")
    if lost.value:
        verb = " fit has" if lost.value == 1 else " fits have"
        yield DOUBT, [lost.html(COUNT), verb, " no result; the table of all fits says why."]
    if facts.scored:
        yield from _unscored(facts)


def _unscored(facts: Facts) -> Iterator[Verdict]:
    """Fits with a result that failed when they were scored."""
    failed = facts.values("summary/status") == "failed" if facts.has("summary/status") else np.array(False)
    broken = failed & np.isfinite(facts.values("summary/objective"))
    if broken.any():
        count = Number("summary/status", float(broken.sum()), of="not scored")
        verb = " fit could" if count.value == 1 else " fits could"
        yield DOUBT, [count.html(COUNT), verb, " not be scored; the table of all fits says why."]


def _notices(facts: Facts) -> Iterator[Verdict]:
    """What the run told while it was made."""
    notices = dict.fromkeys(str(e["text"]) for log in facts.logs for e in log if e["event"] == "notice")
    yield from ((DOUBT, tag("span", text, data_variable="events/notice")) for text in notices)


def _remarks(facts: Facts) -> Iterator[str]:
    """What `show` says as well; that K is used up stands above."""
    if not facts.sampled:
        ways = (diagnosis.LARGER, diagnosis.COMPARE)
        above = [diagnosis.used_up(int(facts.attrs["truncation"]), way) for way in ways]
        yield from (text for text in kind_of(facts.result).remarks(facts.result) if text not in above)


def _remark(facts: Facts, text: str) -> Html:
    """With features as labels, and values named after what they are of."""
    pair = [int(k) for k in re.findall(r"\d+", match[1])] if (match := _FEATURES.search(text)) else []
    parts: list[Child] = []
    at = 0
    matches = sorted([*_FEATURES.finditer(text), *_VALUE.finditer(text)], key=lambda one: one.start())
    for one in matches:
        shown: Child = tag("span", one[0], data_label="feature")
        if one.re is _VALUE:
            value = facts.entry(f"diagnosis/{one[1]}", feature=pair[0], feature_=pair[1])
            shown = ["(", one[1], " ", value.html(fixed(2)), ")"]
        parts += [text[at : one.start()], shown]
        at = one.end()
    return join(*parts, text[at:])


def _narrow(facts: Facts) -> Html | None:
    if not facts.uncertain or facts.image is not None:
        return None
    note = (
        "Standard deviations (after ±) are those of a variational fit. They are too narrow: they leave out "
        "what one part owes to the uncertainty of another."
    )
    return tag("p", note, class_="note")


SECTION = Section("sure", "How sure", body)
