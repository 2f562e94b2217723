"""The best of short fits: what is compared, what goes on, and when there is nothing to compare."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing
from ibpdist.catalog.systems import build
from ibpdist.inference.starts import best
from ibpdist.inference.starts.best import Best, Trial
from ibpdist.inference.starts.factors import Loadings
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from tests.benchmarks.subsample_stability import standardised, subsample
from tests.support.model_cases import chunked, initial, survey
from tests.support.real_matrices import digits


def planted(rows=400, columns=30, features=3, positive=True, seed=1, offset=3.0):
    """Rows about an offset with sparse features in positive or signed amounts."""
    rng = np.random.default_rng(seed)
    z = rng.random((rows, features)) < [0.5, 0.3, 0.15][:features]
    w = rng.gamma(2.0, 0.5, z.shape) if positive else rng.normal(size=z.shape)
    a = rng.normal(size=(features, columns))
    return (z * w) @ a + 0.5 * rng.normal(size=(rows, columns)) + offset, z, a


def begun(x, features=8, sizes=None, observed=None, system="fa-vi-infinite", **settings):
    alg = build(system, features, settings={"moves": False, **settings})
    chunks = chunked(x, observed, sizes)
    return alg, initial(alg, chunks, Draws(3)), survey(alg, chunks)


def matched(found, planted):
    """|cosine| of each planted feature with the one assigned to it, and the places of these."""
    unit = [m / np.maximum(np.linalg.norm(m, axis=1, keepdims=True), 1e-300) for m in (found, planted)]
    cosine = np.abs(unit[1] @ unit[0].T)
    rows, places = linear_sum_assignment(-cosine)
    return cosine[rows, places], places


@pytest.mark.parametrize("missing", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("positive", [True, False])
def test_a_fit_begins_near_the_features(positive, missing):
    x, z, a = planted(positive=positive)
    observed = None if not missing else np.random.default_rng(2).random(x.shape) > missing
    x = x if observed is None else np.where(observed, x, 0.0)
    _, params, _ = begun(x, observed=observed)
    alike, places = matched(params.observation.mean, a)
    assert alike.min() > 0.9
    np.testing.assert_allclose(params.on[places] / len(x), z.mean(axis=0), atol=0.1)


def test_short_fits_are_told_with_the_features_that_explain_something():
    """They still have others, which explain nothing and were not deleted yet."""
    _, params, _ = begun(planted()[0])
    best_one = int(np.argmax(params.starts.objective))
    assert params.starts.active[best_one] == 3
    assert len(params.on) == 8
    assert (params.on > 200).sum() > 3


def test_whoever_has_positive_features_is_found():
    """A principal start makes the most frequent feature one that every row has."""
    x, z, _ = planted()
    found = ibp.fit(x, system="fa-vi-infinite", K=8, seed=0, serial=True)["params"]
    prevalence = found["prevalence"].values[found["active"].values]
    np.testing.assert_allclose(prevalence, np.sort(z.mean(axis=0))[::-1], atol=0.03)


def test_uneven_rows_are_also_taken_to_be_even_at_first(monkeypatch):
    step, seen = Trial._step, []

    def told(trial, params, *rest):
        seen.append(isinstance(params.observation.row_noise, Nothing))
        return step(trial, params, *rest)

    monkeypatch.setattr(Trial, "_step", told)
    monkeypatch.setattr(best, "FLAT", 0.0)
    _, params, _ = begun(planted()[0], row_noise="learn")
    each = best.PASSES
    assert seen[: 2 * each] == [False] * each + [True] * (each // 2) + [False] * (each // 2)
    assert params.starts.objective.shape == (8,)
    seen.clear()
    _, params, _ = begun(planted()[0], row_noise="none")
    assert all(seen)
    assert params.starts.objective.shape == (4,)


def test_rows_that_were_even_at_first_have_to_be_much_better():
    def ended(objective):
        return best.Ended(None, None, None, objective)

    uneven, even, better = ended(-100.0), ended(-91.0), ended(-89.0)
    assert best.chosen([[uneven], [ended(-120.0)]], 1000) is uneven
    assert best.chosen([[ended(-120.0), even], [uneven, ended(-95.0)]], 1000) is uneven
    assert best.chosen([[ended(-120.0), better], [uneven, ended(-95.0)]], 1000) is better


@pytest.mark.slow
@pytest.mark.parametrize("part", [1, 3])
def test_uneven_rows_do_not_take_the_place_of_features(part):
    """Many pixels of digits are rarely used: precisions of rows can explain what features would."""
    pytest.importorskip("sklearn")
    x = standardised(digits()[np.random.default_rng(7).permutation(1797)[:400]], 64)
    x = x[subsample(len(x), part)]
    uneven, even = (
        ibp.fit(x, system="fa-vi-infinite", K=10, seed=0, serial=True, row_noise=one)
        for one in ("learn", "none")
    )
    assert uneven.attrs["objective"] > even.attrs["objective"]
    assert uneven["params"]["active"].values.sum() > 5


def test_few_rows_begin_at_principal_axes(monkeypatch):
    monkeypatch.setattr(Trial, "fitted", None)  # nothing is compared
    x, *_ = planted(rows=9)
    _, params, _ = begun(x, features=6)
    assert np.isfinite(params.observation.mean).all()
    assert (params.on == 9).all()


def test_samples_of_wide_data_are_bounded(monkeypatch):
    assert Best.rows_held(30, 8) == best.CELLS // 30
    monkeypatch.setattr(best, "MOST_CELLS", 600)
    assert Best.rows_held(30, 8) == 20


def test_a_sample_stands_for_all_rows(monkeypatch):
    monkeypatch.setattr(best, "CELLS", 6000)
    x, z, a = planted(rows=2000)
    _, params, seen = begun(x, features=4)
    assert float(params.rows) == 2000
    alike, places = matched(params.observation.mean, a)
    assert alike.min() > 0.9
    np.testing.assert_allclose(params.on[places] / 2000, z.mean(axis=0), atol=0.12)
    np.testing.assert_array_equal(params.observation.cells, seen.cells)


def test_short_fits_rise():
    x, *_ = planted()
    alg, *_ = begun(x)
    trial = Trial(best.with_finite_prior(alg.model), 8, chunked(x)[0], Draws(1))
    start = trial.begun(
        Loadings(0.1 * np.random.default_rng(1).normal(size=(8, 30)), np.ones(30)), x.mean(axis=0)
    )
    levels = [trial.fitted(start, passes).objective for passes in (6, 10, 30)]
    assert levels[0] < levels[1] < levels[2]
    for positive in trial.positive(start, 18):
        assert np.isfinite(positive.objective)
        assert positive.params.weights.mean.shape == (8,)


def test_weights_of_a_fixed_mean_rehearse_nothing():
    alg, *_ = begun(planted()[0], mu=0)
    assert Trial(alg.model, 8, chunked(planted()[0])[0], Draws(1)).positive(None, 9) == []


def test_trials_have_a_finite_prior_with_the_same_mass():
    alg = build("fa-vi-infinite", 5, settings={"mass": 2.5, "moves": False})
    assert best.with_finite_prior(alg.model).prior == BetaBernoulli(2.5)
    dense = build("fa-vi-dense", 5, settings={"moves": False})
    assert best.with_finite_prior(dense.model) is dense.model


@pytest.mark.parametrize("x", [np.zeros((40, 5)), np.full((40, 5), 7.0)], ids=["zeros", "constant"])
def test_data_without_variance_have_no_components(x):
    _, params, _ = begun(x, features=3)
    assert np.isfinite(params.observation.mean).all()


def test_seeds_decide():
    x, *_ = planted()
    alg, one, _ = begun(x)
    again = initial(alg, chunked(x), Draws(3))
    np.testing.assert_array_equal(again.observation.mean, one.observation.mean)
    assert isinstance(alg.begin, Best)
    shorter = replace(alg, begin=replace(alg.begin, passes=8))
    other = initial(shorter, chunked(x), Draws(3))
    assert not np.array_equal(other.observation.mean, one.observation.mean)
