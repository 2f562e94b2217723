"""The reference's bound: every term is what sampling from q says it is, and the identities hold."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, norm

from tests.support.reference import (
    KINDS,
    bound,
    bound_terms,
    collapsed_dictionary,
    collapsed_finite,
    column_cells,
    column_error,
    counts,
    cross,
    dictionary,
    finite_tau,
    gram,
    likelihood,
    mass_prior,
    mean_y,
    pseudo_prior,
    random_state,
    square_y,
    sticks,
    tail_rate,
    update_dictionary,
    z_prior,
)

DRAWS = 20_000
VARIANTS = [(*kind, structured) for kind in KINDS for structured in (True, False)]


def sampled(state, seed):
    """Draws of z, w, A, prevalences and missing cells from q: a dict of arrays, draws first."""
    rng = np.random.default_rng(seed)
    (rows, features), columns = state.nu.shape, state.x.shape[1]
    z = (rng.random((DRAWS, rows, features)) < state.nu).astype(float)
    normals = rng.normal(size=z.shape)
    w = np.where(z == 1, state.m + np.sqrt(state.s2) * normals, normals)
    root = np.linalg.cholesky(state.sigma)
    a = state.phi + np.einsum("dkj,sdj->skd", root, rng.normal(size=(DRAWS, columns, features)))
    v = rng.beta(state.tau[:, 0], state.tau[:, 1], (DRAWS, features))
    x = np.broadcast_to(np.where(state.mask, state.x, 0.0), (DRAWS, rows, columns))
    if state.fill_mean is not None:
        noise = rng.normal(size=x.shape) * np.sqrt(state.fill_var)
        x = np.where(state.mask, x, state.fill_mean + noise)
    return {"z": z, "w": w, "a": a, "v": v, "x": x}


def log_terms(state, draw):
    """(DRAWS,) of each term: log p - log q of what it is about."""
    z, w, v = draw["z"], draw["w"], draw["v"]
    y = z if state.weights == "unit" else z * w
    pi = v if state.prior == "finite" else np.cumprod(v, axis=1)
    used = np.ones(state.mask.shape, dtype=bool) if state.fill_mean is not None else state.mask
    cell = norm.logpdf(draw["x"], y @ draw["a"], np.sqrt(state.psi))
    first = state.mass / v.shape[1] if state.prior == "finite" else state.mass
    on, off = np.log(pi)[:, None], np.log1p(-pi)[:, None]
    terms = {
        "likelihood": (cell * used).sum(axis=(1, 2)),
        "dictionary": log_ratio_dictionary(state, draw["a"]),
        "z_prior": (z * on + (1 - z) * off).sum(axis=(1, 2)),
        "sticks": (beta(first, 1).logpdf(v) - beta(*state.tau.T).logpdf(v)).sum(axis=1),
        "z_entropy": -np.log(np.where(z == 1, state.nu, 1 - state.nu)).sum(axis=(1, 2)),
        "weights": np.zeros(DRAWS),
        "filled": np.zeros(DRAWS),
    }
    if state.weights == "normal":
        ratio = norm.logpdf(w) - norm.logpdf(w, state.m, np.sqrt(state.s2))
        terms["weights"] = (z * ratio).sum(axis=(1, 2))
    if state.fill_mean is not None:
        scale = np.where(state.mask, 1.0, np.sqrt(state.fill_var))
        density = norm.logpdf(draw["x"], state.fill_mean, scale)
        terms["filled"] = -(density * ~state.mask).sum(axis=(1, 2))
    return terms


def log_ratio_dictionary(state, a):
    """log p(A) - log q(A) of every draw."""
    total = norm.logpdf(a, 0, np.sqrt(state.s)[:, None]).sum(axis=(1, 2))
    for d in range(a.shape[2]):
        away = a[:, :, d] - state.phi[:, d]
        _, logdet = np.linalg.slogdet(2 * np.pi * state.sigma[d])
        total += (logdet + np.einsum("sk,kj,sj->s", away, np.linalg.inv(state.sigma[d]), away)) / 2
    return total


@pytest.mark.parametrize(("prior", "weights", "missing", "structured"), VARIANTS)
def test_every_term_is_its_expectation_under_q(prior, weights, missing, structured):
    state = random_state(11, prior=prior, weights=weights, missing=missing, structured=structured)
    terms = bound_terms(replace(state, log_off="exact"))
    expected = log_terms(state, sampled(state, 12))
    assert set(terms) == set(expected) | {"tail"}
    for name, draws in expected.items():
        error = draws.std() / np.sqrt(DRAWS)
        assert abs(terms[name] - draws.mean()) <= 5 * error + 1e-10, name


@pytest.mark.parametrize("kind", ["convex", "multinomial"])
def test_bounds_of_the_sticks_lower_one_term_only(kind):
    state = random_state(13, prior="sticks")
    exact, lower = bound_terms(replace(state, log_off="exact")), bound_terms(replace(state, log_off=kind))
    assert lower["z_prior"] < exact["z_prior"]
    assert {k for k in exact if exact[k] != lower[k]} == {"z_prior"}


def test_tail_is_below_its_expectation():
    state = random_state(14, prior="sticks")
    pi = np.random.default_rng(15).beta(*state.tau.T, (DRAWS, 3)).prod(axis=1)
    draws = np.array([-state.mass * tail_rate(p, len(state.x)) for p in pi])
    assert bound_terms(state)["tail"] < draws.mean() + 5 * draws.std() / np.sqrt(DRAWS)
    assert bound_terms(replace(state, tail=False))["tail"] == 0


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_moments_of_y(weights):
    state = random_state(16, weights=weights)
    draw = sampled(state, 17)
    y = draw["z"] * (1 if weights == "unit" else draw["w"])
    for value, draws in [
        (mean_y(state.nu, state.m), y),
        (square_y(state.nu, state.m, state.s2), y**2),
        (gram(state.nu, state.m, state.s2, state.mask)[0], np.einsum("snk,snj->skj", y, y)),
    ]:
        error = draws.std(axis=0) / np.sqrt(DRAWS)
        assert (np.abs(value - draws.mean(axis=0)) <= 5 * error).all()


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_errors_are_a_function_of_the_sums(weights, missing):
    """9.1 and 9.4: E_d = sum x^2 - 2 P_d' phi_d + tr G^(d) (phi_d phi_d' + sigma_d)."""
    state = random_state(18, weights=weights, missing=missing)
    g, p = gram(state.nu, state.m, state.s2, state.mask), cross(state.nu, state.m, state.x, state.mask)
    squares = np.where(state.mask, state.x, 0) ** 2
    for d in range(len(state.psi)):
        moment = np.outer(state.phi[:, d], state.phi[:, d]) + state.sigma[d]
        expected = squares[:, d].sum() - 2 * p[:, d] @ state.phi[:, d] + (g[d] * moment).sum()
        assert column_error(state)[d] == pytest.approx(expected, rel=1e-12)


def test_sums_add_over_rows():
    state = random_state(19, weights="normal", missing="masked", rows=7)
    parts = [slice(0, 3), slice(3, 7)]
    for whole, pieces in [
        (
            gram(state.nu, state.m, state.s2, state.mask),
            [gram(state.nu[p], state.m[p], state.s2[p], state.mask[p]) for p in parts],
        ),
        (
            cross(state.nu, state.m, state.x, state.mask),
            [cross(state.nu[p], state.m[p], state.x[p], state.mask[p]) for p in parts],
        ),
        (counts(state.nu), [counts(state.nu[p]) for p in parts]),
    ]:
        np.testing.assert_allclose(sum(pieces), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_likelihood_and_dictionary_collapse_at_the_optimum(weights, missing):
    """L_A of 9.2."""
    state = random_state(20, weights=weights, missing=missing)
    best = update_dictionary(state)
    assert likelihood(best) + dictionary(best) == pytest.approx(collapsed_dictionary(best), rel=1e-12)
    assert likelihood(state) + dictionary(state) < collapsed_dictionary(state)


def test_prior_and_prevalences_collapse_at_the_optimum():
    """9.6, finite model."""
    state = random_state(21)
    best = replace(state, tau=finite_tau(counts(state.nu), len(state.x), state.mass))
    assert z_prior(best) + sticks(best) == pytest.approx(collapsed_finite(state.nu, state.mass), rel=1e-12)
    assert z_prior(state) + sticks(state) < collapsed_finite(state.nu, state.mass)


@pytest.mark.parametrize(("prior", "weights", "missing", "structured"), VARIANTS[:12])
def test_mask_of_ones_is_no_mask(prior, weights, missing, structured):
    state = random_state(22, prior=prior, weights=weights, structured=structured)
    latent = replace(state, fill_mean=np.full(state.x.shape, 7.0), fill_var=np.full(state.x.shape, 3.0))
    assert bound(latent) == pytest.approx(bound(state), rel=1e-13)
    assert bound_terms(latent)["filled"] == 0


def test_missing_cells_do_not_count():
    state = random_state(23, missing="masked")
    other = replace(state, x=np.where(state.mask, state.x, 1e6))
    assert bound(other) == bound(state)
    assert (column_cells(state) == state.mask.sum(axis=0)).all()


def test_unit_weights_are_normal_weights_known_to_be_one():
    state = random_state(24)
    near = replace(state, weights="normal", s2=np.full(state.s2.shape, 1e-12))
    terms, nearly = bound_terms(state), bound_terms(near)
    assert all(nearly[k] == pytest.approx(terms[k], rel=1e-9) for k in terms if k != "weights")
    assert nearly["weights"] == pytest.approx(-counts(state.nu).sum() * (-np.log(1e-12)) / 2, rel=1e-9)


def test_certain_entries_have_no_entropy():
    state = random_state(25)
    hard = replace(state, nu=(state.nu > 0.5).astype(float))
    assert bound_terms(hard)["z_entropy"] == 0
    assert np.isfinite(bound(hard))


def test_structured_dictionary_is_at_least_the_factorised_one():
    for seed in range(20):
        state = random_state(seed, weights="normal", missing="masked")
        full, diagonal = update_dictionary(state), update_dictionary(state, structured=False)
        np.testing.assert_allclose(full.phi, diagonal.phi, rtol=1e-10)
        assert bound(full) > bound(diagonal) > bound(replace(diagonal, phi=diagonal.phi * 1.01))


def test_priors_of_variances_and_mass():
    assert mass_prior(2.0) == pytest.approx(-2)
    assert mass_prior(2.0, 3.0, 0.5) == pytest.approx(3 * np.log(0.5) - np.log(2) + 2 * np.log(2) - 1)
    assert pseudo_prior(0.7, 4.0, 0.7) == pytest.approx(-2 * (np.log(0.7) + 1))
    values = [pseudo_prior(v, 4.0, 0.7) for v in (0.69, 0.7, 0.71)]
    assert values[1] == max(values)
