"""Orientation against all orientations, each scored exactly."""

from itertools import product

import numpy as np
import pytest

from ibpdist.inference.moves import reorient
from ibpdist.inference.moves._base import LEAST_GAIN
from ibpdist.inference.moves.relabel import blank, sums_after
from ibpdist.model.observations import dictionary
from ibpdist.model.observations.rotation import Family
from tests.support.model_cases import Case
from tests.support.moves import fitted, run, settled
from tests.support.planted_rows import masked, planted

PRIORS = pytest.mark.parametrize("prior", ["finite", "sticks"])
MISSING = pytest.mark.parametrize("missing", ["complete", "block"])


def rng():
    return np.random.default_rng(0)


def turned(prior="sticks", missing="complete", prevalence=(0.3, 0.2, 0.4, 0.3), turn=(0, 1, 1, 0), **more):
    """A fit at the planted rows, some features complemented, and a constant that makes up for it."""
    constant = more.pop("constant", True)
    noise = more.pop("noise", 0.5)
    x, z, _ = planted(more.pop("seed", 2), rows=150, columns=12, prevalence=prevalence, noise=noise)
    x, observed = masked(x, missing)
    z = np.where(np.asarray(turn, bool), 1 - z, z)
    z = np.concatenate([z, np.ones((len(z), 1))], axis=1) if constant else z
    return settled(Case(prior=prior, missing=missing), x, z, observed, **more)


def everything(situation):
    """The objective of every orientation, by (complemented, constant)."""
    search = reorient.Search(situation)
    sets = product([False, True], repeat=len(search.places))
    return {(f, c): search.score(np.array(f, bool), c) for f in sets for c in (False, True)}


@PRIORS
@MISSING
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("turn", [(0, 1, 1, 0), (1, 1, 1, 1), (0, 0, 0, 0), (0, 0, 0, 1)])
def test_the_best_of_all_orientations_is_found(prior, missing, constant, turn):
    fit = turned(prior, missing, turn=turn, constant=constant)
    scores = everything(fit.situation)
    found = reorient.propose(fit.situation, rng())
    reached = found.objective if found else fit.situation.reached
    assert reached == pytest.approx(max(scores.values()), abs=LEAST_GAIN)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "prevalence", [(0.8, 0.7, 0.9, 0.75, 0.8), (0.5, 0.5, 0.5, 0.5, 0.5), (0.1, 0.9, 0.3, 0.7, 0.5)]
)
def test_the_best_is_found_with_much_noise_and_any_prevalence(seed, prevalence):
    turn = np.random.default_rng(seed).random(5) < 0.5
    fit = turned(prevalence=prevalence, turn=turn, seed=seed, noise=1.0)
    scores = everything(fit.situation)
    found = reorient.propose(fit.situation, rng())
    reached = found.objective if found else fit.situation.reached
    assert reached == pytest.approx(max(scores.values()), abs=LEAST_GAIN)


@PRIORS
def test_planted_features_are_turned_back_and_the_constant_goes(prior):
    fit = turned(prior)
    s = fit.situation
    found = reorient.propose(s, rng())
    assert found.name == "reorient"
    assert found.passes == 0
    assert found.params.ids.tolist() == [0, 5, 6, 3]
    assert found.params.parents.tolist() == [[-1, 1, 2, -1], [-1] * 4]
    assert found.params.flip.tolist() == [False, True, True, False]
    assert found.next_id == 7
    assert found.objective > s.objective + 10
    _, z, _ = planted(2, rows=150, columns=12, prevalence=(0.3, 0.2, 0.4, 0.3))
    assert (z == (fit.rows_after(found.params).z > 0.5).T).mean() > 0.99


@PRIORS
@MISSING
def test_the_objective_is_that_of_the_rows(prior, missing):
    fit = turned(prior, missing, steps=1)
    s = fit.situation
    search = reorient.Search(s)
    edit = search.edit(np.array([True, False, True, False]), True)
    assert s.evaluate(edit).objective == pytest.approx(fit.score_of_rows(edit)[2], rel=1e-9)
    found = reorient.propose(s, rng())
    _, _, _, now = run(fit.alg, found.params, fit.state, fit.chunk, 1)
    assert now >= found.objective - 1e-9 * abs(now)


def test_a_constant_that_the_data_have_is_added():
    x, z, _ = planted(3, rows=200, columns=15, prevalence=(0.3, 0.4), constant=True)
    fit = settled(Case(prior="sticks"), x, z[:, :2], sweep=False)
    found = reorient.propose(fit.situation, rng())
    assert len(found.params.ids) == 3
    assert found.params.parents[:, 2].tolist() == [-1, -1]
    assert found.params.flip[2]
    assert found.params.on[2] == 200.0


def test_a_constant_that_is_there_stays_the_same_feature():
    x, z, _ = planted(3, rows=200, columns=15, prevalence=(0.3, 0.4), constant=True)
    soft = z.copy()
    soft[:, 2] = 1 - 1e-4
    s = settled(Case(prior="sticks"), x, soft[:, [2, 0, 1]], sweep=False).situation
    assert reorient.constant_at(s) == 0
    search = reorient.Search(s)
    assert search.places.tolist() == [1, 2]
    assert search.edit(np.array([False, True]), True).ids.tolist() == [0, 1, 3]
    assert search.edit(np.array([False, True]), True).flip.tolist() == [False, False, True]
    assert search.edit(np.array([True, False]), False).ids.tolist() == [3, 2]
    assert reorient.propose(s, rng()) is None


def test_the_coefficients_are_those_of_a_regression():
    """Of the rows on features and 1, each group of columns by itself, in units of the noise."""
    fit = turned(missing="block", constant=False, steps=1)
    s, z, x = fit.situation, fit.state.z.T, fit.chunk.x
    found = reorient.regression(s, np.arange(4))
    second, noise = np.zeros((2, 5, 5)), s.params.observation.noise[0]
    for d in range(x.shape[1]):
        g, seen = s.params.observation.group[d], fit.chunk.observed[:, d]
        wide = np.concatenate([z[seen], np.ones((seen.sum(), 1))], axis=1)
        square = wide.T @ wide
        np.fill_diagonal(square, wide.sum(axis=0))
        square += np.diag([noise / s.params.observation.scale[0]] * 4 + [0.0])
        a = np.linalg.solve(square, wide.T @ x[seen, d]) / np.sqrt(noise)
        second[g] += np.outer(a, a)
        np.testing.assert_allclose(found.spread[g], np.linalg.inv(square), rtol=1e-6)
    np.testing.assert_allclose(found.second, second, rtol=1e-6)
    assert found.columns.tolist() == [6.0, 6.0]
    on = s.sums.entries.on
    np.testing.assert_allclose(found.odds, np.log((on + 0.5) / (150.5 - on)))


def dictionary_terms(model, start, sums):
    """Likelihood and dictionary terms with q(A) solved at the variances given."""
    params = dictionary.solve(
        start.observation, dictionary.rotations(start.observation, sums.observation, Family.STRUCTURED)
    )
    terms = model.observation.score(params, sums.observation).terms
    return terms["likelihood"] + terms["dictionary"]


@MISSING
@pytest.mark.parametrize("constant", [True, False])
def test_the_value_is_exact_at_fixed_variances(missing, constant):
    """Every orientation, with and without a constant: differences of the bound, the prior of z apart."""
    fit = turned(missing=missing, constant=constant, sweep=False)
    s = fit.situation
    search = reorient.Search(s)
    found = {}
    for f in product([False, True], repeat=4):
        for some in (False, True):
            f = np.array(f)
            edit = search.edit(f, some)
            after = sums_after(edit, s.params, s.sums, s.total)
            exact = dictionary_terms(s.model, blank(s.model, edit, s.params), after)
            found[tuple(f), some] = exact - search.intercept.value(f, some) + search.intercept.odds @ f
    differences = np.array(list(found.values()))
    assert np.ptp(differences) < 1e-6 * np.abs(differences).max()
    scores = [search.intercept.value(np.array(f), some) for f, some in found]
    assert np.ptp(scores) > 1000


def test_a_column_without_rows_is_no_trouble():
    x, z, _ = planted(2, rows=60, columns=6)
    observed = np.ones(x.shape, bool)
    observed[:, 2] = False
    z = np.where(np.array([True, False, False]), 1 - z, z)
    wide = np.concatenate([z, np.ones((60, 1))], axis=1)
    case = Case(prior="sticks", missing="block")
    fit = settled(case, np.where(observed, x, 0.0), wide, observed, steps=2)
    found = reorient.propose(fit.situation, rng())
    assert found.params.flip.tolist()[0]
    assert found.objective > fit.situation.objective


def test_the_finite_model_has_no_room_for_more_than_its_features():
    fit = turned("finite", constant=False)
    search = reorient.Search(fit.situation)
    assert search.score(np.zeros(4, bool), True) == -np.inf
    assert np.isfinite(search.score(np.ones(4, bool), False))


def test_nothing_is_turned_where_its_sums_are_not_known():
    x, _, _ = planted(1, rows=40, columns=6)
    fit = fitted(Case(prior="sticks", weights="normal"), x, None, steps=2)
    assert not fit.situation.turnable
    assert reorient.propose(fit.situation, rng()) is None


def test_the_same_generator_gives_the_same_proposal():
    s = turned().situation
    one, two = reorient.propose(s, rng()), reorient.propose(s, rng())
    assert one.params.ids.tolist() == two.params.ids.tolist()
    assert one.objective == two.objective


@pytest.mark.parametrize(("rows", "lacking", "constant"), [(1000, 1, True), (1000, 3, False), (50, 1, False)])
def test_a_feature_that_two_in_a_thousand_rows_lack_is_constant(rows, lacking, constant):
    _, z, a = planted(2, rows=rows, columns=12)
    z[:, 0] = np.arange(rows) >= lacking
    s = settled(Case(prior="sticks"), z @ a, z, sweep=False).situation
    assert s.sums.entries.on[0] == rows - lacking
    assert (reorient.constant_at(s) == 0) == constant
