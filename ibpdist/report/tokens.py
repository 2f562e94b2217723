"""What `show` says of features of counts: tokens, words, and perplexities of hidden tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.words import counted
from ibpdist.evaluate import posterior
from ibpdist.report import cells, diagnosis
from ibpdist.report.lines import Column, levels, percent, prior_words
from ibpdist.report.words import top_words

Floats = NDArray[np.floating[Any]]
TOP = 5
"""Words that are listed for a feature."""
WIDEST = 72
"""Characters of such a list; a word that does not fit is left out, and all after it."""
FEW = 0.01
"""Share of an even share of the tokens below which a feature has nearly none."""
ALIKE = 0.1
"""Total variation distance below which two features have nearly the same words."""
ADVICE = "try other starts (--restarts 4)"


def order(result: Any) -> NDArray[np.intp]:
    """The active features by falling tokens."""
    which = np.flatnonzero(result["params"]["active"].values)
    return which[np.argsort(-result["params"]["tokens"].values[which], kind="stable")]


def smallest(result: Any, k: int) -> str:
    """The last feature of that order, in words."""
    return f"the smallest with {percent(token_shares(result['params'])[k])} of the tokens"


def token_shares(params: Any) -> Floats:
    """(feature) the share of all tokens that a feature has."""
    tokens: Floats = params["tokens"].values
    return tokens / max(float(tokens.sum()), np.finfo(float).tiny)


def columns(result: Any) -> Iterator[Column]:
    """What a line of a feature says beside its prevalence."""
    shares = token_shares(result["params"])
    yield Column("tokens", lambda k: percent(shares[k]))


def words(features: Any) -> Iterator[Column]:
    """The words with the largest shares of each feature of a dataset with `mean` (feature, column)."""
    labels = features["column"].values if "column" in features.coords else None
    mean = features["mean"].values
    yield Column(" words", lambda k: " " + _fitting(top_words(mean[k : k + 1], labels, TOP)[0]), "<")


def over_draws(result: Any) -> Any:
    """Features over the draws of a sampler, with their words."""
    return posterior.features(result)


def remarks(result: Any) -> Iterator[str]:
    """Things to check, and a word where the number of features is not an answer."""
    params, truncation = result["params"], int(result.attrs["truncation"])
    active = np.flatnonzero(params["active"].values)
    few = params["tokens"].values[active] <= FEW * params["tokens"].values.sum() / max(len(active), 1)
    if few.any():
        verb = "has" if few.sum() == 1 else "have"
        of = f"less than {FEW:.0%} of an even share".replace("%", " %")
        yield f"{diagnosis.listed(active[few])} {verb} nearly no tokens ({of}): a smaller K does as well"
    yield from _same_words(active[~few], params["mean"].values)
    if len(active) >= truncation:
        yield diagnosis.used_up(truncation, diagnosis.COMPARE)


def values(result: Any) -> Iterator[tuple[str, str]]:
    """Mass, and how well the fit predicts tokens of its rows that it did not see."""
    params = result["params"]
    yield from levels(params, prior_words(params))
    if "score" not in params:
        yield "objective", f"{float(result.attrs['objective']):,.4f}"
        return
    score, tokens = float(params["score"]), int(params["scored_tokens"])
    of = f"{counted(tokens, 'hidden token')} of the rows ({score:.4f} nats a token)"
    yield "prediction", f"perplexity {perplexity(score)} of {of}" if tokens else "no tokens are hidden"


def heldout(scores: Any) -> str:
    """One evaluation: the perplexity of the prediction, with dispersion, and of the baseline; and of what."""
    level = {name: float(scores["score"].sel(estimate=name)) for name in scores["estimate"].values}
    error = np.exp(-level["prediction"]) * float(scores["error"].sel(estimate="prediction"))
    margin = f" +- {error:.{decimals(error)}f}" if error else ""
    of = f"{counted(int(scores.cells), 'token')} of {scores.data.item()}, {scores.protocol.item()}"
    of += f"; {scores['method'].item()}"
    return (
        f"perplexity {perplexity(level['prediction'])}{margin}, {perplexity(level['dispersed'])} with "
        f"dispersion, baseline {perplexity(level['unigram'])}; {of}"
    )


def restarts(result: Any) -> str:
    """How many starts there were, and how far their perplexities are apart."""
    if "score" not in result["params"]:
        return cells.restarts(result)
    objectives = np.asarray(result["restarts"]["objective"].values)
    if diagnosis.agree(objectives):
        return f"{objectives.size}; all predict the hidden tokens alike"
    scores = objectives / max(float(result["params"]["scored_tokens"]), 1.0)
    best, worst = (perplexity(float(one)) for one in (scores.max(), scores.min()))
    return f"{objectives.size}; the best is {int(scores.argmax())}, perplexity {best}; the worst has {worst}"


def perplexity(score: float) -> str:
    """Of a score in nats a token."""
    level = float(np.exp(-score))
    return f"{level:.{decimals(level)}f}"


def decimals(value: float) -> int:
    """Digits of a perplexity after the point."""
    return 1 if value >= 1000 else 2


def _fitting(listed: list[tuple[str, float]]) -> str:
    """The words of a list as far as they fit, the first one in any case."""
    shown = ""
    for word, _ in listed:
        longer = f"{shown}, {' '.join(word.split())}" if shown else " ".join(word.split())
        if shown and len(longer) > WIDEST:
            break
        shown = longer
    return shown


def _same_words(which: NDArray[np.intp], mean: Floats) -> Iterator[str]:
    """The pairs of these features whose words are most alike, those most alike first."""
    for distance, k, j in sorted(_alike(which, mean[which]))[: diagnosis.NAMED]:
        same = f"nearly the same words (total variation distance {distance:.2f})"
        yield f"features {k} and {j} look like one: they have {same}; {ADVICE}"


def _alike(which: NDArray[np.intp], shares: Floats) -> Iterator[tuple[float, int, int]]:
    """Distance, k and j of pairs below ALIKE; the distance is at least 1 - sum_v sqrt(p_v q_v), so that most
    pairs are left out by one product of matrices."""
    roots = np.sqrt(shares)
    for a, b in np.argwhere(np.triu(roots @ roots.T > 1 - ALIKE, 1)):
        distance = float(np.abs(shares[a] - shares[b]).sum() / 2)
        if distance < ALIKE:
            yield distance, int(which[a]), int(which[b])
