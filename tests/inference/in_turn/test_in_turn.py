"""Rows in turn: the loop, the start, the record of a chain, what is refused."""

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW, MEAN
from ibpdist.base.structs import arrays_of, replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.in_turn import in_turn as loop
from ibpdist.inference.in_turn.in_turn import EACH_STEP, Coins, Empty, InTurn
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.joint import Joint as JointObservation
from ibpdist.model.priors.always import Always
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.priors.stick_breaking import StickBreaking
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.support.turns import TURNS, planted

TERMS = {
    "objective",
    "bound",
    "active",
    "magnitude",
    "singletons",
    "entries",
    "likelihood",
    "z prior",
    "noise",
}
PRIORS = {"buffet": Buffet(), "finite": BetaBernoulli()}


def sampler(turn="collapsed", prior="buffet", features=3, begin=None, **settings):
    model = Model(PRIORS[prior], Unit(), Gaussian(**settings), DRAW)
    return InTurn(model, TURNS[turn], features, begin or Coins())


def data(dtype=np.float64, masked=False, start=0, **shape):
    x, z = planted(**shape)
    observed = np.random.default_rng(1).random(x.shape) < 0.8 if masked else None
    x = np.where(observed, x, 0.0) if masked else x
    return Chunk(0, start, x.astype(dtype), observed), z


def begun(alg, chunk, seed=0):
    return alg.start(chunk, alg.model.observation.summarise(chunk), Draws(seed))


def run(alg, chunk, steps, seed=0):
    chain, traces = begun(alg, chunk, seed), []
    for step in range(1, steps + 1):
        chain, info = alg.sweep(chunk, chain, Draws(seed, step))
        trace = info.trace()
        traces.append(trace)
    return chain, traces


def same(one, two):
    """Whether two records have the same bits."""
    a, b = arrays_of(one), arrays_of(two)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


CASES = [(turn, prior) for turn in TURNS for prior in PRIORS]


@pytest.mark.parametrize(("turn", "prior"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [False, True])
def test_a_chain_is_what_the_protocol_says(turn, prior, dtype, masked):
    chunk, _ = data(dtype, masked)
    alg = sampler(turn, prior)
    chain, traces = run(alg, chunk, 4)
    params, state = chain.params, chain.state
    np.testing.assert_array_equal(state.ids, params.ids)
    np.testing.assert_array_equal(params.on, state.z.sum(axis=1))
    assert params.rows == chunk.rows
    assert state.z.dtype == dtype
    assert set(np.unique(state.z)) <= {0.0, 1.0}
    assert params.observation.mean.shape == (len(state.ids), chunk.x.shape[1])
    trace = traces[-1]
    assert trace.keys() >= TERMS
    assert np.isfinite(list(trace.values())).all()
    assert trace["bound"] == trace["objective"]
    assert trace["active"] == (state.z.sum(axis=1) > 0).sum()
    assert trace["singletons"] == (state.z.sum(axis=1) == 1).sum()
    assert trace["entries"] == state.z.sum()


@pytest.mark.parametrize(("turn", "prior"), CASES)
def test_a_sweep_is_a_pure_function(turn, prior):
    chunk, _ = data()
    alg = sampler(turn, prior)
    chain, _ = run(alg, chunk, 2)
    before = arrays_of(chain)
    before = {name: array.copy() for name, array in before.items()}
    one, first = alg.sweep(chunk, chain, Draws(0, 3))
    two, second = alg.sweep(chunk, chain, Draws(0, 3))
    assert same(one, two)
    assert first == second
    assert all(np.array_equal(before[name], array) for name, array in arrays_of(chain).items())
    other, _ = alg.sweep(chunk, chain, Draws(0, 3, chain=1))
    assert not same(one, other)


@pytest.mark.parametrize("turn", TURNS)
def test_the_objective_is_the_log_joint_of_what_was_drawn(turn):
    """Term by term from the definitions, variances and mass learned."""
    chunk, _ = data()
    chain, traces = run(sampler(turn), chunk, 3)
    p, z = chain.params.observation, chain.state.z
    error = chunk.x - z.T @ p.mean
    likelihood = -0.5 * (np.log(2 * np.pi * p.noise) + error**2 / p.noise).sum()
    looks = -0.5 * (np.log(2 * np.pi * p.scale)[:, None] + p.mean**2 / p.scale[:, None]).sum()
    assert traces[-1]["likelihood"] == pytest.approx(likelihood, rel=1e-10)
    assert traces[-1]["dictionary"] == pytest.approx(looks, rel=1e-10)
    names = ("likelihood", "dictionary", "z prior", "mass", "noise", "scale", "z entropy")
    assert traces[-1]["objective"] == pytest.approx(sum(traces[-1][name] for name in names), rel=1e-12)
    order = np.arange(len(z))[::-1]
    again = z[order].T @ p.mean[order]
    np.testing.assert_allclose(again, z.T @ p.mean, atol=1e-10)


@pytest.mark.parametrize("turn", TURNS)
def test_ids_are_never_used_again(turn):
    chunk, _ = data(noise=1.0)
    alg = sampler(turn)
    chain = begun(alg, chunk)
    gone, known, died = set(), set(chain.state.ids), 0
    for step in range(1, 60):
        chain, _ = alg.sweep(chunk, chain, Draws(0, step))
        now = set(chain.state.ids)
        assert len(now) == len(chain.state.ids)
        assert not now & gone
        assert all(EACH_STEP * step <= new < EACH_STEP * (step + 1) for new in now - known)
        gone |= known - now
        died += len(known - now)
        known |= now
    assert died > 3


@pytest.mark.parametrize("turn", TURNS)
def test_features_of_the_infinite_model_occur_and_those_of_the_finite_one_stay(turn):
    chunk, _ = data(noise=2.0)
    for prior in PRIORS:
        alg = sampler(turn, prior, features=5)
        chain = begun(alg, chunk)
        for step in range(1, 12):
            chain, _ = alg.sweep(chunk, chain, Draws(0, step))
            if prior == "finite":
                np.testing.assert_array_equal(chain.state.ids, np.arange(5))
            else:
                assert (chain.params.on > 0).all()


def recovered(turn, prior, seed):
    """The worst share of rows in which a planted feature is met by one of the chain's."""
    chunk, z = data(rows=80, columns=20, noise=0.1)
    chain, _ = run(sampler(turn, prior), chunk, 60, seed)
    common = chain.state.z[chain.params.on > 2]
    return min(max((row == other).mean() for other in common) for row in z)


@pytest.mark.parametrize(("turn", "prior"), CASES)
def test_planted_features_are_found_from_coins(turn, prior):
    """By one of four short chains: single entries move slowly where noise is small."""
    assert max(recovered(turn, prior, seed) for seed in range(4)) > 0.97


def test_chains_begin_with_what_they_are_told():
    chunk, _ = data()
    assert len(begun(sampler(begin=Empty()), chunk).state.ids) == 0
    assert len(begun(sampler(prior="finite", features=4, begin=Empty()), chunk).state.ids) == 4
    assert len(begun(sampler(features=1), chunk).state.ids) == 1
    many = begun(sampler(features=7), chunk).state.z
    assert many.shape == (7, chunk.rows)
    assert 0.35 < many.mean() < 0.65


@pytest.mark.parametrize("turn", TURNS)
def test_a_chain_leaves_nothing(turn):
    """From no feature at all, with a scale that is learned: it is drawn with the first features."""
    chunk, _ = data()
    chain, traces = run(sampler(turn, begin=Empty()), chunk, 5)
    assert len(chain.state.ids) > 0
    assert np.isfinite(traces[-1]["objective"])


@pytest.mark.parametrize("turn", TURNS)
def test_a_chain_without_data_may_lose_all_features(turn):
    chunk, _ = data(rows=3, columns=2, noise=1.0)
    alg = sampler(turn, noise=100.0)
    chain, counts = begun(alg, chunk), []
    for step in range(1, 300):
        chain, info = alg.sweep(chunk, chain, Draws(2, step))
        trace = info.trace()
        counts.append(trace["active"])
        assert np.isfinite(trace["objective"])
    assert min(counts) == 0


@pytest.mark.parametrize("prior", PRIORS)
def test_a_chain_begins_where_another_fit_ended(prior):
    chunk, z = data(rows=60, columns=20, noise=0.1)
    fit = Coordinate(Model(StickBreaking(), Unit(), Gaussian(), MEAN), 4)
    params = fit.init(fit.summarise(chunk), Draws(1))
    state = fit.start(chunk, params, Draws(1))
    state = replace(state, z=np.concatenate([np.clip(z, 0.001, 0.999), np.full((1, 60), 1e-9)]))
    alg = sampler("collapsed", prior, features=6)
    chain = alg.start_from(chunk, fit.summarise(chunk), params, state, Draws(1))
    assert len(chain.state.ids) == (6 if prior == "finite" else 3)
    assert len(set(chain.state.ids)) == len(chain.state.ids)
    assert (chain.state.z[:3] == z).mean() > 0.98
    chain, info = alg.sweep(chunk, chain, Draws(1, 1))
    trace = info.trace()
    assert np.isfinite(trace["objective"])


@pytest.mark.parametrize("turn", TURNS)
def test_rows_see_the_numbers_of_their_global_place(turn):
    chunk, _ = data()
    moved, _ = data(start=1000)
    one, _ = run(sampler(turn), chunk, 2)
    two, _ = run(sampler(turn), moved, 2)
    assert not same(one, two)


def test_blocks_and_room_decide_nothing_but_rounding(monkeypatch):
    """The same entries whether tables are made anew after 7 rows or never."""
    chunk, _ = data(rows=60, noise=0.5)
    found = []
    for every in (7, 1000):
        monkeypatch.setattr(loop, "EVERY", every)
        found.append(run(sampler(), chunk, 3)[0])
    np.testing.assert_array_equal(found[0].state.z, found[1].state.z)
    np.testing.assert_allclose(found[0].params.observation.mean, found[1].params.observation.mean, atol=1e-9)


REFUSED = [
    ({"prior": StickBreaking(), "rules": MEAN}, "rows are drawn in turn under the buffet"),
    ({"prior": BetaBernoulli(), "rules": MEAN}, "rows are drawn in turn under the buffet"),
    ({"weights": Normal()}, "unit weights only"),
    ({"observation": Gaussian(noise="column")}, "noise is column"),
    ({"observation": Gaussian(scale="feature")}, "scale is feature"),
    ({"features": 0}, "features is 0"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_what_cannot_be_sampled_is_refused_in_a_sentence(change, said):
    axes = {"prior": Buffet(), "weights": Unit(), "observation": Gaussian(), "rules": DRAW, **change}
    features = axes.pop("features", 3)
    with pytest.raises(UsageError, match=said):
        InTurn(Model(**axes), TURNS["collapsed"], features)


def test_the_uncollapsed_turn_takes_any_noise_but_one_scale():
    assert sampler("uncollapsed", noise="column")
    with pytest.raises(UsageError, match="scale is feature"):
        sampler("uncollapsed", scale="feature")


def test_another_observation_is_refused():
    model = Model(Always(), Normal(), JointObservation(), MEAN)
    with pytest.raises(UsageError):
        InTurn(model, TURNS["collapsed"])
