"""Small models, data and states of every kind, and the same states for the scalar reference.

Letters of the reference: rows first, nu (N, K), phi (K, D). The package keeps features first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW, HARD, MEAN
from ibpdist.base.structs import combine, replace
from ibpdist.catalog import systems
from ibpdist.catalog.systems import SYSTEMS, build
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.starts import start_questions
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.noise_and_scale import shared_ratios
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli, BetaBernoulliParams
from ibpdist.model.priors.beta_process import BetaProcess
from ibpdist.model.priors.stick_breaking import StickBreaking, StickBreakingParams
from tests.support import reference as ref

PRIORS = {"finite": BetaBernoulli, "sticks": StickBreaking}
"""Those that the scalar reference knows."""
ALL_PRIORS = PRIORS | {"atoms": BetaProcess}
WEIGHTS = {name: axis for name, axis in systems._weights().items() if not axis.counts}
RULES = {"mean": MEAN, "mode": HARD, "draw": DRAW}
FAMILIES = ("structured", "factorised")
NOISES = ("one", "column", 0.7)
MISSING = ("complete", "masked", "block", "rows")
CONVEX_TERMS = 32
"""Exact terms of the package's convex bound; with Euler-Maclaurin it is `exact_log_off` cut there."""


@dataclass(frozen=True)
class Case:
    """One cell of the grid; `str` of it names a test."""

    prior: str = "finite"
    weights: str = "unit"
    family: str = "structured"
    noise: str | float = "one"
    missing: str = "complete"
    rule: str = "mean"
    scale: str | float = "one"
    mass: str | float = "learn"
    mu: str | float = 0.0

    def __str__(self):
        return "-".join((self.prior, self.weights, self.family, str(self.noise), self.missing, self.rule))


def grid(
    priors=PRIORS, weights=WEIGHTS, families=FAMILIES, noises=NOISES, missing=MISSING, rules=("mean", "mode")
):
    """Every combination, as cases."""
    return [Case(*made) for made in product(priors, weights, families, noises, missing, rules)]


def algorithm(case, features=3, inner=1, **settings):
    """The parallel algorithm of a case; `settings` replace those of the observation."""
    how = {"masked": "groups", "block": "groups", "rows": "rows"}.get(case.missing, "auto")
    given = {"noise": case.noise, "scale": case.scale, "family": case.family, "missing": how} | settings
    prior = ALL_PRIORS[case.prior](mass=case.mass)
    weights = WEIGHTS[case.weights](**({"mu": case.mu} if case.mu else {}))
    return Coordinate(Model(prior, weights, Gaussian(**given), RULES[case.rule]), features, inner)


def problem(seed=0, rows=10, columns=4, missing="complete", dtype=np.float64):
    """x (row, column), zero where missing, and the mask or None; two planted features and noise."""
    rng = np.random.default_rng(seed)
    planted = 2.0 * rng.normal(size=(2, columns))
    x = (rng.random((rows, 2)) < 0.5) @ planted + 0.5 * rng.normal(size=(rows, columns))
    if missing == "complete":
        return x.astype(dtype), None
    observed = blocks(rows, columns) if missing == "block" else scattered(rng, rows, columns)
    return np.where(observed, x, 0.0).astype(dtype), observed


def problem_of(system, seed=0, rows=10, columns=4, missing="complete", dtype=np.float64):
    """The same for a system; counts have small numbers of two planted features, and none is missing."""
    if not SYSTEMS[system].counts:
        return problem(seed, rows, columns, missing, dtype)
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(columns, 0.5), 2)
    has = rng.random((rows, 2)) < 0.5
    return rng.poisson(9.0 * has @ laws + 0.5).astype(dtype), None


def blocks(rows, columns):
    """Two groups of columns; every third row lacks the second group."""
    observed = np.ones((rows, columns), bool)
    observed[1::3, columns // 2 :] = False
    return observed


def scattered(rng, rows, columns):
    """About a third of the cells missing, in no pattern; one row sees nothing."""
    observed = rng.random((rows, columns)) < 0.7
    observed[0], observed[-1, 0] = True, False
    if rows > 3:
        observed[2] = False
    return observed


def chunked(x, observed=None, sizes=None):
    """Chunks of `sizes` rows (None: one chunk)."""
    made, start = [], 0
    for index, size in enumerate(sizes or [len(x)]):
        part = slice(start, start + size)
        made.append(Chunk(index, start, x[part], None if observed is None else observed[part]))
        start += size
    return made


def survey(alg, chunks):
    return reduce(combine, [alg.summarise(chunk) for chunk in chunks])


def initial(alg, chunks, draws):
    """Initial parameters, after all questions."""

    def answer(_, question):
        return reduce(combine, [alg.look(chunk, question, draws) for chunk in chunks])

    return start_questions.initial(alg, survey(alg, chunks), draws, answer)


AT_ONCE = [name for name, row in SYSTEMS.items() if row.method in ("ascent", "gibbs")]
"""Systems that keep their features, and take all rows at once."""
ASCENT = [name for name, row in SYSTEMS.items() if row.method == "ascent"]
COUNTS = [name for name, row in SYSTEMS.items() if row.counts]


def plain(system, features, inner=1, settings=None):
    """A system from a random start, without moves."""
    known = systems.settings_of(system)
    still = {name: value for name, value in (("start", "random"), ("moves", False)) if name in known}
    return build(system, features, inner=inner, settings=still | (settings or {}))


def begin(alg, chunks, seed=1):
    """Initial parameters and row states."""
    draws = Draws(seed)
    params = initial(alg, chunks, draws)
    return params, [alg.start(chunk, params, draws) for chunk in chunks], draws


def sweep(alg, chunks, states, params, draws):
    """All chunks against the same globals: new row states and combined sums."""
    made = [alg.local(chunk, state, params, draws) for chunk, state in zip(chunks, states, strict=True)]
    return [state for state, _ in made], reduce(combine, [sums for _, sums in made])


def steps_of(alg, chunks, params, states, draws, count):
    """The loop without an engine: (step, (row states, parameters) before it, row states, sums, parameters,
    trace) of every step."""
    for step in range(1, count + 1):
        before = states, params
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, info = alg.update(params, sums, draws.at(step))
        trace = info.trace()
        yield step, before, states, sums, params, trace


def fit(alg, chunks, steps, seed=1):
    """Parameters, row states and sums after the last step, and the trace of every step."""
    traces = []
    for _, _, states, sums, params, trace in steps_of(alg, chunks, *begin(alg, chunks, seed), steps):  # noqa: B007
        traces.append(trace)
    return params, states, sums, traces


BESIDE = (
    "objective", "bound", "active", "magnitude", "entries", "singletons", "slope", "warming", "settled",
)  # fmt: skip


def terms_of(trace):
    """The terms of the objective in a trace, without what is made of them or beside them."""
    return {name: value for name, value in trace.items() if name not in BESIDE}


def objectives(traces):
    return np.array([trace["objective"] for trace in traces])


# --- states with nothing special about them ---


def random_prior(case, features, rng):
    """q of prevalences or sticks at random, its moments from the reference."""
    tau = rng.uniform(0.6, 5.0, (features, 2))
    mass = np.asarray(rng.uniform(0.5, 3.0) if case.mass == "learn" else case.mass)
    if case.prior == "finite":
        entropy = np.array([finite_entropy(*row) for row in tau])
        on, off = ref.finite_log_on(tau), ref.finite_log_off(tau)
        return BetaBernoulliParams(tau, on, off, entropy, mass, np.asarray(features))
    order = rng.permutation(features)
    on, off = np.empty(features), np.empty(features)
    on[order], off[order] = ref.stick_log_on(tau), convex_log_off(tau)
    return StickBreakingParams(tau, order, on, off, mass)


def finite_entropy(one, two):
    """H[Beta] from KL(Beta(one, two) || Beta(1, 1)) = -H."""
    return -ref.beta_kl(np.array([[one, two]]), 1.0)


def convex_log_off(tau):
    return ref.exact_log_off(tau, CONVEX_TERMS)


def random_params(case, alg, chunks, seed):
    """Global parameters at random: full or diagonal covariances, noise as the case has it."""
    rng = np.random.default_rng([seed, 1])
    features = alg.features
    params = alg.init(survey(alg, chunks), Draws(seed))
    was = params.observation
    groups, columns = len(was.basis), was.mean.shape[1]
    basis = 0.6 * rng.normal(size=(groups, features, features))
    if case.family == "factorised":
        basis = basis * np.eye(features) + 0.5 * np.eye(features)
    ahead = 0.6 * rng.normal(size=(features, features)) if case.missing == "rows" else None
    if case.family == "factorised":
        ahead = None if ahead is None else np.zeros_like(ahead)
    noise = {"one": np.full(columns, 0.9), "column": rng.uniform(0.3, 1.5, columns)}.get(
        case.noise, was.noise
    )
    if case.noise == "auto":  # as in columns of mostly one value
        was, noise = replace(was, common=np.full(columns, 0.9)), 0.9 * shared_ratios(was.spread)
    observed = replace(
        was,
        mean=rng.normal(size=was.mean.shape),
        basis=basis,
        spectrum=rng.uniform(0.0, 4.0, was.spectrum.shape),
        **({} if ahead is None else {"ahead": ahead}),
        noise=noise,
        scale=np.full(features, 1.3) if case.scale == "one" else was.scale,
    )
    return replace(params, prior=random_prior(case, features, rng), observation=observed)


def random_state(case, params, chunk, seed):
    """Row state at random; z of certain entries under the mode rule."""
    rng = np.random.default_rng([seed, 2, chunk.start])
    shape = (len(params.ids), chunk.rows)
    z = rng.uniform(0.02, 0.98, shape)
    z = np.round(z) if case.rule != "mean" else z
    w = rng.normal(size=shape) if WEIGHTS[case.weights].has_weights else np.zeros((0, chunk.rows))
    return RowState(ids=params.ids, z=z.astype(chunk.x.dtype), w=w.astype(chunk.x.dtype))


def random_case(case, seed, alg, x, observed=None, sizes=None):
    """The chunks of x, and parameters and row states at random."""
    chunks = chunked(x, observed, sizes)
    params = random_params(case, alg, chunks, seed)
    return chunks, params, [random_state(case, params, chunk, seed) for chunk in chunks]


# --- the same for the reference ---


def covariances(observed):
    """Sigma_d (D, K, K), one column at a time."""
    made = []
    for d, g in enumerate(observed.group):
        basis, spectrum = observed.basis[g], observed.spectra()[d]
        made.append(
            sum(np.outer(b, b) / (1 + e / observed.noise[d]) for b, e in zip(basis.T, spectrum, strict=True))
        )
    return np.array(made)


def joined(states, chunks):
    """z and w of all rows, (row, feature) each, float64; w is one where rows keep none."""
    z = np.concatenate([state.z for state in states], axis=1).T.astype(np.float64)
    w = np.concatenate([state.w for state in states], axis=1).T.astype(np.float64)
    return z, w if w.size or not z.size else np.ones_like(z)


def reference_state(case, params, states, chunks):
    """The reference's record; features in the package's order, tau in the order of the sticks."""
    observed = params.observation
    x = np.concatenate([chunk.x for chunk in chunks]).astype(np.float64)
    seen = [np.ones(c.x.shape, bool) if c.observed is None else c.observed for c in chunks]
    mask = np.concatenate(seen)
    z, w = joined(states, chunks)
    return ref.State(
        x=np.where(mask, x, np.nan),
        mask=mask,
        nu=z,
        m=w,
        s2=np.zeros_like(z),
        phi=observed.mean,
        sigma=covariances(observed),
        tau=params.prior.tau,
        psi=observed.noise,
        s=observed.scale,
        mass=float(params.prior.mass),
        prior=case.prior,
        weights=case.weights,
        tail=case.prior == "sticks",
    )


def prior_moments(case, params, log_off=convex_log_off):
    """(K,) E log pi and what stands for E log(1 - pi), from tau alone, in feature order."""
    tau = params.prior.tau
    if case.prior == "finite":
        return ref.finite_log_on(tau), ref.finite_log_off(tau)
    on, off = np.empty(len(tau)), np.empty(len(tau))
    on[params.prior.order], off[params.prior.order] = ref.stick_log_on(tau), log_off(tau)
    return on, off
