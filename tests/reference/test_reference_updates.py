"""The reference's updates: never down, and no slope left in the block that was updated."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from tests.support.reference import (
    KINDS,
    bound,
    cells,
    counts,
    cross,
    gram,
    linear,
    log_off,
    log_on,
    mass_factor,
    mass_prior,
    pseudo_prior,
    quadratic,
    random_state,
    respond_normal,
    respond_unit,
    sort_features,
    sweep,
    update_dictionary,
    update_entry,
    update_mass,
    update_noise,
    update_scale,
    update_tau,
    z_prior,
)
from tests.support.reference import fill as fill_cells

BOTH = pytest.mark.parametrize("structured", [True, False])
EVERY = pytest.mark.parametrize(("prior", "weights", "missing"), KINDS)


def slope(value, state, field, index, step=1e-4):
    """Central difference of value(state) in one number of one field."""
    ends = []
    for sign in (1, -1):
        moved = np.array(getattr(state, field), dtype=float)
        moved[index] += sign * step
        ends.append(value(replace(state, **{field: moved if moved.ndim else float(moved)})))
    return (ends[0] - ends[1]) / (2 * step)


def logit_slope(state, index):
    """Central difference of the bound in the log odds of one nu."""
    ends = []
    odds = np.log(state.nu[index]) - np.log1p(-state.nu[index])
    for step in (1e-3, -1e-3):
        nu = state.nu.copy()
        nu[index] = 1 / (1 + np.exp(-odds - step))
        ends.append(bound(replace(state, nu=nu)))
    return (ends[0] - ends[1]) / 2e-3


@EVERY
def test_entry_update_is_the_maximum(prior, weights, missing):
    state = random_state(31, prior=prior, weights=weights, missing=missing)
    for n in range(len(state.x)):
        new = update_entry(state, n, 1)
        assert bound(new) >= bound(state)
        assert logit_slope(new, (n, 1)) == pytest.approx(0, abs=1e-6)
        if weights == "normal":
            assert slope(bound, new, "m", (n, 1)) == pytest.approx(0, abs=1e-6)
            assert slope(bound, new, "s2", (n, 1)) == pytest.approx(0, abs=1e-5)
        changed = np.argwhere(new.nu != state.nu)
        assert changed.tolist() == [[n, 1]]


@EVERY
def test_mode_is_the_better_of_the_two(prior, weights, missing):
    """At the new q(w | z = 1) of the entry, with z certain."""
    state = random_state(32, prior=prior, weights=weights, missing=missing)
    likely = replace(state, tau=np.tile([50.0, 1.0], (len(state.tau), 1)))
    seen = set()
    for at, n, k in product((state, likely), range(len(state.x)), range(len(state.tau))):
        new = update_entry(at, n, k, "mode")
        other = new.nu.copy()
        other[n, k] = 1 - other[n, k]
        assert bound(new) >= bound(replace(new, nu=other))
        seen.add(new.nu[n, k])
    assert seen == {0.0, 1.0}


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_log_odds_are_differences_of_the_bound(weights):
    """log(nu / (1 - nu)) = bound at nu = 1 minus bound at nu = 0, at the optimal q(w | z = 1)."""
    state = random_state(33, weights=weights, missing="masked", prior="sticks")
    new = update_entry(state, 2, 0)
    ends = []
    for certain in (1.0, 0.0):
        nu = new.nu.copy()
        nu[2, 0] = certain
        ends.append(bound(replace(new, nu=nu)))
    assert np.log(new.nu[2, 0] / (1 - new.nu[2, 0])) == pytest.approx(ends[0] - ends[1], abs=1e-10)


def test_normal_response_is_the_integral_over_the_weight():
    """p(z = 1) / p(z = 0) = odds x integral of N(w; 0, 1) exp(b w - a w^2 / 2)."""
    w = np.linspace(-40, 40, 400_001)
    for log_odds, b, a in [(-1.0, 2.0, 0.5), (0.3, -7.0, 12.0), (0.0, 0.0, 3.0)]:
        density = np.exp(b * w - (1 + a) * w**2 / 2 + log_odds) / np.sqrt(2 * np.pi)
        total = density.sum() * (w[1] - w[0])
        mean = (w * density).sum() / density.sum()
        variance = ((w - mean) ** 2 * density).sum() / density.sum()
        np.testing.assert_allclose(
            respond_normal(log_odds, b, a), (total / (1 + total), mean, variance), rtol=1e-9, atol=1e-12
        )


def test_responses_far_out_are_finite():
    for b in (-1e4, 1e4):
        assert respond_unit(0.0, b, 1.0)[0] == (1.0 if b > 0 else 0.0)
        assert respond_normal(0.0, b, 1.0)[0] == 1.0
    assert respond_unit(0.5, 0.0, 1.0, "mode")[0] == 0.0


@EVERY
def test_sweep_never_lowers_the_bound(prior, weights, missing):
    state = random_state(34, prior=prior, weights=weights, missing=missing)
    values = [bound(state)]
    for _ in range(4):
        state = sweep(state)
        values.append(bound(state))
    assert (np.diff(values) >= -1e-12).all()
    assert values[1] > values[0] + 0.1


def test_sweep_is_gauss_seidel_in_feature_order():
    state = random_state(35, weights="normal")
    step = state
    for k in range(state.nu.shape[1]):
        for n in range(len(state.x)):
            step = update_entry(step, n, k)
    np.testing.assert_array_equal(sweep(state).nu, step.nu)
    np.testing.assert_array_equal(sweep(state).m, step.m)


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_gram_trick_equals_the_naive_evidence(weights, missing):
    """9.1: b = F_nk - sum_j y_nj Gamma_jk + y_nk Gamma_kk and a = Gamma_kk, Gamma of the row's columns."""
    state = random_state(36, weights=weights, missing=missing)
    x, _, mask = cells(state)
    y = state.nu * state.m
    for n, k in np.ndindex(*y.shape):
        share = mask[n] / state.psi
        gamma = (state.phi * share) @ state.phi.T + np.einsum("d,dkj->kj", share, state.sigma)
        f = (state.phi * share) @ x[n]
        assert quadratic(state, n, k) == pytest.approx(gamma[k, k], rel=1e-12)
        expected = f[k] - y[n] @ gamma[:, k] + y[n, k] * gamma[k, k]
        assert linear(state, n, k) == pytest.approx(expected, rel=1e-10)


@BOTH
@EVERY
def test_dictionary_block_is_the_maximum(prior, weights, missing, structured):
    state = random_state(37, prior=prior, weights=weights, missing=missing, structured=structured)
    new = update_dictionary(state, structured)
    assert bound(new) > bound(state)
    for k, d in np.ndindex(*new.phi.shape):
        assert slope(bound, new, "phi", (k, d)) == pytest.approx(0, abs=1e-6)
        for j in range(k + 1 if structured else 0):
            index = (np.array([d, d]), np.array([k, j]), np.array([j, k])) if j != k else (d, k, k)
            assert slope(bound, new, "sigma", index, 1e-5) == pytest.approx(0, abs=1e-6)
        assert slope(bound, new, "sigma", (d, k, k), 1e-5) == pytest.approx(0, abs=1e-6)


@BOTH
def test_fully_masked_column_stays_at_the_prior(structured):
    state = random_state(38, missing="masked")
    mask = state.mask.copy()
    mask[:, 1] = False
    new = update_dictionary(replace(state, mask=mask), structured)
    np.testing.assert_array_equal(new.phi[:, 1], 0)
    np.testing.assert_allclose(new.sigma[1], np.diag(state.s), rtol=1e-14)


def test_one_feature_at_a_time_converges_to_the_block():
    """2.2 is Gauss-Seidel on the linear system of 9.2."""
    state = random_state(39, weights="normal", missing="masked")
    x, _, mask = cells(state)
    g, p = gram(state.nu, state.m, state.s2, mask), cross(state.nu, state.m, x, mask)
    phi = state.phi.copy()
    for _ in range(3000):
        for k, d in np.ndindex(*phi.shape):
            others = sum(g[d, k, j] * phi[j, d] for j in range(len(phi)) if j != k)
            phi[k, d] = (p[k, d] - others) / (g[d, k, k] + state.psi[d] / state.s[k])
    np.testing.assert_allclose(phi, update_dictionary(state).phi, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("missing", ["masked", "latent"])
def test_filling_is_the_maximum(missing):
    state = fill_cells(random_state(40, missing=missing))
    index = tuple(np.argwhere(~state.mask)[0])
    assert slope(bound, state, "fill_mean", index) == pytest.approx(0, abs=1e-7)
    assert slope(bound, state, "fill_var", index) == pytest.approx(0, abs=1e-6)
    rough = random_state(40, missing="latent")
    assert bound(fill_cells(rough)) > bound(rough)


def test_filling_is_looser_than_leaving_out():
    for seed in range(20):
        state = random_state(seed, missing="masked", weights="normal")
        assert bound(fill_cells(state)) < bound(state)


@pytest.mark.parametrize(
    ("prior", "kind", "tail"),
    [
        ("finite", "convex", False),
        ("sticks", "convex", True),
        ("sticks", "convex", False),
        ("sticks", "multinomial", True),
        ("sticks", "multinomial", False),
    ],
)
def test_tau_update_is_the_maximum(prior, kind, tail):
    state = replace(random_state(41, prior=prior), log_off=kind, tail=tail)
    new = update_tau(state)
    assert bound(new) > bound(state)
    for index in np.ndindex(*new.tau.shape):
        step = 1e-4 * new.tau[index]
        assert slope(bound, new, "tau", index, step) * new.tau[index] == pytest.approx(0, abs=2e-5)


@pytest.mark.parametrize("pseudo", [0.0, 3.0])
@pytest.mark.parametrize("noise", ["one", "column"])
@EVERY
def test_noise_is_the_maximum(prior, weights, missing, noise, pseudo):
    state = random_state(42, prior=prior, weights=weights, missing=missing)
    new = update_noise(state, noise, pseudo, 0.6)
    index = slice(None) if noise == "one" else 1

    def value(at):
        free = at.psi[:1] if noise == "one" else at.psi
        return bound(at) + sum(pseudo_prior(psi, pseudo, 0.6) for psi in free)

    assert slope(value, new, "psi", index) == pytest.approx(0, abs=1e-5)
    assert value(new) > value(replace(new, psi=new.psi * 1.02))
    assert value(new) > value(replace(new, psi=new.psi / 1.02))


def test_column_noise_does_not_lower_the_bound():
    state = random_state(43, missing="masked")
    assert bound(update_noise(state, "column")) > bound(update_noise(state, "one"))
    assert bound(update_noise(state, "column")) > bound(state)


@pytest.mark.parametrize("pseudo", [0.0, 3.0])
@pytest.mark.parametrize("scale", ["one", "feature"])
def test_scale_is_the_maximum(scale, pseudo):
    state = random_state(44, missing="masked")
    new = update_scale(state, scale, pseudo, 0.6)

    def value(at):
        free = at.s[:1] if scale == "one" else at.s
        return bound(at) + sum(pseudo_prior(s, pseudo, 0.6) for s in free)

    index = slice(None) if scale == "one" else 1
    assert slope(value, new, "s", index) == pytest.approx(0, abs=1e-5)
    assert value(new) > value(replace(new, s=new.s * 1.02))
    assert value(new) > value(replace(new, s=new.s / 1.02))


@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize(("prior", "tail"), [("finite", False), ("sticks", False), ("sticks", True)])
def test_mass_is_the_maximum(prior, tail, rate):
    state = replace(random_state(45, prior=prior), tail=tail)
    new = update_mass(state, 1.0, rate)

    def value(at):
        return bound(at) + (mass_prior(at.mass, 1.0, rate) if rate else 0.0)

    assert slope(value, new, "mass", ()) == pytest.approx(0, abs=1e-5)
    assert value(new) > value(state)


def test_bound_in_the_mass_is_a_gamma():
    """exp(bound + log prior) of the mass is proportional to the density of `mass_factor`."""
    for prior in ("finite", "sticks"):
        state = random_state(46, prior=prior)
        shape, rate = mass_factor(state.tau, len(state.x), prior, state.tail, 2.0, 0.3)
        values = [
            bound(replace(state, mass=mass)) + mass_prior(mass, 2.0, 0.3) - mass_prior(mass, shape, rate)
            for mass in (0.3, 1.0, 4.0)
        ]
        np.testing.assert_allclose(values, values[0], rtol=1e-11)


def test_sorting_is_the_best_order_and_changes_one_term():
    state = random_state(47, prior="sticks", weights="normal", missing="masked")
    best = sort_features(state)
    assert (np.diff(counts(best.nu)) <= 0).all()
    assert bound(best) - bound(state) == pytest.approx(z_prior(best) - z_prior(state), abs=1e-10)
    on, off = log_on(state), log_off(state)
    values = [
        sum(state.nu[:, k].sum() * (on - off)[i] for i, k in enumerate(order))
        for order in permutations(range(3))
    ]
    assert z_prior(best) == pytest.approx(max(values) + len(state.x) * off.sum(), rel=1e-12)


@BOTH
@EVERY
def test_whole_passes_never_lower_the_bound(prior, weights, missing, structured):
    state = random_state(48, prior=prior, weights=weights, missing=missing, structured=structured)
    values = []
    for _ in range(3):
        for step in (
            sweep,
            fill_cells if missing == "latent" else lambda at: at,
            sort_features,
            lambda at: update_dictionary(at, structured),
            update_tau,
            lambda at: update_noise(at, "column", 2.0, 0.5),
            lambda at: update_scale(at, "one", 2.0, 1.0),
            update_mass,
        ):
            state = step(state)
            value = bound(state) + mass_prior(state.mass) + pseudo_prior(state.s[0], 2.0, 1.0)
            values.append(value + sum(pseudo_prior(psi, 2.0, 0.5) for psi in state.psi))
    after = values[8:]
    assert (np.diff(after) >= -1e-9 * np.abs(after[1:])).all()
    assert after[-1] > after[0]
