"""Geweke's joint test with many short chains.

Every chain starts from an exact draw of everything (hyperparameters, prevalences, z, w,
dictionary, x). It alternates one step of the sampler with x drawn anew given the rest. Both
leave the joint law as it is, so any statistic has the same law at the end as at the start, and
the mean of the differences over independent chains is zero within its standard error. The intercept is drawn
last in a step: at the end it is seen with the x that it was drawn for.

The priors are those of the package: mass ~ Gamma(1, rate 1), and a learned variance v has
the density of log v proportional to exp(-(log v + v0 / v)): v0 / v ~ Exponential(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import NOTHING, Nothing, replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import ModelParams, without_parents
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import GaussianParams, intercept_mean
from ibpdist.model.observations.noise_and_scale import shared_ratios
from ibpdist.model.observations.row_noise import LEAST, RowNoise, RowPrecision
from ibpdist.model.observations.row_noise import MOST as MOST_FREEDOM
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli, BetaBernoulliParams
from ibpdist.model.weights._base import Slab
from ibpdist.model.weights.laplace import Laplace
from ibpdist.model.weights.normal import MOST, Normal
from ibpdist.model.weights.unit import Unit

RATE, PSEUDO_NOISE = 1.0, 1e-3
START = 3.0
"""Where the intercept of the first column begins."""


def scattered_mask(rows):
    """Observed cells of three columns: every column has its own pattern, one row sees nothing."""
    mask = np.ones((rows, 3), bool)
    mask[1::2, 2], mask[0, 0], mask[4] = False, False, False
    return mask


@dataclass(frozen=True)
class Joint:
    """What is sampled: shapes, settings and the mask. `floor` is the noise's v0 over `unit`; `spread`, where
    columns vary differently, are their variances over it."""

    weights: str = "unit"
    noise: str | float = "one"
    scale: str | float = "one"
    mass: str | float = "learn"
    mask: np.ndarray | None = None
    rows: int = 6
    columns: int = 3
    features: int = 3
    inner: int = 1
    missing: str = "groups"
    unit: float = 1.0
    floor: float = PSEUDO_NOISE
    intercept: bool = False
    mu: str | float = 0.0
    row_noise: str = "none"
    spread: tuple[float, ...] | None = None

    @property
    def variances(self):
        """(column) of the columns."""
        return self.unit * (np.ones(self.columns) if self.spread is None else np.array(self.spread))

    def algorithm(self):
        model = Model(
            BetaBernoulli(self.mass),
            weights_of(self),
            gaussian_of(self),
            DRAW,
        )
        return Coordinate(model, self.features, self.inner)

    @property
    def observed(self):
        return np.ones((self.rows, self.columns), bool) if self.mask is None else self.mask

    def chunk(self, x):
        return Chunk(0, 0, x, self.mask)


@dataclass(frozen=True)
class Draw:
    """One draw of everything, as the algorithm keeps it."""

    params: ModelParams
    state: RowState
    x: np.ndarray


def variance(setting, v0, size, rng):
    """A fixed variance, one learned, or one for each column or feature."""
    if not isinstance(setting, str):
        return np.full(size, setting)
    different = size if setting in ("column", "feature") else 1
    return np.broadcast_to(v0 / rng.exponential(size=different), size).copy()


def noise_draw(joint, rng):
    """The noise of columns from its prior. With auto it has one level, since the survey saw one value."""
    found = variance(joint.noise, joint.floor * joint.unit, joint.columns, rng)
    return found * shared_ratios(joint.variances) if joint.noise == "auto" else found


def prior_draw(joint, alg, rng):
    """Everything from the prior, and x given it."""
    k, n = joint.features, joint.rows
    mass = rng.exponential(1 / RATE) if joint.mass == "learn" else joint.mass
    log_on = np.log(rng.random(k)) * k / mass
    z = (np.log(rng.random((k, n))) < log_on[:, None]).astype(float)
    slab = slab_draw(joint, k, rng)
    w = weights_draw(joint, slab, z, rng)
    scale = variance(joint.scale, joint.unit, k, rng)
    prior = BetaBernoulliParams(
        tau=np.ones((k, 2)),
        log_on=log_on,
        log_off=np.log(-np.expm1(log_on)),
        entropy=np.zeros(k),
        mass=np.asarray(mass),
        truncation=np.asarray(k),
    )
    survey = alg.summarise(joint.chunk(np.zeros((n, joint.columns))))
    observed: GaussianParams = replace(
        alg.init(survey, Draws(0)).observation,
        mean=np.sqrt(scale)[:, None] * rng.normal(size=(k, joint.columns)),
        noise=noise_draw(joint, rng),
        scale=scale,
        unit=np.asarray(joint.unit),
        spread=joint.variances,
    )
    observed = at_start(observed)
    observed, precision = row_noise_draw(joint, observed, rng)
    counts = {"on": z.sum(axis=1), "rows": np.asarray(float(n))}
    params = ModelParams(prior, observed, ids=np.arange(k), **without_parents(k), **counts, weights=slab)
    state = RowState(ids=params.ids, z=z, w=w, precision=precision)
    return with_data(joint, Draw(params, state, np.zeros((n, joint.columns))), rng)


def gaussian_of(joint):
    more = {"missing": joint.missing, "intercept": joint.intercept, "row_noise": joint.row_noise}
    return Gaussian(joint.noise, joint.scale, **more)


def row_noise_draw(joint, observed, rng):
    """The observation with a law of row noise from its prior, and the precisions of rows."""
    if joint.row_noise == "none":
        return observed, NOTHING
    nu = np.exp(rng.uniform(np.log(LEAST), np.log(MOST_FREEDOM)))
    tau = rng.gamma(nu / 2, 2 / nu, joint.rows)
    return replace(
        observed, row_noise=RowNoise(np.asarray(nu), np.zeros(()), np.zeros(observed.noise.size))
    ), RowPrecision(tau)


def times(draw):
    """(row) precisions."""
    held = draw.state.precision
    return np.ones(draw.state.z.shape[1]) if isinstance(held, Nothing) else held.mean


def weights_of(joint):
    return {"unit": Unit, "normal": partial(Normal, joint.mu), "laplace": Laplace}[joint.weights]()


def slab_draw(joint, features, rng):
    """Means of the weights, from their prior."""
    if joint.mu == "learn":
        return Slab(rng.uniform(-MOST, MOST, features))
    return weights_of(joint).slab(features)


def weights_draw(joint, slab, z, rng):
    """w (feature, row) from the prior."""
    if joint.weights == "unit":
        return np.zeros((0, z.shape[1]))
    if joint.weights == "laplace":
        return rng.laplace(size=z.shape)
    w = rng.normal(size=z.shape)
    return w if isinstance(slab, Nothing) else w + slab.mean[:, None]


def at_start(observed):
    """With the intercept, if there is one, at a place. Its prior is flat, so a chain may begin anywhere, and
    what does not change when data and intercept move together has a law that the sampler must keep."""
    if isinstance(observed.intercept, Nothing):
        return observed
    columns = observed.noise.size
    place = {"origin": START + np.arange(columns), "error": np.zeros(columns)}
    return replace(observed, intercept=replace(observed.intercept, **place))


def above(draw):
    """x (row, column) less the intercept."""
    return draw.x - intercept_mean(draw.params.observation)


def loadings(draw):
    """y (row, feature)."""
    return (draw.state.z * draw.state.w if draw.state.w.size else draw.state.z).T


def with_data(joint, draw, rng):
    """x given the rest, and the facts of x that the parameters carry."""
    observed = draw.params.observation
    fit = loadings(draw) @ observed.mean
    error = np.sqrt(observed.noise / times(draw)[:, None]) * rng.normal(size=fit.shape)
    x = intercept_mean(observed) + fit + error
    x = np.where(joint.observed, x, 0.0)
    observed = replace(observed, squares=(x**2).sum(axis=0))
    if not isinstance(observed.intercept, Nothing):
        observed = replace(observed, intercept=replace(observed.intercept, total=x.sum(axis=0)))
    return Draw(replace(draw.params, observation=observed), draw.state, x)


def transition(joint, alg, draw, draws):
    """One step of the sampler."""
    state, sums = alg.local(joint.chunk(draw.x), draw.state, draw.params, draws)
    params, _ = alg.update(draw.params, sums, draws)
    return Draw(params, state, draw.x)


def log_joint(joint, draw):
    """log p(x, A, z, prevalences) given variances and mass, up to a constant; without w."""
    prior, observed, z = draw.params.prior, draw.params.observation, draw.state.z
    error = np.where(joint.observed, above(draw) - loadings(draw) @ observed.mean, 0.0)
    cells = joint.observed.sum(axis=0)
    squares = (times(draw)[:, None] * error**2).sum(axis=0)
    total = -0.5 * (cells * np.log(observed.noise) + squares / observed.noise).sum()
    total -= 0.5 * (np.log(observed.scale)[:, None] + observed.mean**2 / observed.scale[:, None]).sum()
    on = z.sum(axis=1)
    total += (on * prior.log_on + np.where(on < joint.rows, (joint.rows - on) * prior.log_off, 0.0)).sum()
    share = float(prior.mass) / joint.features
    return float(total + (np.log(share) + share * prior.log_on).sum())


def statistics(joint, draw):
    """Statistics by name; all with finite variance under the heavy-tailed variances."""
    prior, observed, z = draw.params.prior, draw.params.observation, draw.state.z
    fit, x = loadings(draw) @ observed.mean, above(draw)
    made = {
        "sum z": z.sum(),
        "active": (z.sum(axis=1) > 0).sum(),
        "singletons": (z.sum(axis=1) == 1).sum(),
        "together": (z[0] * z[1]).sum(),
        "full": (z.sum(axis=1) == joint.rows).sum(),
        "log joint": log_joint(joint, draw),
        "cell": np.arcsinh(fit[0, 0]),
        "cell sq": np.arcsinh(fit[0, 0] ** 2),
        "size": np.log(np.abs(observed.mean[0, 0])),
        "fit": np.arcsinh((fit**2).sum()),
        "misfit": np.log(((x - fit)[joint.observed] ** 2).sum()),
        "data": np.log((x[joint.observed] ** 2).sum()),
        "prevalence": np.exp(prior.log_on[-1]),
    }
    if joint.mass == "learn":
        made["log mass"] = np.log(float(prior.mass))
        made["mass and z"] = np.log(float(prior.mass)) * z.sum()
    if isinstance(joint.noise, str):
        made["log noise"] = np.log(observed.noise[0])
        made["log noise sq"] = np.log(observed.noise[-1] / joint.floor) ** 2
        made["noise and z"] = np.log(observed.noise[0] / joint.floor) * z.sum()
    if isinstance(joint.scale, str):
        made["log scale"] = np.log(observed.scale[0])
        made["scale and z"] = np.log(observed.scale[0]) * z.sum()
    if joint.weights != "unit":
        made["w sq"] = (z * draw.state.w**2).sum()
        made["w"] = (z[0] * draw.state.w[0]).sum()
        made["|w|"] = (z * np.abs(draw.state.w)).sum()
    return made | of_intercept(joint, draw) | of_slab(draw, joint.mu == "learn") | of_row_noise(joint, draw)


def of_row_noise(joint, draw):
    """Statistics of the precisions of rows and their law."""
    observed, tau = draw.params.observation, times(draw)
    if isinstance(observed.row_noise, Nothing):
        return {}
    error = np.where(joint.observed, above(draw) - loadings(draw) @ observed.mean, 0.0)
    squares, log_nu = (error**2 / observed.noise).sum(axis=1) * tau, np.log(observed.row_noise.freedom)
    return {
        "log nu": log_nu,
        "log nu sq": log_nu**2,
        "log tau": np.log(tau).mean(),
        "log tau sq": (np.log(tau) ** 2).mean(),
        "nu and tau": log_nu * (np.log(tau) - tau).mean(),
        "tau and misfit": np.log1p(squares).sum(),
        "tau and z": np.log(tau) @ draw.state.z.sum(axis=0),
    }


def of_slab(draw, varies=True):
    """Statistics of the means of weights, in any order of features; those of one row apart. Their sums may
    never vary: a known mean of a given number of features."""
    slab, z = draw.params.weights, draw.state.z
    if isinstance(slab, Nothing):
        return {}
    on, total = z.sum(axis=1), (z * draw.state.w).sum(axis=1)
    one, several = on == 1, on > 1
    away = total - on * slab.mean
    sums = {"mu": slab.mean.sum(), "mu sq": (slab.mean**2).sum()} if varies else {}
    return sums | {
        "mu of one row": (slab.mean[one] ** 2).sum(),
        "mu of several": (slab.mean[several] ** 2).sum(),
        "w and mu of one row": (total * slab.mean)[one].sum(),
        "w and mu of several": (total * slab.mean)[several].sum(),
        "w from mu": (away[on > 0] ** 2 / on[on > 0]).sum(),
        "w from mu of one row": away[one].sum(),
    }


def of_intercept(joint, draw):
    """Statistics of the intercept, which is far from the data by no more than their errors."""
    if not joint.intercept:
        return {}
    observed, x = draw.params.observation, np.where(joint.observed, above(draw), 0.0)
    fit = np.where(joint.observed, loadings(draw) @ observed.mean, 0.0)
    return {
        "total": np.arcsinh(x[:, 0].sum()),
        "totals sq": np.log((x.sum(axis=0) ** 2).sum()),
        "left": np.arcsinh((x - fit)[:, -1].sum()),
        "left sq": np.log(((x - fit).sum(axis=0) ** 2 / observed.noise).sum()),
    }


def scores(joint, chains, steps, seed=0):
    """z score of the mean difference between end and start, by statistic."""
    alg = joint.algorithm()
    changes = []
    for chain in range(chains):
        rng, draws = np.random.default_rng([seed, chain]), Draws(seed, 0, chain)
        draw = prior_draw(joint, alg, rng)
        first = statistics(joint, draw)
        for step in range(1, steps + 1):
            after = transition(joint, alg, draw, draws.at(step))
            draw = with_data(joint, after, rng)
        last = statistics(joint, draw) | of_intercept(joint, after)
        changes.append([last[name] - first[name] for name in first])
    table = np.array(changes, dtype=float)
    error = table.std(axis=0, ddof=1) / np.sqrt(chains)
    return dict(zip(first, table.mean(axis=0) / error, strict=True))
