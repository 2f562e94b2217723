"""Edits of features: ids, and sums that are those of the rewritten rows."""

import numpy as np
import pytest

from ibpdist.base.structs import arrays_of, replace
from ibpdist.inference.ascent.params import OFF
from ibpdist.inference.moves.relabel import (
    Edit,
    blank,
    combination,
    evaluate,
    params_after,
    rows_seen,
    sums_after,
    table,
)
from tests.support.model_cases import Case
from tests.support.moves import fitted, run, settled, sums_of
from tests.support.planted_rows import masked, planted

PRIORS = pytest.mark.parametrize("prior", ["finite", "sticks"])
MISSING = pytest.mark.parametrize("missing", ["complete", "block", "masked"])
NOISE = pytest.mark.parametrize("noise", ["one", "column"])


def edit_of(old, parents, flip, next_id=100):
    places = np.array(
        [[a if np.isscalar(a) else a[0] for a in parents], [OFF if np.isscalar(a) else a[1] for a in parents]]
    )
    return Edit.of(np.asarray(old), places, np.asarray(flip, bool), next_id)


def small(prior="sticks", missing="complete", noise="one", rule="mean", family="structured", seed=3):
    """A short fit with soft rows: 30 rows, 6 columns, 4 features."""
    x, _, _ = planted(seed, rows=30, columns=6, prevalence=(0.4, 0.6, 0.3), noise=0.8)
    x, observed = masked(x, missing)
    case = Case(prior=prior, noise=noise, rule=rule, family=family, missing=missing)
    return fitted(case, x, observed, steps=3)


EDITS = {
    "keep": ([0, 1, 2, 3], [0, 0, 0, 0]),
    "permute": ([2, 0, 3, 1], [0, 0, 0, 0]),
    "drop": ([0, 3], [0, 0]),
    "complement": ([0, 1, 2, 3], [0, 1, 0, 1]),
    "everything": ([0, 1, 2, 3], [1, 1, 1, 1]),
    "constant for one": ([OFF, 1, 2], [1, 0, 0]),
    "complement, drop, constant": ([3, OFF, 1], [1, 1, 0]),
}


@PRIORS
@MISSING
@NOISE
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_scored_as_its_rows_are(prior, missing, noise, name):
    fit = small(prior, missing, noise)
    s = fit.situation
    edit = edit_of(s.params.ids, *EDITS[name])
    found = s.evaluate(edit)
    params, sums, objective = fit.score_of_rows(edit)
    assert found.objective == pytest.approx(objective, rel=1e-9)
    for one, two in ((found.sums, sums), (found.params, params)):
        a, b = arrays_of(one), arrays_of(two)
        for key in a:
            size = np.abs(b[key]).max(initial=0.0)
            np.testing.assert_allclose(a[key], b[key], rtol=1e-6, atol=1e-8 * (1 + size), err_msg=key)


@pytest.mark.parametrize("family", ["structured", "factorised"])
@pytest.mark.parametrize("rule", ["mean", "mode"])
def test_other_families_and_hard_rows(family, rule):
    fit = small(rule=rule, family=family, missing="block")
    edit = edit_of(fit.situation.params.ids, *EDITS["complement, drop, constant"])
    assert fit.situation.evaluate(edit).objective == pytest.approx(fit.score_of_rows(edit)[2], rel=1e-9)


def test_a_kept_feature_keeps_its_id_and_others_get_new_ones():
    edit = edit_of([7, 4, 9], [2, 0, 1, OFF], [0, 1, 0, 1], next_id=20)
    assert edit.ids.tolist() == [9, 20, 4, 21]
    assert edit.parents.tolist() == [[9, 7, 4, OFF], [OFF] * 4]
    assert edit.flip.tolist() == [False, True, False, True]
    assert edit.places(np.array([7, 4, 9])).tolist() == [[2, 0, 1, OFF], [OFF] * 4]


def test_an_exclusive_or_is_a_new_feature_with_two_parents():
    edit = edit_of([7, 4, 9], [0, (0, 1)], [0, 0], next_id=10)
    assert edit.ids.tolist() == [7, 10]
    assert edit.parents.tolist() == [[7, 7], [OFF, 4]]


def test_kept_features_keep_their_own_parents():
    fit = small()
    s = fit.situation
    born = replace(
        s.params, parents=np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), flip=np.array([0, 1, 0, 1], bool)
    )
    after = blank(s.model, edit_of(s.params.ids, [1, 0], [0, 1]), born)
    assert after.parents.tolist() == [[2, 0], [6, OFF]]
    assert after.flip.tolist() == [True, True]


def hard_rows(kind, rows=40):
    """Two columns of which one combination never occurs, and a third feature."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.random(rows) < p for p in (0.5, 0.5, 0.4))
    b = {"both": b & ~a, "first": b | a, "second": b & a, "neither": b | ~a}[kind]
    return np.stack([a, b, c], axis=1).astype(np.float64)


@pytest.mark.parametrize("kind", ["both", "first", "second", "neither"])
@pytest.mark.parametrize("flip", [False, True])
@MISSING
def test_an_exclusive_or_with_an_empty_combination_is_linear(kind, flip, missing):
    z = hard_rows(kind)
    x, observed = masked(z @ np.random.default_rng(0).normal(size=(3, 5)), missing)
    fit = settled(Case(prior="sticks", missing=missing), x, z, observed, sweep=False)
    edit = edit_of(fit.situation.params.ids, [0, (0, 1), 2], [0, flip, 0])
    found = fit.situation.evaluate(edit)
    _, sums, objective = fit.score_of_rows(edit)
    np.testing.assert_allclose(found.sums.entries.on, sums.entries.on, atol=1e-9)
    np.testing.assert_allclose(found.sums.observation.gram, sums.observation.gram, atol=1e-9)
    np.testing.assert_allclose(found.sums.observation.cross, sums.observation.cross, atol=1e-9)
    assert found.objective == pytest.approx(objective, rel=1e-9)


def test_the_entropy_of_an_exclusive_or_is_no_less_than_it_can_be():
    fit = small()
    s = fit.situation
    edit = edit_of(s.params.ids, [(0, 1), 2], [0, 0])
    rows = fit.rows_after(blank(s.model, edit, s.params))
    true = sums_of(rows, fit.chunk, s.params, s.model).entries.entropy
    guess = sums_after(edit, s.params, s.sums, s.total).entries.entropy
    assert (guess >= true - 1e-9).all()
    assert guess[1] == pytest.approx(true[1], rel=1e-9)


def test_the_table_counts_combinations():
    z = hard_rows("neither")[:, :2]
    gram = z.T @ z
    both = [(z[:, 0] == i) & (z[:, 1] == j) for i, j in ((1, 1), (1, 0), (0, 1), (0, 0))]
    assert table(gram, len(z))[:, 0, 1].tolist() == [b.sum() for b in both]


def test_a_combination_is_what_it_says_of_every_row():
    z = hard_rows("both")
    gram = z.T @ z
    places, flip = np.array([[2, 0, OFF, 1], [OFF, 1, OFF, OFF]]), np.array([0, 0, 1, 1], bool)
    linear = combination(places, flip, gram[None], np.array([float(len(z))]))
    wide = np.concatenate([z, np.ones((len(z), 1))], axis=1)
    wanted = np.stack([z[:, 2], np.logical_xor(z[:, 0], z[:, 1]), np.ones(len(z)), 1 - z[:, 1]], axis=1)
    np.testing.assert_array_equal(wide @ linear.T, wanted)


def test_rows_seen_are_those_of_each_group():
    fit = small(missing="block")
    assert rows_seen(fit.situation.params, fit.situation.sums).tolist() == [30.0, 20.0]


@PRIORS
def test_the_finite_model_keeps_its_number_of_features_and_the_sticks_follow(prior):
    fit = small(prior)
    s = fit.situation
    found = s.evaluate(Edit.keep(s.params.ids, np.array([0, 2])))
    assert s.model.prior.capacity(found.params.prior) == (4 if prior == "finite" else None)
    assert len(found.params.prior.tau) == 2


def test_noise_scale_and_facts_are_carried():
    fit = small(missing="block", noise="column")
    s = fit.situation
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    params = replace(s.params, observation=replace(s.params.observation, scale=scale))
    start = blank(s.model, edit_of(s.params.ids, [3, OFF, 1], [1, 1, 0]), params).observation
    assert start.scale.tolist() == [4.0, 2.5, 2.0]
    assert not start.mean.any()
    for name in ("noise", "group", "cells", "squares", "unit"):
        np.testing.assert_array_equal(getattr(start, name), getattr(params.observation, name))


def test_the_objective_is_that_of_parameters_and_sums():
    fit = small()
    s = fit.situation
    edit = edit_of(s.params.ids, *EDITS["complement"])
    found = evaluate(s.model, edit, s.params, s.sums, s.total)
    params, objective = params_after(s.model, edit, s.params, found.sums)
    assert fit.alg.score(params, found.sums).objective == objective == found.objective


def test_going_on_from_an_edit_never_falls():
    """What the rows make of the new features on the next step starts from the exact objective."""
    fit = small(missing="block")
    s = fit.situation
    found = s.evaluate(edit_of(s.params.ids, *EDITS["complement, drop, constant"]))
    reached = found.objective
    state, params = fit.state, found.params
    for step in range(1, 6):
        state, _, params, now = run(fit.alg, params, state, fit.chunk, 1, step)
        assert now > reached - 1e-9 * abs(reached)
        reached = now
