"""InTurn: Gibbs samplers that take the rows one after the other, for the finite prior and the buffet.

A sweep goes over the rows, each given all others, tries exclusive ors of features in all rows at once
(xor.py), and then draws the globals given z, by the pieces that every sampler uses: prevalences and mass, the
dictionary, noise and scale. How a row is drawn is in collapsed.py and uncollapsed.py; the loop over rows is
here.

Prevalences are integrated out while rows move, and so is the dictionary in the collapsed turn and in
those tries: the old ones are not looked at, and drawn anew right after. That leaves the posterior as
it is, because to forget a variable is to pass to the law of the others, the rows move within that law,
and the draw given all others leads back. Noise, scale and mass are never forgotten: their draws need
the new dictionary and prevalences, and the rows need them. The one exception is a scale when no
feature exists; nothing depends on it then, and the prior is its conditional.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.params import GaussianModel, GaussianModelParams
from ibpdist.inference.gibbs.global_draws import (
    blank_params,
    by_groups,
    draw_globals,
    gaussian_of,
    gaussian_sums,
    resized,
    scaled,
)
from ibpdist.inference.gibbs.xor import FeatureSums, columns_of, pairs_of, try_xor, xor_sums
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.kernels.buffet import Law
from ibpdist.model.observations._base import RowState, Survey
from ibpdist.model.observations.gaussian import Gaussian

Float = NDArray[np.float64]
EVERY = 512
"""Rows after which running tables are made anew."""
EACH_STEP = 1 << 32
"""Ids that a step can give."""


@dataclass(frozen=True)
class Given:
    """What the rows of a sweep are given: `law` holds the prior and the variances as numbers, `first` is
    the id of the first feature to come."""

    params: GaussianModelParams
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

    def whole(self, data: Chunk, z: Float, noise: Float, draws: Draws) -> tuple[Float, Float]:
        """x (row, column) in float64, where missing cells are drawn given everything else, and z x, for
        z (feature, row) of the slots in use."""
        ...


class RowKernel(Protocol):
    """A frozen dataclass: how a row is drawn given the others."""

    def check(self, observation: Gaussian) -> None:
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
    """`features`: the number of the finite model, or how many a chain of the infinite one begins with.
    `tries`: pairs of features of which a sweep tries the exclusive or."""

    model: GaussianModel
    turn: RowKernel
    features: int = 1
    begin: Begin = field(default_factory=Coins)
    tries: int = 1

    def __post_init__(self) -> None:
        if not self.model.draws or not isinstance(self.model.prior, Predictive):
            raise UsageError(
                f"{self.model.prior.name}: rows are drawn in turn under the buffet or a finite prior"
            )
        if self.model.weights.has_weights:
            raise UsageError(
                f"{self.model.weights.name} weights: rows are drawn in turn with unit weights only"
            )
        if self.features < 1:
            raise UsageError(f"features is {self.features}; expected a whole number of at least 1")
        self.turn.check(gaussian_of(self.model))
        object.__setattr__(self, "model", by_groups(self.model))

    def start(self, data: Chunk, survey: Survey, draws: Draws) -> Chain:
        prior = self.model.prior.init(self.features, data.rows)
        observed = self.model.observation.init(survey, self.features, draws.generator("init"))
        z = self.begin.z(data.rows, self.features, data.start, draws)
        return draw_globals(
            self.model, data, blank_params(prior, observed), z, np.arange(self.features), draws
        )[0]

    def start_from(
        self, data: Chunk, survey: Survey, params: GaussianModelParams, state: RowState, draws: Draws
    ) -> Chain:
        """Where another fit ended: coins with its chances, and its variances."""
        coins = draws.uniform("start", data.start, data.rows, len(state.ids))
        z, ids = (coins < state.z).astype(np.float64), np.asarray(state.ids)
        prior = self.model.prior.init(max(self.features, len(ids)), data.rows)
        wanted = self.model.prior.capacity(prior) or len(ids)
        z = np.concatenate([z, np.zeros((wanted - len(ids), data.rows))])
        ids = np.concatenate([ids, 1 + ids.max(initial=-1) + np.arange(wanted - len(ids))])
        observed = self.model.observation.adopt(params.observation, survey)
        return draw_globals(self.model, data, blank_params(prior, observed), z, ids, draws)[0]

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Info]:
        """Rows in turn, then the globals."""
        params = chain.params
        share, rate = self.model.prior.predictive(params.prior, float(data.rows))  # type: ignore[attr-defined]
        scale = gaussian_of(self.model).common_scale(params.observation, draws.generator("scale"))
        law = Law(float(params.observation.noise[0]), scale, share, rate, float(data.rows))
        given = Given(params, law, EACH_STEP * draws.step, draws)
        table = self.turn.table(data, chain.state, given)
        in_turn(table, data, draws)
        size = table.features
        z = np.ascontiguousarray(table.z[:, :size].T.astype(np.float64))
        noise = params.observation.noise
        x, cross = table.whole(data, z, noise, draws)
        ids, blank = table.ids[:size].copy(), scaled(params, scale)
        z, cross = tried(Chunk(0, 0, x), z, cross, blank, share, self.tries, draws.generator("xor"))
        return draw_globals(self.model, data, blank, z, ids, draws, cross if data.observed is None else None)


def tried(
    data: Chunk,
    z: Float,
    cross: Float,
    params: GaussianModelParams,
    share: float,
    tries: int,
    rng: np.random.Generator,
) -> tuple[Float, Float]:
    """z (feature, row) and z x after `tries` pairs of features were tried, one after the other; x has no
    gaps, and the variances are those of `params`."""
    one = np.zeros(data.x.shape[1], np.intp)
    squares = np.einsum("nd,nd->d", data.x, data.x)
    seen = replace(resized(params.observation, len(z)), group=one, squares=squares)
    seen = replace(seen, basis=seen.basis[:1], spectrum=seen.spectrum[:1])
    current = FeatureSums(z.sum(axis=1), gaussian_sums(data, one, z, cross))
    for _ in range(tries):
        pairs = pairs_of(len(z), 1, rng)
        current, taken = try_xor(current, xor_sums(data, z, pairs, one), pairs, seen, share, rng)
        if taken.any():
            z = z.copy()
            z[pairs[:, 0]] = columns_of(z, pairs)
    return z, current.sums.cross


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
