"""From chains and in closed form, against enumeration and the normal density itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from ibpdist.predict.exact import exact
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.sampled import Sampling, together
from ibpdist.predict.sequential import Law, closed, sequential
from tests.support.predictive import make_predictor, rows_of

CERTAIN = np.inf


def problem(features=4, columns=12, rows=40, seed=3, missing=False, odds=None):
    of = make_predictor(features, columns, seed, weights="normal", groups=1)
    if odds is not None:
        of = replace(of, log_odds=np.full(features, odds))
    x, _ = rows_of(of, rows, seed + 1)
    seen = np.random.default_rng(seed).random(x.shape) < (0.8 if missing else 1.1)
    even = np.arange(columns) % 2 == 0
    return of, np.where(seen, x, 0.0), seen & even, seen & ~even


@pytest.mark.parametrize("missing", [False, True])
def test_closed_form_is_the_conditional_of_a_normal(missing):
    of, x, visible, hidden = problem(odds=CERTAIN, missing=missing)
    assert kind_of(of).closed(of) is closed
    for one, found in zip((of.plug_in(), of), closed(of, x, visible, hidden, Sampling()), strict=True):
        psi = one.noise + one.variances().sum(axis=0)
        whole = one.mean.T @ one.mean + np.diag(psi)

        def evidence(row, cells, whole=whole):
            if not cells.any():
                return 0.0
            return multivariate_normal(np.zeros(cells.sum()), whole[np.ix_(cells, cells)]).logpdf(row[cells])

        expected = [
            evidence(row, seen | asked) - evidence(row, seen)
            for row, seen, asked in zip(x, visible, hidden, strict=True)
        ]
        np.testing.assert_allclose(found.score, expected, rtol=1e-10)
        assert (found.error == 0).all()


@pytest.mark.parametrize("missing", [False, True])
def test_chains_agree_with_the_closed_form_when_all_are_on(missing):
    """To the last digit: weights are integrated out, so nothing is left to chance."""
    of, x, visible, hidden = problem(5, 160, 60, odds=CERTAIN, missing=missing)
    exactly = closed(of, x, visible, hidden, Sampling())
    estimated = sequential(of, x, visible, hidden, Sampling())
    for one, other in zip(exactly, estimated, strict=True):
        np.testing.assert_allclose(other.score, one.score, rtol=1e-9)
        np.testing.assert_allclose(other.error, 0, atol=1e-9)


@pytest.mark.parametrize("missing", [False, True])
def test_chains_agree_with_enumeration(missing):
    """Of the plug-in law: all patterns of four features, one by one."""
    of, x, visible, hidden = problem(missing=missing)
    found, _ = sequential(of, x, visible, hidden, Sampling(chains=40))
    expected = exact(of.plug_in(), x, visible, hidden)
    assert abs(found.score.sum() - expected.sum()) < 3 * together([found])
    assert together([found]) / hidden.sum() < 0.01
    assert np.abs((found.score - expected) / found.error).max() < 6


def test_the_law_has_the_noise_that_an_uncertain_dictionary_adds():
    of, _, _, _ = problem()
    law = Law.of(replace(of, extra=0.3, unit=np.full(12, 2.0)))
    np.testing.assert_allclose(law.psi, of.noise + 0.6 + expit(of.log_odds) @ of.variances())
    np.testing.assert_allclose(Law.of(of.plug_in()).psi, of.noise)


def test_the_same_numbers_whatever_the_rows_are_scored_with():
    of, x, visible, hidden = problem(missing=True)
    whole = sequential(of, x, visible, hidden, Sampling(seed=4))
    part = sequential(of, x[10:17], visible[10:17], hidden[10:17], Sampling(seed=4), 10)
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_allclose(other.score, one.score[10:17], rtol=1e-10)
    again = sequential(of, x, visible, hidden, Sampling(seed=5))
    assert (again[0].score != whole[0].score).all()


def test_one_chain_has_no_error():
    of, x, visible, hidden = problem(rows=5)
    found, _ = sequential(of, x, visible, hidden, Sampling(chains=1))
    assert np.isfinite(found.score).all()
    assert np.isnan(found.error).all()


def test_rows_that_hide_nothing_score_nothing():
    of, x, visible, _ = problem(rows=4)
    none = np.zeros_like(visible)
    for made in (sequential, closed):
        for part in made(of, x, visible, none, Sampling()):
            np.testing.assert_allclose(part.score, 0, atol=1e-12)


def test_features_that_are_never_on_change_little():
    of, x, visible, hidden = problem()
    more = make_predictor(6, 12, 3, weights="normal", groups=1)
    padded = replace(
        more,
        mean=np.vstack([of.mean, np.ones((2, 12))]),
        noise=of.noise,
        log_odds=np.append(of.log_odds, [-40.0, -40.0]),
    )
    law = replace(of, basis=np.zeros_like(of.basis))
    one = sequential(law, x, visible, hidden, Sampling(chains=30))[0]
    two = sequential(padded.plug_in(), x, visible, hidden, Sampling(chains=30))[0]
    assert abs(one.score.sum() - two.score.sum()) < 4 * np.sqrt((one.error**2 + two.error**2).sum())
