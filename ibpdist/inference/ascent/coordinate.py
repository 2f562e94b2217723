"""Coordinate: the parallel algorithm for any model and any rules.

Every row is swept against the same globals, the sums are reduced, and the globals are set to
their conditionals given the sums. With means it is variational inference, with modes of z
hard assignment, with draws Gibbs sampling. Monotone for means and modes: rows are independent
given the globals, so a step is block coordinate ascent (linear-gaussian.md 10), and the objective is a
function of the new globals and the sums (linear-gaussian.md 5): never a second pass to score.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule
from ibpdist.base.structs import NOTHING, Named, Nothing, replace
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info, Known
from ibpdist.inference.ascent.params import OFF, ModelParams, ModelSums, weight_sums, without_parents
from ibpdist.inference.starts.begin import Begin, Random
from ibpdist.model.model import Model
from ibpdist.model.observations._base import Params, RowState, RowSums, Sums, Survey
from ibpdist.model.observations.capabilities import Additive, Padded, Scalable, Tempered, require
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.weights._base import slab_at

ACTIVE = 0.5
COOL, COLD = 0.9, 1e-3
BEYOND_THE_REPORT = ("tail", "mass", "concentration", "noise", "scale")
"""Terms of the objective that the report's bound does not have."""


@dataclass(frozen=True)
class Coordinate(Generic[Params, Sums]):
    """`features` is the truncation K; `inner` sweeps over the features are made in a step; `begin`
    makes the first parameters. Rows of step t see variances 1 + (anneal - 1) COOL^t times as large
    (linear-gaussian.md 10); at 1 they see them as they are."""

    model: Model[Params, Sums]
    features: int
    inner: int = 1
    begin: Begin = field(default_factory=Random)
    anneal: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.anneal < np.inf:
            raise UsageError(f"anneal is {self.anneal}; expected a number of at least 1")
        if self.anneal > 1:
            require(self.model.observation, Tempered, f"anneal={self.anneal:g}")
        for name, value in (("features", self.features), ("inner", self.inner)):
            if value < 1:
                raise UsageError(f"{name} is {value}; expected a whole number of at least 1")

    def summarise(self, chunk: Chunk) -> Survey:
        return self.model.observation.summarise(chunk)

    def ask(self, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return self.begin.ask(self.model, self.features, survey, known, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.begin.look(chunk, question, draws)

    def init(self, survey: Survey, draws: Draws, known: Known = ()) -> ModelParams[Params]:
        begun: ModelParams[Params] = self.begin.init(self.model, self.features, survey, known, draws)
        return begun

    def adopt(self, params: ModelParams[Params], survey: Survey) -> ModelParams[Params]:
        made = replace(
            params,
            observation=self.model.observation.adopt(params.observation, survey),
            weights=self.model.weights.slab(len(params.ids), params.weights),
            starts=NOTHING,
        )
        return self._filled(made) if self.model.draws else made

    def _filled(self, params: ModelParams[Params]) -> ModelParams[Params]:
        """All features of a finite model: a sampler has those too that a fit has dropped, off in all rows."""
        prior, ids = self.model.prior, params.ids
        more = (prior.capacity(params.prior) or len(ids)) - len(ids)
        if more <= 0:
            return params
        observation = require(self.model.observation, Padded, "a sampler that begins at a fit")
        on = np.pad(params.on, (0, more))
        blank = prior.resized(params.prior, len(on))
        counts = PriorSums(on=on, rows=params.rows)
        places = np.append(np.arange(len(ids)), np.full(more, -1))
        return replace(
            params,
            prior=prior.update(blank, counts, Rule.MEAN, np.random.default_rng(0)),
            observation=observation.padded(params.observation, more),
            ids=np.append(ids, ids.max(initial=-1) + 1 + np.arange(more)),
            **without_parents(len(on)),
            on=on,
            weights=self.model.weights.slab(len(on), slab_at(params.weights, places)),
        )

    def start(self, chunk: Chunk, params: ModelParams[Params], draws: Draws) -> RowState:
        """z uniform on (0, 1), or under draws a coin with the prevalence; weights zero, so nothing is
        explained yet. (Fair coins would give rows both of two features that undo each other, which no
        single flip takes back.)

        Against a dictionary that was fitted before, the rows are swept from hot to cold: from where
        they happen to start they would end in other features, and the fit below the one adopted.
        """
        z = draws.uniform("start", chunk.start, chunk.rows, len(params.ids))
        if self.model.rules.z is not Rule.MEAN:
            z = (z > 1 - params.on[:, None] / max(float(params.rows), 1.0)).astype(np.float64)
        width = len(params.ids) if self.model.weights.has_weights else 0
        w = np.zeros((width, chunk.rows), chunk.x.dtype)
        state = RowState(ids=params.ids, z=z.astype(chunk.x.dtype), w=w)
        for hot in () if self.model.draws else self.cooling_path(params.observation):
            state, _ = self.local(chunk, state, replace(params, observation=hot), draws)
        return state

    def cooling_path(self, params: Params) -> Iterator[Params]:
        """Parameters of the observation with falling noise; none where it cannot be raised."""
        observation = self.model.observation
        return observation.cooling_path(params) if isinstance(observation, Tempered) else iter(())

    def local(
        self, chunk: Chunk, local: RowState, params: ModelParams[Params], draws: Draws
    ) -> tuple[RowState, ModelSums[Sums]]:
        return self.swept(chunk, local, params, self.model.prior.log_odds(params.prior), draws)

    def swept(
        self,
        chunk: Chunk,
        local: RowState,
        params: ModelParams[Params],
        log_odds: NDArray[np.float64],
        draws: Draws,
    ) -> tuple[RowState, ModelSums[Sums]]:
        """One step of a chunk under given log odds (feature) of the features."""
        model, state = self.model, align(local, params)
        prior = model.weights.entry_prior(log_odds, params.weights)
        seen = self._seen(params.observation, draws.step)
        state, entries, observed = model.observation.sweep(
            chunk, seen, prior, model.weights, model.rules, state, draws, self.inner
        )
        return state, ModelSums(entries=entries, observation=observed)

    def _seen(self, params: Params, step: int) -> Params:
        """Parameters of the observation as the rows of a step see them."""
        observation, heat = self.model.observation, self.heat(step)
        if heat != 1 and isinstance(observation, Tempered):
            hot: Params = observation.tempered(params, heat)
            return hot
        return params

    def update(
        self, params: ModelParams[Params], sums: ModelSums[Sums], draws: Draws
    ) -> tuple[ModelParams[Params], Info]:
        """Prior of the weights, lengths of features, prior, dictionary and variances, each set where the
        objective is highest, or drawn."""
        params, sums = self.balanced(self._with_drawn_slab(params, sums, draws), sums)
        model, counts = self.model, PriorSums(on=sums.entries.on, rows=sums.observation.rows)
        prior = model.prior.update(params.prior, counts, model.rules.prior, draws.generator("prior"))
        observed = model.observation.update(
            params.observation, sums.observation, model.rules.dictionary, draws.generator("observation")
        )
        made = replace(params, prior=prior, observation=observed, on=counts.on, rows=counts.rows)
        info, heat = self.score(made, sums), self.heat(draws.step)
        if self.model.draws:
            info = dataclasses.replace(info, terms={**info.terms, **counted(sums.entries.on)})
        if self.anneal != 1:
            info = dataclasses.replace(info, heat=heat, settled=float(heat == 1))
        return made, info

    def _with_drawn_slab(
        self, params: ModelParams[Params], sums: ModelSums[Sums], draws: Draws
    ) -> ModelParams[Params]:
        if not self.model.draws:
            return params
        rng = draws.generator("slab")
        return replace(
            params, weights=self.model.weights.drawn(params.weights, weight_sums(sums.entries), rng)
        )

    def heat(self, step: int) -> float:
        """Factor of the variances in a step."""
        heat = 1 + (self.anneal - 1) * COOL**step
        return heat if heat > 1 + COLD else 1.0

    def balanced(
        self, params: ModelParams[Params], sums: ModelSums[Sums]
    ) -> tuple[ModelParams[Params], ModelSums[Sums]]:
        """Parameters and sums with the prior of the weights at its best, and after weights were divided and
        features multiplied by what is best for each.

        The product is the same, so this is exact; without it both creep to the lengths that their
        priors like.
        """
        weights, observation, entries = self.model.weights, self.model.observation, sums.entries
        if self.model.draws or not isinstance(observation, Scalable):
            return params, sums
        beside = observation.length_prior(params.observation)
        energy = entries.second * observation.strength(params.observation)
        energy /= max(float(sums.observation.rows), 1.0)
        slab, lengths = weights.best(params.weights, weight_sums(entries), energy, beside)
        params = replace(params, weights=slab)
        if beside is None:
            return params, sums
        observed, rescaled = observation.rescaled(params.observation, sums.observation, lengths)
        return replace(params, observation=observed), ModelSums(self._rescaled(sums, lengths), rescaled)

    def rescale_old_sums(self, params: ModelParams[Params], sums: ModelSums[Sums]) -> ModelSums[Sums]:
        """Sums of rows that are not visited again, made before these parameters, in the units of these."""
        observation = self.model.observation
        if not isinstance(observation, Scalable):
            return sums
        lengths = observation.last_lengths(params.observation)
        _, rescaled = observation.rescaled(params.observation, sums.observation, lengths)
        return ModelSums(self._rescaled(sums, lengths), rescaled)

    def _rescaled(self, sums: ModelSums[Sums], lengths: NDArray[np.float64]) -> RowSums:
        """Sums of z and w when weights are divided by `lengths` (feature)."""
        made = self.model.weights.rescaled(weight_sums(sums.entries), lengths)
        return replace(sums.entries, cost=made.cost, first=made.first, second=made.second)

    def score(self, params: ModelParams[Params], sums: ModelSums[Sums]) -> Info:
        """The objective's terms by name, `objective` (with the IBP tail and the priors of learned
        variances and mass), `bound` (the report's, without), the number of active features, and the
        magnitude to which rounding is relative."""
        model, entries = self.model, sums.entries
        observed = model.observation.score(params.observation, sums.observation)
        terms = {
            **model.prior.score(params.prior, PriorSums(on=entries.on, rows=sums.observation.rows)),
            "z entropy": float(entries.entropy.sum()),
            **model.weights.score(weight_sums(entries), params.weights),
            **observed.terms,
        }
        objective = sum(terms.values())
        beyond = sum(terms.get(name, 0.0) for name in BEYOND_THE_REPORT)
        active = float((entries.on > ACTIVE).sum())
        levels = {"objective": objective, "bound": objective - beyond, "active": active}
        return Info({**levels, **terms}, observed.magnitude)

    def additive(self, params: ModelParams[Params]) -> bool:
        observation = require(self.model.observation, Additive, "a stream")
        return observation.additive(params.observation)

    def monotone(self) -> bool:
        return not self.model.draws

    def handover_params(self, params: ModelParams[Params]) -> ModelParams[Params]:
        """Nothing is left to be done to rows whose state is made under these parameters."""
        observation = self.model.observation
        if not isinstance(observation, Scalable):
            return params
        return replace(params, observation=observation.without_rescaling(params.observation))

    def row_inference(self) -> Coordinate[Params, Sums]:
        return dataclasses.replace(self, anneal=1.0)

    def describe(self, params: ModelParams[Params]) -> Named:
        order = by_prevalence(params)
        return {
            "id": (("feature",), params.ids[order]),
            "prevalence": (("feature",), params.on[order] / max(float(params.rows), 1.0)),
            "active": (("feature",), params.on[order] > ACTIVE),
            "log_odds": (("feature",), self.model.prior.log_odds(params.prior)[order]),
            "chance": (("feature",), self.model.prior.expected(params.prior)[order]),
            **self.model.prior.describe(params.prior, order),
            **self._described_slab(params, order),
            **_described_starts(params),
            **self.model.observation.describe(params.observation, order),
        }

    def _described_slab(self, params: ModelParams[Params], order: NDArray[np.intp]) -> Named:
        if isinstance(params.weights, Nothing):
            return {}
        return {"weight_mean": (("feature",), params.weights.mean[order])}

    def describe_rows(self, local: RowState, params: ModelParams[Params]) -> Named:
        state, observation = align(local, params), self.model.observation
        if isinstance(observation, Scalable):
            state = observation.in_current_units(state, params.observation)
        order = by_prevalence(params)
        found: Named = {"z": (("feature", "row"), state.z[order])}
        if self.model.weights.has_weights:
            found["w"] = (("feature", "row"), state.w[order])
        if not isinstance(state.precision, Nothing):
            found["precision"] = (("row",), np.asarray(state.precision.mean))
        return found


def _described_starts(params: ModelParams[Params]) -> Named:
    if isinstance(params.starts, Nothing):
        return {}
    found = params.starts
    return {"start_objective": (("start",), found.objective), "start_active": (("start",), found.active)}


def counted(on: NDArray[np.float64]) -> dict[str, float]:
    """Of a draw: entries that are on, and features that one row has."""
    return {"entries": float(on.sum()), "singletons": float((on == 1).sum())}


def by_prevalence(params: ModelParams[Params]) -> NDArray[np.intp]:
    """Features by falling prevalence, ties in their present order."""
    return np.argsort(-params.on, kind="stable")


def align(state: RowState, params: ModelParams[Params]) -> RowState:
    """Row state for the features of `params`, in their order."""
    if np.array_equal(state.ids, params.ids):
        return state
    place = {int(name): at for at, name in enumerate(state.ids)}
    new = np.array([int(name) not in place for name in params.ids], dtype=bool)
    first, second = (np.where(new, parent, params.ids) for parent in params.parents)
    z = _taken(state.z, place, first)
    both = np.flatnonzero(new & (second != OFF))
    if both.size:
        other = _taken(state.z, place, second[both])
        z[both] += other - 2 * z[both] * other
    flipped = new & params.flip.astype(bool)
    z[flipped] = 1 - z[flipped]
    w = _taken(state.w, place, first) if state.w.shape[0] else state.w
    return replace(state, ids=np.asarray(params.ids), z=z, w=w)


def _taken(table: NDArray[Any], place: dict[int, int], ids: NDArray[Any]) -> NDArray[Any]:
    """Rows of a table (feature, row) by id, zeros for ids that it does not have."""
    source = np.array([place.get(int(name), -1) for name in ids], dtype=np.intp)
    made = table[source] if table.shape[0] else np.zeros((len(ids), table.shape[1]), table.dtype)
    made[source < 0] = 0
    return made
