"""The three lower bounds of E log(1 - pi_k): values, order, gradients, behaviour at scale."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.model.priors import _convex, _multinomial, _taylor
from tests.support.prior_cases import STICKS, bound_and_gradient, fisher, numeric_gradient
from tests.support.reference_sticks import (
    exact_log_off,
    log_moment,
    multinomial_log_off,
    multinomial_sticks,
    multinomial_weights,
    taylor_log_off,
)

LOWER = {
    kind: partial(bound_and_gradient, lower)
    for kind, lower in [
        ("convex", _convex.lower),
        ("multinomial", _multinomial.lower),
        ("taylor", _taylor.lower),
    ]
}


@pytest.fixture(params=STICKS)
def tau(request: pytest.FixtureRequest) -> np.ndarray:
    return STICKS[request.param].copy()


@pytest.mark.parametrize("kind", LOWER)
def test_below_the_truth_and_exact_for_the_first_stick_where_known(kind: str, tau: np.ndarray) -> None:
    bound, _ = LOWER[kind](tau, np.zeros(len(tau)))
    exact = exact_log_off(tau)
    assert np.all(bound <= exact + 1e-11 * np.abs(exact) + 1e-12)
    if kind != "taylor":
        assert bound[0] == pytest.approx(exact[0], rel=1e-11)


def test_order_of_the_bounds(tau: np.ndarray) -> None:
    """b_mult <= b <= truncated Taylor (checklist 3), and convex is above multinomial."""
    zeros = np.zeros(len(tau))
    multinomial, convex = LOWER["multinomial"](tau, zeros)[0], LOWER["convex"](tau, zeros)[0]
    exact = exact_log_off(tau)
    slack = 1e-10 * np.abs(exact)
    assert np.all(multinomial <= convex + slack)
    for terms in (1, 10, 100):
        assert np.all(exact <= _taylor.interval(tau, terms)[1] + slack)


def test_convex_slack_is_below_the_next_term(tau: np.ndarray) -> None:
    """Euler-Maclaurin envelops: the slack is at most -f'''(s0) / 720."""
    bound = LOWER["convex"](tau, np.zeros(len(tau)))[0]
    s0 = _convex.SPLIT
    for k in range(1, len(tau)):
        s = s0 + np.array([-1.5, -0.5, 0.5, 1.5])
        f = np.exp(log_moment(tau[: k + 1], s)) / s
        third = float(f @ [-1, 3, -3, 1])
        slack = float(exact_log_off(tau[: k + 1])[-1] - bound[k])
        assert -1e-12 <= slack <= 1.02 * -third / 720 + 1e-12


def test_convex_kernel_inequality() -> None:
    """1/t + 1/2 <= 1/(1 - e^-t) <= 1/t + 1/2 + t/12 for t > 0, which makes the bound a bound."""
    t = np.geomspace(1e-2, 500, 4000)
    middle = -1 / np.expm1(-t)
    assert np.all(1 / t + 0.5 < middle)
    assert np.all(middle < 1 / t + 0.5 + t / 12)


def test_multinomial_equals_the_matrix_form(tau: np.ndarray) -> None:
    bound, _ = LOWER["multinomial"](tau, np.zeros(len(tau)))
    assert bound == pytest.approx(multinomial_log_off(tau), rel=1e-11, abs=1e-12)


def test_multinomial_is_the_best_q(tau: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    best = multinomial_log_off(tau)
    q = multinomial_weights(tau)
    for _ in range(20):
        other = np.tril(q * np.exp(0.3 * rng.normal(size=q.shape)))
        other /= other.sum(axis=1, keepdims=True)
        assert np.all(multinomial_log_off(tau, other) <= best + 1e-12)


def test_multinomial_gradient_vanishes_at_the_fixed_point() -> None:
    """Iterating the update of priors.md 7 (matrix form) makes the gradient of the O(K) form vanish."""
    on, rows, mass = np.array([70.0, 40.0, 38.0, 5.0, 0.2]), 100, 1.5
    tau = np.stack([mass + on, 1 + rows - on], axis=1)
    for _ in range(1000):
        tau = multinomial_sticks(on, rows, mass, multinomial_weights(tau))
    target = tau - np.stack([mass + np.cumsum(on[::-1])[::-1], np.ones(5)], axis=1)
    _, slope = LOWER["multinomial"](tau, rows - on)
    assert slope == pytest.approx(np.einsum("kij,kj->ki", fisher(tau), target), rel=1e-5)


@pytest.mark.parametrize("kind", LOWER)
def test_gradient(kind: str, tau: np.ndarray) -> None:
    off = np.linspace(3.0, 1.0, len(tau)) ** 2
    _, slope = LOWER[kind](tau, off)
    numeric = numeric_gradient(lambda at: float(off @ LOWER[kind](at, off)[0]), tau)
    scale = np.abs(numeric * tau).max()
    assert np.abs((slope - numeric) * tau).max() < 1e-7 * scale


@pytest.mark.parametrize("kind", LOWER)
def test_increases_along_the_sticks(kind: str) -> None:
    """b_k rises with k, so a_k - b_k falls: what the sorting of priors.md 5 needs."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        tau = 1 + rng.gamma(0.5, 60.0, size=(6, 2))
        bound, _ = LOWER[kind](tau, np.zeros(6))
        assert np.all(np.diff(bound) > 0)


def test_convex_at_four_million_rows() -> None:
    """Accurate where differences of log gamma functions have lost their digits."""
    tau = np.array([[6.4e7, 2e5], [6.1e7, 2.0], [1.2e7, 4e6], [8e6, 1.0], [2.1, 3.9e6], [2.0, 1.1]])
    bound, slope = LOWER["convex"](tau, np.full(6, 2e6))
    assert bound == pytest.approx(exact_log_off(tau), rel=3e-8)
    assert np.all(np.isfinite(slope))
    mean = np.cumprod(tau[:, 0] / tau.sum(axis=1))
    assert bound[2:4] == pytest.approx(np.log1p(-mean[2:4]), rel=1e-5)


def test_many_sticks_at_four_million_rows() -> None:
    on = 4e6 * 0.93 ** np.arange(200)
    tau = np.stack([5 + np.cumsum(on[::-1])[::-1], 1 - np.diff(on, append=0.0)], axis=1)
    for kind in ("convex", "multinomial"):
        bound, slope = LOWER[kind](tau, 4e6 - on)
        assert np.all(np.isfinite(bound) & (bound < 0))
        assert np.all(np.isfinite(slope))


def random_sticks(rng: np.random.Generator, rows: float) -> np.ndarray:
    """Sticks as counts leave them: at either end, tied, anything between."""
    features = int(rng.integers(2, 8))
    share = rng.beta(10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-2, 2), size=features)
    told = rows * rng.random((features, 2))
    return 1 + told * np.stack([share, 1 - share], axis=1)


def finer(tau: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The bound with 24 nodes a quarter, out to e^64 s0."""
    x, w = np.polynomial.legendre.leggauss(24)
    u = (0.25 * (np.arange(256)[:, None] + 0.5 + 0.5 * x)).ravel()
    nodes = np.append(0.0, _convex.SPLIT * np.expm1(u))
    first = _convex._grid(0)[1]
    with monkeypatch.context() as patch:
        patch.setattr(_convex, "_grid", lambda _: (nodes, np.append(first, np.tile(0.125 * w, 256))))
        return LOWER["convex"](tau, np.zeros(len(tau)))[0]


@pytest.mark.parametrize("rows", [3.0, 100.0, 1e4, 1e6, 1e8])
def test_convex_integral_is_exact(rows: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the integral ends and whatever its nodes, the bound is off by less than 1e-12 of it."""
    rng = np.random.default_rng(int(rows))
    ends = set()
    for _ in range(40):
        tau = random_sticks(rng, rows)
        ends.add(_convex._end(tau))
        expected = finer(tau, monkeypatch)
        assert LOWER["convex"](tau, np.zeros(len(tau)))[0] == pytest.approx(expected, rel=5e-13)
    assert len(ends) > 2


# --- the Taylor interval ---


@pytest.mark.parametrize("terms", [20, 400, 4000])
def test_taylor_interval_holds_the_truth(terms: int, tau: np.ndarray) -> None:
    low, high = _taylor.interval(tau, terms)
    exact = exact_log_off(tau)
    slack = 1e-10 * np.abs(exact)
    assert np.all(low <= exact + slack)
    assert np.all(exact <= high + slack)


def test_taylor_upper_end_is_the_series_of_the_reference(tau: np.ndarray) -> None:
    _, high = taylor_log_off(tau, 150)
    assert _taylor.interval(tau, 150)[1] == pytest.approx(high, rel=1e-11)


def test_taylor_interval_narrows() -> None:
    tau = STICKS["used, then unused"]
    ends = [_taylor.interval(tau, terms) for terms in (500, 2000, 8000)]
    for (low, high), (low_more, high_more) in pairwise(ends):
        assert np.all(low_more >= low - 1e-12)
        assert np.all(high_more <= high + 1e-12)


def test_taylor_tail_beside_the_form_with_floors() -> None:
    """No looser than the Hurwitz form of the report (priors.md 8), up to 1 in 100, once T passes 2 tau_+."""
    tau = np.array([[12.0, 3.7], [9.0, 2.2], [4.0, 1.9]])
    terms = 80
    floors, _ = taylor_log_off(tau, terms)
    low, high = _taylor.interval(tau, terms)
    assert np.all(high - low <= 1.01 * (high - floors))


def test_taylor_is_useless_when_terms_stop_short() -> None:
    """Erratum E13: with tau = (500, 200), T = 400, the width is about e^74 though the series is done."""
    low, high = _taylor.interval(np.array([[500.0, 200.0]]), 400)
    assert 74 < np.log(high - low)[0] < 76
    assert high[0] == pytest.approx(exact_log_off(np.array([[500.0, 200.0]]))[0], rel=1e-10)
    assert _taylor.terms_for(np.array([[500.0, 200.0]])) >= 1400


def test_taylor_refuses_sizes_it_cannot_sum() -> None:
    _taylor.check(20, 10_000)
    with pytest.raises(UsageError, match=r'40 features and 4000000 rows .* use the bound "convex"'):
        _taylor.check(40, 4_000_000)
