"""Collapsed means of counts with each row met after those before it have been summed, as CVB0 is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.counts.means import TokenMeans, entered, known_of
from ibpdist.inference.counts.params import TokenParams, TokenStepSums
from ibpdist.inference.starts import start_questions
from ibpdist.kernels import tokens


def initial(alg: TokenMeans, chunk: Chunk, seed: int) -> TokenParams:
    """Parameters where a fit of this chunk begins."""
    survey, draws = alg.summarise(chunk), Draws(seed)
    found: TokenParams = start_questions.initial(
        alg, survey, draws, lambda _, question: alg.look(chunk, question, draws)
    )
    return found


def fit_at_once(alg: TokenMeans, chunk: Chunk, steps: int, seed: int = 0) -> TokenParams:
    params = initial(alg, chunk, seed)
    rows, draws = alg.start(chunk, params, Draws(seed)), Draws(seed)
    for step in range(1, steps + 1):
        rows, sums = alg.local(chunk, rows, params, draws.at(step))
        params, _ = alg.update(params, sums, draws.at(step))
    return params


@dataclass
class InTurn:
    """Rows with rho (entry, feature), and the sums of all of them as they are now."""

    entries: Any
    rows: tokens.RowTokens
    rho: Any
    y: Any

    def step(self, n: int, params: TokenParams, every: tokens.TokenSums) -> None:
        """Meet row n."""
        part = slice(self.entries.starts[n], self.entries.starts[n + 1])
        at = self.entries.words[part]
        known = known_of(replace(params, y=self.y, own=np.ones(())), self.rho.dtype)
        one = tokens.Entries(np.array([0, len(at)]), at, self.entries.counts[part])
        sums = tokens.empty_sums(*self.y.shape)
        before = self.entries.counts[part][:, None] * self.rho[part]
        row = tokens.RowTokens(self.rows.y[n : n + 1], self.rows.rate[n : n + 1])
        tokens.keep_rho(one, known, row, self.rho[part], digamma(params.shape), sums)
        self.y[at] += sums.y[at] - before
        for name in ("on", "seen", "exposed", "scalars"):
            getattr(every, name)[:] += getattr(sums, name)


def fit_in_turn(alg: TokenMeans, chunk: Chunk, steps: int, seed: int = 0) -> TokenParams:
    """From the same start; after each pass over the rows the prior and the shapes are updated."""
    params, seen = initial(alg, chunk, seed), alg._divided(chunk)[0]
    state, known = alg.start(chunk, params, Draws(seed)), known_of(params, chunk.x.dtype)
    rows = tokens.RowTokens(state.y.copy(), state.rate.copy())
    rho = np.zeros((len(seen.counts), alg.features), chunk.x.dtype)
    sums = tokens.empty_sums(*params.y.shape)
    tokens.keep_rho(entered(seen, known), known, rows, rho, digamma(params.shape), sums)
    chain = InTurn(entered(seen, known), rows, rho, sums.y)
    for step in range(1, steps + 1):
        every = sums
        if step > 1:
            every = tokens.empty_sums(*params.y.shape)
            for n in range(seen.rows):
                chain.step(n, params, every)
        none = np.zeros(())
        given = TokenStepSums(
            y=chain.y.copy(),
            on=every.on,
            seen=every.seen,
            exposed=every.exposed,
            rows=np.asarray(float(seen.rows)),
            change=none,
            tokens=np.asarray(every.tokens),
            nats=none,
            scored=none,
        )
        params, _ = alg.update(params, given, Draws(seed).at(step))
    return params
