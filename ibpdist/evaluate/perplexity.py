"""The held-out score of a fit of counts: nats per hidden token, given the seen tokens of the same row.

Three estimates: the prediction of the fit; the same where words come in bursts, with a dispersion that all
scored rows share; and the law of words that is the same for all rows, as a baseline (counts.md 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.progress import Count
from ibpdist.base.words import counted
from ibpdist.data._base import Chunk, Source
from ibpdist.data.entries import Entries
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.predict.chunks import Shares, over_chunks
from ibpdist.predict.dispersion import RateCounts, count_rates, dispersed, no_rates
from ibpdist.predict.tokens import PredictsTokens, laws_of, unigram

Values = NDArray[np.float64]

ESTIMATES = ("prediction", "dispersed", "unigram")
PLACING = 0.9
"""Share of the work that is done when the tokens of a chunk have been placed."""
UNITS = "nats per token"


@dataclass(frozen=True)
class TokenProtocol:
    """Which tokens of rows are hidden, and that in words."""

    split: HeldTokens
    words: str

    def halves(self, chunk: Chunk) -> tuple[NDArray[np.intp], Entries, Entries]:
        """The rows of a chunk that hide tokens, and their seen and hidden tokens."""
        seen, hidden = self.split.divided(chunk.start, chunk.entries)
        rows = np.flatnonzero(hidden.lengths)
        return rows, seen.some(rows), hidden.some(rows)


def new_documents(seed: int = 0, share: float = 0.5) -> TokenProtocol:
    """The protocol for new rows: a `share` of the tokens of each row is hidden."""
    words = f"{100 * share:g} % of the tokens of each row hidden (seed {seed}), the others seen"
    return TokenProtocol(HeldTokens(share=share, rows=1.0, seed=seed), words)


def held_from_fit(split: HeldTokens) -> TokenProtocol:
    """The protocol for the rows of a fit: the tokens that the fit did not see are hidden."""
    return TokenProtocol(split, f"tokens held out from the fit ({split.text})")


@dataclass(frozen=True)
class PlacedChunk:
    """Rows of a chunk: the numbers of those that hide tokens, and the weights (row, feature) of these by each
    predictor."""

    rows: NDArray[np.intp]
    weights: list[Values]


@dataclass(frozen=True)
class Scorer:
    """Several predictors, whose laws are averaged, and the rows that are scored with them."""

    of: Sequence[PredictsTokens]
    source: Source
    protocol: TokenProtocol
    shares: Shares

    @cached_property
    def training(self) -> Values:
        """(column) tokens of words in training."""
        found: Values = np.mean([one.y.sum(axis=1) for one in self.of], axis=0)
        return found

    @cached_property
    def unigram(self) -> Values:
        """(column) the law of words that is the same for all rows."""
        return unigram(self.training)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """(column) whether a word occurs in training: its expected tokens are a whole number, but for
        rounding."""
        found: NDArray[np.bool_] = self.training > 0.5
        return found

    def place(self, index: int) -> tuple[PlacedChunk, RateCounts]:
        """Place the seen tokens of a chunk; and its cells by rate."""
        rows, seen, _ = self.protocol.halves(self.source.read(index))
        weights, rates = [], no_rates()
        for number, one in enumerate(self.of, 1):
            weights.append(one.weights(one.place(seen)))
            self.shares.tell(index, PLACING * number / len(self.of))
        for part, laws in laws_of(self.of, weights):
            rates += count_rates(laws, seen.between(part.start, part.stop))
        return PlacedChunk(rows, weights), rates

    def score(self, index: int, placed: PlacedChunk, a: float) -> tuple[Values, Values]:
        """(estimate, 2, row) log probabilities of the hidden tokens of a chunk, of all and of those whose
        word occurs in training, and (2, row) how many tokens these are."""
        first, last = self.source.bounds(index)
        nats, tokens = np.zeros((len(ESTIMATES), 2, last - first)), np.zeros((2, last - first))
        _, seen, hidden = self.protocol.halves(self.source.read(index))
        for part, laws in laws_of(self.of, placed.weights):
            own, rows = hidden.between(part.start, part.stop), placed.rows[part]
            counts = np.array([own.counts, own.counts * self.known[own.columns]], float)
            row = np.repeat(np.arange(own.rows), np.diff(own.starts))
            bursts = dispersed(laws, seen.between(part.start, part.stop), a)
            found = (laws[row, own.columns], bursts[row, own.columns], self.unigram[own.columns])
            for estimate, chance in enumerate(found):
                nats[estimate][:, rows] = _by_row(counts * np.log(chance), row, own.rows)
            tokens[:, rows] = _by_row(counts, row, own.rows)
        self.shares.tell(index, 1.0)
        return nats, tokens


def token_scores(
    of: Sequence[PredictsTokens],
    source: Source,
    protocol: TokenProtocol,
    threads: int = 1,
    progress: Count | None = None,
) -> xr.Dataset:
    """Score the hidden tokens of rows; of several predictors the mean of their laws counts.

    By `estimate` (prediction, dispersed, unigram): `score`, the mean log probability of a hidden token, its
    standard `error` over rows, and `perplexity` = exp(-score); `score_known` and `perplexity_known` are of
    tokens whose word occurs in training. Rows without hidden tokens score zero. The result is the same, bit
    for bit, whatever the chunks and the threads. The weights of all scored rows are held in memory, eight
    bytes for each row, feature and predictor.
    """
    scorer = Scorer(of, source, protocol, Shares(source, progress))
    placed, rates = [], no_rates()
    for one, part in over_chunks(scorer.place, source.chunks, threads):
        placed.append(one)
        rates += part
    if not any(one.rows.size for one in placed):
        reason = "no token is hidden, so there is nothing to score; score rows of at least two tokens"
        raise UsageError(f"{reason}, or hide a larger share")
    a = rates.dispersion()
    scored = over_chunks(lambda index: scorer.score(index, placed[index], a), source.chunks, threads)
    nats, tokens = (np.concatenate(parts, axis=-1) for parts in zip(*scored, strict=True))
    attrs = {"method": _method(of), "protocol": protocol.words}
    return _dataset(nats, tokens, a, attrs)


def _by_row(values: Values, row: NDArray[np.intp], rows: int) -> Values:
    """(2, row) sums of (2, entry)."""
    return np.array([np.bincount(row, one, minlength=rows) for one in values])


def _method(of: Sequence[PredictsTokens]) -> str:
    features = counted(max(one.features for one in of), "feature")
    if len(of) == 1:
        return f"prediction with {features}, {of[0].how}"
    return f"mean of {len(of)} predictions with up to {features}, {of[0].how}"


def _dataset(nats: Values, tokens: Values, a: float, attrs: dict[str, str]) -> xr.Dataset:
    """Results from log probabilities (estimate, 2, row) and numbers of tokens (2, row)."""
    with np.errstate(invalid="ignore"):  # no token of a word that occurs in training: unknown
        score, known = (nats.sum(axis=-1) / tokens.sum(axis=-1)).T
    by_row, nothing = ("estimate", "row"), np.zeros(len(ESTIMATES))
    variables = {
        "score": ("estimate", score),
        "error": ("estimate", [_error(one, tokens[0]) for one in nats[:, 0]]),
        "disagree": ("estimate", nothing),
        "perplexity": ("estimate", np.exp(-score)),
        "score_known": ("estimate", known),
        "perplexity_known": ("estimate", np.exp(-known)),
        "row_score": (by_row, nats[:, 0]),
        "row_error": (by_row, np.zeros_like(nats[:, 0])),
        "cells": ("row", tokens[0].astype(np.int64)),
        "cells_known": ("row", tokens[1].astype(np.int64)),
        "dispersion": ((), a),
    }
    scored = xr.Dataset(variables, {"estimate": list(ESTIMATES)}, attrs)
    for name in ("score", "error", "score_known"):
        scored[name].attrs["units"] = UNITS
    return scored


def _error(nats: Values, tokens: Values) -> float:
    """The standard error over rows of sum nats / sum tokens; zero of a single row, which does not tell."""
    rows, whole = int((tokens > 0).sum()), tokens.sum()
    if rows < 2:
        return 0.0
    rest = nats - tokens * (nats.sum() / whole)
    return float(np.sqrt(rows / (rows - 1) * np.sum(rest**2)) / whole)


def summary(scored: xr.Dataset) -> str:
    """The scores in words."""
    one = scored.sel(estimate="prediction")
    error = float(one.perplexity) * float(one.error)
    over_rows = f" (+- {error:.1f} over documents)" if error else ""
    lines = [f"perplexity {_numbers(scored.perplexity, over_rows)}"]
    if int(scored.cells_known.sum()):
        lines.append(f"of words that occur in training: {_numbers(scored.perplexity_known)}")
    tokens, rows = int(scored.cells.sum()), int((scored.cells > 0).sum())
    where = f"{counted(tokens, 'token')} in {counted(rows, 'document')}"
    return "\n".join([*lines, f"{where}: {scored.attrs['protocol']}", scored.attrs["method"]])


def _numbers(perplexity: xr.DataArray, error: str = "") -> str:
    """The perplexity of each estimate in words."""
    plain, bursts, baseline = (f"{float(perplexity.sel(estimate=name)):.1f}" for name in ESTIMATES)
    return f"{plain}{error}, {bursts} with dispersion; unigram baseline {baseline}"
