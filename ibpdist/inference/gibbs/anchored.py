"""Infinite Gibbs sampling, exactly data-parallel: the anchored sweep (samplers.md 4).

Two steps make a sweep. In the first every row gives birth to features of its own or loses some
(births.py). Then pi_k given Z ~ Beta(m_k, N - m_k + 1) is drawn, and an order of the rows at random;
the first holder of a feature is its anchor. In the second step the anchor keeps its 1, rows ahead of
it keep their 0, and all rows behind it flip with the odds of pi_k; then dictionary, variances and mass
are drawn. The anchor makes it exact: what is frozen decides what is frozen, and no feature loses its
last holder. Without it, with births where one worker likes and deaths everywhere, not even the prior
is left as it is. Where features are only present or absent, some pairs of them that were chosen before
the flips are tried anew in all rows at once, before anything is drawn (xor.py).

Which of the two comes next is in the parameters, so row state that was lost is made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ibpdist.base import words
from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Named, Nothing, replace
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info, Known
from ibpdist.inference.ascent.coordinate import BEYOND_THE_REPORT, Coordinate
from ibpdist.inference.ascent.params import (
    GaussianModel,
    GaussianModelParams,
    GaussianModelSums,
    ModelParams,
    ModelSums,
    without_parents,
)
from ibpdist.inference.gibbs.anchors import (
    NO_ROW,
    AnchoredParams,
    AnchoredState,
    BirthSums,
    FlipSums,
    Phase,
    among,
    joined,
    no_anchors,
    order,
)
from ibpdist.inference.gibbs.births import (
    BirthPrior,
    RowChange,
    birth_chance,
    row_changes,
    without_dead_features,
)
from ibpdist.inference.gibbs.levels import Level, level
from ibpdist.inference.gibbs.xor import FeatureSums, pairs_of, try_xor, xor_sums
from ibpdist.inference.moves.renew import GaussianFit
from ibpdist.inference.starts.begin import Begin, Random
from ibpdist.kernels.anchors import frozen, holders
from ibpdist.model.observations import dictionary
from ibpdist.model.observations._base import RowState, Survey
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import intercept_mean
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights._base import Slab, WeightSums, slab_at, slab_joined

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Anchored:
    """Starts with `features` features that half of the rows have (0: none), may come to `most`. A step
    offers about `births` births, in `turns` turns; `inner` sweeps over the features are made with the
    same anchors; `tries` pairs of features are tried in a step of flips."""

    model: GaussianModel
    features: int = 0
    most: int = 1000
    inner: int = 1
    births: int = 8
    turns: int = 4
    tries: int = 4
    begin: Begin = field(default_factory=Random)

    def __post_init__(self) -> None:
        prior, seen = self.model.prior, self.model.observation
        if not isinstance(prior, Buffet) or not isinstance(seen, Gaussian):
            raise UsageError(
                f"anchored: {prior.name} with {seen.name}; it samples buffet with gaussian alone"
            )
        if seen.scale == "feature":
            raise UsageError("anchored: scale=feature; newborns need one scale: set scale=one or a number")
        for name, least in (
            ("features", 0),
            ("most", 1),
            ("inner", 1),
            ("births", 1),
            ("turns", 1),
            ("tries", 0),
        ):
            if getattr(self, name) < least:
                raise UsageError(
                    f"{name} is {getattr(self, name)}; expected a whole number of at least {least}"
                )

    @property
    def fit(self) -> GaussianFit:
        """The same model with the features that there are."""
        return Coordinate(self.model, max(self.features, 1), self.inner)

    @property
    def tried(self) -> int:
        """Pairs of features in a step of flips; the xor of two weights says nothing."""
        return 0 if self.model.weights.has_weights else self.tries

    @property
    def observation(self) -> Gaussian:
        return cast("Gaussian", self.model.observation)

    def summarise(self, chunk: Chunk) -> Survey:
        return self.observation.summarise(chunk)

    def ask(self, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return self.begin.ask(self.model, self.features, survey, known, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.begin.look(chunk, question, draws)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> AnchoredParams:
        return self.initial(self.begin.init(self.model, self.features, survey, known, draws))

    def adopt(self, params: GaussianModelParams, survey: Survey) -> AnchoredParams:
        """The features of another fit, whatever its prior: its mass, and the mean of its dictionary."""
        prior = self.model.prior.init(len(params.ids), int(survey.rows))
        if isinstance(self.model.prior, Buffet) and self.model.prior.mass == "learn":
            prior = replace(prior, mass=params.prior.mass)
        seen = self.observation.adopt(params.observation, survey)
        scale = survey.rows / max(float(params.rows), 1.0)
        slab = self.model.weights.slab(len(params.ids), params.weights)
        counts = {"on": params.on * scale, "rows": survey.rows}
        return self.initial(replace(params, prior=prior, observation=seen, weights=slab, **counts))

    def initial(self, now: GaussianModelParams) -> AnchoredParams:
        """Parameters before the first step; who has what is not known yet."""
        seen, features = now.observation, len(now.ids)
        setting = self.observation.scale
        scale = float(seen.scale[0]) if features else float(seen.unit if setting == "one" else setting)
        seen = dictionary.known(seen, seen.mean, np.full(features, scale))
        return AnchoredParams(
            now=replace(now, observation=seen, **without_parents(features)),
            phase=np.asarray(int(Phase.COUNT)),
            fresh=np.asarray(int(np.max(now.ids, initial=-1)) + 1),
            scale=np.asarray(scale),
            likelihood=np.zeros(()),
            cost=np.zeros(()),
            row_noise=np.zeros(()),
            weight=np.zeros(features),
            **no_anchors(features),
        )

    def start(self, chunk: Chunk, params: AnchoredParams, draws: Draws) -> AnchoredState:
        """z and w from their priors, prevalences being those of the parameters."""
        now, size = params.now, (len(params.now.ids), chunk.rows)
        chance = now.on / max(float(now.rows), 1.0)
        z = draws.uniform("start", chunk.start, chunk.rows, size[0]) < chance[:, None]
        w = np.zeros((0, chunk.rows))
        if self.model.weights.has_weights:
            normals = draws.normal("start w", chunk.start, chunk.rows, size[0])
            w = self.model.weights.sample(*size, normals, now.weights)
        state = RowState(ids=now.ids, z=z.astype(chunk.x.dtype), w=w.astype(chunk.x.dtype))
        return AnchoredState(state, np.asarray(chunk.start))

    def local(
        self, chunk: Chunk, local: AnchoredState | RowState, params: AnchoredParams, draws: Draws
    ) -> tuple[AnchoredState, BirthSums | FlipSums]:
        """Row state of another sampler is taken as it is."""
        held = local.now if isinstance(local, AnchoredState) else local
        state, phase = (
            joined(held, params, chunk.start, self.model.weights.has_weights),
            Phase(int(params.phase)),
        )
        act = self._flips if phase is Phase.FLIPS else self._births
        state, sums = act(chunk, state, params, draws)
        return AnchoredState(state, np.asarray(chunk.start)), sums

    def _flips(
        self, chunk: Chunk, state: RowState, params: AnchoredParams, draws: Draws
    ) -> tuple[RowState, BirthSums | FlipSums]:
        model, now = self.model, params.now
        odds = np.empty(state.z.shape, chunk.x.dtype)
        frozen(model.prior.log_odds(now.prior), params.first, order(chunk, draws), odds)
        prior = model.weights.entry_prior(odds, now.weights)
        state, entries, seen = model.observation.sweep(
            chunk, now.observation, prior, model.weights, model.rules, state, draws, self.inner
        )
        whole = self.observation.impute(chunk, now.observation, model.weights, state, draws)
        xors = xor_sums(whole, state.z, params.pairs, now.observation.group)
        return state, FlipSums(ModelSums(entries=entries, observation=seen), xors)

    def _births(
        self, chunk: Chunk, state: RowState, params: AnchoredParams, draws: Draws
    ) -> tuple[RowState, BirthSums | FlipSums]:
        """Births and deaths, or a first count; then who comes first in the order of the next step."""
        changed: list[RowChange] = []
        if params.phase == Phase.COUNT:
            gained = level(self.model.weights, chunk, state, params.now)
        else:
            changed = list(
                row_changes(chunk, state, params.now, self._birth_prior(params), self.turns, draws)
            )
            gained = Level(sum((c.likelihood for c in changed), 0.0), sum((c.cost for c in changed), 0.0))
        state, places = without_dead_features(state, changed), order(chunk, draws.at(draws.step + 1))
        on, first = holders(state.z, places)
        sizes = [c.born.marks.size for c in changed]
        at = np.repeat(np.array([c.place for c in changed], np.intp), sizes)
        empty = np.zeros((0, chunk.x.shape[1]))
        return state, BirthSums(
            on=on,
            first=first,
            weight=self.model.weights.combine(state.z, state.w).sum(axis=1, dtype=np.float64),
            rows=np.asarray(float(chunk.rows)),
            likelihood=np.asarray(gained.likelihood),
            cost=np.asarray(gained.cost),
            row_noise=np.asarray(gained.row_noise),
            owner=chunk.start + at.astype(np.float64),
            mark=np.concatenate([empty[:, 0], *(c.born.marks for c in changed)]),
            place=places[at],
            mean=np.concatenate([empty, *(c.born.mean for c in changed)]),
        )

    def _birth_prior(self, params: AnchoredParams) -> BirthPrior:
        now = params.now
        return BirthPrior(
            weights=self.model.weights,
            offer=birth_chance(self.births, self.turns, float(now.rows)),
            rate=float(now.prior.mass) / float(now.rows),
            noise=now.observation.noise,
            scale=float(params.scale),
            base=intercept_mean(now.observation),
        )

    def update(
        self, params: AnchoredParams, sums: BirthSums | FlipSums, draws: Draws
    ) -> tuple[AnchoredParams, Info]:
        made = (
            self._reborn(params, sums, draws)
            if isinstance(sums, BirthSums)
            else self._swept(params, sums, draws)
        )
        scale = self.observation.common_scale(made.now.observation, draws.generator("scale"))
        made = replace(made, scale=np.asarray(scale))
        return made, self.score(made)

    def _reborn(self, params: AnchoredParams, sums: BirthSums, draws: Draws) -> AnchoredParams:
        """The features that some row has and the newborns, with new prevalences."""
        now, keep, born = params.now, np.flatnonzero(sums.on > 0), len(sums.owner)
        features = len(keep) + born
        self._check_size(features, params)
        mixed = among(len(keep), born, draws)
        counts = PriorSums(on=np.append(sums.on[keep], np.ones(born))[mixed], rows=sums.rows)
        blank = self.model.prior.resized(now.prior, features)
        mean = np.concatenate([now.observation.mean[keep], sums.mean])[mixed]
        scale = np.full(features, float(params.scale))
        made = ModelParams(
            prior=self.model.prior.update(blank, counts, self.model.rules.prior, draws.generator("prior")),
            observation=dictionary.known(now.observation, mean, scale),
            ids=np.append(now.ids[keep], params.fresh + np.arange(born))[mixed],
            **without_parents(features),
            on=counts.on,
            rows=counts.rows,
            weights=self._slab(now, keep, sums.mark, mixed, draws),
        )
        return replace(
            params,
            now=made,
            phase=np.asarray(int(Phase.FLIPS)),
            fresh=params.fresh + born,
            likelihood=params.likelihood + sums.likelihood,
            cost=params.cost + sums.cost,
            row_noise=params.row_noise + sums.row_noise,
            first=np.append(sums.first[keep], sums.place)[mixed],
            owner=np.append(np.full(len(keep), NO_ROW), sums.owner.astype(np.int64))[mixed],
            mark=np.append(np.zeros(len(keep)), sums.mark)[mixed],
            weight=np.append(sums.weight[keep], sums.mark)[mixed],
            pairs=pairs_of(features, self.tried, draws.generator("pairs")),
        )

    def _slab(
        self,
        now: GaussianModelParams,
        keep: NDArray[np.intp],
        marks: Float,
        mixed: NDArray[np.intp],
        draws: Draws,
    ) -> Slab | Nothing:
        """Means of the weights of features that are kept, and of newborns, drawn given their marks."""
        weights, one = self.model.weights, np.ones(len(marks))
        sums = WeightSums(on=one, first=marks, second=marks**2, cost=0 * one)
        born = weights.drawn(weights.slab(len(marks)), sums, draws.generator("born slab"))
        return slab_joined(slab_at(now.weights, keep), born, mixed)

    def _swept(self, params: AnchoredParams, sums: FlipSums, draws: Draws) -> AnchoredParams:
        """Pairs of features are tried; then prevalences, dictionary, variances and mass given z."""
        before, model = self._after_xor(params, sums, draws)
        now, info = self.fit.update(before, model, draws)
        return replace(
            params,
            now=now,
            phase=np.asarray(int(Phase.BIRTHS)),
            fresh=params.fresh + len(params.pairs),
            likelihood=np.asarray(info.terms["likelihood"]),
            cost=model.entries.cost.sum(),
            row_noise=np.asarray(info.terms.get("row noise", 0.0)),
            weight=model.entries.first,
            **no_anchors(len(now.ids)),
        )

    def _after_xor(
        self, params: AnchoredParams, sums: FlipSums, draws: Draws
    ) -> tuple[GaussianModelParams, GaussianModelSums]:
        """Parameters and sums after the pairs were tried; what came in place of a feature has a new id."""
        now, model, (k, other) = params.now, sums.model, params.pairs.T
        current = FeatureSums(model.entries.on, model.observation)
        rng = draws.generator("xor")
        current, taken = try_xor(current, sums.xors, params.pairs, now.observation, 0.0, rng)
        if not taken.any():
            return now, model
        new, none = k[taken], without_parents(len(now.ids))
        ids, parents = now.ids.copy(), none["parents"]
        ids[new], parents[:, new] = params.fresh + np.flatnonzero(taken), now.ids[[k[taken], other[taken]]]
        entries = replace(model.entries, on=current.on, second=current.on)
        return replace(now, ids=ids, **none), ModelSums(entries, current.sums)

    def _check_size(self, features: int, params: AnchoredParams) -> None:
        """Refuse more features than were allowed, before the memory for them is asked for."""
        if features <= self.most:
            return
        groups, columns = len(params.now.observation.basis), params.now.observation.noise.size
        numbers = 2 if self.model.weights.has_weights else 1
        state = 4 * numbers * int(params.now.rows) * features
        each = 8 * features * (groups * features + columns)
        raise UsageError(
            f"the sampler has come to {features} features, more than most={self.most}: the state of all rows "
            f"would take {words.size(state)} and the sums of a task {words.size(each)}; allow more with "
            "most=..., or expect fewer with a smaller mass or a larger noise"
        )

    def score(self, params: AnchoredParams) -> Info:
        """The log joint density of everything but pi, by terms, and facts that do not depend on the order
        of features. Without a feature there is no scale either."""
        now, model = params.now, self.model
        weights = WeightSums(now.on, params.weight, np.zeros(1), params.cost[None])
        terms = {
            **model.prior.score(now.prior, PriorSums(on=now.on, rows=now.rows)),
            **model.weights.score(weights, now.weights),
            **model.weights.slab_score(now.weights),
            "likelihood": float(params.likelihood),
            **self._of_row_noise(params),
            **self.observation.priors(now.observation),
        }
        objective = sum(terms.values())
        facts = {
            "objective": objective,
            "bound": objective - sum(terms.get(name, 0.0) for name in BEYOND_THE_REPORT),
            "active": float(len(now.ids)),
            "singletons": float((now.on == 1).sum()),
            "entries": float(now.on.sum()),
        }
        return Info({**facts, **terms}, self.observation.magnitude(now.observation))

    def _of_row_noise(self, params: AnchoredParams) -> dict[str, float]:
        even = isinstance(params.now.observation.row_noise, Nothing)
        return {} if even else {"row noise": float(params.row_noise)}

    def rescale_old_sums(self, params: AnchoredParams, sums: BirthSums | FlipSums) -> BirthSums | FlipSums:
        return sums

    def additive(self, params: AnchoredParams) -> bool:
        return self.observation.additive(params.now.observation)

    def monotone(self) -> bool:
        return False

    def handover_params(self, params: AnchoredParams) -> GaussianModelParams:
        return self.fit.handover_params(params.now)

    def row_inference(self) -> GaussianFit:
        return self.fit

    def describe(self, params: AnchoredParams) -> Named:
        return {**self.fit.describe(params.now), "scale": ((), params.scale)}

    def describe_rows(self, local: AnchoredState, params: AnchoredParams) -> Named:
        state = joined(local.now, params, int(local.start), self.model.weights.has_weights)
        return self.fit.describe_rows(state, params.now)
