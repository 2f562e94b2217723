"""Deletions: the formula from one inverse against the exact score, and the greedy move."""

from dataclasses import replace as changed

import numpy as np
import pytest

from ibpdist.base.structs import arrays_of, replace
from ibpdist.inference.moves import delete
from ibpdist.inference.moves._base import LEAST_GAIN
from ibpdist.inference.moves.relabel import Edit
from ibpdist.model.observations import dictionary
from tests.support.model_cases import Case
from tests.support.moves import fitted, settled
from tests.support.planted_rows import masked, planted

RNG = np.random.default_rng(0)


def case_of(**settings):
    missing = settings.pop("missing", "complete")
    x, _, _ = planted(4, rows=40, columns=7, prevalence=(0.4, 0.6, 0.3), noise=0.8)
    x, observed = masked(x, missing if missing != "rows" else "masked")
    return fitted(Case(**{"prior": "sticks", "missing": missing} | settings), x, observed, steps=4)


CASES = {
    "plain": {},
    "finite": {"prior": "finite"},
    "column noise": {"noise": "column"},
    "groups": {"missing": "block"},
    "groups and column noise": {"missing": "masked", "noise": "column"},
    "rows": {"missing": "rows"},
    "normal weights": {"weights": "normal"},
    "normal weights, column noise, groups": {"weights": "normal", "noise": "column", "missing": "block"},
    "hard": {"rule": "mode"},
    "factorised": {"family": "factorised"},
    "factorised, column noise": {"family": "factorised", "noise": "column", "missing": "block"},
}
EVERY = pytest.mark.parametrize("name", CASES)


def dictionary_terms(model, params, sums):
    terms = model.observation.score(params, sums).terms
    return terms["likelihood"] + terms["dictionary"]


def fewer(sums, keep):
    """Sums without some features, cut out of the tables."""
    gram = np.stack([g[np.ix_(keep, keep)] for g in sums.observation.gram])
    entries = {name: a[keep] for name, a in arrays_of(sums.entries).items()}
    observed = replace(sums.observation, gram=gram, cross=sums.observation.cross[keep], **extra(sums, keep))
    return replace(sums, entries=replace(sums.entries, **entries), observation=observed)


def extra(sums, keep):
    """What else is known where rows have Gram matrices of their own."""
    if not hasattr(sums.observation, "second"):
        return {}
    columns = sums.observation.cross.shape[1]
    none = {"bases": np.zeros((0, len(keep), len(keep))), "spectra": np.zeros((0, len(keep), columns))}
    return {"second": sums.observation.second[keep], **none}


@pytest.mark.parametrize("name", [name for name in CASES if name != "rows"])
def test_the_formula_is_the_exact_change_of_the_dictionary_terms(name):
    """At fixed variances, with q(A) solved again without the feature."""
    fit = case_of(**CASES[name])
    s, family = fit.situation, fit.alg.model.observation.family
    before = dictionary_terms(s.model, s.params.observation, s.sums.observation)
    for place, gain in enumerate(delete.dictionary_gains(s.params, s.sums)):
        keep = np.delete(np.arange(4), place)
        less = fewer(s.sums, keep).observation
        was = s.params.observation
        cut = replace(
            was,
            mean=was.mean[keep],
            basis=was.basis[:, keep][:, :, keep],
            spectrum=was.spectrum[:, keep],
            scale=was.scale[keep],
            stretch=was.stretch[keep],
        )
        solved = dictionary.solve(cut, dictionary.rotations(cut, less, family))
        after = dictionary_terms(s.model, solved, less)
        assert after - before == pytest.approx(gain, rel=1e-8, abs=1e-8 * abs(before))


def test_the_formula_is_that_of_the_inverse():
    """starts-and-moves.md 11, letter by letter, for one noise and one scale."""
    fit = case_of()
    s = fit.situation
    noise, scale = float(s.params.observation.noise[0]), float(s.params.observation.scale[0])
    c, gram, cross = noise / scale, s.sums.observation.gram[0], s.sums.observation.cross
    inverse = np.linalg.inv(gram + c * np.eye(4))
    phi, own = inverse @ cross, np.diagonal(inverse)
    wanted = -(phi.shape[1] / 2) * (np.log(own) + np.log(c)) - (phi**2).sum(axis=1) / (2 * noise * own)
    np.testing.assert_allclose(delete.dictionary_gains(s.params, s.sums), wanted, rtol=1e-9)


@EVERY
def test_a_deletion_is_scored_as_the_remaining_sums_are(name):
    fit = case_of(**CASES[name])
    s = fit.situation
    for place in range(4):
        found = delete.drop(s.model, s.params, s.sums, place)
        keep = np.delete(np.arange(4), place)
        for a, b in zip(arrays_of(found.sums).items(), arrays_of(fewer(s.sums, keep)).items(), strict=True):
            np.testing.assert_allclose(a[1], b[1], rtol=1e-12, atol=1e-12, err_msg=a[0])
        assert found.params.ids.tolist() == s.params.ids[keep].tolist()
        again = fit.alg.score(found.params, fewer(s.sums, keep)).objective
        assert found.objective == pytest.approx(again, rel=1e-12)


@pytest.mark.parametrize("name", ["plain", "finite", "groups", "hard"])
def test_a_deletion_is_scored_as_its_rows_are(name):
    fit = case_of(**CASES[name])
    s = fit.situation
    edit = Edit.keep(s.params.ids, np.array([0, 1, 3]))
    assert s.evaluate(edit).objective == pytest.approx(fit.score_of_rows(edit)[2], rel=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if name != "rows"])
def test_the_gains_are_bounds_of_the_full_scores(name):
    """The full score solves variances and sticks again, so it is never lower."""
    fit = case_of(**CASES[name])
    s = fit.situation
    gains = delete.gains(s.model, s.params, s.sums)
    full = np.array([delete.drop(s.model, s.params, s.sums, k).objective - s.objective for k in range(4)])
    assert (full >= gains - 1e-3).all()


@pytest.mark.parametrize("settings", [{}, {"prior": "finite"}, {"noise": "column"}, {"family": "factorised"}])
def test_features_of_nothing_rank_first_and_their_gains_are_near_the_full_scores(settings):
    s = surplus(**settings).situation
    gains = delete.gains(s.model, s.params, s.sums)
    full = np.array([delete.drop(s.model, s.params, s.sums, k).objective - s.objective for k in range(6)])
    assert set(np.argsort(-gains)[:3].tolist()) == {3, 4, 5}
    np.testing.assert_allclose(gains[3:], full[3:], atol=8.0)
    assert (gains[3:] > 60).all()
    assert (full[:3] < -1000).all()


def test_scales_of_their_own_and_lengths_that_change():
    """Sums are those of the rows as they are; the objective is in the units of the new parameters."""
    x, _, _ = planted(4, rows=60, columns=9, prevalence=(0.4, 0.6, 0.3))
    case = Case(prior="sticks", weights="normal", noise="column", scale="feature")
    fit = fitted(case, x, features=5, steps=6)
    s = fit.situation
    assert not np.allclose(s.params.observation.stretch, 1.0)
    for place in range(5):
        found = delete.drop(s.model, s.params, s.sums, place)
        carried = fit.alg.rescale_old_sums(found.params, fewer(s.sums, np.delete(np.arange(5), place)))
        assert found.objective == pytest.approx(fit.alg.score(found.params, carried).objective, rel=1e-12)
    again = s.evaluate(Edit.keep(s.params.ids, np.arange(5)))
    assert s.objective - 1e-6 * abs(s.objective) < again.objective < s.objective + 0.01 * abs(s.objective)
    assert np.isfinite(delete.gains(s.model, s.params, s.sums)).all()


def surplus(extra=3, **settings):
    """The planted features, copies of one that split its rows, and columns of nothing."""
    x, z, _ = planted(6, rows=400, columns=25, prevalence=(0.3, 0.5, 0.4))
    rng = np.random.default_rng(1)
    nothing = (rng.random((len(x), extra)) < 0.1).astype(float)
    case = Case(**{"prior": "sticks"} | settings)
    return settled(case, x, np.concatenate([z, nothing], axis=1), sweep=False)


@pytest.mark.parametrize("prior", ["finite", "sticks"])
def test_features_of_nothing_are_deleted_and_those_planted_stay(prior):
    fit = surplus(prior=prior)
    found = delete.propose(fit.situation, RNG)
    assert found.params.ids.tolist() == [0, 1, 2]
    assert found.passes == 0
    assert found.objective > fit.situation.objective + 10
    assert found.name == "delete"
    assert fit.alg.score(found.params, found.sums).objective == found.objective
    assert delete.propose(replaced(fit, found), RNG) is None


def replaced(fit, proposal):
    return changed(fit.situation, params=proposal.params, sums=proposal.sums, objective=proposal.objective)


def test_greedy_is_the_best_of_all_sets_when_there_is_little_to_choose():
    """All subsets of six features, each scored exactly."""
    fit = surplus()
    s = fit.situation
    scores = {}
    for bits in range(1, 64):
        keep = np.array([k for k in range(6) if bits >> k & 1])
        scores[tuple(keep)] = s.evaluate(Edit.keep(s.params.ids, keep)).objective
    assert max(scores, key=scores.get) == (0, 1, 2)
    assert delete.greedy(s).objective == pytest.approx(max(scores.values()), abs=LEAST_GAIN)


def test_the_last_feature_is_never_deleted():
    x = np.random.default_rng(2).normal(size=(50, 5))
    fit = fitted(Case(prior="sticks"), x, features=3, steps=3)
    found = delete.propose(fit.situation, RNG)
    assert len(found.params.ids) == 1
    assert delete.propose(replaced(fit, found), RNG) is None


def test_a_good_fit_is_left_alone():
    x, z, _ = planted(6, rows=200, columns=25)
    assert delete.propose(settled(Case(prior="sticks"), x, z).situation, RNG) is None


@pytest.mark.parametrize(
    ("promised", "tried"), [((-99.0, -101.0, -200.0), [0]), ((-101.0, -101.0, -101.0), [])]
)
def test_a_deletion_that_promises_to_lose_more_than_the_rest_can_win_back_is_not_tried(
    monkeypatch, promised, tried
):
    x, _, _ = planted(4, rows=40, columns=7, prevalence=(0.4, 0.6, 0.3))
    s = fitted(Case(prior="sticks"), x, features=3, steps=2).situation
    seen, drop = [], delete.drop
    monkeypatch.setattr(delete, "gains", lambda *of: np.array(promised))
    monkeypatch.setattr(delete, "drop", lambda *of: seen.append(of[-1]) or drop(*of))
    delete.greedy(s)
    assert seen[:1] == tried


@pytest.mark.parametrize(("gain", "accepted"), [(0.9, False), (1.1, True)])
def test_a_deletion_has_to_gain_more_than_how_well_sticks_are_solved(monkeypatch, gain, accepted):
    x, _, _ = planted(4, rows=40, columns=7, prevalence=(0.4, 0.6, 0.3))
    s = fitted(Case(prior="sticks"), x, features=2, steps=2).situation
    found = delete.drop(s.model, s.params, s.sums, 0)
    better = changed(found, objective=s.reached + gain * LEAST_GAIN)
    monkeypatch.setattr(delete, "_best", lambda *of: better)
    assert (delete.greedy(s) is not None) == accepted
