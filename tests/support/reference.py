"""The reference: the equations of the model as plain loops, written without the package.

Nothing here imports `ibpdist`; numpy and scipy only, one row, feature and column at a time, all in
float64. `tests/reference/` checks it by enumeration, quadrature, finite differences and Monte
Carlo, so that the package may be compared with it to 1e-10. Axes are in the order of the
mathematics: rows first (N, K), dictionary (K, D), covariances (D, K, K). `rows` is N.

State (a frozen record; change it with `dataclasses.replace`)
    State(x, mask, nu, m, s2, phi, sigma, tau, psi, s, mass, prior="finite" | "sticks",
          weights="unit" | "normal", log_off="convex" | "multinomial" | "exact", terms=50,
          tail=False, fill_mean=None, fill_var=None)
        x (N, D), anything where mask (N, D) is False; nu, m, s2 (N, K); phi (K, D);
        sigma (D, K, K); tau (K, 2); psi (D,); s (K,). Unit weights: m = 1, s2 = 0.
        `tail` belongs to sticks. `terms` is the number of exact terms of the convex bound.
        With fill_mean and fill_var (N, D) missing cells are latent; `fill(state)` sets them.
    random_state(seed, rows=4, features=3, columns=3, prior, weights, missing, structured)
        missing: "complete", "masked", "latent". KINDS lists prior x weights x missing.

Moments and statistics
    mean_y(nu, m), square_y(nu, m, s2)            (N, K)
    pair_y(nu, m, s2, n, k, j), pair_a(phi, sigma, d, k, j)
    counts(nu) (K,); gram(nu, m, s2, mask) (D, K, K); cross(nu, m, x, mask) (K, D)
    cells(state) -> E x, Var x, mask in use; column_error(state), column_cells(state)  (D,)

Bound: each takes a State and gives a float; `bound_terms` all by name, `bound` their sum
    likelihood, dictionary, z_prior, sticks, z_entropy, weights, tail, filled
    log_on(state), log_off(state)                 (K,) what stands for E log pi, E log(1 - pi)
    pseudo_prior(variance, pseudo, value), mass_prior(mass, shape=1, rate=0.1)   not in `bound`
    collapsed_dictionary(state) = likelihood + dictionary at the structured optimum (9.2)
    collapsed_finite(nu, mass) = z_prior + sticks at the finite optimum (9.6)

Beta factors and sticks: tau (K, 2)
    beta_kl(tau, mass), finite_log_on, finite_log_off, stick_log_on(tau), mean_prevalence(tau)
    multinomial_weights(tau) (K, K), multinomial_log_off(tau, q=optimum)
    convex_log_off(tau, terms=50) (below), convex_log_off_above, exact_log_off(tau)
    taylor_log_off(tau, terms) -> (lower, upper)
    tail_rate(p, rows) = h_N(p), tail_term(tau, mass, rows)
    stick_objective(tau, on, rows, mass, kind="convex", terms=50, tail=True), stick_gradient(same)

Updates
    linear(state, n, k) = b, quadratic(state, n, k) = a
    respond_unit(log_odds, b, a, rule="mean" | "mode") -> (nu, m, s2), respond_normal(same); a tie is off
    update_entry(state, n, k, rule), sweep(state, rule): features in order; fill(state)
    solve_dictionary(G, P, psi, s, structured) -> phi, sigma; update_dictionary(state, structured)
    finite_tau(on, rows, mass), multinomial_sticks(on, rows, mass, q) (no tail),
    start_sticks(on, rows, mass): near the optimum when the counts fall
    maximise_sticks(tau, on, rows, mass, kind, terms, tail), update_tau(state), sort_features(state)
    update_noise(state, "one" | "column", pseudo=0, value=0), update_scale(same)
        pseudo, value: `pseudo` more cells seen to vary by `value`; 0 is without a prior
    mass_factor(tau, rows, prior, tail, shape=1, rate=0.1) -> Gamma (shape, rate); update_mass(state)

Exact evidence of tiny problems
    log_evidence(x, mask, psi, s, mass, prior=log_p_finite | log_p_sticks, weights, nodes=30)
    log_evidence_ibp(x, mask, psi, s: float, mass)         N <= 3, unit weights
    log_p_finite(z, mass), log_p_sticks(z, mass), log_p_sticks_quadrature(z, mass) (K <= 2)
    log_p_x_given_y(x, mask, y, psi, s), log_p_x_given_z_normal(x, mask, z, psi, s, nodes)
"""

from tests.support.reference_bound import (
    TERMS,
    bound,
    bound_terms,
    collapsed_dictionary,
    collapsed_finite,
    dictionary,
    filled,
    likelihood,
    log_off,
    log_on,
    mass_prior,
    pseudo_prior,
    sticks,
    tail,
    weights,
    z_entropy,
    z_prior,
)
from tests.support.reference_cases import (
    KINDS,
    random_state,
)
from tests.support.reference_evidence import (
    log_evidence,
    log_evidence_ibp,
    log_p_finite,
    log_p_sticks,
    log_p_sticks_quadrature,
    log_p_x_given_y,
    log_p_x_given_z_normal,
    weight_nodes,
)
from tests.support.reference_model import (
    Floats,
    State,
    cells,
    column_cells,
    column_error,
    counts,
    cross,
    gram,
    mean_y,
    pair_a,
    pair_y,
    square_y,
)
from tests.support.reference_sticks import (
    beta_kl,
    convex_log_off,
    convex_log_off_above,
    exact_log_off,
    finite_log_off,
    finite_log_on,
    integral,
    integral_nodes,
    mean_prevalence,
    multinomial_log_off,
    multinomial_sticks,
    multinomial_weights,
    stick_gradient,
    stick_log_on,
    stick_objective,
    tail_rate,
    tail_term,
    taylor_log_off,
)
from tests.support.reference_updates import (
    fill,
    finite_tau,
    linear,
    mass_factor,
    maximise_sticks,
    quadratic,
    respond_normal,
    respond_unit,
    solve_dictionary,
    sort_features,
    start_sticks,
    sweep,
    update_dictionary,
    update_entry,
    update_mass,
    update_noise,
    update_scale,
    update_tau,
)

__all__ = [
    "KINDS",
    "TERMS",
    "Floats",
    "State",
    "beta_kl",
    "bound",
    "bound_terms",
    "cells",
    "collapsed_dictionary",
    "collapsed_finite",
    "column_cells",
    "column_error",
    "convex_log_off",
    "convex_log_off_above",
    "counts",
    "cross",
    "dictionary",
    "exact_log_off",
    "fill",
    "filled",
    "finite_log_off",
    "finite_log_on",
    "finite_tau",
    "gram",
    "integral",
    "integral_nodes",
    "likelihood",
    "linear",
    "log_evidence",
    "log_evidence_ibp",
    "log_off",
    "log_on",
    "log_p_finite",
    "log_p_sticks",
    "log_p_sticks_quadrature",
    "log_p_x_given_y",
    "log_p_x_given_z_normal",
    "mass_factor",
    "mass_prior",
    "maximise_sticks",
    "mean_prevalence",
    "mean_y",
    "multinomial_log_off",
    "multinomial_sticks",
    "multinomial_weights",
    "pair_a",
    "pair_y",
    "pseudo_prior",
    "quadratic",
    "random_state",
    "respond_normal",
    "respond_unit",
    "solve_dictionary",
    "sort_features",
    "square_y",
    "start_sticks",
    "stick_gradient",
    "stick_log_on",
    "stick_objective",
    "sticks",
    "sweep",
    "tail",
    "tail_rate",
    "tail_term",
    "taylor_log_off",
    "update_dictionary",
    "update_entry",
    "update_mass",
    "update_noise",
    "update_scale",
    "update_tau",
    "weight_nodes",
    "weights",
    "z_entropy",
    "z_prior",
]
