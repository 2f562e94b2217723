"""A whole step (rows, then globals, then score) is the scalar reference's, term by term."""

from dataclasses import replace as changed

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.model.priors.stick_breaking import StickBreaking
from tests.support import reference as ref
from tests.support.covering import everyday
from tests.support.model_cases import (
    WEIGHTS,
    Case,
    algorithm,
    covariances,
    grid,
    joined,
    prior_moments,
    problem,
    random_case,
    reference_state,
    sweep,
    terms_of,
)
from tests.support.model_reference import balanced, local, score, update_observation

EXACT = {"rtol": 1e-10, "atol": 1e-10}
SIZES = [3, 1, 3]


def prepare(case, seed, inner=1, dtype=np.float64):
    """An algorithm, three chunks, and parameters and row states at random."""
    x, observed = problem(seed, sum(SIZES), 4, case.missing, dtype)
    alg = algorithm(case, 3, inner)
    return alg, *random_case(case, seed, alg, x, observed, SIZES)


def compare(case, seed, inner=1):
    """Row state, dictionary, variances and every term of the objective after one step."""
    alg, chunks, params, states = prepare(case, seed, inner)
    on, off = prior_moments(case, params)
    swept = local(case, reference_state(case, params, states, chunks), on - off, inner)
    met, swept = swept, balanced(case, swept, params.observation)
    states, sums = sweep(alg, chunks, states, params, Draws(seed))
    z, w = joined(states, chunks)
    np.testing.assert_allclose(z, met.nu, **EXACT)
    np.testing.assert_allclose(w, met.m, **EXACT)

    made, info = alg.update(params, sums, Draws(seed))

    trace = info.trace()
    after = update_observation(case, swept, params.observation)
    np.testing.assert_allclose(made.observation.mean, after.phi, **EXACT)
    np.testing.assert_allclose(covariances(made.observation), after.sigma, **EXACT)
    np.testing.assert_allclose(made.observation.noise, after.psi, **EXACT)
    np.testing.assert_allclose(made.observation.scale, after.s, **EXACT)
    compare_terms(trace, score(case, after, made))
    return made, after, trace


def compare_terms(trace, expected):
    found = terms_of(trace)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-10, abs=1e-10), name
    assert trace["objective"] == pytest.approx(sum(expected.values()), rel=1e-10)
    beyond = sum(expected.get(name, 0.0) for name in ("tail", "mass", "noise", "scale"))
    assert trace["bound"] == pytest.approx(sum(expected.values()) - beyond, rel=1e-10)


@pytest.mark.parametrize("case", everyday(grid(), 3), ids=str)
def test_step(case):
    compare(case, 5)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("missing", ["complete", "masked", "rows"])
def test_several_inner_sweeps(weights, missing):
    compare(Case(weights=weights, missing=missing, noise="column"), 6, inner=3)


@pytest.mark.parametrize("prior", ["finite", "sticks"])
def test_fixed_scale_and_mass(prior):
    made, _, trace = compare(Case(prior, "normal", noise=0.4, scale=2.5, mass=1.7), 7)
    assert made.observation.scale.tolist() == [2.5] * 3
    assert made.observation.noise.tolist() == [0.4] * 4
    assert float(made.prior.mass) == 1.7
    assert trace["mass"] == 0.0
    assert not {"noise", "scale"} & trace.keys()


FEATURE = [
    Case(weights=weights, family=family, noise=noise, missing=missing, rule=rule, scale="feature")
    for weights in WEIGHTS
    for family in ("structured", "factorised")
    for noise in ("one", "column", 0.7)
    for missing in ("complete", "masked", "rows")
    for rule in ("mean", "mode")
]


SHARED = [
    Case(weights=weights, family=family, noise="auto", missing=missing, rule=rule, scale=scale)
    for weights in WEIGHTS
    for family in ("structured", "factorised")
    for scale in ("one", "feature", 1.2)
    for missing in ("complete", "masked", "rows")
    for rule in ("mean", "mode")
]


@pytest.mark.parametrize("case", everyday(SHARED, 3), ids=str)
def test_step_with_one_level_of_noise(case):
    made, _, _ = compare(case, 14)
    assert len(set(made.observation.noise)) > 1


@pytest.mark.parametrize("case", everyday(FEATURE, 3), ids=str)
def test_step_with_a_scale_for_each_feature(case):
    compare(case, 12)


def test_finite_prior_is_at_the_joint_optimum():
    made, after, _ = compare(Case("finite"), 8)
    counts, rows = ref.counts(after.nu), len(after.x)
    np.testing.assert_allclose(made.prior.tau, ref.finite_tau(counts, rows, float(made.prior.mass)), **EXACT)
    shape, rate = ref.mass_factor(made.prior.tau, rows, "finite", tail=False)
    assert float(made.prior.mass) == pytest.approx(shape / rate, rel=1e-10)


def test_sticks_follow_falling_counts_and_the_mass_its_factor():
    made, after, _ = compare(Case("sticks"), 9)
    counts = ref.counts(after.nu)
    assert (np.diff(counts[made.prior.order]) <= 0).all()
    shape, rate = ref.mass_factor(made.prior.tau, len(after.x), "sticks", tail=True)
    assert float(made.prior.mass) == pytest.approx(shape / rate, rel=1e-10)


def test_sticks_of_the_multinomial_bound_are_at_their_optimum():
    """Within 1e-6 nats of where the reference climbs from there."""
    case = Case("sticks", mass=1.4)
    alg, chunks, params, states = prepare(case, 10)
    alg = changed(alg, model=changed(alg.model, prior=StickBreaking(mass=1.4, bound="multinomial")))
    states, sums = sweep(alg, chunks, states, params, Draws(1))
    made, info = alg.update(params, sums, Draws(1))
    trace = info.trace()
    on, rows = sums.entries.on[made.prior.order], sum(SIZES)
    best = ref.maximise_sticks(made.prior.tau, on, rows, 1.4, "multinomial")
    reached = trace["z prior"] + trace["sticks"] + trace["tail"]
    assert reached >= ref.stick_objective(best, on, rows, 1.4, "multinomial") - 1e-6
    assert reached == pytest.approx(
        ref.stick_objective(made.prior.tau, on, rows, 1.4, "multinomial"), rel=1e-10
    )


@pytest.mark.parametrize(
    "case", everyday(grid(noises=("one",), missing=("complete", "masked", "rows"))), ids=str
)
def test_float32_scores_like_float64(case):
    """Three steps from the same state: objectives within 1e-5."""
    found = []
    for dtype in (np.float32, np.float64):
        alg, chunks, params, states = prepare(case, 11, dtype=dtype)
        for step in (1, 2, 3):
            states, sums = sweep(alg, chunks, states, params, Draws(1, step))
            params, info = alg.update(params, sums, Draws(1, step))
            trace = info.trace()
        found.append(trace["objective"])
        assert states[0].z.dtype == dtype
    assert found[0] == pytest.approx(found[1], rel=1e-5)
