"""InTurn: Gibbs samplers that take the rows one after the other, for the finite prior and the buffet.

A sweep goes over the rows, each given all others, and then draws the globals given who has what, by the
pieces that every sampler uses: prevalences and mass, the dictionary, noise and scale. What a row does
is the turn's (collapsed.py, uncollapsed.py); the loop over rows is here.

Prevalences are integrated out while rows move, and so is the dictionary in the collapsed turn: the old
ones are not looked at, and drawn anew right after. That leaves the posterior as it is, because to
forget a variable is to pass to the law of the others, the rows move within that law, and the draw
given all others leads back. Noise, scale and mass are never forgotten: their draws need the new
dictionary and prevalences, and the rows need them. The one exception is a scale when no feature
exists; nothing depends on it then, and the prior is its conditional.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ibpdist.algorithms._base import Trace
from ibpdist.algorithms.coordinate import Coordinate, ModelSums
from ibpdist.algorithms.params import ModelParams, orphans
from ibpdist.algorithms.sequential import Chain
from ibpdist.data._base import Chunk
from ibpdist.draws import Draws
from ibpdist.errors import UsageError
from ibpdist.kernels.buffet import Law
from ibpdist.model import Model
from ibpdist.observations._base import RowState, RowSums, Survey
from ibpdist.observations.dictionary import GaussianParams, GaussianSums
from ibpdist.structs import replace

Float = NDArray[np.float64]
EVERY = 256
"""Rows after which running tables are made anew."""
SPARE = 8
"""Slots kept free for features to come."""
EACH_STEP = 1 << 32
"""Ids that a step can give."""


@dataclass(frozen=True)
class Given:
    """What the rows of a sweep are given: `law` holds the prior and the variances as numbers, `first` is
    the id of the first feature to come."""

    params: ModelParams
    law: Law
    first: int
    draws: Draws


class Table(Protocol):
    """What a sweep changes as it goes. `z` (row, slot), of which the first `features` slots are in use."""

    z: NDArray[np.int8]
    ids: NDArray[np.int64]

    @property
    def features(self) -> int: ...

    def renew(self) -> None:
        """Make anew what is maintained."""
        ...

    def advance(self, first: int, logits: Float, births: Float) -> int:
        """Draw z of the rows from `first` on, from logits (row, slot) of uniforms and uniforms (row) for
        features of their own; how many rows were done before slots ran out."""
        ...

    def grow(self) -> None:
        """More slots."""
        ...


class Turn(Protocol):
    """A frozen dataclass: how a row is drawn given the others."""

    def check(self, model: Model) -> None:
        """Refuse what it cannot do."""
        ...

    def table(self, data: Chunk, state: RowState, given: Given) -> Table: ...


@runtime_checkable
class Predictive(Protocol):
    """A prior that knows what a row is like given the others."""

    def predictive(self, params: Any, rows: float) -> tuple[float, float]: ...


class Begin(Protocol):
    """A frozen dataclass: who has what when a chain begins."""

    def z(self, rows: int, features: int, start: int, draws: Draws) -> Float: ...


@dataclass(frozen=True)
class Empty:
    """Nobody has anything."""

    def z(self, rows: int, features: int, start: int, draws: Draws) -> Float:
        return np.zeros((features, rows))


@dataclass(frozen=True)
class Coins:
    """A fair coin for every entry."""

    def z(self, rows: int, features: int, start: int, draws: Draws) -> Float:
        return np.round(draws.uniform("start", start, rows, features))


@dataclass(frozen=True)
class InTurn:
    """`features`: the number of the finite model, or how many a chain of the infinite one begins with."""

    model: Model
    turn: Turn
    features: int = 1
    begin: Begin = field(default_factory=Coins)

    def __post_init__(self) -> None:
        if not self.model.draws or not isinstance(self.model.prior, Predictive):
            raise UsageError(
                f"{self.model.prior.name}: rows are drawn in turn under the buffet or a finite prior"
            )
        if self.model.weights.keeps:
            raise UsageError(
                f"{self.model.weights.name} weights: rows are drawn in turn with unit weights only"
            )
        if self.features < 1:
            raise UsageError(f"features is {self.features}; expected a whole number of at least 1")
        self.turn.check(self.model)

    def start(self, data: Chunk, survey: Survey, draws: Draws) -> Chain:
        prior = self.model.prior.init(self.features, data.rows)
        observed = self.model.observation.init(survey, self.features, draws.generator("init"))
        z = self.begin.z(data.rows, self.features, data.start, draws)
        return self._settled(data, _bare(prior, observed), z, np.arange(self.features), draws)[0]

    def start_from(
        self, data: Chunk, survey: Survey, params: ModelParams, state: RowState, draws: Draws
    ) -> Chain:
        """Where another fit ended: coins with its chances, its variances and its mass."""
        coins = draws.uniform("start", data.start, data.rows, len(state.ids))
        z, ids = (coins < state.z).astype(np.float64), np.asarray(state.ids)
        prior = self.model.prior.init(max(self.features, len(ids)), data.rows)
        wanted = self.model.prior.capacity(prior) or len(ids)
        z = np.concatenate([z, np.zeros((wanted - len(ids), data.rows))])
        ids = np.concatenate([ids, 1 + ids.max(initial=-1) + np.arange(wanted - len(ids))])
        observed = self.model.observation.adopt(params.observation, survey)
        return self._settled(data, _bare(prior, observed), z, ids, draws)[0]

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Trace]:
        """Rows in turn, then the globals."""
        params = chain.params
        share, rate = self.model.prior.predictive(params.prior, float(data.rows))  # type: ignore[attr-defined]
        scale = self.model.observation.common_scale(params.observation, draws.generator("scale"))
        law = Law(float(params.observation.noise[0]), scale, share, rate, float(data.rows))
        given = Given(params, law, EACH_STEP * draws.step, draws)
        table = self.turn.table(data, chain.state, given)
        in_turn(table, data, draws)
        size = table.features
        z = np.ascontiguousarray(table.z[:, :size].T.astype(np.float64))
        return self._settled(data, _scaled(params, scale), z, table.ids[:size].copy(), draws)

    def _settled(
        self, data: Chunk, params: ModelParams, z: Float, ids: NDArray[Any], draws: Draws
    ) -> tuple[Chain, Trace]:
        """The chain with its globals drawn given z (feature, row), and the terms of its log joint."""
        if self.model.prior.capacity(params.prior) is None:
            seen = z.any(axis=1)
            z, ids = z[seen], ids[seen]
        on, size = z.sum(axis=1), len(ids)
        entries = RowSums(on=on, second=on, entropy=np.zeros(size), cost=np.zeros(size))
        sums = ModelSums(entries=entries, observation=gaussian_sums(data, params.observation.group, z))
        blank = replace(
            params,
            prior=self.model.prior.resized(params.prior, size),
            observation=resized(params.observation, size),
            ids=ids,
            on=on,
            **orphans(size),
        )
        made, trace = Coordinate(self.model, max(size, 1)).update(blank, sums, draws)
        state = RowState(ids=ids, z=z.astype(data.x.dtype), w=np.zeros((0, data.rows), data.x.dtype))
        counted = {"singletons": float((on == 1).sum()), "entries": float(on.sum())}
        return Chain(made, state), {**trace, "bound": trace["objective"], **counted}


def in_turn(table: Table, data: Chunk, draws: Draws) -> None:
    """One sweep over the rows. Numbers belong to (row, slot), whatever the blocks and the room."""
    for first in range(0, data.rows, EVERY):
        table.renew()
        at, last = first, min(first + EVERY, data.rows)
        while at < last:
            uniforms = draws.uniform("z", data.start + at, last - at, table.ids.size)
            births = draws.uniform("own", data.start + at, last - at, 1)[0]
            at += table.advance(at, np.ascontiguousarray(logit(uniforms).T), births)
            if at < last:
                table.grow()


def gaussian_sums(data: Chunk, group: NDArray[Any], z: Float) -> GaussianSums:
    """Sums of the rows for a draw of z (feature, row)."""
    if data.observed is None:
        gram = (z @ z.T)[None]
    else:
        first = np.unique(group, return_index=True)[1]
        gram = np.array([(z * data.observed[:, d]) @ z.T for d in first])
    return GaussianSums(
        rows=np.asarray(float(data.rows)),
        gram=gram,
        cross=z @ data.x.astype(np.float64, copy=False),
        filled=np.zeros(data.x.shape[1]),
        filled_entropy=np.zeros(()),
    )


def resized(params: GaussianParams, features: int) -> GaussianParams:
    """Parameters for another number of features, of which nothing is known."""
    groups, columns = len(params.spectrum), params.noise.size
    scale = params.scale[:1] if params.scale.size else np.ones(1)
    return replace(
        params,
        mean=np.zeros((features, columns)),
        basis=np.zeros((groups, features, features)),
        spectrum=np.zeros((groups, features)),
        entropy=np.zeros(()),
        scale=np.broadcast_to(scale, features).copy(),
        stretch=np.ones(features),
    )


def padded(table: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A table with zeros after its rows and columns."""
    return np.pad(table, [(0, new - old) for new, old in zip(shape, table.shape, strict=True)])


def _scaled(params: ModelParams, scale: float) -> ModelParams:
    """With one feature more than none, to carry the scale."""
    one = resized(params.observation, 1)
    return _bare(params.prior, replace(one, scale=np.full(1, scale)))


def _bare(prior: Any, observed: GaussianParams) -> ModelParams:
    """Parameters that say nothing of the rows yet."""
    size = len(observed.mean)
    zeros = {"on": np.zeros(size), "rows": np.zeros(())}
    return ModelParams(prior=prior, observation=observed, ids=np.arange(size), **orphans(size), **zeros)
