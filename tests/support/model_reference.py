"""One whole step of the model by the scalar reference, and its objective term by term."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support import reference as ref
from tests.support.model_cases import convex_log_off, prior_moments

PSEUDO, FLOOR = 2.0, 1e-3
"""The weak priors of the variances: two cells that varied by FLOOR * unit (noise) or unit (scale)."""
RESPOND = {"unit": ref.respond_unit, "normal": ref.respond_normal}


def sweep(state, log_odds, rule, inner=1):
    """`inner` Gauss-Seidel sweeps, features in the package's order."""
    nu, m, s2 = state.nu.copy(), state.m.copy(), state.s2.copy()
    state = replace(state, nu=nu, m=m, s2=s2)
    for _ in range(inner):
        for k, n in np.ndindex(nu.shape[1], nu.shape[0]):
            b, a = ref.linear(state, n, k), ref.quadratic(state, n, k)
            nu[n, k], m[n, k], s2[n, k] = RESPOND[state.weights](log_odds[k], b, a, rule)
    return state


def local(case, state, log_odds, inner=1):
    """Missing cells filled from the rows as they were, then the sweeps."""
    if case.missing == "latent":
        state = ref.fill(state)
    return sweep(state, log_odds, case.rule, inner)


def update_observation(case, state, unit):
    """q(A), the noise, the covariances of q(A) under it, the scale, q(A) again.

    Covariances follow the noise at once, means do not: a record keeps a basis and a spectrum,
    and Sigma is a function of them and of the noise. Each is still a coordinate maximum.
    """
    structured = case.family == "structured"
    state = ref.update_dictionary(state, structured)
    if case.noise in ("one", "column"):
        state = ref.update_noise(state, case.noise, PSEUDO, FLOOR * unit)
        state = replace(state, sigma=ref.update_dictionary(state, structured).sigma)
    if case.scale == "one":
        state = ref.update_scale(state, "one", PSEUDO, unit)
    return ref.update_dictionary(state, structured)


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
        "likelihood": ref.likelihood(state),
        "dictionary": ref.dictionary(state),
        "mass": ref.mass_prior(state.mass) + np.log(state.mass) if case.mass == "learn" else 0.0,
    }
    if case.prior == "finite":
        terms["unused"] = 0.0
    else:
        terms["tail"] = ref.tail(state)
    if case.weights == "normal":
        terms["weights"] = ref.weights(state)
    if observed.latent:
        terms["missing cells"] = ref.filled(state)
    return terms | variances(case, state, float(observed.unit))


def variances(case, state, unit):
    """Log densities of the logs of learned variances."""
    terms = {}
    if case.noise in ("one", "column"):
        learned = state.psi if case.noise == "column" else state.psi[:1]
        terms["noise"] = sum(ref.pseudo_prior(v, PSEUDO, FLOOR * unit) for v in learned)
    if case.scale == "one":
        terms["scale"] = ref.pseudo_prior(state.s[0], PSEUDO, unit)
    return terms
