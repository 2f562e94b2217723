"""The Gaussian observation: facts of the data, the start, variances and their priors, results."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import invgamma, kstest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import Rule
from ibpdist.base.structs import Nothing, combine, replace
from ibpdist.data._base import Chunk
from ibpdist.model.observations import dictionary, gaussian_params, patterns
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import ScatteredParams
from ibpdist.model.observations.joint import Joint
from ibpdist.model.observations.noise_and_scale import DISCRETE, FLOOR, LOWEST, RELEVANT, WEAK
from ibpdist.model.observations.rotation import Family
from ibpdist.model.observations.spread import NARROW, column_variances, typical_variance
from ibpdist.model.observations.variances import PSEUDO
from tests.support.model_cases import Case, algorithm, chunked, fit, problem, random_params, random_state

RNG = np.random.default_rng(0)


def surveyed(x, observed=None, **settings):
    return Gaussian(**settings).summarise(Chunk(0, 0, x, observed))


def sums_of(case, seed=3, rows=30):
    """Parameters and sums of a pass from random states."""
    x, observed = problem(seed, rows, 4, case.missing)
    (chunk,), alg = chunked(x, observed), algorithm(case)
    params = random_params(case, alg, [chunk], seed)
    _, sums = alg.local(chunk, random_state(case, params, chunk, seed), params, Draws(1))
    return alg.model.observation, params.observation, sums.observation


# --- survey and start ---


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_survey(dtype, missing):
    x, observed = problem(1, 9, 4, missing, dtype)
    parts = [Gaussian().summarise(chunk) for chunk in chunked(x, observed, [2, 7])]
    found = combine(*parts)
    seen = np.full(4, 9) if observed is None else observed.sum(axis=0)
    assert float(found.rows) == 9
    np.testing.assert_array_equal(found.cells, seen)
    np.testing.assert_allclose(found.total, x.astype(float).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.squares, (x.astype(float) ** 2).sum(axis=0), rtol=1e-12)
    assert found.squares.dtype == np.float64
    np.testing.assert_array_equal(found.missing, surveyed(x, observed).missing)


def test_typical_variance():
    x = np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 10.0]])
    assert typical_variance(surveyed(x)) == pytest.approx(x.var(axis=0).mean())
    assert typical_variance(surveyed(np.full((4, 2), 3.0))) == pytest.approx(9.0), "constant: the mean square"
    assert typical_variance(surveyed(np.zeros((4, 2)))) == 1.0
    assert typical_variance(surveyed(np.zeros((0, 2)))) == 1.0


def test_columns_without_cells_vary_as_is_typical():
    x = np.random.default_rng(3).normal(size=(50, 4))
    observed = np.ones(x.shape, bool)
    observed[:, 2], observed[1:, 3] = False, False
    typical = x[:, :2].var(axis=0).mean()
    survey = surveyed(np.where(observed, x, 0.0), observed)
    assert typical_variance(survey) == pytest.approx(typical), "one cell or none do not tell"
    np.testing.assert_allclose(column_variances(survey), [*x[:, :2].var(axis=0), typical, typical])


def test_typical_variance_of_observed_cells_only():
    x, observed = problem(2, 40, 3, "masked")
    exact = np.mean([x[observed[:, d], d].var() for d in range(3)])
    assert typical_variance(surveyed(x, observed)) == pytest.approx(exact, rel=1e-10)


def test_start_of_the_parameters():
    x, _ = problem(2, 50, 6)
    survey = surveyed(x)
    unit = typical_variance(survey)
    found = Gaussian().init(survey, 4, np.random.default_rng(1))
    assert found.mean.shape == (4, 6)
    assert (found.noise == unit).all()
    assert (found.scale == unit).all()
    assert (gaussian_params.variance(found) == 0).all(), "known exactly"
    np.testing.assert_array_equal(found.cells, np.full(6, 50))
    fixed = Gaussian(noise=0.25, scale=3.0).init(survey, 4, np.random.default_rng(1))
    assert (fixed.noise == 0.25).all()
    assert (fixed.scale == 3.0).all()


def test_start_scales_with_the_data():
    """Data 100 times as large: dictionary and standard deviations too."""
    x, _ = problem(2, 50, 6)
    small, large = (Gaussian().init(surveyed(s * x), 4, np.random.default_rng(1)) for s in (1, 100))
    np.testing.assert_allclose(large.mean, 100 * small.mean, rtol=1e-10)
    np.testing.assert_allclose(large.noise, 1e4 * small.noise, rtol=1e-10)


# --- missing cells ---


def by_rows(x, observed=None, features=3, **settings):
    """Whether each row has a Gram matrix of its own."""
    made = Gaussian(**settings).init(surveyed(x, observed), features, RNG)
    return isinstance(made, ScatteredParams)


def test_the_route_is_chosen_by_the_size_of_all_gram_matrices(monkeypatch):
    x, observed = problem(2, 12, 4, "masked")
    groups = int(Gaussian().init(surveyed(x, observed), 3, RNG).group.max()) + 1
    for features, counted in ((3, patterns.FEW), (20, 20)):
        size = groups * counted**2 * 8
        for limit, wanted in ((size, False), (size - 1, True)):
            monkeypatch.setattr(patterns, "GROUP_BYTES", limit)
            for how in ("auto", "exact"):
                assert by_rows(x, observed, features, missing=how) is wanted
    assert not by_rows(x, observed, missing="groups")
    monkeypatch.undo()
    assert not by_rows(x, observed)
    assert by_rows(x, observed, missing="rows")


def test_columns_that_are_missing_together_need_one_gram_matrix():
    x, observed = problem(2, 12, 4)[0], np.ones((12, 4), bool)
    assert not by_rows(x, missing="rows")
    observed[3] = False
    assert not by_rows(x, observed, missing="rows")


def test_rows_that_have_every_feature_have_gram_matrices_by_group():
    x, observed = problem(2, 12, 4, "masked")
    made = Joint(missing="rows").init(surveyed(x, observed), 3, RNG)
    assert not isinstance(made, ScatteredParams)


def test_latent_missing_cells_are_no_more():
    with pytest.raises(UsageError, match=r"missing=latent is no more: .* set missing=exact"):
        Gaussian(missing="latent")


def test_cells_that_count():
    x, observed = problem(2, 12, 4, "masked")
    for how in ("groups", "rows"):
        made = Gaussian(missing=how).init(surveyed(x, observed), 3, RNG)
        np.testing.assert_array_equal(made.cells, observed.sum(axis=0))


# --- variances ---


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
def test_learned_variances_stand_still(family, missing):
    """At the end no turn of plain EM moves them: v = (squares + 2 v0) / (cells + 2)."""
    case = Case(family=family, missing=missing, noise="one")
    seen, params, sums = sums_of(case)
    for _ in range(60):
        params = seen.update(params, sums, Rule.MEAN, RNG)
    unit = float(params.unit)
    misfit, cells = dictionary.residual(params, sums).sum(), params.cells.sum()
    assert params.noise[0] == pytest.approx((misfit + PSEUDO * FLOOR * unit) / (cells + PSEUDO), rel=1e-6)
    second, size = gaussian_params.second_moment(params).sum(), params.mean.size
    assert params.scale[0] == pytest.approx((second + PSEUDO * unit) / (size + PSEUDO), rel=1e-6)


@pytest.mark.parametrize("family", list(Family))
def test_noise_of_every_column_stands_still(family):
    seen, params, sums = sums_of(Case(family=family, noise="column", missing="masked"))
    for _ in range(200):
        params = seen.update(params, sums, Rule.MEAN, RNG)
    misfit, floor = dictionary.residual(params, sums), PSEUDO * WEAK * params.spread
    np.testing.assert_allclose(params.noise, (misfit + floor) / (params.cells + PSEUDO), rtol=1e-6)


@pytest.mark.parametrize("noise", ["one", "column", 0.5])
@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
def test_update_never_lowers_the_score(noise, family, missing):
    seen, params, sums = sums_of(Case(family=family, noise=noise, missing=missing))
    value = []
    for _ in range(15):
        params = seen.update(params, sums, Rule.MEAN, RNG)
        value.append(sum(seen.score(params, sums).terms.values()))
    assert np.diff(value).min() >= -1e-9 * abs(value[0])


def test_a_perfect_fit_keeps_some_noise():
    """The pseudo cells keep the noise from zero (linear-gaussian.md 1)."""
    x = np.outer(np.arange(20) % 2, [1.0, -2.0, 3.0])
    params, _, _, traces = fit(algorithm(Case(), 3), chunked(x), 100)
    unit = float(params.observation.unit)
    assert params.observation.noise[0] >= PSEUDO * FLOOR * unit / (60 + PSEUDO) * (1 - 1e-9)
    assert np.isfinite(traces[-1]["objective"])


def test_columns_of_few_values_keep_more_noise():
    x = np.outer((np.arange(2000) % 4 > 0) * 1.0, [1.0, -2.0, 30.0])
    params, *_ = fit(algorithm(Case(noise="column"), 3), chunked(x), 60)
    np.testing.assert_allclose(params.observation.common, 0.75, atol=0.01)
    least = DISCRETE * params.observation.common * params.observation.spread
    np.testing.assert_allclose(params.observation.noise, least, rtol=1e-12)


def test_row_noise_is_off_where_columns_have_mostly_one_value():
    rng = np.random.default_rng(3)
    alg = algorithm(Case(weights="normal"), 2, row_noise="learn")
    for share, even in ((0.6, False), (0.8, True)):
        x = np.where(rng.random((400, 5)) < share, 0.0, rng.normal(size=(400, 5)))
        params = alg.init(alg.summarise(chunked(x)[0]), Draws(0))
        assert isinstance(params.observation.row_noise, Nothing) == even
        assert np.isinf(float(alg.describe(params)["row_freedom"][1])) == even


def test_noise_of_a_column_has_a_least_value():
    """With enough rows the prior alone would let it fall below. No value is frequent."""
    x = np.outer(np.arange(2000) % 2 + 1e-7 * np.arange(2000), [1.0, -2.0, 30.0])
    params, _, _, traces = fit(algorithm(Case(noise="column"), 3), chunked(x), 60)
    spread = params.observation.spread
    np.testing.assert_allclose(spread, x.var(axis=0))
    np.testing.assert_allclose(params.observation.noise, LOWEST * spread, rtol=1e-12)
    assert PSEUDO * WEAK / (2000 + PSEUDO) < LOWEST
    value = [trace["objective"] for trace in traces]
    assert np.diff(value).min() >= -1e-9 * (abs(value[-1]) + x.size + traces[-1]["magnitude"])


def test_column_variances():
    x, observed = problem(2, 40, 3, "masked")
    exact = [x[observed[:, d], d].var() for d in range(3)]
    np.testing.assert_allclose(column_variances(surveyed(x, observed)), exact, rtol=1e-10)
    x = np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 10.0]])
    unit = typical_variance(surveyed(x))
    np.testing.assert_allclose(column_variances(surveyed(x)), [x[:, 0].var(), NARROW * unit])


# --- a scale for each feature ---


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
def test_a_scale_for_each_feature_stands_still(family, missing):
    seen, params, sums = sums_of(Case(family=family, missing=missing, scale="feature", weights="normal"))
    for _ in range(2000):
        params = seen.update(params, sums, Rule.MEAN, RNG)
    at, columns = RELEVANT * float(params.unit), params.noise.size
    second = gaussian_params.second_moment(params)
    np.testing.assert_allclose(params.scale, (second + PSEUDO * at) / (columns + PSEUDO), rtol=1e-9)
    assert len(set(params.scale)) == 3


def test_surplus_features_shrink():
    """One planted feature, four provided: the rest fall to the least scale that the prior knows."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 1)) * rng.normal(size=12) + 0.3 * rng.normal(size=(200, 12))
    alg = algorithm(Case(noise="column", weights="normal", scale="feature"), 4)
    params = fit(alg, chunked(x), 300)[0].observation
    size = np.sort(gaussian_params.second_moment(params))
    assert size[-1] > 50 * size[-2]


def test_the_prior_of_a_scale_is_a_density():
    """Of its log, so that objectives with other numbers of features can be compared."""
    seen, params, sums = sums_of(Case(scale="feature", weights="normal"))
    grid = np.linspace(-30, 60, 200_001)
    one = replace(params, scale=np.exp(np.array([0.3, -2.0, 1.0])))
    base = seen.score(one, sums).terms["scale"]
    log_density = [-(v - np.log(RELEVANT * one.unit)) - RELEVANT * one.unit / np.exp(v) for v in grid]
    assert np.trapezoid(np.exp(log_density), grid) == pytest.approx(1, abs=1e-6)
    expected = sum(np.interp(np.log(v), grid, log_density) for v in one.scale)
    assert base == pytest.approx(expected, rel=1e-6)


def test_stretching_changes_no_density_of_the_data():
    """Likelihood alike; the dictionary's term too, since the scale goes along."""
    seen, params, sums = sums_of(Case(scale="feature", weights="normal", noise="column", missing="masked"))
    params = seen.update(params, sums, Rule.MEAN, RNG)
    before = seen.score(params, sums).terms
    longer, fewer = seen.rescaled(params, sums, np.array([0.5, 1.0, 3.0]))
    after = seen.score(longer, fewer).terms
    assert after["likelihood"] == pytest.approx(before["likelihood"], rel=1e-12)
    assert after["dictionary"] == pytest.approx(before["dictionary"], rel=1e-10)
    np.testing.assert_array_equal(longer.stretch, [0.5, 1.0, 3.0])


def test_rows_follow_a_stretch():
    seen, params, _ = sums_of(Case(scale="feature", weights="normal"))
    state = random_state(Case(weights="normal"), *_params_of(params), 1)
    assert seen.in_current_units(state, params) is state
    found = seen.in_current_units(state, replace(params, stretch=np.array([2.0, 1.0, 0.5])))
    np.testing.assert_allclose(found.w, state.w / np.array([[2.0], [1.0], [0.5]]))
    assert found.w.dtype == state.w.dtype
    np.testing.assert_array_equal(found.z, state.z)


def _params_of(observed):
    """What `random_state` needs."""
    chunk = Chunk(0, 0, np.zeros((5, 4), np.float32), None)
    return SimpleNamespace(ids=np.arange(observed.scale.size)), chunk


def test_drawn_scales_of_features_have_their_conditional():
    seen, params, sums = sums_of(Case(scale="feature", rule="draw", weights="normal"))
    exact = dictionary.draw(
        dictionary.solve(params, dictionary.rotations(params, sums, Family.STRUCTURED)), RNG
    )
    rng = np.random.default_rng(4)
    drawn = np.array([seen.drawn_variances(exact, sums, rng).scale for _ in range(3000)])
    at, columns = RELEVANT * float(exact.unit), exact.noise.size
    for k, second in enumerate((exact.mean**2).sum(axis=1)):
        law = invgamma(0.5 * (columns + PSEUDO), scale=0.5 * (second + PSEUDO * at))
        assert kstest(drawn[:, k], law.cdf).pvalue > 1e-3


def test_objective_follows_a_change_of_units():
    """x times c: every cell's density falls by log c, nothing else changes."""
    x, _ = problem(6, 20, 4)
    alg, c = algorithm(Case(noise="column"), 3), 1000.0
    small, large = (fit(alg, chunked(s * x), 30) for s in (1.0, c))
    np.testing.assert_allclose(large[1][0].z, small[1][0].z, atol=1e-6)
    np.testing.assert_allclose(large[0].observation.noise, c * c * small[0].observation.noise, rtol=1e-6)
    terms = [trace[3][-1] for trace in (small, large)]
    change = terms[1]["likelihood"] - terms[0]["likelihood"]
    assert change == pytest.approx(-x.size * np.log(c), rel=1e-6)
    assert terms[1]["dictionary"] == pytest.approx(terms[0]["dictionary"], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("noise", ["one", "column"])
def test_drawn_variances_have_their_conditional(noise):
    """Given a known dictionary: scaled inverse chi-squared with two more cells."""
    seen, params, sums = sums_of(Case(noise=noise, missing="masked", rule="draw"))
    exact = dictionary.draw(
        dictionary.solve(params, dictionary.rotations(params, sums, Family.STRUCTURED)), RNG
    )
    rng = np.random.default_rng(4)
    drawn = [seen.drawn_variances(exact, sums, rng) for _ in range(3000)]
    misfit, cells, unit = dictionary.residual(exact, sums), exact.cells, float(exact.unit)
    if noise == "one":
        misfit, cells = misfit.sum(keepdims=True), cells.sum(keepdims=True)
    at = FLOOR * unit if noise == "one" else WEAK * float(exact.spread[0])
    law = invgamma(0.5 * (cells[0] + PSEUDO), scale=0.5 * (misfit[0] + PSEUDO * at))
    assert kstest([p.noise[0] for p in drawn], law.cdf).pvalue > 1e-3
    second, size = (exact.mean**2).sum(), exact.mean.size
    law = invgamma(0.5 * (size + PSEUDO), scale=0.5 * (second + PSEUDO * unit))
    assert kstest([p.scale[0] for p in drawn], law.cdf).pvalue > 1e-3
    assert len({float(v) for v in drawn[0].noise}) == (1 if noise == "one" else 4)
    assert len({float(v) for v in drawn[0].scale}) == 1


def test_fixed_variances_are_never_touched():
    for rule in ("mean", "draw"):
        case = Case(noise=0.3, scale=1.7, rule=rule)
        seen, params, sums = sums_of(case)
        found = seen.update(params, sums, Rule(rule), RNG)
        assert (found.noise == 0.3).all()
        assert (found.scale == 1.7).all()


# --- score and results ---


def test_names_of_the_terms():
    def names(**settings):
        seen, params, sums = sums_of(Case(**settings))
        return set(seen.score(params, sums).terms)

    assert names(noise=0.5, scale=1.0) == {"likelihood", "dictionary"}
    assert names(noise="one") == {"likelihood", "dictionary", "noise", "scale"}
    assert names(scale="feature") == names(noise="one")
    assert names(noise=0.5, missing="rows") == {"likelihood", "dictionary", "scale"}


def test_results_follow_the_given_order():
    seen, params, _ = sums_of(Case(noise="column", missing="masked"))
    found = seen.describe(params, np.array([2, 0, 1]))
    np.testing.assert_array_equal(found["mean"][1], params.mean[[2, 0, 1]])
    exact = np.sqrt(gaussian_params.variance(params))[[2, 0, 1]]
    np.testing.assert_allclose(found["mean_sd"][1], exact)
    np.testing.assert_array_equal(found["basis"][1], params.basis[:, [2, 0, 1]])
    assert found["noise"][0] == ("column",)
    one = Gaussian().describe(replace(params, noise=np.full(4, 0.5)), np.arange(3))
    assert one["noise"][0] == ()
    assert float(one["noise"][1]) == 0.5


def test_family_by_name():
    assert Gaussian(family="factorised").family is Family.FACTORISED
    assert Gaussian() == Gaussian(family=Family.STRUCTURED)
    with pytest.raises(UsageError, match="family: 'joint': expected structured, factorised"):
        Gaussian(family="joint")


@pytest.mark.parametrize("noise", ["one", "column", 0.7])
@pytest.mark.parametrize("scale", ["one", "feature", 1.2])
def test_terms_that_need_no_rows(noise, scale):
    seen, params, sums = sums_of(Case(noise=noise, scale=scale))
    whole, rest = seen.score(params, sums).terms, seen.priors(params)
    assert "dictionary" in rest
    assert whole.keys() - rest.keys() == {"likelihood"}
    assert all(whole[name] == value for name, value in rest.items())


def test_the_common_scale():
    seen, params, _ = sums_of(Case(rule="draw"))
    rng = np.random.default_rng(0)
    assert seen.common_scale(params, rng) == params.scale[0]
    assert Gaussian(scale=0.3).common_scale(params, rng) == 0.3


def test_without_a_feature_the_common_scale_is_from_its_prior():
    seen, params, _ = sums_of(Case(rule="draw"))
    none, rng = dictionary.known(params, np.zeros((0, 4)), np.zeros(0)), np.random.default_rng(0)
    drawn = np.array([seen.common_scale(none, rng) for _ in range(3000)])
    law = invgamma(0.5 * PSEUDO, scale=0.5 * PSEUDO * float(params.unit))
    assert kstest(drawn, law.cdf).pvalue > 1e-3
    found = seen.describe(none, np.zeros(0, np.intp))
    assert found["mean"][1].shape == (0, 4)
    assert np.isnan(found["scale"][1])
