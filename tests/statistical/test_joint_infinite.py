"""The joint law that samplers of the infinite model are tested against is the right one."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from ibpdist.base.structs import replace
from ibpdist.model.priors._base import PriorSums
from tests.support import enumeration_infinite as enumeration
from tests.support.joint_infinite import Infinite, buffet, log_joint, scores, worst
from tests.support.reference_evidence import log_evidence_ibp

MASS = 1.5
FIXED = Infinite(noise=0.5, scale=1.3, mass=MASS)


def test_the_buffet_has_its_moments():
    rng = np.random.default_rng(0)
    z = [buffet(5, MASS, rng) for _ in range(4000)]
    harmonic = (1 / np.arange(1, 6)).sum()
    sizes = np.array([len(t) for t in z])
    assert sizes.mean() == pytest.approx(MASS * harmonic, abs=4 * np.sqrt(MASS * harmonic / 4000))
    assert sizes.var() == pytest.approx(MASS * harmonic, rel=0.12)
    each = np.array([t.sum(axis=0) for t in z])
    assert each.mean(axis=0) == pytest.approx(np.full(5, MASS), abs=4 * np.sqrt(MASS / 4000))


def test_terms_of_the_log_joint_are_those_of_the_package():
    """Up to constants that depend on the number of features alone."""
    joint, model = FIXED, FIXED.model()
    for seed in range(5):
        draw = joint.draw(np.random.default_rng(seed))
        z, params = draw.state.z, draw.params
        on = z.sum(axis=1)
        fit = z.T @ params.observation.mean
        cells = joint.rows * joint.columns
        expected = sum(model.prior.score(params.prior, PriorSums(on=on, rows=np.asarray(5.0))).values())
        expected -= 0.5 * (cells * np.log(0.5) + ((draw.x - fit) ** 2).sum() / 0.5)
        expected -= 0.5 * (params.observation.mean**2 / 1.3 + np.log(1.3)).sum()
        assert log_joint(joint, draw) == pytest.approx(expected, abs=1e-9)


def test_a_chain_that_forgets_what_it_should_keep_is_caught():
    """Dropping the last feature of a draw, now and then, is no transition of the posterior."""
    rng = np.random.default_rng(3)

    def forgetful(chunk, params, state, draws):
        if not len(state.z) or rng.random() < 0.8:
            return params, state
        keep = np.arange(len(state.z) - 1)
        seen = params.observation
        seen = replace(
            seen,
            mean=seen.mean[keep],
            scale=seen.scale[keep],
            stretch=seen.stretch[keep],
            basis=seen.basis[:, keep][:, :, keep],
            spectrum=seen.spectrum[:, keep],
        )
        prior = params.prior
        prior = replace(prior, tau=prior.tau[keep], log_on=prior.log_on[keep], log_off=prior.log_off[keep])
        made = replace(
            params,
            observation=seen,
            prior=prior,
            ids=params.ids[keep],
            parents=params.parents[:, keep],
            flip=params.flip[keep],
            on=params.on[keep],
        )
        return made, replace(state, ids=state.ids[keep], z=state.z[keep])

    _, size = worst(scores(FIXED, forgetful, 200, 2))
    assert size > 6


def test_a_chain_that_does_nothing_is_not_taken_for_a_sampler():
    said, size = worst(scores(FIXED, lambda chunk, params, state, draws: (params, state), 50, 1))
    assert size == np.inf, said


@pytest.mark.parametrize("masked", [False, True])
def test_evidence_is_that_of_the_reference(masked):
    rng = np.random.default_rng(1)
    mask = np.array([[1, 0], [1, 1], [0, 1]], bool) if masked else np.ones((3, 2), bool)
    x = np.where(mask, rng.normal(size=(3, 2)), 0.0)
    exact = log_evidence_ibp(x, mask, np.full(2, 0.6), 1.2, 0.5, 1e-7)
    assert enumeration.evidence(x, mask, 0.6, 1.2, 0.5, 1e-7) == pytest.approx(exact, abs=1e-9)


def test_posterior_without_data_is_the_prior():
    mask = np.zeros((3, 2), bool)
    numbers, logs, kinds = enumeration.table(np.zeros((3, 2)), mask, 0.6, 1.2, 0.5)
    assert float(logsumexp(logs)) == pytest.approx(0, abs=1e-6)
    common, features, alone, chance = enumeration.posterior(np.zeros((3, 2)), mask, 0.6, 1.2, 0.5)
    for k in range(4):
        assert chance[features == k].sum() == pytest.approx(
            poisson.pmf(k, 0.5 * (1 + 1 / 2 + 1 / 3)), abs=1e-6
        )
    assert np.tensordot(chance, common, 1)[0, 0] == pytest.approx(0.5, abs=1e-5)
    assert chance @ alone == pytest.approx(0.5, abs=1e-5)
    assert numbers.shape[1] == len(kinds) == 7


def test_events_of_a_draw_are_those_of_its_state():
    z = np.array([[1.0, 0, 1], [0, 1, 0]])
    common, features, alone = enumeration.facts(z)
    assert (features, alone) == (2, 1)
    found = enumeration.events(common[None], np.array([features]), np.array([alone]))
    assert found.shape == (1, 12 + 18)
    assert found[0, 2] == 1
    assert found[0, 6 + 1] == 1
