"""Trial deletes: the order is by what features explain, each tried once."""

import numpy as np
import pytest

from ibpdist.base.structs import replace
from ibpdist.inference.moves import delete, trial_delete
from tests.support.model_cases import Case
from tests.support.moves import run, settled
from tests.support.planted_rows import planted

RNG = np.random.default_rng(0)


def features(lengths, rows=300, columns=20, seed=3, extra=(), **settings):
    """Rows of features of these lengths and noise; `extra` names (pattern, feature) made from (z, a)."""
    rng = np.random.default_rng(seed)
    z = (rng.random((rows, len(lengths))) < 0.3).astype(float)
    a = rng.normal(size=(len(lengths), columns))
    a *= (np.array(lengths) / np.linalg.norm(a, axis=1))[:, None]
    for pattern, feature in (make(z, a, rng) for make in extra):
        z, a = np.column_stack([z, pattern]), np.vstack([a, feature])
    x = z @ a + 0.5 * rng.normal(size=(rows, columns))
    return settled(Case(**{"prior": "sticks"} | settings), x, z, sweep=False)


def weak(count=8, **settings):
    """Features that explain little more than their patterns cost, the later ones the longer."""
    return features(np.linspace(0.9, 1.5, count), **settings)


CASES = [{}, {"prior": "finite"}, {"noise": "column"}]


@pytest.mark.parametrize("settings", CASES)
def test_the_weakest_come_first(settings):
    s = weak(**settings).situation
    explained = trial_delete.explained(s)
    tried = trial_delete.candidates(s, most=8)
    assert tried.tolist() == np.argsort(explained).tolist()
    assert trial_delete.candidates(s).tolist() == tried[: trial_delete.TRIALS].tolist()


def test_the_price_of_the_pattern_does_not_count():
    """A rare feature is cheap to keep; among features that explain as much it is not taken first."""
    s = weak().situation
    rows = float(s.params.rows)
    share = s.sums.entries.on / rows
    pattern = -rows * (share * np.log(share) + (1 - share) * np.log(1 - share))
    np.testing.assert_allclose(trial_delete.price(s), pattern)
    np.testing.assert_allclose(trial_delete.explained(s), pattern - delete.gains(s.model, s.params, s.sums))


def test_each_try_drops_the_next_one_until_all_were_tried():
    s = weak().situation
    ranked = trial_delete.candidates(s).tolist()
    for tries, place in enumerate(ranked):
        found = trial_delete.propose(replace(s, tries=tries), RNG)
        assert sorted(set(range(8)) - set(found.params.ids.tolist())) == [place]
        assert found.passes == trial_delete.PASSES
        assert found.objective is None
    assert len(ranked) == trial_delete.TRIALS
    assert trial_delete.propose(replace(s, tries=trial_delete.TRIALS), RNG) is None


# --- what is not worth a trial ---


@pytest.mark.parametrize("settings", CASES)
def test_what_others_cannot_take_over_is_not_tried(settings):
    """Long features with nothing like them beside them stay; the weak one among them is tried."""
    s = features([8.0, 9.0, 1.0, 10.0], **settings).situation
    assert trial_delete.candidates(s).tolist() == [2]
    clear = features([8.0, 9.0, 10.0], **settings).situation
    assert trial_delete.propose(clear, RNG) is None


def union(z, a, rng):
    """Both of the first two, where one held them until now."""
    held = z[:, 0] * z[:, 1] * (rng.random(len(z)) < 0.7)
    z[:, :2] -= held[:, None]
    return held, a[0] + a[1]


def half(z, a, rng):
    """Half of the rows of the first."""
    held = z[:, 0] * (rng.random(len(z)) < 0.5)
    z[:, 0] -= held
    return held, a[0]


def difference(z, a, rng):
    """The first without the second, in rows that had neither."""
    held = (1.0 - z[:, 0]) * (1.0 - z[:, 1]) * (rng.random(len(z)) < 0.3)
    return held, a[0] - a[1]


@pytest.mark.parametrize("made", [union, half, difference])
def test_what_others_can_take_over_is_tried_however_long(made):
    s = features([8.0, 9.0, 10.0], extra=(made,)).situation
    explained = trial_delete.explained(s)
    assert (explained > 2 * trial_delete.HOPELESS * trial_delete.price(s) + delete.DOUBT).all()
    assert 3 in trial_delete.candidates(s)
    assert 2 not in trial_delete.candidates(s)


def test_a_feature_of_almost_all_rows_can_be_a_constant():
    def often(z, a, rng):
        return (np.arange(len(z)) > 3).astype(float), rng.normal(size=a.shape[1])

    s = features([8.0, 9.0], extra=(often,)).situation
    assert trial_delete.candidates(s).tolist() == [2]


def brute(a):
    """Least |a_k - combination|^2 / |a_k|^2 over nothing, one or two others with signs."""
    signed = [(k, s) for k in range(len(a)) for s in (1.0, -1.0)]
    share = []
    for at in range(len(a)):
        others = [(k, s) for k, s in signed if k != at]
        sets = [[], *([one] for one in others), *([one, two] for one in others for two in others)]
        sums = [sum((s * a[k] for k, s in some), np.zeros(a.shape[1])) for some in sets if unlike(some)]
        share.append(min(((a[at] - total) ** 2).sum() for total in sums) / (a[at] ** 2).sum())
    return share


def unlike(some):
    return len({k for k, _ in some}) == len(some)


@pytest.mark.parametrize("settings", CASES)
def test_what_others_leave_is_that_of_the_best_one_or_two(settings):
    made = features(np.linspace(1.0, 3.0, 5), columns=4, extra=(union, difference), **settings).situation
    observed = made.params.observation
    found = trial_delete.left_by_others(made)
    np.testing.assert_allclose(found, brute(observed.mean / np.sqrt(observed.noise)), rtol=1e-8)
    assert (found < 1).any()


def test_a_feature_without_length_leaves_nothing():
    s = features([8.0, 9.0]).situation
    params = replace(s.params, observation=replace(s.params.observation, mean=0 * s.params.observation.mean))
    assert trial_delete.left_by_others(replace(s, params=params)).tolist() == [0.0, 0.0]


# --- where there is nothing, and where there is something ---


def test_the_last_feature_is_not_tried():
    x, z, _ = planted(1, rows=50, columns=5, prevalence=(0.4,))
    s = settled(Case(prior="sticks"), x, z, sweep=False).situation
    assert trial_delete.propose(s, RNG) is None


def test_a_union_that_hides_behind_its_parts_is_found_by_a_trial():
    """Two features and their union, each holding a part of the rows: no single exact deletion helps."""
    x, z, _ = planted(5, rows=400, columns=25, prevalence=(0.3, 0.3, 0.4))
    rng = np.random.default_rng(2)
    both = (z[:, 0] * z[:, 1] * (rng.random(400) < 0.7)).astype(float)
    split = z.copy()
    split[:, :2] -= both[:, None]
    fit = settled(Case(prior="sticks"), x, np.concatenate([split, both[:, None]], axis=1), steps=3)
    s = fit.situation
    best = -np.inf
    assert 3 in trial_delete.candidates(s)
    for tries in range(len(trial_delete.candidates(s))):
        found = trial_delete.propose(replace(s, tries=tries), RNG)
        best = max(best, run(fit.alg, found.params, fit.state, fit.chunk, found.passes)[3])
    assert delete.propose(s, RNG) is None
    assert best > s.objective + 10
