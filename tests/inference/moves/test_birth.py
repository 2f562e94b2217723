"""Births: missing features are found in residuals, noise is not, and the parameters stay consistent."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal as normal

from ibpdist.base.randomness import Draws
from ibpdist.inference.moves import birth
from ibpdist.inference.moves._base import Residuals
from ibpdist.inference.starts.rank import noise_edge
from ibpdist.model.observations import gaussian_params
from tests.support.model_cases import Case
from tests.support.moves import run, settled
from tests.support.planted_rows import masked, planted

PREVALENCE = (0.3, 0.2, 0.4, 0.25, 0.15)


def rng(seed=0):
    return np.random.default_rng(seed)


def residuals(fit, rows=None, edge=None):
    """Of the first rows, and the edge of noise for so many."""
    x, z = fit.chunk.x, fit.state.z.T
    left = x - z @ fit.situation.params.observation.mean
    if fit.chunk.observed is not None:
        left = np.where(fit.chunk.observed, left, 0.0)
    left = left[:rows]
    edge = noise_edge(1.0, *left.shape, 0) if edge is None else edge
    return Residuals(left, np.full(len(left), len(x) / len(left)), len(left), edge)


def lacking(seed=0, missing="complete", lost=1, constant=False, **settings):
    """A fit at the planted rows without the last features; x and all planted rows."""
    x, z, _ = planted(seed, rows=400, columns=40, prevalence=PREVALENCE)
    x, observed = masked(x, missing)
    some = z[:, :-lost] if lost else z
    if constant:
        some = np.concatenate([some, np.ones((len(z), 1))], axis=1)
    fit = settled(Case(**{"prior": "sticks", "missing": missing} | settings), x, some, observed, sweep=False)
    return fit, x, z


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [400, 150])
@pytest.mark.parametrize("constant", [True, False])
def test_a_missing_feature_is_found(seed, rows, constant):
    fit, _, z = lacking(seed, constant=constant)
    s = replace(fit.situation, residuals=residuals(fit, rows))
    found = birth.propose(s, rng())
    assert found.passes == birth.PASSES
    assert len(found.params.ids) == len(s.params.ids) + 1
    state, _, params, reached = run(fit.alg, found.params, fit.state, fit.chunk, found.passes)
    assert np.abs(np.corrcoef(state.z[-1], z[:, 4])[0, 1]) > 0.98
    assert reached > s.objective + 100
    assert params.on[-1] == pytest.approx(z[:, 4].sum(), abs=5)


@pytest.mark.parametrize("settings", [{"noise": "column"}, {"missing": "block"}, {"rule": "mode"}])
def test_it_is_found_with_noise_by_column_missing_cells_and_hard_rows(settings):
    fit, _, z = lacking(**settings)
    s = replace(fit.situation, residuals=residuals(fit))
    found = birth.propose(s, rng())
    state, _, _, reached = run(fit.alg, found.params, fit.state, fit.chunk, found.passes)
    assert np.abs(np.corrcoef(state.z[-1], z[:, 4])[0, 1]) > 0.95
    assert reached > s.objective + 100


def test_two_missing_features_are_found_one_after_the_other():
    """A fifth of the features may be born at a time: one of three."""
    fit, _, z = lacking(lost=2)
    state, params = fit.state, fit.situation.params
    s = fit.situation
    for step in range(2):
        x = fit.chunk.x
        left = Residuals(x - state.z.T @ params.observation.mean, np.ones(len(x)), len(x))
        now = replace(s, params=params, residuals=left, next_id=3 + step)
        found = birth.propose(now, rng())
        state, _, params, _ = run(fit.alg, found.params, state, fit.chunk, 30)
    assert params.ids.tolist() == [0, 1, 2, 3, 4]
    like = np.abs(np.corrcoef(np.concatenate([state.z, z.T])))[:5, 5:]
    assert (like.max(axis=0) > 0.95).all()


@pytest.mark.parametrize("seed", range(4))
def test_noise_gives_no_birth(seed):
    fit, _, _ = lacking(seed, lost=0)
    for edge in (None, 0.0):
        assert birth.propose(replace(fit.situation, residuals=residuals(fit, edge=edge)), rng()) is None


def test_below_the_edge_nothing_is_looked_for():
    fit, _, _ = lacking()
    _, largest = birth.leading(residuals(fit).rows / np.sqrt(fit.situation.params.observation.noise), rng())
    for edge, some in ((0.99 * largest, True), (1.01 * largest, False)):
        s = replace(fit.situation, residuals=residuals(fit, edge=edge))
        assert (birth.propose(s, rng()) is not None) is some


def test_no_room_no_residuals_no_unit_weights_no_birth():
    fit, _, _ = lacking()
    s = replace(fit.situation, residuals=residuals(fit))
    assert birth.propose(fit.situation, rng()) is None
    assert birth.propose(replace(s, limit=4), rng()) is None
    assert birth.propose(replace(s, limit=5), rng()) is not None
    finite, _, _ = lacking(prior="finite")
    assert birth.propose(replace(finite.situation, residuals=residuals(finite)), rng()) is None


@pytest.mark.parametrize("shape", [(300, 8), (8, 300), (60, 50), (3, 2)])
def test_leading_directions_are_those_of_the_decomposition(shape):
    white = rng(1).normal(size=shape)
    white += 3 * np.outer(rng(2).normal(size=shape[0]), rng(3).normal(size=shape[1]))
    directions, largest = birth.leading(white, rng())
    _, values, vectors = np.linalg.svd(white, full_matrices=False)
    assert largest == pytest.approx(values[0] ** 2 / shape[0], rel=1e-3)
    assert abs(directions[0] @ vectors[0]) == pytest.approx(1.0, abs=1e-3)


def test_the_promise_is_the_gain_of_the_normal_factor_less_the_pattern():
    """Against the evidence of the members' mean, one column at a time."""
    white = rng(1).normal(size=(30, 3)) + np.array([2.0, 0.0, -1.0])
    on = np.zeros((1, 30), bool)
    on[0, :8] = True
    ridge = np.array([0.5, 1.0, 2.0])
    wanted = 0.0
    for d in range(3):
        part = white[:8, d]
        wanted += normal.logpdf(part, np.zeros(8), np.eye(8) + np.ones((8, 8)) / ridge[d])
        wanted -= normal.logpdf(part, np.zeros(8), np.eye(8))
    wanted += 8 * np.log(8 / 30) + 22 * np.log(22 / 30)
    assert birth.gains(white, on, np.ones(30), ridge)[0] == pytest.approx(wanted, rel=1e-10)


def test_the_promise_of_a_sample_is_that_of_all_rows_on_average():
    def promise(rows, fraction, seed):
        r = rng(seed)
        on = np.zeros((1, rows), bool)
        on[0, : rows // 4] = True
        white, weights = r.normal(size=(rows, 20)) + 0.3 * on.T, np.full(rows, 1 / fraction)
        return birth.gains(white, on, weights, np.ones(20))[0]

    whole = np.mean([promise(4000, 1.0, seed) for seed in range(20)])
    sample = np.array([promise(400, 0.1, seed) for seed in range(200)])
    assert abs(sample.mean() - whole) < 4 * sample.std() / np.sqrt(200)


@pytest.mark.parametrize(("shared", "taken"), [(37, [0, 1]), (38, [0])])
def test_candidates_are_alike_from_a_correlation_of_one_half(shared, taken):
    """Two patterns of 50 of 100 rows with `shared` rows in common have the correlation shared / 25 - 1."""
    members = np.zeros((2, 100), bool)
    members[0, :50] = True
    members[1, 50 - shared : 100 - shared] = True
    assert np.corrcoef(members)[0, 1] == pytest.approx(shared / 25 - 1)
    assert birth.chosen(members, np.array([2.0, 1.0]), 9) == taken


def test_candidates_that_are_alike_or_promise_nothing_are_left():
    on = rng().random((4, 200)) < 0.3
    members = np.stack([on[0], on[0], ~on[0], on[1], on[2], on[3], np.ones(200, bool)])
    promised = np.array([5.0, 6.0, 4.0, 3.0, 2.0, -1.0, 9.0])
    assert birth.chosen(members, promised, 9) == [1, 3, 4]
    assert birth.chosen(members, promised, 2) == [1, 3]
    assert birth.chosen(members[:0], promised[:0], 3) == []


def test_a_candidate_needs_members():
    white = rng().normal(size=(20, 4))
    members = np.zeros((3, 20), bool)
    members[1, 0] = members[2, :2] = True
    gains = birth.gains(white, members, np.ones(20), np.ones(4))
    assert np.isinf(gains[:2]).all()
    assert np.isfinite(gains[2])


@pytest.mark.parametrize("missing", ["complete", "block"])
@pytest.mark.parametrize("noise", ["one", "column"])
def test_parameters_of_the_born_are_consistent(missing, noise):
    fit, _, _ = lacking(missing=missing, noise=noise)
    s = fit.situation
    found = birth.Newborn(rng().normal(size=(2, 40)), np.array([0.2, 0.1]))
    made = birth.born(s.model, s.params, found, next_id=9)
    was, now = s.params.observation, made.observation
    assert made.ids.tolist() == [0, 1, 2, 3, 9, 10]
    assert made.parents[:, 4:].tolist() == [[-1, -1], [-1, -1]]
    assert not made.flip[4:].any()
    np.testing.assert_allclose(made.on[4:], [80.0, 40.0])
    np.testing.assert_array_equal(now.mean, np.concatenate([was.mean, found.dictionary]))
    variance = gaussian_params.variance(now)
    np.testing.assert_allclose(variance[:4], gaussian_params.variance(was), rtol=1e-12)
    scale, cells = was.scale[0], was.cells
    for k, share in ((4, 0.2), (5, 0.1)):
        np.testing.assert_allclose(variance[k], 1 / (1 / scale + share * cells / was.noise), rtol=1e-10)
    before, after = gaussian_params.precision_gram(was), gaussian_params.precision_gram(now)
    np.testing.assert_allclose(after[:, :4, :4], before, rtol=1e-9)
    entropy = 0.5 * np.log(2 * np.pi * np.e * variance[4:]).sum()
    assert float(now.entropy - was.entropy) == pytest.approx(entropy, rel=1e-10)


def test_rows_begin_without_the_born():
    fit, _, _ = lacking()
    s = replace(fit.situation, residuals=residuals(fit))
    found = birth.propose(s, rng())
    state = fit.rows_after(found.params)
    assert not state.z[4:].any()
    np.testing.assert_array_equal(state.z[:4], fit.state.z)
    fit.alg.local(fit.chunk, state, found.params, Draws(0))


def test_the_same_generator_gives_the_same_birth():
    fit, _, _ = lacking()
    s = replace(fit.situation, residuals=residuals(fit))
    one, two = birth.propose(s, rng(5)), birth.propose(s, rng(5))
    np.testing.assert_array_equal(one.params.observation.mean, two.params.observation.mean)


# --- the rows that are explained worst ---


def rare(users=6, rows=3000, drawn=300, worst=200, seed=0):
    """A fit of three features without a fourth that some of many rows have, a sample of its residuals with
    the worst rows, the users, and all residuals. Nothing frequent is missing: the edge is infinite."""
    r = rng(seed)
    x, z, _ = planted(seed, rows, columns=40, prevalence=(0.3, 0.2, 0.4))
    fit = settled(Case(prior="sticks"), x, z, sweep=False)
    on, others = np.split(r.permutation(rows), [users])
    left = x - z @ fit.situation.params.observation.mean
    left[on] += 1.5 * r.normal(size=40)
    order = np.argsort(-(left**2).sum(axis=1), kind="stable")[:worst]
    sample = np.sort(np.append(on[:1], others[: drawn - len(on[:1])]))
    alone = ~np.isin(sample, order)
    weights = np.where(alone, (rows - worst) / alone.sum(), 1.0)
    more = order[~np.isin(order, sample)]
    found = Residuals(
        np.concatenate([left[sample], left[more]]),
        np.append(weights, np.ones(len(more))),
        drawn,
        np.inf,
    )
    return fit, found, on, left


def test_worst_rows_stand_for_themselves():
    _, found, _, _ = rare()
    assert found.worst.sum() == 200
    assert found.worst[300:].all()
    assert (found.weights[~found.worst] > 9).all()
    assert found.weights.sum() == pytest.approx(3000)
    assert not Residuals(np.zeros((5, 2)), np.ones(5), 5).worst.any()


@pytest.mark.parametrize("seed", range(4))
def test_a_feature_of_six_rows_of_thousands_is_born(seed):
    """Of which the sample has one."""
    fit, found, on, _ = rare(seed=seed)
    made = birth.newborn(found, fit.situation.params.observation, 1, rng())
    assert made.prevalence == pytest.approx([len(on) / 3000])


def test_what_is_promised_among_the_worst_is_exact():
    """Equal to what all rows promise, where rows that are no members have no part in it."""
    fit, found, on, left = rare()
    noise = fit.situation.params.observation.noise
    ridge = noise / np.median(fit.situation.params.observation.scale)
    white = found.rows / np.sqrt(noise)
    members = birth.among_worst(white, found, ridge)
    assert not members[:, ~found.worst].any()
    promised = birth.gains(white, members, found.weights, ridge)
    best = members[np.argmax(promised)]
    assert best.sum() == len(on)
    users = np.zeros((1, 3000), bool)
    users[0, on] = True
    of_all = birth.gains(left / np.sqrt(noise), users, np.ones(3000), ridge)[0]
    assert promised.max() == pytest.approx(of_all, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_noise_gives_no_birth_among_the_worst(seed):
    """Rows chosen because their noise is large promise nothing."""
    fit, found, _, _ = rare(users=0, seed=seed)
    assert birth.newborn(found, fit.situation.params.observation, 9, rng()) is None


def test_a_sum_of_drawn_and_worst_rows_is_that_of_all_rows_on_average():
    """Members among the worst count once, drawn ones as often as their weights say."""

    def promise(fraction, seed):
        r = rng(seed)
        drawn = round(2000 * fraction)
        white = r.normal(size=(100 + drawn, 20))
        on = np.zeros((1, 100 + drawn), bool)
        on[0, :50] = True
        on[0, 100 : 100 + drawn // 4] = True
        weights = np.append(np.ones(100), np.full(drawn, 1 / fraction))
        return birth.gains(white + 0.4 * on.T, on, weights, np.ones(20))[0]

    whole = np.mean([promise(1.0, seed) for seed in range(20)])
    sample = np.array([promise(0.1, seed) for seed in range(200)])
    assert abs(sample.mean() - whole) < 4 * sample.std() / np.sqrt(200)
