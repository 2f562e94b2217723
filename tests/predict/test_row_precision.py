"""Rows whose noise is inferred: against numeric integration, enumeration, and rows of known noise."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma, multivariate_normal

from ibpdist.data.arrays import ArrayData
from ibpdist.evaluate.heldout import columns_visible, score, scorer_of
from ibpdist.predict import row_precision as module
from ibpdist.predict.exact import enumerated, estimate_of
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.precision_nodes import VALUES
from ibpdist.predict.predict import predictor
from ibpdist.predict.row_precision import Inferred, row_precision
from ibpdist.predict.sampled import Sampling, together
from ibpdist.predict.sequential import Law, closed
from tests.support.predictive import enumerate_at_most, log_given, make_predictor, rows_of

PLAN = Sampling()


def dense(columns, freedom, features=3, rows=12, seed=5):
    """A fit in which every row has every feature, its rows, of which the first are far too noisy, and tau."""
    rng = np.random.default_rng(seed)
    mean, noise = rng.normal(size=(features, columns)), rng.uniform(0.3, 1.5, columns)
    of = predictor({"mean": mean, "noise": noise, "row_freedom": freedom}, "normal")
    # Within the levels over which the references integrate.
    tau = np.maximum(rng.gamma(freedom / 2, 2 / freedom, rows), 0.02)
    tau[:3] = 0.02, 0.1, 0.4
    x = rng.normal(size=(rows, features)) @ mean
    x += np.sqrt(noise / tau[:, None]) * rng.normal(size=(rows, columns))
    return of, x, tau


def sparse(weights, freedom, features=3, columns=14, rows=15, seed=2):
    of = replace(make_predictor(features, columns, seed, weights=weights, groups=1), freedom=freedom)
    of = replace(of, basis=0.3 * of.basis)
    x, _ = rows_of(of, rows, seed + 1)
    x[:4] *= 4
    visible = np.random.default_rng(seed).random(x.shape) < 0.6
    return of, x, visible


def integrated(levels, freedom, evidence):
    """log int p(tau) exp evidence(log tau) dtau, by the trapezoid rule."""
    prior = gamma(freedom / 2, scale=2 / freedom).logpdf(np.exp(levels)) + levels
    return logsumexp([evidence(one) for one in levels] + prior) + np.log(levels[1] - levels[0])


# --- against numeric integration ---


@pytest.mark.parametrize("freedom", [1.0, 4.0, 400.0])
def test_dense_rows_have_the_density_of_numeric_integration(freedom):
    of, x, _ = dense(24, freedom)
    visible = np.broadcast_to(np.arange(24) % 2 == 0, x.shape)

    def evidence(row, cells, level):
        whole = of.mean.T @ of.mean + np.diag(of.noise / np.exp(level))
        return multivariate_normal(None, whole[np.ix_(cells, cells)]).logpdf(row[cells])

    found, _ = Inferred(closed)(of, x, visible, ~visible, PLAN)
    levels = np.linspace(-9, 5, 161)
    for row, (seen, value) in enumerate(zip(visible, found.score, strict=True)):
        both, shown = (
            integrated(levels, freedom, partial(evidence, x[row], cells)) for cells in (seen | True, seen)
        )
        assert abs(value - (both - shown)) < 0.001 * 12, row
        assert found.evidence[row] == pytest.approx(shown, abs=1e-3)
    assert (found.error == 0).all()


@pytest.mark.parametrize("freedom", [pytest.param(1.0, marks=pytest.mark.slow), 30.0])
def test_a_thousand_visible_cells_leave_a_narrow_posterior(freedom):
    of, x, tau = dense(1100, freedom)
    visible = np.broadcast_to(np.arange(1100) < 1000, x.shape)
    found, _ = Inferred(closed)(of, x, visible, ~visible, PLAN)
    levels = np.linspace(-5, 5, 161)
    parts = [closed(replace(of, precision=np.exp(one)), x, visible, ~visible, PLAN)[0] for one in levels]
    prior = (gamma(freedom / 2, scale=2 / freedom).logpdf(np.exp(levels)) + levels)[:, None]
    shown = np.array([part.evidence for part in parts])
    both = shown + [part.score for part in parts]
    expected = logsumexp(both + prior, axis=0) - logsumexp(shown + prior, axis=0)
    np.testing.assert_allclose(found.score, expected, atol=0.001 * 100)
    np.testing.assert_allclose(row_precision(of, x, visible).mean / tau, 1, atol=0.25)


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_sparse_rows_have_the_density_of_a_sum_over_patterns_and_precisions(weights):
    """Also where the dictionary has a variance, which tau does not divide, and other cells in each row."""
    of, x, visible = sparse(weights, 4.0, features=2, columns=9, rows=4)
    visible[0] = False
    hidden = ~visible & (np.arange(9) != 4)
    z = [np.array([a, b]) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    prior = [of.log_prior(one[None])[0] for one in z]

    def evidence(row, cells, level):
        at = replace(of, precision=float(np.exp(level)))
        return logsumexp([p + log_given(at, row, cells, one) for p, one in zip(prior, z, strict=True)])

    _, found = Inferred(enumerated)(of, np.where(visible | hidden, x, np.nan), visible, hidden, PLAN)
    levels = np.linspace(-9, 5, 113)
    for row, seen in enumerate(visible):
        both = integrated(levels, 4.0, partial(evidence, x[row], seen | hidden[row]))
        shown = integrated(levels, 4.0, partial(evidence, x[row], seen)) if seen.any() else 0.0
        assert found.score[row] == pytest.approx(both - shown, abs=0.02), row


def test_few_values_of_tau_are_asked_for(monkeypatch):
    asked, right = [], module.Rows._at
    monkeypatch.setattr(
        module.Rows, "_at", lambda self, rows, tau: asked.append(len(rows)) or right(self, rows, tau)
    )
    of, x, _ = dense(300, 4.0, rows=30)
    visible = np.broadcast_to(np.arange(300) % 2 == 0, x.shape)
    Inferred(closed)(of, x, visible, ~visible, PLAN)
    assert sum(asked) <= (VALUES - 1) * len(x)


# --- chains ---


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_chains_agree_with_enumeration(weights):
    """Under the law of the chains, which have one noise for all patterns; the evidence as well."""
    of, x, visible = sparse(weights, 5.0, features=5, columns=16, rows=30)
    of = of.plug_in()
    found, _ = Inferred(kind_of(of).estimate)(of, x, visible, ~visible, Sampling(16))
    truth, _ = Inferred(enumerated)(of, x, visible, ~visible, PLAN)
    assert abs(found.score.sum() - truth.score.sum()) < 3 * together([found])
    assert together([found]) < 0.005 * (~visible).sum()
    off = (found.score - truth.score) / found.error
    assert np.sqrt(np.mean(off**2)) < 1.5
    assert np.abs(found.evidence - truth.evidence).max() < 0.3


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_the_evidence_of_the_visible_cells_is_their_score_given_nothing(weights):
    of, x, visible = sparse(weights, None)
    none = np.zeros_like(visible)
    for part, alone in zip(
        enumerated(of, x, visible, ~visible, PLAN), enumerated(of, x, none, visible, PLAN), strict=True
    ):
        np.testing.assert_allclose(part.evidence, alone.score, rtol=1e-10)
    plug, full = kind_of(of).estimate(of, x, visible, ~visible, Sampling(16))
    law = replace(of.plug_in(), noise=Law.of(of).psi) if of.weights.has_weights else of
    for part, known in ((plug, of.plug_in()), (full, law)):
        truth = enumerated(known, x, visible, ~visible, PLAN)[1]
        assert (np.abs(part.evidence - truth.evidence) < np.maximum(5 * part.evidence_error, 0.02)).all()


def test_the_evidence_in_closed_form_is_that_of_the_chains():
    of, x, _ = dense(30, 4.0)
    visible = np.broadcast_to(np.arange(30) % 3 > 0, x.shape)
    exactly, chains = (
        estimate(replace(of, precision=0.3), x, visible, ~visible, PLAN)[1]
        for estimate in (closed, kind_of(of).estimate)
    )
    np.testing.assert_allclose(chains.evidence, exactly.evidence, rtol=1e-9)


def test_errors_follow_the_spread_over_seeds():
    of, x, visible = sparse("normal", 3.0, features=5, columns=16, rows=6)
    of, estimate = of.plug_in(), Inferred(kind_of(of).estimate)
    each = [estimate(of, x, visible, ~visible, Sampling(4, seed=seed))[0] for seed in range(12)]
    spread = np.std([one.score for one in each], axis=0)
    error = np.sqrt(np.mean([one.error**2 for one in each], axis=0))
    assert (spread < 2 * error).all()
    assert (error < 10 * np.maximum(spread, 0.01)).all()


# --- what it means ---


def test_many_degrees_of_freedom_are_rows_without_noise_of_their_own():
    of, x, visible = sparse("normal", 1e6)
    even = replace(of, freedom=None)
    for one, other in zip(
        Inferred(enumerated)(of, x, visible, ~visible, PLAN),
        enumerated(even, x, visible, ~visible, PLAN),
        strict=True,
    ):
        np.testing.assert_allclose(one.score, other.score, atol=0.01)
    of, x, _ = dense(40, 400.0, rows=80)
    visible = np.broadcast_to(np.arange(40) % 2 == 0, x.shape)
    one, other = (estimate(of, x, visible, ~visible, PLAN)[0] for estimate in (Inferred(closed), closed))
    assert np.abs(one.score - other.score)[3:].mean() < 0.01 * 20


def test_a_noisy_row_is_recognised():
    of, x, tau = dense(200, 4.0, rows=40)
    visible = np.broadcast_to(np.arange(200) % 2 == 0, x.shape)
    found = row_precision(of, x, visible).mean
    assert np.corrcoef(np.log(found), np.log(tau))[0, 1] > 0.97
    one, other = (estimate(of, x, visible, ~visible, PLAN)[0] for estimate in (Inferred(closed), closed))
    assert (one.score - other.score)[:3].min() > 5


def test_the_shares_depend_on_the_visible_cells():
    """The same wild hidden cells cost less where the visible ones are as wild."""
    of, x, _ = dense(60, 4.0, rows=3)
    x[1] = x[0]
    visible = np.broadcast_to(np.arange(60) < 40, x.shape)
    x[1, :40] *= 0.1
    found, _ = Inferred(closed)(of, x, visible, ~visible, PLAN)
    assert found.score[0] > found.score[1] + 20


def test_a_row_without_visible_cells_has_the_precision_of_the_prior():
    of, x, _ = dense(20, 4.0)
    visible = np.arange(20) < np.arange(len(x))[:, None]
    assert row_precision(of, x, visible).mean[0] == 1
    even = row_precision(replace(of, freedom=None), x, visible)
    np.testing.assert_array_equal(even.mean, 1.0)
    assert [(value, len(rows), shares.min()) for value, rows, shares in even.points()] == [(1.0, len(x), 1.0)]


def test_outliers_and_rows_that_hide_nothing():
    of, x, _ = dense(20, 1.0)
    visible = np.broadcast_to(np.arange(20) % 2 == 0, x.shape).copy()
    x[3], x[4], visible[5:] = 1e6, 0.0, True
    found, _ = Inferred(closed)(of, x, visible, ~visible, PLAN)
    assert np.isfinite(found.score).all()
    np.testing.assert_array_equal(found.score[5:], 0.0)
    none, _ = Inferred(closed)(of, x, np.ones_like(visible), np.zeros_like(visible), PLAN)
    np.testing.assert_array_equal(none.score, 0.0)


# --- how it is used ---


def test_row_freedom_of_a_result():
    params = {"mean": np.ones((1, 3)), "noise": 0.5}
    assert predictor(params, "normal").freedom is None
    assert predictor(params | {"row_freedom": np.array(3.5)}, "normal").freedom == 3.5
    assert predictor(params | {"row_freedom": np.inf}, "normal").freedom is None
    of = replace(predictor(params, "normal"), precision=0.25, extra=0.5, unit=np.full(3, 2.0))
    np.testing.assert_allclose(of.cell_noise, 0.5 / 0.25 + 1.0)


def test_rows_are_inferred_where_their_noise_has_a_law():
    of, _, _ = sparse("normal", 4.0)
    told = f", noise of rows inferred at up to {VALUES} levels"
    scorer = scorer_of(of, PLAN)
    assert scorer.estimate == Inferred(enumerated)
    assert scorer.words.endswith(told)
    assert len(scorer.row_noise.levels) == 1
    both = scorer_of(of, PLAN, uneven=True)
    assert both.words.endswith(told + ", rows at 5 levels of noise")
    assert len(both.row_noise.levels) == 5
    even = replace(of, freedom=None)
    assert scorer_of(even, PLAN, uneven=False).estimate is estimate_of(even) is enumerated
    assert "inferred" not in scorer_of(even, PLAN).words


def test_added_noise_is_integrated_over_beside_the_precision():
    of, x, _ = sparse("normal", 4.0)
    found = score(of, ArrayData(x), columns_visible("even", 14), uneven=True)
    visible = np.broadcast_to(np.arange(14) % 2 == 0, x.shape)
    noise = scorer_of(of, PLAN, uneven=True).row_noise
    parts = [Inferred(enumerated)(replace(of, extra=u), x, visible, ~visible, PLAN)[1] for u in noise.levels]
    expected = logsumexp([part.score for part in parts], axis=0, b=np.array(noise.shares)[:, None])
    np.testing.assert_allclose(found.row_score.sel(estimate="variance"), expected, rtol=1e-8)


def test_chunks_threads_and_runs_do_not_matter(monkeypatch):
    of, x, _ = sparse("normal", 4.0, features=4)
    enumerate_at_most(monkeypatch, 2)
    protocol = columns_visible("odd", 14)
    whole = score(of, ArrayData(x), protocol, Sampling(4))
    np.testing.assert_array_equal(score(of, ArrayData(x), protocol, Sampling(4)).row_score, whole.row_score)
    one, three = (
        score(of, ArrayData(x, chunk_rows=4), protocol, Sampling(4), threads=threads) for threads in (1, 3)
    )
    np.testing.assert_array_equal(one.row_score, three.row_score)
    np.testing.assert_allclose(one.row_score, whole.row_score, rtol=1e-9)
    other = score(of, ArrayData(x), protocol, Sampling(4, seed=1))
    assert (other.row_score != whole.row_score).any()
    assert "4 annealed chains a row" in whole.attrs["method"]
