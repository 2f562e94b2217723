"""Draws of tokens: their laws, and Geweke's joint test of their order, with a wrong order beside it."""

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.kernels.token_draws import Globals, RowDraws, draw_rows, no_sums
from ibpdist.kernels.tokens import Entries

ROWS, COLUMNS, FEATURES = 4, 3, 2
A, B, R_SHAPE, R_RATE, ETA, MASS = 3.0, 2.0, 1.0, 1.0, 0.8, 1.5


def entries_of(x):
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(x, axis=1))])
    return Entries(starts, np.nonzero(x)[1], x[x > 0].astype(float))


def blank(rows, features):
    table = np.zeros((rows, features))
    return RowDraws(table.astype(np.int64), table.astype(np.int64), table.copy(), np.ones(rows))


def odds(prevalence):
    return np.log(prevalence) - np.log1p(-prevalence)


class Chain:
    """One chain from an exact draw of everything."""

    def __init__(self, seed, chain):
        self.rng, self.draws = np.random.default_rng([seed, chain]), Draws(seed, 0, chain)
        self.pi = self.rng.random(FEATURES) ** (FEATURES / MASS)
        self.phi = self.rng.dirichlet(np.full(COLUMNS, ETA), FEATURES).T
        self.r = self.rng.gamma(R_SHAPE, 1 / R_RATE, FEATURES)
        self.rows = blank(ROWS, FEATURES)
        self.rows.rate[:] = self.rng.gamma(A, 1 / B, ROWS)
        self.rows.z[:] = self.rng.random((ROWS, FEATURES)) < self.pi
        rate = self.rows.rate[:, None]
        self.rows.w[:] = self.rows.z * self.rng.gamma(self.r, 1 / rate, (ROWS, FEATURES))
        self.data()

    def data(self):
        """Tokens given z, w and phi."""
        y = self.rng.poisson((self.rows.z * self.rows.w)[:, None, :] * self.phi)
        self.rows.y[:] = y.sum(axis=1)
        self.words, self.x = y.sum(axis=0), y.sum(axis=2)

    def step(self, number, fresh=True):
        """A step, and data anew given the rest; without `fresh` they are of w that belong to old shapes."""
        known = Globals(self.phi, self.r, odds(self.pi), A, B)
        sums = no_sums(COLUMNS, FEATURES)
        key = self.draws.at(number).key("tokens")
        draw_rows(entries_of(self.x), known, self.rows, 0, key, sums)
        self.r = self.rng.gamma(R_SHAPE + sums.tables, 1 / (R_RATE + sums.exposed))
        self.pi = self.rng.beta(MASS / FEATURES + sums.on, 1 + ROWS - sums.on)
        self.phi = np.array([self.rng.dirichlet(ETA + column) for column in sums.y.T]).T
        if fresh:
            w = self.rng.gamma(self.r + self.rows.y, 1 / (1 + self.rows.rate[:, None]))
            self.rows.w[:] = self.rows.z * w
        self.data()

    def statistics(self):
        z, c, r = self.rows.z, self.rows.rate, self.r
        some = self.x.sum(axis=1)
        return {
            "sum z": z.sum(),
            "together": z.prod(axis=1).sum(),
            "tokens": np.log1p(some).sum(),
            "empty": (some == 0).sum(),
            "log c": np.log(c).sum(),
            "log c sq": (np.log(c) ** 2).sum(),
            "log r": np.log(r).sum(),
            "log r sq": (np.log(r) ** 2).sum(),
            "r and c": np.log(r).sum() * np.log(c).sum(),
            "r and tokens": np.log(r).sum() * np.log1p(some).sum(),
            "r and its tokens": np.log(r) @ np.log1p(self.rows.y.sum(axis=0)),
            "r and none": np.log(r) @ ((z == 1) & (self.rows.y == 0)).sum(axis=0),
            "c and tokens": np.log(c) @ np.log1p(some),
            "c and z": np.log(c) @ z.sum(axis=1),
            "pi": self.pi.sum(),
            "pi and z": self.pi @ z.sum(axis=0),
            "phi sq": (self.phi**2).sum(),
            "phi and words": (self.phi[0] * np.log1p(self.words[0])).sum(),
            "words": np.log1p(self.words).std(),
        }


def z_scores(chains, steps, fresh=True, seed=0):
    changes = []
    for chain in range(chains):
        state = Chain(seed, chain)
        first = state.statistics()
        for number in range(1, steps + 1):
            state.step(number, fresh)
        last = state.statistics()
        changes.append([last[name] - first[name] for name in first])
    table = np.array(changes, dtype=float)
    return dict(zip(first, table.mean(axis=0) / (table.std(axis=0) / np.sqrt(chains)), strict=True))


CHAINS, STEPS = 2500, 5


@pytest.mark.slow
def test_the_order_leaves_the_joint_law_as_it_is():
    found = z_scores(CHAINS, STEPS)
    assert max(abs(z) for z in found.values()) < 4, found


@pytest.mark.slow
def test_w_of_the_shapes_before_does_not():
    found = z_scores(CHAINS, STEPS, fresh=False)
    assert max(abs(z) for z in found.values()) > 6, found


def test_tokens_are_multinomial_and_w_and_c_are_gamma():
    """One word and known features: moments of 20,000 rows, within five standard errors."""
    rows, r = 20_000, np.array([0.4, 2.5])
    phi, x = np.array([[0.7, 0.2]]), np.full((rows, 1), 6)
    state = blank(rows, 2)
    before = np.array([2, 4])
    state.y[:] = before
    sums = no_sums(1, 2)
    draw_rows(entries_of(x), Globals(phi, r, np.zeros(2), A, B), state, 0, Draws(3).key("tokens"), sums)

    def near(values, expected):
        error = values.std(axis=0) / np.sqrt(rows)
        np.testing.assert_array_less(abs(values.mean(axis=0) - expected), 5 * error)

    near(state.w, (r + before) / 2)
    near(state.w**2, (r + before) * (r + before + 1) / 4)
    near(state.rate * (B + state.w.sum(axis=1)), A + r.sum())
    near(state.y - 6 * state.w * phi[0] / (state.w @ phi[0])[:, None], 0.0)
    np.testing.assert_array_equal(sums.y[0], state.y.sum(axis=0))
    first = np.array([[np.sum(s / (s + np.arange(n))) for n in range(7)] for s in r])
    expected = [first[k][state.y[:, k]].sum() for k in range(2)]
    assert sums.tables == pytest.approx(expected, rel=0.02)


def test_a_feature_without_tokens_is_on_as_often_as_its_odds_say():
    """odds (c / (1 + c))^r with c = 1."""
    rows, r = 20_000, np.array([0.4, 2.5])
    state = blank(rows, 2)
    known = Globals(np.ones((1, 2)), r, np.log([3.0, 0.5]), A, B)
    draw_rows(entries_of(np.zeros((rows, 1), int)), known, state, 0, Draws(5).key("tokens"), no_sums(1, 2))
    chance = np.array([3.0, 0.5]) * 0.5**r
    expected = chance / (1 + chance)
    error = np.sqrt(expected * (1 - expected) / rows)
    np.testing.assert_array_less(abs(state.z.mean(axis=0) - expected), 5 * error)
    assert (state.w[state.z == 0] == 0).all()


def test_a_row_does_not_depend_on_its_neighbours():
    x = np.random.default_rng(0).poisson(1.5, (6, COLUMNS))
    known = Globals(np.full((COLUMNS, 3), 1 / 3), np.full(3, 0.5), np.zeros(3), A, B)
    key = Draws(1).key("tokens")
    whole = blank(6, 3)
    draw_rows(entries_of(x), known, whole, 0, key, no_sums(COLUMNS, 3))
    for first, last in ((0, 2), (2, 6)):
        part = blank(last - first, 3)
        draw_rows(entries_of(x[first:last]), known, part, first, key, no_sums(COLUMNS, 3))
        for one, both in zip(part, whole, strict=True):
            np.testing.assert_array_equal(one, both[first:last])
    np.testing.assert_array_equal(whole.y.sum(axis=1), x.sum(axis=1))
    assert (whole.z[whole.y > 0] == 1).all()
