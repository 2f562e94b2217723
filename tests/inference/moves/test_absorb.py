"""Features that are sums of others are given to the others."""

from dataclasses import replace

import numpy as np
import pytest

from ibpdist.base.structs import replace as replaced
from ibpdist.inference.moves import absorb, delete
from tests.support.model_cases import Case
from tests.support.moves import fitted, run, settled
from tests.support.planted_rows import planted

CASE = Case(prior="sticks")


def rng():
    return np.random.default_rng(0)


def wrong(z, kind):
    """Columns of more features than planted that explain the rows as well."""
    one, two, rest = z[:, 0], z[:, 1], z[:, 2:]
    half = (np.random.default_rng(1).random(len(z)) < 0.5).astype(float)
    made = {
        "halves": [one * half, one * (1 - half), two],
        "both": [one * (1 - two), two * (1 - one), one * two],
        "all four": [one * (1 - two), two * (1 - one), (1 - one) * (1 - two)],
        "nested": [one, two * (1 - one), one * two],
    }[kind]
    return np.concatenate([np.stack(made, axis=1), rest, np.ones((len(z), 1))], axis=1)


@pytest.mark.parametrize("kind", ["halves", "both", "all four", "nested"])
@pytest.mark.parametrize("prevalence", [(0.3, 0.4, 0.3, 0.2), (0.5, 0.5, 0.5, 0.5)])
def test_the_planted_features_are_found_again(kind, prevalence):
    x, z, _ = planted(5, rows=400, columns=25, prevalence=prevalence)
    truth = settled(CASE, x, z, steps=10).situation.objective
    fit = settled(CASE, x, wrong(z, kind), steps=2)
    s = fit.situation
    if less := delete.propose(s, rng()):
        s = replace(s, params=less.params, sums=less.sums, objective=less.objective)
    assert len(s.params.ids) > 4, "no deletion helps, but for that of the constant"
    found = absorb.propose(s, rng())
    assert found.name == "absorb"
    assert found.passes == absorb.PASSES
    assert found.objective is None
    made = fit.rows_after(found.params).z.T > 0.5
    same = {tuple(column) for column in made.T} & {tuple(column) for column in (z > 0.5).T}
    assert len(same) == 4
    _, _, _, reached = run(fit.alg, found.params, fit.state, fit.chunk, 10)
    assert reached > s.objective + 100
    assert reached == pytest.approx(truth, abs=0.5)


def test_good_fits_are_left_alone():
    for seed in range(5):
        x, z, _ = planted(seed, rows=300, columns=20, prevalence=(0.3, 0.5, 0.1, 0.2, 0.7))
        s = settled(CASE, x, z, steps=2).situation
        assert absorb.propose(s, rng()) is None


def test_a_feature_that_is_a_sum_but_overlaps_stays():
    """A_2 = A_0 + A_1 by chance: the three are held independently, so nothing can be absorbed."""
    _, z, a = planted(2, rows=300, columns=20)
    a[2] = a[0] + a[1]
    x = z @ a + 0.5 * rng().normal(size=(300, 20))
    s = settled(CASE, x, z, steps=1).situation
    assert [gone for gone, _ in absorb.relations(s, np.arange(3))] == [0, 1, 2]
    assert list(absorb.edits(s)) == []
    assert absorb.propose(s, rng()) is None


def test_relations_name_the_signs():
    _, z, a = planted(2, rows=300, columns=20, prevalence=(0.3,) * 5)
    a[3] = a[0] - a[4]
    x = z @ a + 0.1 * rng().normal(size=(300, 20))
    s = settled(CASE, x, z, sweep=False).situation
    assert dict(absorb.relations(s, np.arange(5))) == {
        0: {3: 1, 4: 1},
        3: {0: 1, 4: -1},
        4: {0: 1, 3: -1},
    }


@pytest.mark.parametrize(("share", "near"), [(0.45, True), (0.55, False)])
def test_others_leave_at_most_half_of_a_feature_that_is_near_their_sum(share, near):
    """A_3 = A_0 - A_4 + r with r at right angles to all others and `share` of the squared length of A_3."""
    x, z, _ = planted(2, rows=100, columns=20, prevalence=(0.3,) * 5)
    s = settled(CASE, x, z, sweep=False).situation
    mean = np.eye(5, 20)
    mean[3] = mean[0] - mean[4]
    mean[3, 10] = np.sqrt(2 * share / (1 - share))
    one = np.ones_like(s.params.observation.noise)
    observed = replaced(s.params.observation, mean=mean, noise=one)
    found = dict(absorb.relations(replace(s, params=replaced(s.params, observation=observed)), np.arange(5)))
    assert found.get(3) == ({0: 1, 4: -1} if near else None)


@pytest.mark.parametrize(("together", "absorbed"), [(4, True), (20, False)])
def test_a_combination_of_less_than_a_hundredth_of_the_rows_counts_as_none(together, absorbed):
    """A_2 = A_0 + A_1, and of 1,000 rows so many have the first of them and the sum."""
    _, z, a = planted(2, rows=1000, columns=20)
    z, a = z[:, :3].copy(), a[:3].copy()
    z[:, 2] = np.where(z[:, :2].any(axis=1), 0, z[:, 2])
    z[np.flatnonzero((z[:, 0] == 1) & (z[:, 1] == 0))[:together], 2] = 1
    a[2] = a[0] + a[1]
    s = settled(CASE, z @ a + 0.1 * rng().normal(size=(1000, 20)), z, sweep=False).situation
    assert [gone for gone, _ in absorb.relations(s, np.arange(3))] == [0, 1, 2]
    dropped = [set(range(3)) - set(edit.places(s.params.ids)[0].tolist()) for edit in absorb.edits(s)]
    assert dropped == ([{2}] if absorbed else [])


def test_after_refusals_the_next_and_then_none():
    x, z, _ = planted(5, rows=400, columns=25, prevalence=(0.3, 0.4, 0.3, 0.2))
    s = settled(CASE, x, wrong(z, "halves"), steps=2).situation
    one, two = absorb.propose(s, rng()), absorb.propose(replace(s, tries=1), rng())
    assert one.params.parents.tolist() != two.params.parents.tolist()
    assert absorb.propose(replace(s, tries=absorb.TRIALS), rng()) is None


def test_nothing_is_proposed_for_weights_or_for_one_feature():
    x, z, _ = planted(1, rows=40, columns=6)
    weighted = fitted(Case(prior="sticks", weights="normal"), x, steps=2)
    assert absorb.propose(weighted.situation, rng()) is None
    assert absorb.propose(settled(CASE, x, z[:, :1], steps=1).situation, rng()) is None
    assert absorb.propose(settled(CASE, x, np.ones((40, 1)), sweep=False).situation, rng()) is None
