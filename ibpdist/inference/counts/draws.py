"""Draws of the features of counts: tokens, weights, rates, shapes, prevalences, words, eta (counts.md 9).

A step draws what rows have given the globals of the step before, all rows at once, and then the globals with
the weights of the rows integrated out. The log joint density is that of the globals before the step with
what rows had after it, which is a state of the chain as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, struct
from ibpdist.data._base import Chunk
from ibpdist.inference._base import AnyParallel, Info, Known
from ibpdist.inference.ascent.coordinate import ACTIVE, BEYOND_THE_REPORT, counted
from ibpdist.inference.counts._base import CountSteps, described, order_of
from ibpdist.inference.counts.documents import BeginWords, RandomWords
from ibpdist.inference.counts.params import TokenParams, TokenRowState
from ibpdist.kernels import token_draws, tokens
from ibpdist.model.model import TokenModel
from ibpdist.model.observations._base import Survey
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.slice_draw import slice_draw

Float = NDArray[np.float64]
RATE_SHAPE, RATE_RATE = 1.0, 1.0
"""Of the gamma prior of the rates of rows."""
SHAPE_SHAPE, SHAPE_RATE = 1.0, 1.0
"""Of the gamma prior of the shapes of features."""
ETAS = (1e-4, 10.0)
"""Between these the logarithm of eta is uniform, where it is drawn."""
SMALLEST = 1e-300


@struct("token-draw-params", since=1)
class TokenDrawParams:
    """Words `phi` (column, feature), `shape`, prior and `eta` of the step to come; `y` (column, feature),
    `on` (feature) and `rows` of the last one."""

    prior: Any
    phi: Array = dims("column feature")
    shape: Array = dims("feature")
    eta: Array = dims()
    y: Array = dims("column feature")
    ids: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()


@struct("token-draw-row-state", since=1)
class TokenDrawRowState:
    """Of the rows of a chunk: whole tokens `y` of each feature, features `z` that they have, and rates."""

    y: Array = dims("row feature", reduce="concat")
    z: Array = dims("row feature", reduce="concat")
    rate: Array = dims("row", reduce="concat")


@struct
class TokenDrawSums:
    """Sums over rows of token_draws.DrawnSums, and how many rows there are."""

    y: Array = dims("column feature")
    on: Array = dims("feature")
    tables: Array = dims("feature")
    exposed: Array = dims("feature")
    scalars: Array = dims("scalar")
    rows: Array = dims()


@dataclass(frozen=True)
class TokenDraws(CountSteps):
    """`features` is K; `begin` makes the first words of the features where no fit does."""

    model: TokenModel
    features: int
    begin: BeginWords = field(default_factory=RandomWords)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> TokenDrawParams:
        features, prior = self.features, self.model.prior
        eta = self.model.observation.first_eta
        y = self.begin.words(survey, features, known, draws)
        half = np.full(features, 0.5 * float(survey.rows))
        blank = prior.resized(prior.init(features, int(survey.rows)), features)
        counts = PriorSums(on=half, rows=survey.rows)
        return TokenDrawParams(
            prior=prior.update(blank, counts, Rule.MEAN, draws.generator("prior")),
            phi=words_of(y, eta),
            shape=self.model.weights.shapes(features),
            eta=np.asarray(eta),
            y=y,
            ids=np.arange(features),
            on=half,
            rows=np.asarray(float(survey.rows)),
        )

    def adopt(self, params: TokenParams | TokenDrawParams, survey: Survey) -> TokenDrawParams:
        """The features of a fit, or of other draws."""
        eta = self.model.observation.first_eta
        return TokenDrawParams(
            prior=params.prior,
            phi=words_of(params.y, eta),
            shape=params.shape,
            eta=np.asarray(eta),
            y=params.y,
            ids=params.ids,
            on=params.on * float(survey.rows) / max(float(params.rows), 1.0),
            rows=np.asarray(float(survey.rows)),
        )

    def start(self, chunk: Chunk, params: TokenDrawParams, draws: Draws) -> TokenDrawRowState:
        """All features, and no tokens yet: the first step draws weights from their prior."""
        shape = (chunk.rows, len(params.ids))
        lengths = np.maximum(chunk.entries.lengths, 1)
        rate = (params.shape.sum() / lengths).astype(chunk.dtype)
        return TokenDrawRowState(y=np.zeros(shape, np.int64), z=np.ones(shape, bool), rate=rate)

    def local(
        self, chunk: Chunk, local: TokenDrawRowState, params: TokenDrawParams, draws: Draws
    ) -> tuple[TokenDrawRowState, TokenDrawSums]:
        entries, shape = chunk.entries, local.y.shape
        rows = token_draws.RowDraws(
            local.y.copy(), np.zeros(shape, np.int64), np.zeros(shape), local.rate.astype(float)
        )
        sums = token_draws.no_sums(*params.phi.shape)
        known = token_draws.Globals(
            params.phi, params.shape, self.model.prior.log_odds(params.prior), RATE_SHAPE, RATE_RATE
        )
        given = tokens.Entries(entries.starts, entries.columns, entries.counts)
        token_draws.draw_rows(given, known, rows, chunk.start, draws.key("tokens"), sums)
        made = TokenDrawRowState(rows.y, rows.z.astype(bool), rows.rate.astype(chunk.dtype))
        return made, TokenDrawSums(*sums, rows=np.asarray(float(chunk.rows)))

    def update(
        self, params: TokenDrawParams, sums: TokenDrawSums, draws: Draws
    ) -> tuple[TokenDrawParams, Info]:
        model, counts = self.model, PriorSums(on=sums.on, rows=sums.rows)
        eta = self._drawn_eta(params, sums.y, draws)
        gammas = draws.generator("words").standard_gamma(sums.y + eta) + SMALLEST
        made = TokenDrawParams(
            prior=model.prior.update(params.prior, counts, Rule.DRAW, draws.generator("prior")),
            phi=gammas / gammas.sum(axis=0),
            shape=self._drawn_shapes(params, sums, draws),
            eta=np.asarray(eta),
            y=sums.y,
            ids=params.ids,
            on=sums.on,
            rows=sums.rows,
        )
        return made, self._info(params, sums)

    def _drawn_shapes(self, params: TokenDrawParams, sums: TokenDrawSums, draws: Draws) -> Float:
        """With the weights of the rows integrated out: the tables that tokens sit at are Poisson."""
        if not self.model.weights.learned:
            return np.asarray(params.shape)
        found = draws.generator("shapes").standard_gamma(SHAPE_SHAPE + sums.tables)
        return np.asarray(np.maximum(found / (SHAPE_RATE + sums.exposed), SMALLEST))

    def _drawn_eta(self, params: TokenDrawParams, y: Float, draws: Draws) -> float:
        """With the words of the features integrated out."""
        if not self.model.observation.learned:
            return float(params.eta)
        some, times = np.unique(y[y > 0], return_counts=True)
        totals, columns = y.sum(axis=0), len(y)

        def density(level: float) -> float:
            return log_words(some, times, totals, columns, float(np.exp(level)))

        low, high = np.log(ETAS)
        at = float(np.clip(np.log(params.eta), low, high))
        return float(np.exp(slice_draw(density, at, float(low), float(high), draws.generator("eta"))))

    def _info(self, params: TokenDrawParams, sums: TokenDrawSums) -> Info:
        """Terms of the log joint density: tokens given words, tokens and rates of rows, z, words, shapes."""
        rows, log_rate, rate = (float(value) for value in sums.scalars)
        phi, eta, count = np.log(params.phi), float(params.eta), float(sums.rows)
        columns, features = phi.shape
        gamma = RATE_SHAPE * np.log(RATE_RATE) - gammaln(RATE_SHAPE)
        words = features * (gammaln(columns * eta) - columns * gammaln(eta)) + (eta - 1) * phi.sum()
        shapes = SHAPE_SHAPE * np.log(SHAPE_RATE) - gammaln(SHAPE_SHAPE)
        own = features * shapes + np.sum((SHAPE_SHAPE - 1) * np.log(params.shape) - SHAPE_RATE * params.shape)
        terms = {
            "likelihood": float((sums.y * phi).sum()),
            "weights": rows + count * gamma + (RATE_SHAPE - 1) * log_rate - RATE_RATE * rate,
            **self.model.prior.score(params.prior, PriorSums(on=sums.on, rows=sums.rows)),
            "dictionary": float(words),
            "shapes": float(own) if self.model.weights.learned else 0.0,
        }
        level = sum(terms.values())
        bound = level - sum(terms.get(name, 0.0) for name in BEYOND_THE_REPORT)
        active = float((sums.on > ACTIVE).sum())
        return Info({"objective": level, "bound": bound, "active": active, **terms, **counted(sums.on)})

    def monotone(self) -> bool:
        return False

    def describe(self, params: TokenDrawParams) -> Named:
        """Of the words the mean given the tokens of this draw."""
        order, prior = order_of(params), self.model.prior
        return {
            **described(params, prior, prior.log_odds(params.prior)),
            "mean": (("feature", "column"), words_of(params.y, float(params.eta)).T[order]),
            "tokens": (("feature",), params.y.sum(axis=0)[order]),
            "weight_shape": (("feature",), params.shape[order]),
            "eta": ((), np.asarray(params.eta)),
        }

    def describe_rows(self, local: TokenDrawRowState, params: TokenDrawParams) -> Named:
        """z, and the mean of the weights given the tokens."""
        order, kind = order_of(params), local.rate.dtype
        w = local.z * (params.shape + local.y) / (1 + local.rate[:, None])
        return {
            "z": (("feature", "row"), local.z.T[order].astype(kind)),
            "w": (("feature", "row"), w.T[order].astype(kind)),
        }


def words_of(y: Float, eta: float) -> Float:
    """(column, feature) mean of the words given their tokens."""
    found: Float = (y + eta) / (y.sum(axis=0) + eta * len(y))
    return found


def log_words(some: Float, times: NDArray[np.intp], totals: Float, columns: int, eta: float) -> float:
    """Log probability of tokens by word with the words of features integrated out: `some` are the numbers of
    tokens that words have in features, and occur so many `times`; `totals` (feature) are those of all
    words."""
    own = times @ (gammaln(some + eta) - gammaln(eta))
    return float(own + np.sum(gammaln(columns * eta) - gammaln(columns * eta + totals)))


def hand_tokens(
    fit: AnyParallel, chunk: Chunk, local: TokenRowState, params: TokenParams, draws: Draws
) -> TokenDrawRowState:
    """Whole tokens near those that the fit expects; a step draws them anew."""
    y = np.rint(local.y).astype(np.int64)
    return TokenDrawRowState(y=y, z=y > 0, rate=local.rate)
