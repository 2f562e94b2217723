"""Features, weights and precisions of rows against sums over patterns, weights and levels of noise."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import gamma, multivariate_normal, norm

from ibpdist.predict.estimates import Sampling
from ibpdist.predict.predict import InterceptMoments
from ibpdist.predict.reconstruct import SCARCE, Reconstructor
from tests.support.predictive import covariances, enumerate_at_most, make_predictor, rows_of

PLAN = Sampling(chains=8, draws=10, seed=0)
MANY = Sampling(chains=64, draws=40, seed=0)


def full(weights, features=3, columns=6, seed=11):
    """A predictor with all that a row can have: an intercept that goes with the dictionary, slab means."""
    of, rng = make_predictor(features, columns, seed, weights=weights), np.random.default_rng(seed)
    centre = rng.normal(0.5, 0.3, (len(of.basis), features))
    intercept = InterceptMoments(rng.normal(size=columns), rng.uniform(0.01, 0.1, columns), centre)
    slab = rng.normal(0, 1.5, features) if weights == "normal" else None
    return replace(of, intercept=intercept, slab=slab, basis=0.5 * of.basis)


def gaps(rows, columns, seed=4):
    """Visible cells; the first row has none, the second all."""
    visible = np.random.default_rng(seed).random((rows, columns)) > 0.4
    visible[0], visible[1] = False, True
    return visible


def given_pattern(of, x, cells, z, tau):
    """log p(cells | z, tau) of one row, and E y given that, from the joint normal of weights and cells."""
    sigma, mu = covariances(of), z * of.tilt if of.weights.has_weights else z
    cut = np.flatnonzero(cells)
    psi = [
        of.noise[d] / tau
        + of.intercept.error[d]
        + (mu - of.intercept.centre[of.group[d]]) @ sigma[d] @ (mu - of.intercept.centre[of.group[d]])
        + (z @ np.diag(sigma[d]) if of.weights.has_weights else 0.0)
        for d in cut
    ]
    across = np.diag(z) @ of.mean[:, cut] if of.weights.has_weights else np.zeros((len(z), len(cut)))
    whole, away = np.diag(psi) + across.T @ across, x[cut] - of.intercept.mean[cut] - mu @ of.mean[:, cut]
    if not cut.size:
        return 0.0, mu
    return multivariate_normal(np.zeros(len(cut)), whole).logpdf(away), mu + across @ np.linalg.solve(
        whole, away
    )


def by_hand(of, x, cells, tau=1.0):
    """log p(cells | tau) of one row, E z and E y."""
    logs, on, mean = [], [], []
    for pattern in itertools.product([0.0, 1.0], repeat=of.features):
        z = np.array(pattern)
        log, y = given_pattern(of, x, cells, z, tau)
        prior = np.where(z > 0, log_expit(of.log_odds), log_expit(-of.log_odds)).sum()
        logs.append(prior + log)
        on.append(z)
        mean.append(y)
    share = np.exp(np.array(logs) - logsumexp(logs))
    return logsumexp(logs), share @ np.array(on), share @ np.array(mean)


@pytest.fixture
def every_pattern(monkeypatch):
    """No pattern is left out, however small its probability."""
    monkeypatch.setattr("ibpdist.predict.moments.NEGLIGIBLE", 0.0)


# --- enumeration ---


@pytest.mark.usefixtures("every_pattern")
@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_features_and_weights_are_those_of_the_joint_posterior(weights):
    of = full(weights, features=4)
    x, visible = rows_of(of, 6, seed=1)[0] + of.intercept.mean, gaps(6, 6)
    found, cells = Reconstructor(of, PLAN).posterior(np.where(visible, x, np.nan), visible, 0)
    for n, (row, seen) in enumerate(zip(x, visible, strict=True)):
        _, z, y = by_hand(of, row, seen)
        np.testing.assert_allclose(found.z[n], z, rtol=1e-8, atol=1e-10)
        known = z > SCARCE
        np.testing.assert_allclose(found.w[n, known], (y / z)[known], rtol=1e-7)
        np.testing.assert_allclose(cells.mean[n], of.intercept.mean + y @ of.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(found.precision, 1.0)


@pytest.mark.parametrize("weights", ["unit", "normal", "laplace", "exponential"])
def test_a_row_of_which_nothing_is_seen_has_the_prior(weights):
    of = full(weights)
    blank = np.zeros((1, 6), bool)
    found, cells = Reconstructor(of, MANY).posterior(np.full((1, 6), np.nan), blank, 0)
    close = {"atol": 1e-7} if weights in ("unit", "normal") else {"atol": 0.04}
    w = {"unit": 1.0, "normal": of.tilt, "laplace": 0.0, "exponential": 1.0}[weights]
    np.testing.assert_allclose(found.z[0], expit(of.log_odds), **close)
    np.testing.assert_allclose(found.z[0] * found.w[0], expit(of.log_odds) * w, **close)
    expected = of.intercept.mean + (expit(of.log_odds) * w) @ of.mean
    np.testing.assert_allclose(cells.mean[0], expected, atol=20 * close["atol"] / 4)


@pytest.mark.parametrize(
    ("weights", "mean"), [("unit", 1), ("normal", 0), ("laplace", 0), ("exponential", 1)]
)
def test_the_weight_of_a_row_of_which_nothing_is_known(weights, mean):
    of = make_predictor(3, 5, seed=1, weights=weights)
    np.testing.assert_allclose(of.weight_mean, mean)
    slab = np.array([0.5, -2.0, 1e-7])
    if weights == "normal":
        np.testing.assert_allclose(replace(of, slab=slab).weight_mean, slab, atol=1e-8)


def test_weights_of_features_that_a_row_hardly_has_are_the_priors():
    of = full("normal")
    of = replace(of, log_odds=np.array([-30.0, 0.0, 0.0]))
    x, visible = rows_of(of, 3, seed=1)[0], np.ones((3, 6), bool)
    found, _ = Reconstructor(of, PLAN).posterior(x, visible, 0)
    assert (found.z[:, 0] < SCARCE).all()
    np.testing.assert_allclose(found.w[:, 0], of.tilt[0])


def test_features_that_are_left_out_keep_their_prior():
    of = make_predictor(20, 8, seed=1, weights="normal")
    active = np.arange(20) % 5 == 1
    of = replace(of, active=active, log_odds=np.where(active, of.log_odds, -40.0), slab=np.full(20, 0.5))
    x, visible = rows_of(of, 3, seed=1)[0], gaps(3, 8)
    found, _ = Reconstructor(of, PLAN).posterior(x, visible, 0)
    few, _ = Reconstructor(of.select(np.flatnonzero(active)), PLAN).posterior(x, visible, 0)
    np.testing.assert_array_equal(found.z[:, active], few.z)
    np.testing.assert_array_equal(found.w[:, active], few.w)
    np.testing.assert_allclose(found.z[:, ~active], expit(-40.0))
    np.testing.assert_allclose(found.w[:, ~active], 0.5)


# --- rows whose noise is inferred ---


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("freedom", [1.5, 6.0])
def test_the_noise_of_rows_is_integrated_out(weights, freedom):
    of = replace(full(weights, features=2, columns=9), freedom=freedom)
    x, visible = rows_of(of, 6, seed=1)[0] + of.intercept.mean, gaps(6, 9)
    x[2] *= 4
    found, _ = Reconstructor(of, PLAN).posterior(np.where(visible, x, np.nan), visible, 0)
    levels = np.linspace(-9, 5, 141)
    prior = gamma(freedom / 2, scale=2 / freedom).logpdf(np.exp(levels)) + levels
    for n, (row, seen) in enumerate(zip(x, visible, strict=True)):
        logs, on, mean = zip(*(by_hand(of, row, seen, np.exp(level)) for level in levels), strict=True)
        share = np.exp(logs + prior - logsumexp(logs + prior))
        np.testing.assert_allclose(found.z[n], share @ np.array(on), atol=0.005)
        np.testing.assert_allclose(found.z[n] * found.w[n], share @ np.array(mean), atol=0.01)
        assert found.precision[n] == pytest.approx(share @ np.exp(levels), rel=0.02)


def test_noise_known_and_noise_inferred_differ():
    """What the integral adds to the posterior mean of tau, so that the test above can fail."""
    of = replace(full("normal", features=2, columns=9), freedom=1.5)
    x, visible = rows_of(of, 40, seed=1)[0] + of.intercept.mean, gaps(40, 9)
    found, _ = Reconstructor(of, PLAN).posterior(x, visible, 0)
    away = []
    for n in range(2, 40):
        known = replace(of, freedom=None, precision=float(found.precision[n]))
        row = slice(n, n + 1)
        away.append(Reconstructor(known, PLAN).posterior(x[row], visible[row], n)[0].z[0] - found.z[n])
    assert np.abs(away).max() > 0.02


# --- chains ---


@pytest.mark.parametrize("weights", ["unit", "normal"])
@pytest.mark.parametrize("freedom", [None, 4.0])
def test_chains_agree_with_enumeration(weights, freedom, monkeypatch):
    of = replace(full(weights, features=5, columns=12), freedom=freedom)
    x, visible = rows_of(of, 10, seed=1)[0] + of.intercept.mean, gaps(10, 12)
    exact, _ = Reconstructor(of, PLAN).posterior(x, visible, 0)
    enumerate_at_most(monkeypatch, 2)
    found, _ = Reconstructor(of, Sampling(32, 20)).posterior(x, visible, 0)
    assert np.sqrt(np.mean((found.z - exact.z) ** 2)) < 0.03
    assert np.sqrt(np.mean((found.z * found.w - exact.z * exact.w) ** 2)) < 0.03
    np.testing.assert_allclose(found.precision, exact.precision, rtol=0.1)


def by_places(of, x, cells, log_density, places):
    """E z and E y of one row with two features, by sums over places of their weights."""
    sigma, cut = covariances(of), np.flatnonzero(cells)
    logs, ons, ys = [], [], []
    for pattern in itertools.product([False, True], repeat=2):
        grid = [places if on else np.zeros(1) for on in pattern]
        y = np.array([(a, b) for a in grid[0] for b in grid[1]])
        log = np.full(
            len(y), sum(log_expit(o if on else -o) for on, o in zip(pattern, of.log_odds, strict=True))
        )
        for k, on in enumerate(pattern):
            log += log_density(y[:, k]) + np.log(places[1] - places[0]) if on else 0.0
        for d in cut:
            sd = np.sqrt(of.noise[d] + np.einsum("pk,kl,pl->p", y, sigma[d], y))
            log += norm(y @ of.mean[:, d], sd).logpdf(x[d])
        logs.append(log)
        ons.append(np.tile(np.array(pattern, float), (len(y), 1)))
        ys.append(y)
    share = np.exp(np.concatenate(logs) - logsumexp(np.concatenate(logs)))
    return share @ np.concatenate(ons), share @ np.concatenate(ys)


LAWS = {
    "laplace": (lambda w: -np.abs(w) - np.log(2), np.linspace(-7.95, 7.95, 160)),
    "exponential": (lambda w: -w, np.linspace(0.04, 9.96, 125)),
}
"""Log density of weights, and the midpoints of parts of a line."""


def off_quadrature(weights):
    """How far E z and E y of some rows are from sums over places of the weights, at most; the dictionary has
    a large variance, which counts with the square of y."""
    of = make_predictor(2, 6, 4, weights=weights, groups=1)
    of = replace(of, basis=2 * of.basis)
    x, visible = rows_of(of, 5, 1)[0], gaps(5, 6)
    found, _ = Reconstructor(of, MANY).posterior(x, visible, 0)
    wanted = [by_places(of, *row, *LAWS[weights]) for row in zip(x, visible, strict=True)]
    z, y = (np.array(part) for part in zip(*wanted, strict=True))
    return np.abs(found.z - z).max(), np.abs(found.z * found.w - y).max()


@pytest.mark.parametrize("weights", LAWS)
def test_weights_that_are_drawn_are_those_of_quadrature(weights, monkeypatch):
    on, y = off_quadrature(weights)
    assert on < 0.03
    assert y < 0.04
    monkeypatch.setattr(Reconstructor, "_lift", lambda self, x, cells, rows, z: np.zeros(len(rows)))
    assert max(off_quadrature(weights)) > 0.2, "without what draws owe to the variance"


def test_drawn_weights_of_features_that_every_row_has():
    """They are certain, and their weights are not."""
    of = replace(make_predictor(2, 6, 1, weights="exponential", groups=1), log_odds=np.full(2, np.inf))
    x, visible = rows_of(of, 4, 1)[0], gaps(4, 6)
    one = Reconstructor(of, MANY)
    assert one.words == "64 annealed chains a row over 2 features"
    found, _ = one.posterior(x, visible, 0)
    np.testing.assert_allclose(found.z, 1.0)
    assert np.ptp(found.w, axis=0).min() > 0.1


@pytest.mark.parametrize("weights", ["normal", "exponential"])
def test_features_of_a_row_do_not_depend_on_the_other_rows(weights, monkeypatch):
    enumerate_at_most(monkeypatch, 2)
    of = replace(make_predictor(6, 12, seed=7, weights=weights), freedom=3.0)
    x, visible = rows_of(of, 12, seed=1)[0], gaps(12, 12)
    one = Reconstructor(of, PLAN)
    (whole, _), (part, _) = one.posterior(x, visible, 0), one.posterior(x[5:], visible[5:], 5)
    np.testing.assert_allclose(part.z, whole.z[5:], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(part.z * part.w, (whole.z * whole.w)[5:], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(part.precision, whole.precision[5:], rtol=1e-10)
    other, _ = one.posterior(x[5:], visible[5:], 6)
    assert not np.allclose(other.z, whole.z[5:], rtol=1e-6)
