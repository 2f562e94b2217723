"""One whole step of the model by the scalar reference, and its objective term by term."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ibpdist.model.observations.noise_and_scale import COLUMN_TURNS, ONE_TURNS
from ibpdist.model.observations.variances import TOLERANCE
from tests.support import reference as ref
from tests.support import scattered_reference as rows
from tests.support.exponential_reference import exponential_cost, respond_exponential
from tests.support.laplace_reference import laplace_cost, laplace_size, respond_laplace
from tests.support.model_cases import convex_log_off, prior_moments

PSEUDO, FLOOR, WEAK, LOWEST, RELEVANT = 2.0, 1e-3, 0.1, 1e-3, 1e-3
"""The weak priors of the variances: two cells that varied by FLOOR * unit (one noise), WEAK * spread (a
noise of each column, which is at least LOWEST * spread), unit (scale), RELEVANT * unit (of each feature)."""
RESPOND = {
    "unit": ref.respond_unit,
    "normal": ref.respond_normal,
    "laplace": respond_laplace,
    "exponential": respond_exponential,
}
COST = {"laplace": laplace_cost, "exponential": exponential_cost}


def sweep(state, log_odds, rule, inner=1):
    """`inner` Gauss-Seidel sweeps, features in the package's order."""
    nu, m, s2 = state.nu.copy(), state.m.copy(), state.s2.copy()
    cost, size = (np.zeros_like(nu), np.zeros_like(nu)) if state.weights in COST else (None, None)
    state = replace(state, nu=nu, m=m, s2=s2, cost=cost, size=size)
    for _ in range(inner):
        for k, n in np.ndindex(nu.shape[1], nu.shape[0]):
            b, a = ref.linear(state, n, k), ref.quadratic(state, n, k)
            nu[n, k], m[n, k], s2[n, k] = RESPOND[state.weights](log_odds[k], b, a, rule)
            if cost is not None:
                cost[n, k] = COST[state.weights](b, a)
                size[n, k] = laplace_size(b, a) if state.weights == "laplace" else m[n, k]
    return state


def local(case, state, log_odds, inner=1):
    """The sweeps; missing cells are left out."""
    return sweep(state, log_odds, case.rule, inner)


def balanced(case, state, observed):
    """Weights divided and scales multiplied by the best length of each feature."""
    if case.scale == "feature" and case.weights in COST:
        return size_balanced(state, observed)
    if case.scale != "feature" or case.weights != "normal":
        return state
    at, second = RELEVANT * float(observed.unit), ref.square_y(state.nu, state.m, state.s2)
    m, s2, s = state.m.copy(), state.s2.copy(), state.s.copy()
    for k in range(len(s)):
        pull = PSEUDO * at / s[k]
        length = (second[:, k].sum() + pull) / (state.nu[:, k].sum() + PSEUDO)
        m[:, k], s2[:, k], s[k] = m[:, k] / np.sqrt(length), s2[:, k] / length, s[k] * length
    return replace(state, m=m, s2=s2, s=s)


def size_balanced(state, observed):
    """The same for weights whose cost is E |w|."""
    at, m, s2 = RELEVANT * float(observed.unit), state.m.copy(), state.s2.copy()
    s, cost = state.s.copy(), state.cost.copy()
    for k in range(len(s)):
        on, size, pull = state.nu[:, k].sum() + PSEUDO, state.size[:, k], PSEUDO * at / s[k]
        first = (state.nu[:, k] * size).sum()
        length = (first + np.sqrt(first**2 + 4 * on * pull)) / (2 * on)
        cost[:, k] += size * (1 / length - 1) + np.log(length)
        m[:, k], s2[:, k], s[k] = m[:, k] / length, s2[:, k] / length**2, s[k] * length**2
    return replace(state, m=m, s2=s2, s=s, cost=cost)


def shared_noise(errors, cells, observed):
    """One level for all columns, in proportion to their variances, at least to the median of these."""
    spread, columns = [float(v) for v in observed.spread], len(observed.spread)
    ordered = sorted(spread)
    median = (ordered[(columns - 1) // 2] + ordered[columns // 2]) / 2
    large = [max(v, median) for v in spread]
    ratios = [v * columns / sum(large) for v in large]
    total = sum(error / ratio for error, ratio in zip(errors, ratios, strict=True))
    level = (total + PSEUDO * FLOOR * float(observed.unit)) / (sum(cells) + PSEUDO)
    return level * np.array(ratios)


def update_noise(case, state, observed):
    """One noise, one level, or one noise of each column, not below its least value."""
    if case.noise == "auto":
        return shared_noise(ref.column_error(state), ref.column_cells(state), observed)
    if case.noise == "one":
        return ref.update_noise(state, "one", PSEUDO, FLOOR * float(observed.unit)).psi
    each = [ref.update_noise(state, "column", PSEUDO, WEAK * v).psi for v in observed.spread]
    return np.array([max(psi[d], LOWEST * observed.spread[d]) for d, psi in enumerate(each)])


def update_observation(case, state, observed):
    """q(A), then turns of (noise and scale given q(A), q(A) given both) up to convergence.

    A noise for each column gets a fixed small number of turns.
    """
    turns = COLUMN_TURNS if case.noise in ("column", "auto") else ONE_TURNS
    if case.missing == "rows":
        return scattered_update(case, state, observed, turns)
    x, _, mask = ref.cells(state)
    g, p = ref.gram(state.nu, state.m, state.s2, mask), ref.cross(state.nu, state.m, x, mask)

    def solved(state):
        phi, sigma = ref.solve_dictionary(g, p, state.psi, state.s, case.family == "structured")
        return replace(state, phi=phi, sigma=sigma)

    state = solved(state)
    for _ in range(turns):
        was, now = state, state
        if isinstance(case.noise, str):
            now = replace(now, psi=update_noise(case, was, observed))
        if case.scale == "one":
            now = replace(now, s=ref.update_scale(was, "one", PSEUDO, float(observed.unit)).s)
        state = solved(now)
        moved = np.append(np.log(now.psi / was.psi), np.log(now.s / was.s))
        if np.abs(moved).max() < TOLERANCE:
            break
    return relevances(case, state, float(observed.unit))


def scattered_update(case, state, observed, turns):
    """The same with cells missing in no pattern: a state that knows its likelihood."""
    longer, structured = np.sqrt(state.s / observed.scale)[:, None], case.family == "structured"
    sums = rows.filled(state, observed.mean * longer)
    bases = [basis * longer for basis in (observed.basis[0], observed.ahead) if basis.any()]
    bases.append(np.eye(len(state.s)))
    basis, e = rows.covariance(state, bases, sums, structured)
    state = rows.solved(state, sums, basis, e)
    for _ in range(turns):
        was, now = state, state
        if isinstance(case.noise, str):
            now = replace(now, psi=scattered_noise(case, was, observed, rows.error(was, sums, e)))
        if case.scale == "one":
            now = replace(now, s=ref.update_scale(was, "one", PSEUDO, float(observed.unit)).s)
        grown = now.s[0] / was.s[0]
        basis, e = basis * np.sqrt(grown), e * grown
        state = rows.solved(now, sums, basis, e)
        moved = np.append(np.log(now.psi / was.psi), np.log(now.s / was.s))
        if np.abs(moved).max() < TOLERANCE:
            break
    return Scattered(
        **vars(relevances(case, state, float(observed.unit))), reached=rows.likelihood(state, sums, e)
    )


def scattered_noise(case, state, observed, error):
    """Modes of the noise given squares that are left."""
    count = state.mask.sum(axis=0)
    if case.noise == "auto":
        return shared_noise(error, count, observed)
    if case.noise == "one":
        found = (error.sum() + PSEUDO * FLOOR * float(observed.unit)) / (count.sum() + PSEUDO)
        return np.full(len(error), found)
    found = (error + PSEUDO * WEAK * observed.spread) / (count + PSEUDO)
    return np.maximum(found, LOWEST * observed.spread)


@dataclass(frozen=True)
class Scattered(ref.State):
    """A state with the likelihood of the bound that its dictionary maximises."""

    reached: float = 0.0


def relevances(case, state, unit):
    """A scale of each feature, given q(A)."""
    if case.scale != "feature":
        return state
    columns = state.x.shape[1]
    second = [
        sum(ref.pair_a(state.phi, state.sigma, d, k, k) for d in range(columns)) for k in range(len(state.s))
    ]
    return replace(state, s=np.array([(a + PSEUDO * RELEVANT * unit) / (columns + PSEUDO) for a in second]))


def score(case, state, params, log_off=convex_log_off):
    """Every term by the package's names. tau, mass and stick order are those of `params`."""
    observed = params.observation
    state = replace(state, tau=params.prior.tau, mass=float(params.prior.mass))
    on, off = prior_moments(case, params, log_off)
    counts = ref.counts(state.nu)
    terms = {
        "z prior": sum(m * a + (len(state.x) - m) * b for m, a, b in zip(counts, on, off, strict=True)),
        "prevalence" if case.prior == "finite" else "sticks": ref.sticks(state),
        "z entropy": ref.z_entropy(state),
        "likelihood": state.reached if isinstance(state, Scattered) else ref.likelihood(state),
        "dictionary": ref.dictionary(state),
        "mass": ref.mass_prior(state.mass) + np.log(state.mass) if case.mass == "learn" else 0.0,
    }
    if case.prior == "finite":
        terms["unused"] = 0.0
    else:
        terms["tail"] = ref.tail(state)
    if case.weights != "unit":
        terms["weights"] = ref.weights(state)
    return terms | variances(case, state, observed)


def variances(case, state, observed):
    """Log densities of the logs of learned variances."""
    terms, unit = {}, float(observed.unit)
    if case.noise == "one":
        terms["noise"] = ref.pseudo_prior(state.psi[0], PSEUDO, FLOOR * unit)
    if case.noise == "auto":  # ratios have the mean one
        terms["noise"] = ref.pseudo_prior(state.psi.mean(), PSEUDO, FLOOR * unit)
    if case.noise == "column":
        each = zip(state.psi, observed.spread, strict=True)
        terms["noise"] = sum(ref.pseudo_prior(v, PSEUDO, WEAK * spread) for v, spread in each)
    if case.scale == "feature":
        at = RELEVANT * unit
        terms["scale"] = sum(ref.pseudo_prior(v / at, PSEUDO, 1.0) for v in state.s)
    if case.scale == "one":
        terms["scale"] = ref.pseudo_prior(state.s[0], PSEUDO, unit)
    return terms
