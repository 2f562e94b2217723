"""The best of short fits of a sample of rows: the start of features with weights (starts-and-moves.md 21).

Fits end in different features where they begin at principal components, at independent components of the
scores, or with weights that are positive, and none of the three is always the best. Each is fitted to the
same rows for some passes, the highest objective goes on. Rows are a sample where there are many.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.coordinate import ACTIVE, Coordinate
from ibpdist.inference.ascent.params import AnyModelParams, AnyModelSums, ModelParams, ShortFits
from ibpdist.inference.starts import start_questions
from ibpdist.inference.starts.begin import beginnings, projected
from ibpdist.inference.starts.factors import Axes, Loadings
from ibpdist.inference.starts.independent import (
    ROWS_PER_COMPONENT,
    above_edge,
    above_median,
    independent,
    whitened,
)
from ibpdist.inference.starts.pair_rotation import peaked
from ibpdist.inference.starts.principal import Principal
from ibpdist.inference.starts.start_questions import RowsAnswer, rows_question
from ibpdist.model.model import AnyModel
from ibpdist.model.observations._base import RowState, Survey
from ibpdist.model.observations.gaussian_params import intercept_mean
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.weights._base import slab_at

Float = NDArray[np.float64]
Index = NDArray[np.intp]

CELLS = 4_000_000
"""Cells of the rows that short fits see, unless rows would be too few."""
MOST_CELLS = 64_000_000
"""Most cells of these rows: of wider data there are too few for independent components."""
ROWS_PER_FEATURE = 10
PASSES = 60
TRIES = 5
"""Rotations of which the least normal is taken."""
FLAT = 1e-6
"""Relative gain of a pass after which a short fit ends."""
EVEN = 0.01
"""Nats a cell by which a fit with rows that were even at first has to be better."""
FORCED = 5
"""Passes in which rows have every feature."""
OFTEN = 0.5
"""Share of the rows above which features are turned."""
MOST_TURNED = 16
MORE_OFF = 0.1
"""Least gain of the share of the rows that lack turned features, summed over these."""
TURNS = 4
CERTAIN = 20.0
"""Log odds of features that rows are made to have."""


@dataclass(frozen=True)
class Best:
    """Begins where the best of short fits ends."""

    principal: Principal = field(default_factory=Principal)
    passes: int = PASSES

    name: ClassVar[str] = "best"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return min(max(CELLS // columns, ROWS_PER_FEATURE * features), max(MOST_CELLS // columns, 1))

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None:
        if known and isinstance(known[-1][1], RowsAnswer):
            return None
        asked = self.principal.ask(model, features, survey, known, draws)
        if asked is not None:
            return asked
        return rows_question(survey, self.rows_held(survey.cells.size, features))

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return start_questions.answer(chunk, question, draws)

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        *looks, (_, sample) = known
        axes = self.principal.axes(features, survey, looks)
        trial = Trial(with_finite_prior(model), features, sample.chunk(), draws)
        simple = axes.simple()
        plain = trial.begun(Loadings(simple.mean / axes.unit, simple.noise / axes.unit**2), axes.origin)
        turned = [trial.begun(*one) for one in _turned(axes, sample, survey, draws)]
        if not turned:
            return trial.whole(model, plain, survey)
        fits = [trial.ended(start, self.passes) for start in (*turned, plain)]
        fits += filter(None, [trial.positive(turned[0], self.passes)])
        cells = max(float(np.count_nonzero(sample.observed)), 1.0)
        best = trial.turned(chosen(fits, cells), self.passes // 2)
        found = trial.whole(model, best.params, survey)
        return replace(found, starts=short_fits([one for fit in fits for one in fit], cells))


def chosen(fits: Sequence[Sequence[Ended]], cells: float) -> Ended:
    """The fit that goes on.

    Each start has a fit whose rows are uneven, then perhaps one whose rows were even at first: the best of
    those is taken only where it is better by more than EVEN nats a cell.
    """
    best: list[Ended] = [max(alike, key=lambda one: one.objective) for alike in zip(*fits, strict=True)]
    uneven, even = best[0], best[-1]
    return even if even.objective > uneven.objective + EVEN * cells else uneven


def short_fits(ended: Sequence[Ended], cells: float) -> ShortFits:
    """What is kept of short fits to so many cells."""
    return ShortFits(
        objective=np.array([one.objective / cells for one in ended]),
        active=np.array([np.count_nonzero((one.params.on > ACTIVE) & distinct(one)) for one in ended]),
    )


def with_finite_prior(model: AnyModel) -> AnyModel:
    """The model with the prior of K features, whose update is in closed form."""
    if model.prior.dense:
        return model
    mass = model.prior.mass  # type: ignore[attr-defined]  # all priors of features that rows may lack have one
    return dataclasses.replace(model, prior=BetaBernoulli(mass))


def _turned(axes: Axes, sample: RowsAnswer, survey: Survey, draws: Draws) -> Iterator[tuple[Loadings, Float]]:
    """The leading axes turned to independent components, with where rows are that have none of them; nothing
    where rows are too few.

    One rotation is found from as many components as may be signal. Another one is the best of several, of as
    many as stand out of the noise, from the half of the rows that leave the least beside the axes: noisy
    rows look like components. Each is sometimes far better.
    """
    facts = axes.known, float(axes.variances.sum()), int(survey.rows), len(axes.variances)
    if axes.values[0] <= 0:
        return
    every, quiet = np.ones(len(sample.x), np.bool_), axes.quiet(sample.x, sample.observed)
    for count, tries, rows in ((above_median(*facts), 1, every), (above_edge(*facts), TRIES, quiet)):
        count = min(max(count, 2), len(axes.values))
        if rows.sum() < ROWS_PER_COMPONENT * count:
            continue
        rng = draws.generator(f"independent {tries}")
        found = independent(axes.scores(sample.x[rows], sample.observed[rows], count), rng, tries)
        yield axes.turned(found.turn, found.off)


@dataclass(frozen=True)
class Ended:
    """Where a short fit ended."""

    params: AnyModelParams
    sums: AnyModelSums
    state: RowState
    objective: float


def activity(state: RowState) -> Float:
    """(feature, row) E y."""
    found: Float = (state.z * state.w).astype(np.float64)
    return found


def strength(at: Ended) -> Float:
    """(feature) variance over the rows of what a feature explains of a row, in units of the noise."""
    seen = at.params.observation
    found: Float = activity(at.state).var(axis=1) * (seen.mean**2 / seen.noise).sum(axis=1)
    return found


def distinct(at: Ended) -> NDArray[np.bool_]:
    """(feature) whether it stands out of the noise: short fits still have features that explain nothing."""
    share = at.params.observation.noise.size / float(at.params.rows)
    found: NDArray[np.bool_] = strength(at) > 2 * np.sqrt(share) + share
    return found


def often_on(at: Ended) -> Index:
    """Features that most rows have and that stand out of the noise, at most so many, the strongest ones;
    none where rows are too few."""
    found, rows = strength(at), float(at.params.rows)
    often = np.flatnonzero((at.params.on > OFTEN * rows) & distinct(at))
    chosen = np.sort(often[np.argsort(-found[often], kind="stable")[:MOST_TURNED]])
    return chosen if rows >= ROWS_PER_COMPONENT * len(chosen) else chosen[:0]


@dataclass(frozen=True)
class Trial:
    """Short fits of a model to rows in memory."""

    model: AnyModel
    features: int
    chunk: Chunk
    draws: Draws

    def begun(self, found: Loadings, origin: Float) -> AnyModelParams:
        """Parameters with a dictionary, and where rows are that have no feature (column)."""
        observation, survey = projected(self.model), self.model.observation.summarise(self.chunk)
        count, rng = len(found.mean), self.draws.generator("init")
        blank = self.model.observation.init(survey, count, rng)
        seen = observation.moved(observation.initial(blank, found.mean, found.noise), origin)
        on = np.full(count, float(survey.rows))
        return ModelParams(observation=seen, **beginnings(self.model, on, survey, rng, self.features))

    def ended(self, params: AnyModelParams, passes: int) -> list[Ended]:
        """After some passes; where rows may be uneven, also with rows that are even in the first half."""
        found, own = [self.fitted(params, passes)], params.observation
        if isinstance(own.row_noise, Nothing):
            return found
        even = replace(params, observation=replace(own, row_noise=NOTHING))
        at = self.fitted(even, passes // 2)
        uneven = replace(at.params, observation=replace(at.params.observation, row_noise=own.row_noise))
        at = self._step(uneven, at.state, self.model.prior.log_odds(uneven.prior))
        return [*found, self._passes(at, passes - passes // 2 - 1)]

    def fitted(self, params: AnyModelParams, passes: int) -> Ended:
        """After some passes from parameters of these rows, in the first of which rows have every feature."""
        forced = np.full(len(params.ids), CERTAIN)
        at = self._step(params, self._state(params), forced)
        for _ in range(1, FORCED):
            at = self._step(at.params, at.state, forced)
        return self._passes(at, passes - FORCED)

    def cooled(self, params: AnyModelParams, passes: int) -> Ended:
        """After some passes from a dictionary with a covariance, where rows begin from hot to cold."""
        at = self._step(params, self._state(params), self.model.prior.log_odds(params.prior))
        return self._passes(at, passes - 1)

    def positive(self, params: AnyModelParams, passes: int) -> list[Ended]:
        """A fit whose weights are positive in the first passes, if those of the model may be."""
        weights = self.model.weights.rehearsal
        if weights is None:
            return []
        first = dataclasses.replace(self, model=dataclasses.replace(self.model, weights=weights))
        return [
            self._with_own_weights(at, passes // 3)
            for at in first.ended(replace(params, weights=NOTHING), passes - passes // 3)
        ]

    def _with_own_weights(self, at: Ended, passes: int) -> Ended:
        own = replace(at.params, weights=self.model.weights.slab(len(at.params.ids)))
        made, info = self._fit.update(own, at.sums, self.draws)
        return self._passes(Ended(made, at.sums, at.state, info.objective), passes)

    def turned(self, at: Ended, passes: int) -> Ended:
        """The fit after features that most rows have were turned in pairs, as often as that helps."""
        for _ in range(TURNS):
            begun = self._turned(at, often_on(at))
            if begun is None:
                break
            found = self._passes(begun, passes)
            if found.objective <= at.objective + FLAT * abs(at.objective):
                break
            at = found
        return at

    def _turned(self, at: Ended, often: Index) -> Ended | None:
        """After some passes in which rows are as likely to have these features, turned, as to lack them; None
        where hardly more rows lack them then."""
        if not len(often):
            return None
        params, state, seen = at.params, at.state, projected(self.model)
        y, mean = activity(state)[often], params.observation.mean.copy()
        scores, root = whitened(y)
        made = peaked(scores, 1 / np.sqrt(strength(at)[often]))
        lacking = float((1 - params.on[often] / float(params.rows)).sum())
        if made.heights.sum() < lacking + MORE_OFF:
            return None
        found, clear = made.components, often[made.clear]
        back = root @ found.turn.T
        origin = intercept_mean(params.observation) + (y.mean(axis=1) + back @ found.off) @ mean[often]
        mean[often] = back.T @ mean[often]
        observed = seen.initial(params.observation, mean)
        z, w, places = state.z.copy(), state.w.copy(), np.arange(len(mean))
        z[often], w[often], places[often] = 1, found.turn @ scores - found.off[:, None], -1
        begun = replace(
            params,
            observation=seen.moved(observed, origin),
            weights=slab_at(params.weights, places),
        )
        odds = np.array(self.model.prior.log_odds(params.prior))
        odds[clear] = 0.0
        ended = dataclasses.replace(at, params=begun, state=replace(state, z=z, w=w))
        for _ in range(FORCED):
            ended = self._step(ended.params, ended.state, odds)
        return ended

    def _passes(self, at: Ended, most: int) -> Ended:
        """Passes until the objective is flat."""
        for _ in range(most):
            before = at.objective
            at = self._step(at.params, at.state, self.model.prior.log_odds(at.params.prior))
            if abs(at.objective - before) < FLAT * abs(before):
                break
        return at

    def whole(self, model: AnyModel, params: AnyModelParams, survey: Survey) -> AnyModelParams:
        """Parameters of a model for all rows."""
        grown = float(survey.rows) / max(float(self.chunk.rows), 1.0)
        rng = self.draws.generator("init")
        held = beginnings(model, params.on * grown, survey, rng, self.features)
        observed = projected(self.model).widened(params.observation, survey, grown)
        return ModelParams(observation=observed, **held | {"weights": params.weights})

    @property
    def _fit(self) -> Coordinate[Any, Any]:
        return Coordinate(self.model, self.features)

    def _state(self, params: AnyModelParams) -> RowState:
        return self._fit.start(self.chunk, params, self.draws)

    def _step(self, params: AnyModelParams, state: RowState, log_odds: Float) -> Ended:
        state, sums = self._fit.swept(self.chunk, state, params, log_odds, self.draws)
        made, info = self._fit.update(params, sums, self.draws)
        return Ended(made, sums, state, info.objective)
