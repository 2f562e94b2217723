"""Columns that have mostly one value have one level of noise by themselves (factors.md 4)."""

import numpy as np
import pytest
from scipy.stats import invgamma, kstest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.model.observations import dictionary
from ibpdist.model.observations.noise_and_scale import FLOOR
from ibpdist.model.observations.rotation import Family
from ibpdist.model.observations.variances import PSEUDO
from ibpdist.report.summary import summary
from tests.support.model_cases import Case, algorithm, chunked, fit

TOLD = "one level for all columns, since they have mostly one value"
WIDTHS = np.array([0.1, 1.0, 2.0, 5.0])


def columns(share, rows=120, widths=WIDTHS, seed=0):
    """Columns of which about a `share` of the cells is zero; two features decide about the others."""
    rng = np.random.default_rng(seed)
    on = rng.random((rows, 2)) < 1.1 - share
    pattern = rng.normal(size=(2, len(widths)))
    x = on @ pattern + 0.3 * rng.normal(size=(rows, len(widths)))
    return np.where(rng.random(x.shape) < share, 0.0, x) * widths


def by_hand(x):
    """(column) the noise of columns over their mean."""
    variances = [sum((v - sum(c) / len(c)) ** 2 for v in c) / len(c) for c in x.T.tolist()]
    middle = sorted(variances)[1:3]
    large = [max(v, sum(middle) / 2) for v in variances]
    return np.array([v / (sum(large) / len(large)) for v in large])


def case(**more):
    return Case(**{"weights": "normal", "noise": "auto", "scale": "feature"} | more)


@pytest.mark.parametrize(("share", "one"), [(0.6, False), (0.8, True)])
def test_the_rule(share, one):
    x, alg = columns(share), algorithm(case(), 2)
    survey = alg.summarise(chunked(x)[0])
    observed = alg.init(survey, Draws(0)).observation
    ratios = alg.model.observation.noise_ratios(observed.spread, observed.common)
    assert (float(observed.common.mean()) > 0.7) == one == (ratios is not None)
    if one:
        np.testing.assert_allclose(ratios, by_hand(x), rtol=1e-10)
        assert ratios.mean() == pytest.approx(1.0)
        np.testing.assert_allclose(observed.noise, float(observed.unit) * ratios, rtol=1e-12)
        np.testing.assert_allclose(alg.model.observation.units(survey), np.sqrt(ratios), rtol=1e-12)


@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
@pytest.mark.parametrize("settings", [{}, {"intercept": True, "row_noise": "learn"}])
def test_a_fit_keeps_the_level_and_never_falls(missing, settings):
    x, rng = columns(0.8), np.random.default_rng(5)
    observed = None if missing == "complete" else rng.random(x.shape) < 0.9
    seen = x if observed is None else np.where(observed, x, 0.0)
    alg = algorithm(case(missing=missing), 3, **settings)
    params, _, _, traces = fit(alg, chunked(seen, observed), 40)
    level = params.observation.noise / alg.model.observation.noise_ratios(
        params.observation.spread, params.observation.common
    )
    np.testing.assert_allclose(level, level[0], rtol=1e-12)
    value = [trace["objective"] for trace in traces]
    assert np.diff(value).min() >= -1e-9 * (abs(value[-1]) + x.size + traces[-1]["magnitude"])
    assert level[0] < 0.9 * float(params.observation.unit)


def test_columns_that_vary_alike_have_one_noise():
    x = columns(0.8, widths=np.ones(4))
    x /= x.std(axis=0)
    found = [fit(algorithm(case(noise=noise), 3), chunked(x), 60)[0].observation for noise in ("auto", "one")]
    np.testing.assert_allclose(found[0].noise, found[1].noise, rtol=1e-4)
    np.testing.assert_allclose(found[0].noise, found[0].noise[0], rtol=1e-9)


def test_units_of_all_columns_change_nothing_else():
    x = columns(0.8)
    small, large = (fit(algorithm(case(), 3), chunked(c * x), 30)[0].observation for c in (1.0, 7.0))
    np.testing.assert_allclose(large.noise, 49 * small.noise, rtol=1e-6)
    np.testing.assert_allclose(large.mean, 7 * small.mean, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("system", ["fa-vi-infinite", "fa-vi-dense", "fa-gibbs-finite"])
def test_the_default_is_a_noise_of_each_column_elsewhere(system):
    x, short = columns(0.3), {"K": 3, "seed": 1, "steps": 6, "serial": True}
    default, column = (ibp.fit(x, system=system, **short, **more) for more in ({}, {"noise": "column"}))
    for name in ("mean", "noise", "prevalence"):
        np.testing.assert_array_equal(default["params"][name], column["params"][name])
    assert TOLD not in summary(default)


@pytest.mark.parametrize(
    "system", ["fa-vi-infinite", "fa-vi-dense", "fa-gibbs-finite", "fa-vi-finite-positive"]
)
def test_the_default_is_one_level_in_columns_of_mostly_one_value(system):
    x = columns(0.8)
    found = ibp.fit(x, system=system, K=3, seed=1, steps=6, serial=True)
    level = found["params"]["noise"].values / by_hand(x)
    np.testing.assert_allclose(level, level[0], rtol=1e-6)
    assert (TOLD in summary(found)) == ("posterior" not in found.children)


def test_a_draw_of_the_level_has_its_conditional():
    """Given a known dictionary: scaled inverse chi-squared, of squares in units of the ratios."""
    x, alg = columns(0.8), algorithm(case(rule="draw", scale="one"), 2)
    (chunk,) = chunked(x)
    params = alg.init(alg.summarise(chunk), Draws(0))
    _, sums = alg.local(chunk, alg.start(chunk, params, Draws(1)), params, Draws(1))
    rng, observed, of = np.random.default_rng(4), params.observation, sums.observation
    exact = dictionary.draw(
        dictionary.solve(observed, dictionary.rotations(observed, of, Family.STRUCTURED)), rng
    )
    drawn = [alg.model.observation.drawn_variances(exact, of, rng).noise for _ in range(3000)]
    misfit, ratios = dictionary.residual(exact, of), by_hand(x)
    squares = sum(error / ratio for error, ratio in zip(misfit, ratios, strict=True))
    law = invgamma(0.5 * (x.size + PSEUDO), scale=0.5 * (squares + PSEUDO * FLOOR * float(exact.unit)))
    assert kstest([noise[2] / ratios[2] for noise in drawn], law.cdf).pvalue > 1e-3
    np.testing.assert_allclose(drawn[0] / ratios, drawn[0][0] / ratios[0], rtol=1e-9)


def test_other_parameters_are_adopted_at_their_mean_level():
    x, alg = columns(0.8), algorithm(case(), 2)
    survey = alg.summarise(chunked(x)[0])
    observed = alg.init(survey, Draws(0)).observation
    old = replace(observed, noise=np.array([1.0, 2.0, 3.0, 6.0]))
    made = alg.model.observation.adopt(old, survey)
    np.testing.assert_allclose(made.noise, 3.0 * by_hand(x), rtol=1e-10)
    begun = alg.model.observation.initial(observed, observed.mean, np.array([1.0, 2.0, 3.0, 6.0]))
    np.testing.assert_allclose(begun.noise, 3.0 * by_hand(x), rtol=1e-10)


def test_a_collapsed_sampler_refuses_it():
    with pytest.raises(UsageError, match="noise is auto: a collapsed sampler has one noise"):
        ibp.fit(columns(0.8), system="lg-collapsed-finite", K=2, noise="auto", serial=True)
