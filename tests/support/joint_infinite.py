"""The joint law of the infinite model: exact draws of everything, and Geweke's test with many short chains.

Rows come to the buffet one after the other; everything else is drawn from the priors of the package
(geweke.py says which). A transition is any function (chunk, params, state, draws) -> (params, state)
that leaves the posterior as it is: a sweep of a sequential sampler, or two steps of the anchored one.

Features have no order here: statistics do not depend on it, and they come in any order, because a chain
that they enter by age is not yet where it will stay. Where no feature exists there is no scale either: the
samplers draw it anew with the first one, and statistics of it are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.params import ModelParams, without_parents
from ibpdist.model.model import Model
from ibpdist.model.observations import noise_and_scale
from ibpdist.model.observations._base import RowState
from ibpdist.model.priors.beta_bernoulli import draw_beta
from ibpdist.model.priors.buffet import Buffet, BuffetParams
from tests.support import geweke
from tests.support.geweke import RATE, Draw, above, loadings, of_intercept, variance, weights_of, with_data

Transition = Callable[[Chunk, ModelParams, RowState, Draws], tuple[ModelParams, RowState]]


@dataclass(frozen=True)
class Infinite:
    """What is sampled: shapes, settings and the mask. `floor` is the noise's v0 over `unit`."""

    weights: str = "unit"
    noise: str | float = "one"
    scale: str | float = "one"
    mass: str | float = "learn"
    mask: np.ndarray | None = None
    rows: int = 5
    columns: int = 3
    missing: str = "groups"
    unit: float = 1.0
    floor: float = 1.0
    intercept: bool = False
    mu: str | float = 0.0
    row_noise: str = "none"

    @property
    def observed(self):
        return np.ones((self.rows, self.columns), bool) if self.mask is None else self.mask

    def model(self):
        return Model(Buffet(self.mass), weights_of(self), geweke.gaussian_of(self), DRAW)

    def chunk(self, x):
        return Chunk(0, 0, x, self.mask)

    def draw(self, rng):
        """Everything from the prior, and x given it."""
        mass = rng.exponential(1 / RATE) if self.mass == "learn" else self.mass
        z = rng.permutation(buffet(self.rows, mass, rng))
        features = len(z)
        slab = geweke.slab_draw(self, features, rng)
        w = geweke.weights_draw(self, slab, z, rng)
        scale = variance(self.scale, self.unit, features, rng)
        blank = self.model().observation.summarise(self.chunk(np.zeros(self.observed.shape)))
        observed = replace(
            self.model().observation.init(blank, features, rng),
            mean=np.sqrt(scale)[:, None] * rng.normal(size=(features, self.columns)),
            noise=variance(self.noise, self.floor * self.unit, self.columns, rng),
            scale=scale,
            unit=np.asarray(self.unit),
            spread=np.full(self.columns, self.unit),
        )
        observed, precision = geweke.row_noise_draw(self, geweke.at_start(observed), rng)
        counts = {"on": z.sum(axis=1), "rows": np.asarray(float(self.rows))}
        ids = np.arange(features)
        params = ModelParams(
            prevalences(z, mass, rng), observed, ids=ids, **without_parents(features), **counts, weights=slab
        )
        nothing = np.zeros(self.observed.shape)
        return with_data(self, Draw(params, RowState(ids=ids, z=z, w=w, precision=precision), nothing), rng)

    def renew(self, draw, rng):
        return with_data(self, draw, rng)

    def statistics(self, draw):
        return {
            **of_who_has_what(draw),
            **of_values(self, draw),
            **self._of_hyperparameters(draw),
            **of_intercept(self, draw),
            **geweke.of_slab(draw),
            **geweke.of_row_noise(self, draw),
        }

    def _of_hyperparameters(self, draw):
        """Those that are learned, alone and with the number of features."""
        observed, features, made = draw.params.observation, len(draw.state.z), {}
        if self.mass == "learn":
            made["log mass"] = np.log(float(draw.params.prior.mass))
            made["mass and K"] = made["log mass"] * features
        if isinstance(self.noise, str):
            level = np.log(observed.noise[0] / self.floor)
            made |= {"log noise": level, "noise and K": level * features}
            made["log noise sq"] = np.log(observed.noise[-1] / self.floor) ** 2
        if isinstance(self.scale, str):
            level = np.log(observed.scale).mean() if features else 0.0
            made |= {"log scale": level, "scale and K": level * features}
        return made


@dataclass(frozen=True)
class Finite:
    """The finite model of geweke.py, seen in the same way."""

    joint: geweke.Joint

    @property
    def floor(self):
        return self.joint.floor

    @property
    def intercept(self):
        return self.joint.intercept

    @property
    def unit(self):
        return self.joint.unit

    def model(self):
        return self.joint.algorithm().model

    def chunk(self, x):
        return self.joint.chunk(x)

    def draw(self, rng):
        return geweke.prior_draw(self.joint, self.joint.algorithm(), rng)

    def renew(self, draw, rng):
        return with_data(self.joint, draw, rng)

    def statistics(self, draw):
        return geweke.statistics(self.joint, draw) | of_who_has_what(draw)


def buffet(rows, mass, rng):
    """z (feature, row), features in the order in which they are first taken."""
    dishes = np.zeros((0, rows))
    for n in range(rows):
        taken = rng.random(len(dishes)) < dishes.sum(axis=1) / (n + 1)
        dishes[:, n] = taken
        new = np.zeros((rng.poisson(mass / (n + 1)), rows))
        new[:, n] = 1
        dishes = np.concatenate([dishes, new])
    return dishes


def prevalences(z, mass, rng):
    """Parameters of the prior with pi drawn given who has what."""
    on = z.sum(axis=1)
    tau = np.stack([on, z.shape[1] - on + 1.0], axis=1)
    log_on, log_off = draw_beta(tau, rng)
    return BuffetParams(tau=tau, log_on=log_on, log_off=log_off, mass=np.asarray(mass))


def of_who_has_what(draw):
    """Statistics of z alone."""
    z = draw.state.z
    on = z.sum(axis=1)
    return {
        "K": float((on > 0).sum()),
        "K sq": float((on > 0).sum()) ** 2,
        "sum z": z.sum(),
        "singletons": (on == 1).sum(),
        "doubletons": (on == 2).sum(),
        "everyone": (on == z.shape[1]).sum(),
        "first row": z[:, 0].sum(),
        "last row": z[:, -1].sum(),
        "in common": (z[:, 0] * z[:, 1]).sum(),
        "in common sq": (z[:, 0] * z[:, -1]).sum() ** 2,
        "own of first": ((on == 1) * z[:, 0]).sum(),
        "own of last": ((on == 1) * z[:, -1]).sum(),
        "pairs of rows": ((z.T @ z) ** 2).sum(),
        "pairs of features": ((z @ z.T) ** 2).sum(),
    }


def of_values(joint, draw):
    """Statistics of what features look like, and of the data."""
    observed, z = draw.params.observation, draw.state.z
    fit, x = loadings(draw) @ observed.mean, above(draw)
    misfit = np.log(((x - fit)[joint.observed] ** 2).sum())
    made = {
        "log joint": log_joint(joint, draw),
        "cell": np.arcsinh(fit[0, 0]),
        "cell sq": np.arcsinh(fit[0, 0] ** 2),
        "fit and x": np.arcsinh((fit * x)[joint.observed].sum()),
        "fit": np.arcsinh((fit**2).sum()),
        "A": np.arcsinh((observed.mean**2).sum()),
        "misfit": misfit,
        "data": np.log((x[joint.observed] ** 2).sum()),
        "K and misfit": len(z) * misfit,
    }
    if joint.weights != "unit":
        made["w sq"] = np.log1p((z * draw.state.w**2).sum())
        made["|w|"] = (z * np.abs(draw.state.w)).sum()
    return made


def log_joint(joint, draw):
    """log p(x, A, z | variances, mass) up to a constant, who has what as a point process of columns."""
    prior, observed, z = draw.params.prior, draw.params.observation, draw.state.z
    error = np.where(joint.observed, above(draw) - loadings(draw) @ observed.mean, 0.0)
    cells, on, rows = joint.observed.sum(axis=0), z.sum(axis=1), z.shape[1]
    squares = (geweke.times(draw)[:, None] * error**2).sum(axis=0)
    total = -0.5 * (cells * np.log(observed.noise) + squares / observed.noise).sum()
    total -= 0.5 * (np.log(observed.scale)[:, None] + observed.mean**2 / observed.scale[:, None]).sum()
    total += betaln(on, rows - on + 1).sum() + len(on) * np.log(float(prior.mass))
    return float(total - float(prior.mass) * (1 / np.arange(1, rows + 1)).sum())


def same_priors(joint, monkeypatch):
    """The package's pseudo cells are set to those of the joint law."""
    monkeypatch.setattr(noise_and_scale, "FLOOR", joint.floor)
    monkeypatch.setattr(noise_and_scale, "WEAK", joint.floor)
    monkeypatch.setattr(noise_and_scale, "RELEVANT", joint.unit)


def scores(joint: Any, transition: Transition, chains: int, steps: int, seed: int = 0) -> dict[str, float]:
    """z score of the mean difference between end and start over independent chains, by statistic.

    Every chain starts from an exact draw of everything and alternates a transition with x drawn
    anew; both leave the joint law as it is, so the mean difference is zero within its error.
    """
    changes = []
    for chain in range(chains):
        rng, draws = np.random.default_rng([seed, chain]), Draws(seed, 0, chain)
        draw = joint.draw(rng)
        first = joint.statistics(draw)
        for step in range(1, steps + 1):
            params, state = transition(joint.chunk(draw.x), draw.params, draw.state, draws.at(step))
            after = Draw(params, state, draw.x)
            draw = joint.renew(after, rng)
        last = joint.statistics(draw) | of_intercept(joint, after)
        changes.append([last[name] - first[name] for name in first])
    table = np.array(changes, dtype=float)
    error = table.std(axis=0, ddof=1) / np.sqrt(chains)
    with np.errstate(invalid="ignore", divide="ignore"):
        return dict(zip(first, table.mean(axis=0) / error, strict=True))


def worst(found: dict[str, float]) -> tuple[str, float]:
    """The statistic that is farthest off, in words, and how far; one that never changes counts as off."""
    size = {name: abs(value) if np.isfinite(value) else np.inf for name, value in found.items()}
    name = max(size, key=lambda key: size[key])
    return f"{name}: z = {found[name]:.1f}", size[name]
