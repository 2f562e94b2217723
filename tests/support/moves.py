"""Fits to try moves on, and the plain way to score an edit: rewrite the rows, sum, update, score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from ibpdist.base.randomness import Draws
from ibpdist.inference.ascent.coordinate import Coordinate, align
from ibpdist.inference.ascent.params import ModelSums
from ibpdist.inference.moves._base import Situation
from ibpdist.inference.moves.relabel import blank
from ibpdist.model.observations._base import RowState, RowSums
from ibpdist.model.observations.gaussian_sums import GaussianSums
from tests.support.model_cases import Case, algorithm, chunked, fit, survey


@dataclass
class Fitted:
    """A fit, its rows, and what a move is told of it."""

    alg: Coordinate
    chunk: object
    state: RowState
    situation: Situation

    def rows_after(self, params):
        """Row state of the features of `params`, from their parents."""
        return align(self.state, params)

    def score_of_rows(self, edit):
        """The objective of an edit by the long way round."""
        situation = self.situation
        start = blank(situation.model, edit, situation.params)
        sums = sums_of(self.rows_after(start), self.chunk, start, self.alg.model)
        made, info = Coordinate(situation.model, len(edit.ids)).update(start, sums, Draws(0))
        trace = info.trace()
        return made, sums, trace["objective"]


def fitted(case=None, x=None, observed=None, features=4, steps=25, seed=1, **settings):
    """Fit a case to x (zero where not observed); `objective`, parameters and sums belong together."""
    case = case or Case(prior="sticks")
    alg = algorithm(case, features, 2, **settings)
    chunks = chunked(x, observed)
    params, states, sums, traces = fit(alg, chunks, steps, seed)
    total = np.where(observed, x, 0.0).sum(axis=0) if observed is not None else x.sum(axis=0)
    situation = Situation(alg.model, params, sums, total, traces[-1]["objective"], features)
    return Fitted(alg, chunks[0], states[0], situation)


def settled(case, x, z, observed=None, steps=3, sweep=True, **settings):
    """A fit whose rows begin at z (row, feature); without `sweep` they stay there."""
    alg = algorithm(case, z.shape[1], 2, **settings)
    chunk = chunked(x, observed)[0]
    params = alg.init(survey(alg, [chunk]), Draws(0))
    state = RowState(ids=params.ids, z=np.ascontiguousarray(z.T, x.dtype), w=np.zeros((0, len(x)), x.dtype))
    sums = sums_of(state, chunk, params, alg.model)
    params, info = alg.update(params, sums, Draws(0))
    trace = info.trace()
    for step in range(1, steps + 1 if sweep else 1):
        state, sums = alg.local(chunk, state, params, Draws(0, step))
        params, info = alg.update(params, sums, Draws(0, step))
        trace = info.trace()
    total = np.where(observed, x, 0.0).sum(axis=0) if observed is not None else x.sum(axis=0)
    return Fitted(
        alg, chunk, state, Situation(alg.model, params, sums, total, trace["objective"], z.shape[1])
    )


def run(alg, params, state, chunk, passes, first=1):
    """So many steps from given parameters: row state, sums, parameters and objective."""
    for step in range(first, first + passes):
        state, sums = alg.local(chunk, align(state, params), params, Draws(0, step))
        params, info = alg.update(params, sums, Draws(0, step))
        trace = info.trace()
    return state, sums, params, trace["objective"]


def sums_of(state, chunk, params, model):
    """Sums over rows that stay as they are, unit weights, no filled cells (linear-gaussian.md 5, 9)."""
    z, x = state.z.astype(np.float64), chunk.x.astype(np.float64)
    seen = np.ones(x.shape, bool) if chunk.observed is None else chunk.observed
    entropy = -(xlogy(z, z) + xlogy(1 - z, 1 - z)).sum(axis=1)
    grams = []
    for g in range(int(params.observation.group.max()) + 1):
        rows = seen[:, np.flatnonzero(params.observation.group == g)[0]]
        gram = z[:, rows] @ z[:, rows].T
        np.fill_diagonal(gram, z[:, rows].sum(axis=1))
        grams.append(gram)
    observed = GaussianSums(
        rows=np.asarray(float(chunk.rows)),
        gram=np.array(grams),
        cross=z @ np.where(seen, x, 0.0),
    )
    on = z.sum(axis=1)
    entries = RowSums(on=on, first=on, second=on, entropy=entropy, cost=np.zeros(len(z)))
    return ModelSums(entries=entries, observation=observed)
