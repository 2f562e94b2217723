"""Features of rows switched on and off, against a transcription and against what an ascent may not do."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ibpdist.kernels.token_flips import Dictionary, Effort, RowModes, empty_flip_sums, flip_rows
from ibpdist.kernels.tokens import Entries
from tests.support import counts_flips_reference as reference

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def entries_of(x, dtype=np.float64):
    starts = np.concatenate([[0], np.cumsum((x > 0).sum(axis=1))])
    return Entries(starts, np.nonzero(x)[1], x[x > 0].astype(dtype))


@cache
def planted(rows=12, columns=14, features=5, seed=0):
    """Counts of a few features each, a dictionary near the true one, and rows that have some features."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(columns, 0.2), features)
    z = rng.random((rows, features)) < 0.4
    x = rng.poisson((z * rng.gamma(2.0, 8.0, z.shape)) @ words).astype(float)
    x[1], x[2] = 0, 0
    x[2, 3] = 1
    shape = 0.5 + 60 * words.T * rng.gamma(4.0, 0.25, words.T.shape)
    world = reference.World(shape, rng.gamma(9.0, 1.0, features), rng.normal(-0.5, 1.0, features), 0.25)
    on = (rng.random(z.shape) < 0.5).astype(np.int8)
    on[:, 0] |= on.sum(axis=1) == 0
    y = on * rng.gamma(2.0, 1.0, z.shape)
    return x, world, RowModes(on, y, rng.gamma(3.0, 0.4, rows))


def known_of(world):
    logs = np.array([[world.log_mean(v, k) for k in range(world.rate.size)] for v in range(len(world.shape))])
    size = np.array([world.size(k) for k in range(world.rate.size)])
    return Dictionary(np.exp(logs), size, world.odds, world.e, world.point)


def stepped(x, world, rows, effort, dtype=np.float64):
    """Rows and sums after a step."""
    rows = RowModes(rows.on.copy(), rows.y.copy(), rows.exposure)
    sums = empty_flip_sums(x.shape[1], world.rate.size)
    flip_rows(entries_of(x, dtype), known_of(world), rows, effort, sums)
    return rows, sums


def values(x, world, rows):
    return [reference.row_value(world, x[n], rows.on[n], rows.y[n], rows.exposure[n]) for n in range(len(x))]


def compare_sums(x, world, rows, sums):
    expected = reference.summed(world, x, rows.on, rows.y, rows.exposure, np.ones(world.rate.size))
    for name in ("y", "on", "amount", "exposed", "divergence"):
        np.testing.assert_allclose(getattr(sums, name), expected[name], **EXACT, err_msg=name)
    logs = np.log(known_of(world).words)
    np.testing.assert_allclose(sums.fit - (sums.y * logs).sum(), expected["rest"], **EXACT)


@pytest.mark.parametrize("rounds", [0, 1, 4])
@pytest.mark.parametrize("flips", [0, 1, 5])
def test_a_step_is_the_transcription(rounds, flips):
    x, world, before = planted()
    rows, sums = stepped(x, world, before, Effort(rounds, flips))
    summed = []
    for n in range(len(x)):
        exposure = before.exposure[n]
        z, y = reference.flipped(world, x[n], before.on[n], before.y[n], exposure, rounds, flips)
        np.testing.assert_array_equal(rows.on[n], z)
        np.testing.assert_allclose(rows.y[n], reference.settled(world, x[n], z, y, exposure, 1)[0], **EXACT)
        summed.append((z, y))
    compare_sums(x, world, RowModes(*map(np.array, zip(*summed, strict=True)), before.exposure), sums)
    assert (flips > 0) == bool((rows.on != before.on).any())


def test_features_go_and_come():
    x, world, before = planted()
    rows, _ = stepped(x, world, before, Effort(4, 5))
    assert ((rows.on == 1) & (before.on == 0)).any()
    assert ((rows.on == 0) & (before.on == 1)).any()


@pytest.mark.parametrize("rounds", [1, 3])
def test_point_estimates_are_the_transcription(rounds):
    """Lee and Seung: w_k times the mean of x / rate over the words of k."""
    x, world, before = planted()
    world = replace(world, e=0.0, point=True)
    rows, sums = stepped(x, world, before, Effort(rounds, 0))
    summed = [
        reference.settled(world, x[n], before.on[n], before.y[n], before.exposure[n], rounds)[0]
        for n in range(len(x))
    ]
    compare_sums(x, world, before._replace(y=np.array(summed)), sums)
    assert sums.divergence == 0
    words, w = world.shape / world.rate, before.y / (before.exposure[:, None] * known_of(world).size)
    for _ in range(rounds + 1):
        ratio = np.divide(x, w @ words.T, out=np.zeros_like(x), where=x > 0)
        w = w * (ratio @ words) / (before.exposure[:, None] * words.sum(axis=0))
    np.testing.assert_allclose(rows.y / (before.exposure[:, None] * words.sum(axis=0)), w, **EXACT)


@pytest.mark.parametrize("flips", [0, 2, 5])
def test_no_row_ever_falls(flips):
    x, world, rows = planted()
    before = values(x, world, rows)
    for _ in range(12):
        rows, _ = stepped(x, world, rows, Effort(2, flips))
        now = values(x, world, rows)
        assert all(b >= a - 1e-10 * abs(a) for a, b in zip(before, now, strict=True))
        before = now


def test_a_step_tells_the_objective_of_its_rows():
    x, world, rows = planted()
    rows, _ = stepped(x, world, rows, Effort(3, 5))
    _, sums = stepped(x, world, rows, Effort(0, 0))
    total = sums.fit - sums.exposed @ known_of(world).size - sums.divergence + sums.on @ world.odds
    assert total == pytest.approx(sum(values(x, world, rows)), rel=1e-12)


def test_joint_flips_find_the_best_choice_of_most_rows():
    """All choices of z of each row are tried, with weights that have converged."""
    x, world, rows = planted()
    for _ in range(6):
        rows, _ = stepped(x, world, rows, Effort(10, 5))
    choices = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    gaps = []
    for n, value in enumerate(values(x, world, rows)):
        best = max(
            reference.settled(world, x[n], z, z * x[n].sum() / max(z.sum(), 1), rows.exposure[n], 60)[1]
            for z in choices
            if z.any() or not x[n].any()
        )
        gaps.append(best - value)
    assert min(gaps) > -0.05
    assert max(gaps) < 1.5
    assert np.mean(np.abs(gaps) < 0.05) > 0.8


def test_no_flip_is_left_that_raises_a_row():
    """Every z_nk by itself, also of features that the screen does not let through."""
    x, world, rows = planted(rows=8, seed=5)
    for _ in range(6):
        rows, _ = stepped(x, world, rows, Effort(10, 5))
    for n, value in enumerate(values(x, world, rows)):
        for k in range(5):
            z = rows.on[n].copy()
            z[k] = 1 - z[k]
            if not z.any() and x[n].any():
                continue
            lit = z.sum()
            y = np.where(rows.on[n] == 0, x[n].sum() / max(lit, 1), rows.y[n]) * z
            y *= x[n].sum() / max(y.sum(), 1e-9)
            assert reference.settled(world, x[n], z, y, rows.exposure[n], 40)[1] < value + 0.05


def test_more_flips_than_promising_features_change_nothing():
    x, world, before = planted()
    every, _ = stepped(x, world, before, Effort(3, 5))
    more, _ = stepped(x, world, before, Effort(3, 500))
    np.testing.assert_array_equal(every.y, more.y)


def test_a_certain_feature_stays_and_an_impossible_one_stays_away():
    x, world, before = planted()
    odds = world.odds.copy()
    odds[1], odds[2] = 500.0, -500.0
    before.on[:, 2], before.y[:, 2] = 0, 0
    rows, _ = stepped(x, replace(world, odds=odds), before, Effort(3, 5))
    assert rows.on[:, 1].all()
    assert not rows.on[:, 2].any()
    infinite, _ = stepped(x, replace(world, odds=np.full(5, np.inf)), before, Effort(3, 0))
    np.testing.assert_array_equal(infinite.on, before.on)


def test_every_token_is_placed_once():
    x, world, rows = planted()
    rows, sums = stepped(x, world, rows, Effort(3, 5))
    np.testing.assert_allclose(rows.y.sum(axis=1), x.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums.y.sum(axis=0), rows.y.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums.y.sum(axis=1), x.sum(axis=0), rtol=1e-12)
    assert not rows.y[rows.on == 0].any()


@pytest.mark.parametrize("flips", [0, 3])
def test_rows_apart_are_rows_together(flips):
    """To the last bit, whatever else is in the chunk."""
    x, world, before = planted(rows=11, columns=40, seed=2)
    rows, sums = stepped(x, world, before, Effort(3, flips))
    total = empty_flip_sums(x.shape[1], 5)
    for part in (slice(0, 1), slice(1, 2), slice(2, 7), slice(7, 11)):
        own = RowModes(before.on[part], before.y[part], before.exposure[part])
        apart, some = stepped(x[part], world, own, Effort(3, flips))
        np.testing.assert_array_equal(apart.on, rows.on[part])
        np.testing.assert_array_equal(apart.y, rows.y[part])
        for one, more in zip(total, some, strict=True):
            one += more
    for one, both in zip(total, sums, strict=True):
        np.testing.assert_allclose(one, both, rtol=1e-12, atol=1e-12)


def test_words_of_a_chunk_may_be_a_few_of_all():
    """The dictionary of its own words gives the same rows."""
    x, world, before = planted()
    x = x.copy()
    x[:, ::3] = 0
    rows, sums = stepped(x, world, before, Effort(3, 5))
    own, known = np.flatnonzero(x.any(axis=0)), known_of(world)
    few, some = RowModes(before.on.copy(), before.y.copy(), before.exposure), empty_flip_sums(own.size, 5)
    flip_rows(entries_of(x[:, own]), known._replace(words=known.words[own]), few, Effort(3, 5), some)
    np.testing.assert_array_equal(few.y, rows.y)
    np.testing.assert_array_equal(some.y, sums.y[own])


@pytest.mark.parametrize("flips", [0, 5])
def test_odd_rows_have_finite_sums(flips):
    """Empty rows, rows of one token, words that nobody has, one row, one feature, no feature on, no rows."""
    _, world, before = planted()
    one = replace(world, shape=world.shape[:, :1], rate=world.rate[:1], odds=world.odds[:1])
    none = np.zeros((3, 1))
    bare = np.zeros((3, 14))
    bare[0, 2], bare[1, 5] = 1, 3000
    for counts, about, rows in (
        (bare, one, RowModes(np.ones((3, 1), np.int8), none, np.ones(3))),
        (bare[:1], world, RowModes(before.on[:1], before.y[:1], np.ones(1))),
        (bare, world, RowModes(np.zeros((3, 5), np.int8), np.zeros((3, 5)), np.ones(3))),
        (0 * bare, world, RowModes(before.on[:3], before.y[:3], np.ones(3))),
        (bare[:0], world, RowModes(before.on[:0], before.y[:0], np.ones(0))),
    ):
        rows, sums = stepped(counts, about, rows, Effort(3, flips))
        assert all(np.isfinite(field).all() for field in (*rows, *sums))
        if flips:
            assert (rows.on.any(axis=1) >= counts.any(axis=1)).all()


def test_an_empty_row_has_the_features_that_its_prior_wants():
    """Weights of nothing cost e log(t / e): a feature with more log odds than that is switched on."""
    x, world, before = planted()
    assert not x[1].any()
    cost = np.array([0.25 * np.log((0.25 + before.exposure[1] * world.size(k)) / 0.25) for k in range(5)])
    wanted = np.array([1, 0, 1, 0, 0])
    rows, _ = stepped(x, replace(world, odds=cost + wanted - 0.5), before, Effort(2, 5))
    np.testing.assert_array_equal(rows.on[1], wanted)


def test_counts_in_single_precision_are_the_same():
    x, world, before = planted()
    exact, _ = stepped(x, world, before, Effort(3, 5))
    single, _ = stepped(x, world, before, Effort(3, 5), np.float32)
    np.testing.assert_array_equal(exact.y, single.y)
