"""The collapsed turn against the report's formula, refactorised for every flip, and against drift."""

import numpy as np
import pytest
from scipy.special import logit

from ibpdist.inference.in_turn.collapsed import CollapsedTable
from ibpdist.kernels.buffet import Law
from tests.support.rows_reference import collapsed_sweep, log_marginal
from tests.support.turns import planted, swept

BUFFET = {"share": 0.0, "rate": 0.3}
FINITE = {"share": 0.4, "rate": 0.0}


def law(noise, scale, rows, share, rate):
    return Law(noise, scale, share, rate, float(rows))


def numbers(rows, slots, seed):
    rng = np.random.default_rng(seed)
    return logit(rng.random((rows, slots))), rng.random(rows)


def table(x, z, of):
    made = CollapsedTable(x, z, np.arange(len(z)), of, 100)
    made.renew()
    return made


def definitions(made):
    """Lambda^-1, Abar and Z'Z, Z'X of the rows as they are now."""
    z = made.z[:, : made.features].astype(float)
    ridge = z.T @ z + made.law.noise / made.law.scale * np.eye(made.features)
    return np.linalg.inv(ridge), np.linalg.solve(ridge, z.T @ made.x), z.T @ z, z.T @ made.x


def check(made, tolerance):
    t, size = made.tables, made.features
    inverse, mean, pairs, cross = definitions(made)
    np.testing.assert_array_equal(t.pairs[:size, :size], pairs)
    for found, expected in (
        (t.inverse[:size, :size], inverse),
        (t.mean[:size], mean),
        (t.inner[:size, :size], mean @ mean.T),
        (t.cross[:size], cross),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("prior", [BUFFET, FINITE], ids=["buffet", "finite"])
@pytest.mark.parametrize("noise", [0.05, 0.5, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_is_that_of_the_report(prior, noise, seed):
    """The same z from the same uniforms, and the same tables to 1e-10."""
    x, _ = planted(25, 5, noise=noise, seed=seed)
    z = (np.random.default_rng(seed).random((4, 25)) < 0.3).astype(float)
    z[:, :2] = 1
    of = law(noise, 1.5, 25, **prior)
    logits, births = numbers(25, 60, seed)
    made = swept(table(x, z, of), logits, births)
    expected = collapsed_sweep(x, z.T, of, logits, births)
    np.testing.assert_array_equal(made.z[:, : made.features], expected)
    check(made, 1e-10)


def test_own_features_come_and_go():
    """The cases above are not void: features are born, die and change slots."""
    x, _ = planted(25, 5, noise=0.5, seed=1)
    of, (logits, births) = law(0.5, 1.5, 25, **BUFFET), numbers(25, 60, 1)
    z = np.zeros((3, 25))
    z[0, 3] = z[1, 4] = z[2, 5] = 1
    made = swept(table(x, z, of), logits, births)
    assert made.features > 1
    assert made.tables.sizes[1] > 101
    assert len(set(made.ids[: made.features])) == made.features
    assert not {0, 1, 2} <= set(made.ids[: made.features])
    assert (made.z[:, : made.features].sum(axis=0) > 0).all()
    assert not made.z[:, made.features :].any()


def test_log_odds_are_differences_of_the_log_marginal():
    """A threshold just below and just above the exact log odds gives different answers."""
    x, z = planted(12, 4, seed=3)
    z[:, :3] = 1
    of = law(0.4, 1.2, 12, **FINITE)
    for n in (0, 5, 11):
        for k in range(3):
            one, none = z.copy(), z.copy()
            one[k, n], none[k, n] = 1, 0
            exact = log_marginal(x, one.T, 0.4, 1.2) - log_marginal(x, none.T, 0.4, 1.2)
            others = none[k].sum()
            exact += np.log((others + 0.4) / (12 - others))
            for shift, expected in ((-1e-9, 1), (1e-9, 0)):
                made = table(x, z, of)
                logits = np.where(z.T[n : n + 1] > 0, -1e9, 1e9)
                logits[0, k] = exact + shift
                wide = np.pad(logits, ((0, 0), (0, made.ids.size - 3)))
                assert made.advance(n, wide, np.array([0.5])) == 1
                assert made.z[n, k] == expected


@pytest.mark.parametrize("prior", [BUFFET, FINITE], ids=["buffet", "finite"])
def test_drift_is_small_after_thousands_of_rows(prior):
    """5,000 rows without anything made anew: the tables agree with their definitions to 1e-8."""
    x, z = planted(5000, 12, 6, noise=0.5, seed=2)
    of = law(0.5, 1.0, 5000, prior["share"], prior["rate"] / 100)
    start = np.where(np.random.default_rng(0).random(z.shape) < 0.7, z, 1 - z)
    logits, births = numbers(5000, 80, 4)
    made = swept(table(x, start, of), logits, births)
    changed = (start != made.z[:, :6].T).any(axis=0).mean()
    assert changed > 0.3
    check(made, 1e-8)


@pytest.mark.parametrize("noise", [1e-6, 1e6])
@pytest.mark.parametrize("features", [2, 7])
def test_extreme_noise_leaves_tables_what_they_are(noise, features):
    """Also where there are more features than rows: there Lambda is singular but for the ridge."""
    rows = 40 if features == 2 else 5
    x, _ = planted(rows, 6, features, noise=0.01, seed=5)
    z = (np.random.default_rng(1).random((features, rows)) < 0.5).astype(float)
    of = law(noise, 1.0, rows, share=0.0, rate=0.3)
    made = table(x, z, of)
    logits, births = numbers(rows, 400, 6)
    for _ in range(20):
        swept(made, logits, births)
        t, size = made.tables, made.features
        _, mean, pairs, _ = definitions(made)
        np.testing.assert_array_equal(t.pairs[:size, :size], pairs)
        back = t.inverse[:size, :size] @ (pairs + noise * np.eye(size))
        np.testing.assert_allclose(back, np.eye(size), atol=1e-6)
        scale = np.abs(mean).max(initial=1e-9)
        np.testing.assert_allclose(t.mean[:size], mean, rtol=0, atol=1e-6 * scale)
        logits, births = numbers(rows, 400, size)


def test_rows_that_alone_tell_features_apart_cost_no_digits():
    """Two features of the same rows but one, with little noise: leverage is 1 - 1e-5, and rank-one steps
    would lose ten digits."""
    x, z = planted(12, 6, 2, noise=1e-6, seed=3)
    z[:] = 0
    z[:, 2:8] = 1
    z[0, 9] = 1
    made = table(x, z, law(1e-6, 1.0, 12, share=0.1, rate=0.0))
    logits = np.where(z.T > 0, -1e9, 1e9)
    for flipped in (-1e9, 1e9, -1e9):
        logits[9, 1] = flipped
        wide = np.ascontiguousarray(np.pad(logits, ((0, 0), (0, made.ids.size - 2))))
        assert made.advance(0, wide, np.full(12, 0.01)) == 12
        back = made.tables.inverse[:2, :2] @ (definitions(made)[2] + 1e-6 * np.eye(2))
        np.testing.assert_allclose(back, np.eye(2), atol=1e-8)
        np.testing.assert_allclose(made.tables.mean[:2], definitions(made)[1], rtol=1e-6)


def test_a_row_that_stays_changes_no_bit():
    x, z = planted(20, 5, noise=0.1, seed=7)
    made = table(x, z, law(0.1, 1.0, 20, **FINITE))
    before = [np.array(t) for t in made.tables]
    stay = np.where(z.T > 0, -1e9, 1e9)
    wide = np.pad(stay, ((0, 0), (0, made.ids.size - len(z))))
    assert made.advance(0, np.ascontiguousarray(wide), np.full(20, 0.5)) == 20
    for old, new in zip(before, made.tables, strict=True):
        np.testing.assert_array_equal(old, new)


def test_room_that_runs_out_changes_no_row():
    """More slots from the beginning, the same chain to the bit."""
    x, _ = planted(30, 5, noise=0.02, seed=8)
    of, (logits, births) = law(0.02, 2.0, 30, share=0.0, rate=3.0), numbers(30, 400, 9)
    small, large = table(x, np.zeros((0, 30)), of), table(x, np.zeros((0, 30)), of)
    for _ in range(5):
        large.grow()
    room = small.ids.size
    swept(small, logits, births)
    swept(large, logits, births)
    assert small.ids.size > room
    assert small.features == large.features
    size = small.features
    np.testing.assert_array_equal(small.z[:, :size], large.z[:, :size])
    np.testing.assert_array_equal(small.tables.mean[:size], large.tables.mean[:size])
