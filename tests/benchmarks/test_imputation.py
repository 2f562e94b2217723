"""The benchmark of hidden cells: which are hidden, and its rivals against brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import ibpdist as ibp
from tests.benchmarks.imputation import LAWS, Holes, best_law, by_em, fitted, holes, main
from tests.support import missing_rivals, mofa, real_sets
from tests.support.fit_variants import Variant
from tests.support.missing_rivals import COMPLETED, FactorLaw, factor_em, soft_complete, soft_impute


def low_rank(rows=120, columns=8, rank=2, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns)) + noise * rng.normal(
        size=(rows, columns)
    )


def torn(x, share=0.3, seed=1):
    return np.where(np.random.default_rng(seed).random(x.shape) < share, np.nan, x)


def law(seed=0):
    rng = np.random.default_rng(seed)
    return FactorLaw(rng.normal(size=5), rng.normal(size=(2, 5)), rng.uniform(0.5, 2, 5))


def dense(of):
    return of.loadings.T @ of.loadings + np.diag(of.noise)


def likelihood(of, x):
    seen = np.isfinite(x)
    return float(of.rows(np.nan_to_num(x), seen)[2].sum())


def test_the_density_of_cells_is_that_of_the_marginal_law():
    of, x = law(), low_rank(6, 5)
    cells = np.random.default_rng(3).random(x.shape) < 0.6
    cells[0], cells[1] = True, False
    found = of.rows(x, cells)[2]
    for row, seen, value in zip(x, cells, found, strict=True):
        marginal = multivariate_normal(of.mean[seen], dense(of)[np.ix_(seen, seen)]) if seen.any() else None
        assert value == pytest.approx(marginal.logpdf(row[seen]) if marginal else 0.0, abs=1e-10)


def test_expected_cells_are_the_conditional_mean():
    of, x = law(1), torn(low_rank(6, 5), 0.4)
    cells, covariance = np.isfinite(x), dense(of)
    for row, seen, found in zip(x, cells, of.expected(x), strict=True):
        away = np.linalg.solve(covariance[np.ix_(seen, seen)], row[seen] - of.mean[seen])
        expected = of.mean[~seen] + covariance[np.ix_(~seen, seen)] @ away
        np.testing.assert_allclose(found[~seen], expected, rtol=1e-9)


def test_the_score_is_joint_less_visible():
    of, x = law(2), low_rank(4, 5)
    hidden = np.random.default_rng(5).random(x.shape) < 0.4
    both = likelihood(of, x) - likelihood(of, np.where(hidden, np.nan, x))
    assert of.score(x, ~hidden, hidden) == pytest.approx(both / hidden.sum())


@pytest.mark.parametrize("shared", [False, True])
def test_em_never_falls_and_ends_at_a_maximum(shared, monkeypatch):
    monkeypatch.setattr(missing_rivals, "RELATIVE_GAIN", 0.0)
    x = torn(low_rank())
    values = [likelihood(factor_em(x, 2, shared, steps), x) for steps in (1, 2, 5, 20, 100)]
    assert (np.diff(values) > -1e-9).all()
    best = factor_em(x, 2, shared, 2000)
    top = likelihood(best, x)
    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-3):
        for _ in range(10):
            step = size * rng.normal(size=best.loadings.shape)
            other = FactorLaw(best.mean + size * rng.normal(size=8), best.loadings + step, best.noise)
            assert likelihood(other, x) < top + 1e-6


def test_em_without_missing_cells_is_factor_analysis(monkeypatch):
    decomposition = pytest.importorskip("sklearn.decomposition")
    monkeypatch.setattr(missing_rivals, "RELATIVE_GAIN", 0.0)
    x = low_rank(300)
    found = factor_em(x, 2, steps=1000)
    other = decomposition.FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(x)
    np.testing.assert_allclose(found.mean, x.mean(0), atol=1e-3)
    np.testing.assert_allclose(dense(found), other.get_covariance(), atol=0.02)


def test_em_with_shared_noise_is_probabilistic_pca(monkeypatch):
    """Its maximum is known: the noise is the mean of the discarded eigenvalues."""
    monkeypatch.setattr(missing_rivals, "RELATIVE_GAIN", 0.0)
    x = low_rank(200)
    found = factor_em(x, 2, shared=True, steps=1000)
    values = np.linalg.eigvalsh(np.cov(x.T, bias=True))
    np.testing.assert_allclose(found.noise, values[:-2].mean(), rtol=1e-4)
    kept = np.linalg.eigvalsh(found.loadings @ found.loadings.T)
    np.testing.assert_allclose(kept, values[-2:] - values[:-2].mean(), rtol=1e-3)


def test_soft_thresholds_minimise_what_they_say(monkeypatch):
    """Against a search over the factors of the matrix, whose squares are the nuclear norm."""
    monkeypatch.setattr(missing_rivals, "CHANGE", 1e-9)
    monkeypatch.setattr(missing_rivals, "SWEEPS", 5000)
    x, strength = torn(low_rank(6, 4)), 0.8
    seen = np.isfinite(x)

    def cost(flat):
        left, right = flat[:24].reshape(6, 4), flat[24:].reshape(4, 4)
        wrong = np.where(seen, left @ right - np.nan_to_num(x), 0)
        return 0.5 * (wrong**2).sum() + 0.5 * strength * (flat**2).sum()

    rng = np.random.default_rng(0)
    best = min((minimize(cost, rng.normal(size=40)) for _ in range(3)), key=lambda one: one.fun)
    made = soft_complete(x, strength, np.zeros(x.shape))
    found = 0.5 * np.nansum((made - x) ** 2) + strength * np.linalg.norm(made, "nuc")
    assert found == pytest.approx(best.fun, rel=1e-4)
    np.testing.assert_allclose(made, best.x[:24].reshape(6, 4) @ best.x[24:].reshape(4, 4), atol=5e-3)


def test_a_threshold_is_chosen_between_nothing_and_everything():
    x = low_rank(100, 30, rank=3, noise=0.5, seed=6)
    shown = torn(x, 0.4)
    hidden = np.isnan(shown)
    error = lambda made: np.sqrt(np.mean((made - x)[hidden] ** 2))  # noqa: E731
    found = soft_impute(shown)
    path = [error(made) for made in missing_rivals._soft_path(shown, missing_rivals.STRENGTHS)]
    assert error(found) < 1.05 * min(path)
    assert error(found) < 0.9 * max(path[0], path[-1])


@pytest.mark.parametrize("name", COMPLETED)
def test_completed_matrices_have_no_gaps(name):
    pytest.importorskip("sklearn")
    x = low_rank(60, 6)
    shown = torn(x)
    made = COMPLETED[name](shown)
    assert made.shape == x.shape
    assert np.isfinite(made).all()
    errors, scale = np.abs(made - x)[np.isnan(shown)], np.abs(x - x.mean(0))[np.isnan(shown)]
    assert errors.mean() < (1.1 if name == "column mean" else 0.9) * scale.mean()


def test_a_share_of_every_row_is_hidden():
    x = np.concatenate([low_rank(50, 12), np.full((50, 1), 3.0)], axis=1)
    of = holes(x, 0.25, 13, seed=2)
    assert of.x.shape == (50, 12)
    np.testing.assert_array_equal(of.hidden.sum(axis=1), 3)
    assert len({tuple(row) for row in of.hidden}) > 20
    np.testing.assert_allclose(np.nanmean(of.shown, axis=0), 0, atol=1e-9)
    np.testing.assert_array_equal(holes(x, 0.25, 13, seed=2).hidden, of.hidden)
    assert (holes(x, 0.25, 13, seed=3).hidden != of.hidden).any()


def test_a_column_that_is_constant_where_it_is_visible_is_left_out():
    x = low_rank(20, 6)
    first = holes(x, 0.5, 6, seed=0)
    x[:, 2] = np.where(first.hidden[:, 2], x[:, 2], 1.0)
    assert holes(x, 0.5, 6, seed=0).x.shape[1] < 6


@pytest.mark.slow
def test_a_fit_sees_what_rivals_see():
    of = holes(low_rank(80, 10), 0.3, 10, seed=1)
    variant = Variant(settings=(("steps", 15),))
    found, _ = fitted(variant, of, 4)
    result = ibp.fit(of.shown, system="fa-vi-infinite", K=4, steps=15, serial=True)
    assert result.attrs["objective"] == variant.fit(of.x, 4, holdout=of.recipe).attrs["objective"]
    again = fitted(variant, Holes(of.x, of.hidden, of.recipe), 4)[0]
    assert found == again
    assert found.rmse < 1.2


def test_factor_analysis_of_the_best_rank(monkeypatch):
    of = holes(low_rank(150, 10), 0.3, 10, seed=1)
    each = []
    for ranks in ((1,), (2,), (1, 2)):
        monkeypatch.setattr(missing_rivals, "RANKS", ranks)
        monkeypatch.setattr("tests.benchmarks.imputation.RANKS", ranks)
        each.append(best_law(of, by_em(of.shown, shared=False)))
    assert each[2] == each[0].best(each[1])
    assert each[1].rmse < each[0].rmse


def test_the_command(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setattr("tests.benchmarks.imputation.RANKS", (2,))
    monkeypatch.setattr(mofa, "RANKS", (2,))
    monkeypatch.setitem(real_sets.MADE, "breast", lambda: low_rank(60, 8))
    arguments = ["--sets", "breast", "--shares", "0.25", "--features", "3", "--set", "steps=5"]
    assert main(arguments) == 0
    told = capsys.readouterr().out.splitlines()
    methods = len(missing_rivals.COMPLETED) + len(LAWS) + 1
    table = [line.split() for line in told[-methods - 1 :]]
    assert table[0] == ["set", "share", "method", "nats", "RMSE", "active", "seconds"]
    assert len({line[2] for line in table[1:]}) == methods


@pytest.mark.slow
def test_mofa_finds_the_law_of_planted_factors():
    """Missing cells are predicted by its law about as well as by that of factor analysis."""
    pytest.importorskip("mofapy2")
    of = holes(low_rank(150, 10), 0.2, 10, seed=1)
    marks = [
        best_law(of, [law])
        for law in (mofa.trained(of.shown, 2).law(np.nanmean(of.shown, axis=0)), factor_em(of.shown, 2))
    ]
    assert marks[0].rmse < 1.05 * marks[1].rmse
    assert marks[0].nats > marks[1].nats - 0.1
