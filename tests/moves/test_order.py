"""Trial deletes: the order is by what features explain, each tried once."""

from dataclasses import replace

import numpy as np
import pytest

from ibpdist.moves import delete, order
from tests.support.model_cases import Case
from tests.support.moves import planted, run, settled

RNG = np.random.default_rng(0)


def weak_and_strong(**settings):
    """Eight features, of which the later ones are longer."""
    rng = np.random.default_rng(3)
    z = (rng.random((300, 8)) < 0.3).astype(float)
    a = rng.normal(size=(8, 20))
    a *= (np.linspace(1.0, 8.0, 8) / np.linalg.norm(a, axis=1))[:, None]
    x = z @ a + 0.5 * rng.normal(size=(300, 20))
    return settled(Case(**{"prior": "sticks"} | settings), x, z, sweep=False)


@pytest.mark.parametrize("settings", [{}, {"prior": "finite"}, {"noise": "column"}])
def test_the_weakest_come_first(settings):
    s = weak_and_strong(**settings).situation
    assert order.candidates(s).tolist() == [0, 1, 2, 3, 4, 5]
    assert order.candidates(s, most=8).tolist() == list(range(8))


def test_the_price_of_the_pattern_does_not_count():
    """A rare feature is cheap to keep; among features that explain as much it is not taken first."""
    s = weak_and_strong().situation
    rows = float(s.params.rows)
    share = s.sums.entries.on / rows
    pattern = -rows * (share * np.log(share) + (1 - share) * np.log(1 - share))
    explained = pattern - delete.gains(s.model, s.params, s.sums)
    assert order.candidates(s, most=8).tolist() == np.argsort(explained).tolist()


def test_each_try_drops_the_next_one_until_all_were_tried():
    s = weak_and_strong().situation
    for tries in range(order.TRIALS):
        found = order.propose(replace(s, tries=tries), RNG)
        assert sorted(set(range(8)) - set(found.params.ids.tolist())) == [tries]
        assert found.passes == order.PASSES
        assert found.objective is None
    assert order.propose(replace(s, tries=order.TRIALS), RNG) is None


def test_the_last_feature_is_not_tried():
    x, z, _ = planted(1, rows=50, columns=5, prevalence=(0.4,))
    s = settled(Case(prior="sticks"), x, z, sweep=False).situation
    assert order.propose(s, RNG) is None


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
    for tries in range(len(order.candidates(s))):
        found = order.propose(replace(s, tries=tries), RNG)
        best = max(best, run(fit.alg, found.params, fit.state, fit.chunk, found.passes)[3])
    assert delete.propose(s, RNG) is None
    assert best > s.objective + 10
