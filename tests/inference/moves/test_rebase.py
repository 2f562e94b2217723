"""The exclusive-or re-basis undoes unions, differences and nestings."""

from itertools import combinations

import numpy as np
import pytest

from ibpdist.inference.ascent.params import OFF
from ibpdist.inference.moves import rebase, reorient
from ibpdist.inference.moves.relabel import Edit
from tests.support.model_cases import Case
from tests.support.moves import fitted, run, settled
from tests.support.planted_rows import masked, planted

CASE = Case(prior="sticks")


def rng():
    return np.random.default_rng(0)


def rows_of(seed=3, rows=200, disjoint=True):
    """Four planted columns; the first two never occur together."""
    _, z, _ = planted(seed, rows=rows, columns=2, prevalence=(0.3, 0.3, 0.4, 0.25))
    if disjoint:
        z[:, 1] *= 1 - z[:, 0]
    return z


def data_of(z, seed=3, columns=30, noise=0.5):
    rng = np.random.default_rng(seed)
    return z @ rng.normal(size=(z.shape[1], columns)) + noise * rng.normal(size=(len(z), columns))


def wrong(z, kind):
    """Another basis of the same span, up to a constant."""
    made = z.copy()
    one, two = z[:, 0], z[:, 1]
    if kind == "union":
        made[:, 0] = one + two
    elif kind == "complement of the union":
        made[:, 0] = 1 - one - two
    else:
        made[:, 0], made[:, 1] = one + two, 1 - two
    return made


@pytest.mark.parametrize("kind", ["union", "complement of the union", "union and complement"])
@pytest.mark.parametrize("constant", [True, False])
def test_the_planted_columns_are_found_again(kind, constant):
    z = rows_of()
    x = data_of(z)
    begin = wrong(z, kind)
    if constant:
        begin = np.concatenate([begin, np.ones((len(z), 1))], axis=1)
    fit = settled(CASE, x, begin, sweep=False)
    truth = settled(CASE, x, z, steps=10)
    found = rebase.propose(fit.situation, rng())
    assert found.name == "re-basis"
    assert found.passes == rebase.PASSES
    assert found.objective is None
    made = fit.rows_after(found.params).z.T > 0.5
    same = {tuple(column) for column in made.T} & {tuple(column) for column in (z > 0.5).T}
    assert len(same) == 4, "oriented, too"
    _, _, params, reached = run(fit.alg, found.params, fit.state, fit.chunk, 10)
    assert len(params.ids) == 4
    assert reached > fit.situation.objective + 20
    assert reached == pytest.approx(truth.situation.objective, abs=0.5)


def test_a_nesting_is_undone():
    """A feature that is held only by holders of another, found as the smaller and their difference."""
    z = rows_of(disjoint=False)
    z[:, 0] = np.maximum(z[:, 0], z[:, 1])
    begin = z.copy()
    begin[:, 0] -= z[:, 1]
    x = data_of(z)
    fit = settled(CASE, x, begin, sweep=False)
    share = z.mean(axis=0)
    better = rebase.pattern_cost(begin.mean(axis=0)).sum() > rebase.pattern_cost(share).sum()
    assert (rebase.propose(fit.situation, rng()) is not None) == better


def test_the_planted_basis_is_left_alone():
    z = rows_of()
    assert rebase.propose(settled(CASE, data_of(z), z, steps=3).situation, rng()) is None
    z = rows_of(disjoint=False)
    assert rebase.propose(settled(CASE, data_of(z), z, steps=3).situation, rng()) is None


def test_nothing_is_proposed_for_weights():
    x, _, _ = planted(1, rows=40, columns=6)
    assert rebase.propose(fitted(Case(prior="sticks", weights="normal"), x, steps=2).situation, rng()) is None


@pytest.mark.parametrize("missing", ["complete", "block"])
def test_candidates_are_described_as_their_rows_are(missing):
    z = wrong(rows_of(), "union")
    x, observed = masked(data_of(z), missing)
    s = settled(Case(prior="sticks", missing=missing), x, z, observed, sweep=False).situation
    columns = rebase.candidates(s, OFF)
    assert (1 in columns.places[1]) or (0 in columns.places[1]), "a pair with an empty combination"
    rows = [
        z[:, k] if j == OFF else np.logical_xor(z[:, k], z[:, j]).astype(float) for k, j in columns.places.T
    ]
    np.testing.assert_allclose(columns.covariance, np.cov(np.array(rows), bias=True), atol=1e-9)
    np.testing.assert_allclose(columns.entropy, rebase.pattern_cost(np.mean(rows, axis=1)), atol=1e-9)


def test_only_pairs_with_an_empty_combination_that_say_less_are_looked_at():
    z = wrong(rows_of(), "union")
    wanted = rebase.worthwhile(np.where(np.eye(4) > 0, np.diag(z.sum(axis=0)), z.T @ z), len(z))
    assert np.argwhere(np.triu(wanted, 1)).tolist() == [[0, 1]]


def test_the_cheapest_basis_is_the_cheapest_of_all():
    """Against every choice of four columns that has full rank."""
    z = wrong(rows_of(), "union")
    s = settled(CASE, data_of(z), z, sweep=False).situation
    columns = rebase.candidates(s, OFF)
    costs = {}
    for some in combinations(range(len(columns.entropy)), 4):
        part = columns.covariance[np.ix_(some, some)]
        if np.linalg.matrix_rank(part, tol=1e-6) == 4:
            costs[some] = columns.entropy[list(some)].sum()
    assert tuple(rebase.cheapest(columns).tolist()) == min(costs, key=costs.get)


def test_two_edits_make_one():
    z = rows_of()
    fit = settled(CASE, data_of(z), z, sweep=False)
    s = fit.situation
    old = s.params.ids
    first = Edit.of(old, np.array([[0, 1, 2], [3, OFF, OFF]]), np.array([True, False, False]), 10)
    assert first.ids.tolist() == [10, 1, 2]
    places = np.array([[0, 2, OFF], [OFF] * 3])
    second = Edit.of(first.ids, places, np.array([True, True, True]), 20)
    both = rebase.composed(s, first, second)
    assert both.parents.tolist() == [[0, 2, OFF], [3, OFF, OFF]]
    assert both.flip.tolist() == [False, True, True]
    assert (both.ids >= s.next_id).all()


def test_a_constant_stays_out_of_it():
    z = np.concatenate([wrong(rows_of(), "union"), np.ones((200, 1))], axis=1)
    s = settled(CASE, data_of(z), z, sweep=False).situation
    assert reorient.constant_at(s) == 4
    assert 4 not in rebase.candidates(s, 4).places
