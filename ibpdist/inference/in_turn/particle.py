"""Particle filter: the baseline that meets every row once (Wood and Griffiths; samplers.md 13).

Particles are guest lists of the same buffet. A row takes dishes by the prior, the particle is weighed by
how well the rows before predict it, and particles are drawn anew when few carry the weight. Each keeps
what it predicts with; who took what is kept once, with the particle it came from, and read
backwards from a draw of the final weights.

The product of mean weights is an unbiased estimate of p(x), of which each step tells the logarithm beside the
log joint density of its draw. Variances and mass must be numbers.
A sweep is a whole pass that owes nothing to the sweep before, and its draw is one of the posterior only in
the limit of many particles: predictions exist at the end of a pass, and more passes do not
improve a chain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.params import GaussianModel
from ibpdist.inference.gibbs.global_draws import blank_params, by_groups, draw_globals, gaussian_of, scaled
from ibpdist.inference.in_turn.growable_tables import SPARE, widened
from ibpdist.inference.in_turn.in_turn import EACH_STEP
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.kernels.particle import Tables, meet
from ibpdist.model.observations._base import Survey
from ibpdist.model.observations.gaussian_params import GaussianParams
from ibpdist.model.priors._base import Number

Float = NDArray[np.float64]
FEW = 0.5
"""Particles are drawn anew when fewer than this share of them carry the weight."""
MOST_BYTES = 2 << 30
"""Largest size of what all particles predict with."""
AXES = {"inverse": (2, 3), "mean": (1,), "on": (1,), "sizes": ()}


@dataclass(frozen=True)
class Particles:
    """For the buffet with a fixed noise, scale and mass."""

    model: GaussianModel
    particles: int = 50

    def __post_init__(self) -> None:
        if self.particles < 1:
            raise UsageError(f"particles is {self.particles}; expected a whole number of at least 1")
        unlimited = self.model.prior.number is Number.UNLIMITED
        if not unlimited or self.model.weights.has_weights or not self.model.draws:
            raise UsageError("a particle filter draws from the buffet with unit weights")
        of = {"noise": self.model.observation, "scale": self.model.observation, "mass": self.model.prior}
        learned = [name for name, axis in of.items() if isinstance(getattr(axis, name), str)]
        if learned:
            raise UsageError(f"a particle filter learns nothing: set a number for {' and '.join(learned)}")
        object.__setattr__(self, "model", by_groups(self.model))

    def start(self, data: Chunk, survey: Survey, draws: Draws) -> Chain:
        """Nobody has anything."""
        observed = self.model.observation.init(survey, 1, draws.generator("init"))
        params = blank_params(self.model.prior.init(1, data.rows), observed)
        return draw_globals(self.model, data, params, np.zeros((1, data.rows)), np.arange(1), draws)[0]

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Info]:
        """A pass: z of a particle drawn by weight; `evidence` is the log of the estimate of p(x)."""
        params, rng = chain.params, draws.generator("particles")
        scale = gaussian_of(self.model).common_scale(params.observation, rng)
        filtered = Filter(data, params.observation, scale, float(params.prior.mass), self.particles, rng)
        for n in range(data.rows):
            filtered.meet(n)
        z = filtered.drawn()
        ids = EACH_STEP * draws.step + np.arange(len(z))
        made, info = draw_globals(self.model, data, scaled(params, scale), z, ids, draws)
        more = {"evidence": filtered.evidence(), "effective": filtered.effective()}
        return made, dataclasses.replace(info, terms={**info.terms, **more})


class Filter:
    """All particles at some row of a pass."""

    def __init__(
        self, data: Chunk, params: GaussianParams, scale: float, mass: float, count: int, rng: Any
    ) -> None:
        self.rng, self.mass, self.noise, self.scale = rng, mass, float(params.noise[0]), scale
        order = np.argsort(params.group, kind="stable")
        self.bounds = np.searchsorted(params.group[order], np.arange(len(params.spectrum) + 1))
        self.x = np.ascontiguousarray(data.x[:, order], dtype=np.float64)
        whole = np.ones((data.rows, len(params.spectrum)), bool)
        seen = whole if data.observed is None else data.observed[:, order][:, self.bounds[:-1]]
        self.seen, columns = seen, data.x.shape[1]
        groups = len(self.bounds) - 1
        self.tables = Tables(
            inverse=np.zeros((count, groups, SPARE, SPARE)),
            mean=np.zeros((count, SPARE, columns)),
            on=np.zeros((count, SPARE)),
            sizes=np.zeros(count, np.int64),
        )
        self.weights, self.log_mean = np.zeros(count), 0.0
        self.taken: list[NDArray[np.uint8]] = []
        self.parents: list[NDArray[np.intp]] = []

    def meet(self, n: int) -> None:
        """The next row: drawn anew, proposed, weighed and taken in."""
        self.parents.append(self._chosen())
        new = self.rng.poisson(self.mass / (n + 1), len(self.weights))
        self._make_room(int((self.tables.sizes + new).max()))
        z = (self.rng.random(self.tables.on.shape) < self.tables.on / (n + 1)).astype(np.float64)
        self.weights = self.weights + meet(
            self.x[n], self.seen[n], self.bounds, z, new, self.noise, self.scale, self.tables
        )
        self.taken.append(np.packbits(z.astype(bool), axis=1))

    def effective(self) -> float:
        """How many particles carry the weight."""
        share = np.exp(self.weights - logsumexp(self.weights))
        return float(1 / (share**2).sum())

    def evidence(self) -> float:
        """Log of the estimate of p(x) of the rows that were met."""
        return self.log_mean + float(logsumexp(self.weights) - np.log(len(self.weights)))

    def drawn(self) -> Float:
        """z (feature, row) of a particle drawn by weight, dishes that it opened."""
        share = np.exp(self.weights - logsumexp(self.weights))
        z = np.array(list(self._history(int(self.rng.choice(len(share), p=share)))))[::-1]
        return np.ascontiguousarray(z[:, z.any(axis=0)].T.astype(np.float64))

    def _history(self, at: int) -> Iterator[NDArray[np.uint8]]:
        """What the rows took in the story of a particle, the last row first."""
        slots = self.tables.on.shape[1]
        for taken, parent in zip(self.taken[::-1], self.parents[::-1], strict=True):
            row = np.unpackbits(taken[at])[:slots]
            yield np.pad(row, (0, slots - len(row)))
            at = int(parent[at])

    def _chosen(self) -> NDArray[np.intp]:
        """Where the particles come from: from themselves, or drawn anew by weight at even steps."""
        count = len(self.weights)
        if self.effective() >= FEW * count:
            return np.arange(count)
        share = np.exp(self.weights - logsumexp(self.weights))
        steps = (np.arange(count) + self.rng.random()) / count
        chosen: NDArray[np.intp] = np.minimum(np.searchsorted(np.cumsum(share), steps), count - 1)
        self.log_mean, self.weights = self.evidence(), np.zeros(count)
        self.tables = Tables(*(table[chosen] for table in self.tables))
        return chosen

    def _make_room(self, slots: int) -> None:
        """Grow to at least this many slots."""
        more = slots - self.tables.on.shape[1]
        if more <= 0:
            return
        more += SPARE
        wider = (widened(table, AXES[name], more) for name, table in self.tables._asdict().items())
        self.tables = Tables(*wider)
        if self.tables.inverse.nbytes + self.tables.mean.nbytes > MOST_BYTES:
            raise UsageError(
                f"{len(self.weights)} particles with {slots} features need more than {MOST_BYTES >> 30} GiB: "
                "use fewer particles, a smaller mass, or columns that are missing in the same rows"
            )
