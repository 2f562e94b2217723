"""What every prior promises."""

import json
from dataclasses import is_dataclass, replace

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import arrays_of, pack, unpack
from ibpdist.catalog import systems as catalog
from ibpdist.model.priors._base import Number, PriorSums
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.stick_breaking import StickBreaking

SETTINGS = {
    "beta_bernoulli": {"fixed": {"mass": 2.0}},
    "stick_breaking": {
        "fixed": {"mass": 2.0},
        "multinomial": {"bound": "multinomial"},
        "taylor": {"bound": "taylor"},
    },
    "buffet": {"fixed": {"mass": 2.0}},
    "beta_process": {
        "fixed": {"mass": 2.0, "concentration": 1.5},
        "exact": {"round_prior": "paper-exact"},
        "shared": {"branches": "shared", "round_prior": "paper-markov"},
    },
}
"""Of some members; each is here without settings as well."""
PRIORS = {name: axis() for name, axis in catalog._priors().items()}
PRIORS |= {
    f"{name} {words}": catalog._priors()[name](**settings)
    for name, variants in SETTINGS.items()
    for words, settings in variants.items()
}
LEARNED = [name for name, prior in PRIORS.items() if Rule.MEAN in prior.rules and not prior.dense]
"""Priors that learn prevalences as variational fits do, whatever the counts are."""
ON = np.array([3.0, 17.5, 0.0, 40.0, 0.25])
DRAWN = np.array([3.0, 17.0, 1.0, 40.0, 2.0])
"""Counts of draws, in which each feature occurs."""
ROWS = 40
member = pytest.mark.parametrize("name", PRIORS)
every = pytest.mark.parametrize("name", LEARNED)
MEMBER_RULES = [(name, rule) for name, prior in PRIORS.items() for rule in sorted(prior.rules)]
EVERY_RULE = [(name, rule) for name, rule in MEMBER_RULES if name in LEARNED]
EVERY_LAW = [one for one in EVERY_RULE if (PRIORS[one[0]].name, one[1]) != ("beta_process", Rule.DRAW)]
"""Where parameters hold a law of the prevalences; a draw of a beta process holds prevalences alone."""


def counts_of(prior):
    """(feature) counts that rows of this prior can have."""
    if prior.dense:
        return np.full(5, float(ROWS))
    return ON if Rule.MEAN in prior.rules else DRAWN


def rule_of(prior):
    return min(prior.rules, key=lambda rule: (rule is not Rule.MEAN, rule))


def sums(on=ON, rows=ROWS):
    return PriorSums(on=np.asarray(on, float), rows=np.asarray(float(rows)))


def fitted(prior, given=None, rule=None, seed=0):
    given = sums(counts_of(prior)) if given is None else given
    start = prior.init(len(given.on), ROWS)
    return prior.update(start, given, rule or rule_of(prior), np.random.default_rng(seed))


def total(prior, params, given):
    return sum(prior.score(params, given).values())


def test_the_contracts_find_their_members():
    assert {prior.name for prior in PRIORS.values()} == set(catalog._priors())
    assert set(SETTINGS) <= set(catalog._priors())
    assert {PRIORS[name].name for name in LEARNED} == {"beta_bernoulli", "stick_breaking", "beta_process"}


@member
def test_name_rules_and_settings(name):
    prior = PRIORS[name]
    assert prior.name == name.partition(" ")[0]
    assert prior.rules
    assert prior.rules <= set(Rule)
    assert prior == replace(prior)
    assert hash(prior) == hash(replace(prior))


@pytest.mark.parametrize(("name", "rule"), MEMBER_RULES)
def test_parameters(name, rule):
    prior = PRIORS[name]
    for params in (prior.init(5, ROWS), fitted(prior, rule=rule)):
        assert is_dataclass(params)
        assert params.log_on.shape == params.log_off.shape == (5,)
        assert params.mass.shape == ()
        assert float(params.mass) > 0
        assert (params.log_on <= 0).all()
        assert (params.log_off < 0).all()
        expected = prior.expected(params)
        assert expected.shape == (5,)
        assert ((expected > 0) & (expected <= 1)).all()
        np.testing.assert_array_equal(prior.log_odds(params), params.log_on - params.log_off)


@pytest.mark.parametrize(("name", "rule"), EVERY_RULE)
def test_learned_parameters(name, rule):
    for params in (PRIORS[name].init(5, ROWS), fitted(PRIORS[name], rule=rule)):
        sticks = next(getattr(params, field) for field in ("later", "stick", "tau") if hasattr(params, field))
        assert sticks.shape == (5, 2)
        assert (params.log_on < 0).all()


def drawn_prevalences(params, size, rng):
    """(draw, feature) prevalences drawn from the posterior. Sticks multiply in their own order, which is not
    that of the features; atoms of later rounds decay."""
    if hasattr(params, "decay"):
        late = rng.random((size, 5)) < params.chance[:, 1:].sum(axis=1)
        shrunk = rng.beta(*params.later.T, (size, 5)) * np.exp(
            -rng.gamma(params.decay[:, 0], size=(size, 5)) / params.decay[:, 1]
        )
        return np.where(late, shrunk, rng.beta(*params.first.T, (size, 5)))[:, params.atom]
    sticks = rng.beta(*params.tau.T, (size, 5))
    if not hasattr(params, "order"):
        return sticks
    found = np.empty_like(sticks)
    found[:, params.order] = np.cumprod(sticks, axis=1)
    return found


@pytest.mark.parametrize(("name", "rule"), EVERY_LAW)
def test_expected_is_the_mean_of_draws_of_the_prevalences(name, rule):
    params = fitted(PRIORS[name], rule=rule)
    drawn = drawn_prevalences(params, 20_000, np.random.default_rng(2))
    found = PRIORS[name].expected(params)
    assert found.shape == (5,)
    assert (np.abs(drawn.mean(0) - found) < 5 * drawn.std(0) / np.sqrt(20_000)).all()
    assert (np.diff(found[np.argsort(-ON)]) < 0).all()


def test_a_feature_of_one_row_in_a_hundred_is_expected_once():
    """priors.md 15: the odds of the update say .0065, E pi is 1.1 / 101.1."""
    prior = BetaBernoulli(mass=0.5)
    given = sums([1.0, 30.0, 10.0, 60.0, 2.0], 100)
    params = prior.update(prior.init(5, 100), given, Rule.MEAN, np.random.default_rng(0))
    assert prior.expected(params)[0] == pytest.approx(1.1 / 101.1, rel=1e-12)
    assert 1 / (1 + np.exp(-prior.log_odds(params)[0])) == pytest.approx(0.0065, abs=5e-5)


@member
def test_expected_survives_select(name):
    params = fitted(PRIORS[name])
    kept = PRIORS[name].select(params, np.array([3, 1]))
    np.testing.assert_allclose(PRIORS[name].expected(kept), PRIORS[name].expected(params)[[3, 1]], rtol=1e-9)


@pytest.mark.parametrize(("name", "rule"), MEMBER_RULES)
def test_score_is_finite_and_named(name, rule):
    prior = PRIORS[name]
    terms = prior.score(fitted(prior, rule=rule), sums(counts_of(prior)))
    assert "z prior" in terms
    assert ("mass" in terms) == hasattr(prior, "mass")
    assert all(isinstance(value, float) and np.isfinite(value) for value in terms.values())


@every
@pytest.mark.parametrize("features", [1, 2, 7])
def test_update_never_lowers_the_score(name, features):
    """From any parameters, for any counts, at once and again."""
    prior, rng = PRIORS[name], np.random.default_rng(features)
    params = prior.init(features, ROWS)
    for _ in range(4):
        given = sums(rng.uniform(0, ROWS, features) * (rng.random(features) < 0.8))
        before = total(prior, params, given)
        params = prior.update(params, given, Rule.MEAN, rng)
        after = total(prior, params, given)
        assert after >= before - 1e-9 * abs(before)
        again = prior.update(params, given, Rule.MEAN, rng)
        assert total(prior, again, given) >= after - 1e-9 * abs(after)
        assert total(prior, again, given) == pytest.approx(after, rel=1e-6), "solved to convergence"


@every
def test_update_on_empty_sums_is_the_prior(name):
    prior = PRIORS[name]
    start = prior.init(4, ROWS)
    empty = sums(np.zeros(4), 0)
    found = prior.update(start, empty, Rule.MEAN, np.random.default_rng(0))
    for field, value in arrays_of(start).items():
        np.testing.assert_allclose(arrays_of(found)[field], value, rtol=1e-12, err_msg=field)
    terms = prior.score(found, empty)
    assert terms["z prior"] == 0
    if prior.number is not Number.CAPACITY:  # a posterior of independent atoms cannot be that prior
        assert sum(terms.values()) == pytest.approx(terms["mass"], abs=1e-10), "no divergence, no data"


@every
def test_more_on_is_more_likely(name):
    found = fitted(PRIORS[name])
    order = np.argsort(-ON)
    odds = PRIORS[name].log_odds(found)[order]
    assert (np.diff(odds) < 0).all()
    assert odds[0] > 2
    assert odds[-1] < -2


@every
def test_features_have_no_order(name):
    """Permuted counts give permuted answers and the same score."""
    prior, turn = PRIORS[name], np.array([2, 4, 0, 3, 1])
    one, two = fitted(prior), fitted(prior, sums(ON[turn]))
    np.testing.assert_allclose(two.log_on, one.log_on[turn], rtol=1e-6)
    np.testing.assert_allclose(two.log_off, one.log_off[turn], rtol=1e-6)
    assert total(prior, two, sums(ON[turn])) == pytest.approx(total(prior, one, sums()), rel=1e-9)


@pytest.mark.parametrize(("name", "rule"), MEMBER_RULES)
def test_update_is_pure(name, rule):
    prior = PRIORS[name]
    given = sums(counts_of(prior))
    params = fitted(prior, sums(counts_of(prior)[::-1].copy()), rule)
    for record in (params, given):
        for value in arrays_of(record).values():
            value.flags.writeable = False
    one = prior.update(params, given, rule, np.random.default_rng(7))
    two = prior.update(params, given, rule, np.random.default_rng(7))
    for field, value in arrays_of(one).items():
        np.testing.assert_array_equal(value, arrays_of(two)[field], err_msg=field)


@pytest.mark.parametrize(("name", "rule"), MEMBER_RULES)
def test_round_trip(name, rule):
    params = fitted(PRIORS[name], rule=rule)
    outline, arrays = pack(params)
    back = unpack(json.loads(json.dumps(outline)), arrays)
    assert type(back) is type(params)
    given = sums(counts_of(PRIORS[name]))
    assert PRIORS[name].score(back, given) == PRIORS[name].score(params, given)


@member
@pytest.mark.parametrize("keep", [[0, 1, 2, 3, 4], [4, 1], [3], [2, 0, 3]])
def test_select(name, keep):
    """Parameters of the kept features, in the order asked for."""
    prior = PRIORS[name]
    params = fitted(prior)
    found = prior.select(params, np.array(keep))
    assert found.log_on.shape == (len(keep),)
    assert prior.dense or float(found.mass) == float(params.mass)
    assert (np.argsort(found.log_on) == np.argsort(params.log_on[keep])).all()
    assert np.isfinite(total(prior, found, sums(counts_of(prior)[keep])))


@member
def test_select_all_changes_nothing(name):
    prior = PRIORS[name]
    params = fitted(prior)
    found = prior.select(params, np.arange(5))
    for field, value in arrays_of(params).items():
        np.testing.assert_allclose(arrays_of(found)[field], value, rtol=1e-9, err_msg=field)


@member
def test_samples_are_prevalences(name):
    prior, rng = PRIORS[name], np.random.default_rng(3)
    drawn = np.array([prior.sample(6, rng) for _ in range(400)])
    assert drawn.shape == (400, 6)
    assert ((drawn >= 0) & (drawn <= 1)).all()


def test_mean_number_of_features_of_a_row():
    """Finite: K (mass / K) / (1 + mass / K). Sticks: sum of (mass / (1 + mass))^k."""
    rng, mass, features = np.random.default_rng(5), 2.0, 6
    for prior, expected in (
        (BetaBernoulli(mass), mass / (1 + mass / features)),
        (StickBreaking(mass), sum((mass / (1 + mass)) ** k for k in range(1, features + 1))),
    ):
        number = np.array([prior.sample(features, rng).sum() for _ in range(4000)])
        assert abs(number.mean() - expected) < 4 * number.std() / np.sqrt(4000)


@every
@pytest.mark.parametrize("features", [1, 3, 5])
def test_another_number_of_features_begins_before_any_data(name, features):
    """The same model: its mass stays, and so does the number of features that it can have."""
    prior = PRIORS[name]
    was = fitted(prior)
    made = prior.resized(was, features)
    assert made.log_on.shape == (features,)
    assert float(made.mass) == float(was.mass)
    assert prior.capacity(made) == prior.capacity(was) == (5 if prior.uses_truncation else None)
    given = sums(ON[:features])
    solved = prior.update(made, given, Rule.MEAN, np.random.default_rng(0))
    assert total(prior, solved, given) >= total(prior, made, given)
    if prior.capacity(was) == 5:
        with pytest.raises(UsageError, match="6 features: expected at most 5"):
            prior.resized(was, 6)
    else:
        assert prior.resized(was, 6).log_on.shape == (6,)
