"""The anchored sampler as a parallel algorithm: its two steps, what they keep, and what is refused."""

import json
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import gamma as gamma_law

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import Nothing, arrays_of, combine, pack, replace, unpack
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs.anchored import Anchored, among, order
from ibpdist.inference.gibbs.anchors import NO_ROW, AnchoredState, BirthSums, FlipSums, Phase, joined
from ibpdist.kernels.anchors import holders
from ibpdist.model.model import Model
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_params import intercept_mean
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.support.anchored_cases import precision_of, rows_of
from tests.support.compare import assert_close_record, assert_same_record
from tests.support.covering import everyday
from tests.support.model_cases import BESIDE, begin, chunked, fit, plain, problem, steps_of, survey, sweep

WEIGHTS = {"unit": Unit(), "normal": Normal(), "factors": Normal("learn")}
MORE = {"factors": {"intercept": True, "row_noise": "learn"}}
"""Settings of the observation."""
SIZES = [11, 2, 17]
every = pytest.mark.parametrize("weights", WEIGHTS)


def sampler(weights="unit", features=0, noise="one", **settings):
    return Anchored(
        Model(Buffet(), WEIGHTS[weights], Gaussian(noise, **MORE.get(weights, {})), DRAW),
        features,
        **settings,
    )


def prepared(weights="unit", features=3, missing="masked", dtype=np.float64, sizes=SIZES, **settings):
    x, observed = problem(6, sum(SIZES), 4, missing, dtype)
    alg, chunks = sampler(weights, features, **settings), chunked(x, observed, sizes)
    return alg, chunks, *begin(alg, chunks)


def close(a, b, tolerance=1e-10):
    assert_close_record(a, b, rtol=tolerance, atol=tolerance)


def z_of(states):
    return np.concatenate([s.now.z for s in states], axis=1)


# --- phases ---


@every
@pytest.mark.parametrize("features", [0, 4])
def test_first_a_count_then_flips_and_births_in_turn(weights, features):
    found = list(steps_of(*prepared(weights, features), 7))
    assert [int(before[1].phase) for _, before, *_ in found] == [
        Phase.COUNT,
        *3 * [Phase.FLIPS, Phase.BIRTHS],
    ]
    kinds = [type(sums) for *_, sums, _, _ in found]
    assert kinds == [BirthSums, *3 * [FlipSums, BirthSums]]


@pytest.mark.parametrize(
    ("weights", "features", "dtype", "missing"),
    everyday(product(WEIGHTS, [0, 5], [np.float32, np.float64], ["complete", "masked"]), 1),
)
def test_state_and_parameters_agree_after_every_step(weights, features, dtype, missing):
    alg, chunks, params, states, draws = prepared(weights, features, missing, dtype, births=500)
    keeps, most = alg.model.weights.has_weights, 0
    for _, _, now, _, made, trace in steps_of(alg, chunks, params, states, draws, 40):
        held = [joined(s.now, made, c.start, keeps) for s, c in zip(now, chunks, strict=True)]
        z = np.concatenate([s.z for s in held], axis=1)
        np.testing.assert_array_equal(z.sum(axis=1), made.now.on)
        assert (made.now.on >= 1).all()
        assert np.isin(z, (0, 1)).all()
        assert all(s.z.dtype == dtype for s in held)
        assert all(s.w.shape == (s.z.shape if keeps else (0, s.z.shape[1])) for s in held)
        assert len(np.unique(made.now.ids)) == len(made.now.ids)
        assert trace["active"] == len(made.now.ids) == len(made.now.observation.mean)
        assert trace["entries"] == z.sum()
        assert trace["singletons"] == (z.sum(axis=1) == 1).sum()
        most = max(most, len(made.now.ids))
    assert most > (weights != "factors")  # noisy rows explain what a second feature would


def test_ids_are_never_used_again():
    seen, alive = set(), set()
    for _, _, _, _, made, _ in steps_of(*prepared("unit", 3, births=64), 60):
        now = {int(name) for name in made.now.ids}
        assert not (now - alive) & seen
        seen |= now
        alive = now
        assert all(name < made.fresh for name in now)
    assert len(seen) > 10


def test_anchors_are_the_first_holders_of_the_next_order():
    alg, chunks, params, states, draws = prepared("unit", 5, births=64)
    for at, before, now, _, made, _ in steps_of(alg, chunks, params, states, draws, 20):
        if before[1].phase == Phase.FLIPS:
            assert np.isinf(made.first).all()
            continue
        places = np.concatenate([order(c, draws.at(at + 1)) for c in chunks])
        held = [joined(s.now, made, c.start, False) for s, c in zip(now, chunks, strict=True)]
        on, first = holders(np.concatenate([s.z for s in held], axis=1), places)
        np.testing.assert_array_equal(made.now.on, on)
        np.testing.assert_array_equal(made.first, first)


def test_flips_leave_anchors_and_the_rows_ahead_of_them():
    alg, chunks, params, states, draws = prepared("unit", 6, "complete")
    moved = 0
    for at, before, now, _, _, _ in steps_of(alg, chunks, params, states, draws, 30):
        if before[1].phase != Phase.FLIPS:
            continue
        old = [joined(s.now, before[1], c.start, False) for s, c in zip(before[0], chunks, strict=True)]
        old, new = np.concatenate([s.z for s in old], axis=1), z_of(now)
        places = np.concatenate([order(c, draws.at(at)) for c in chunks])
        ahead, anchor = places < before[1].first[:, None], places == before[1].first[:, None]
        assert (new[ahead] == 0).all()
        assert (old[ahead] == 0).all()
        assert (new[anchor] == 1).all()
        assert anchor.sum() == len(new)
        moved += (new != old).sum()
    assert moved > 20


def test_newborns_begin_with_their_owner():
    alg, chunks, params, states, draws = prepared("normal", 0, births=64)
    born = 0
    for _, before, now, sums, made, _ in steps_of(alg, chunks, params, states, draws, 30):
        if not isinstance(sums, BirthSums) or before[1].phase == Phase.COUNT:
            assert (made.owner == NO_ROW).all()
            continue
        for k in np.flatnonzero(made.owner != NO_ROW):
            chunk = max(i for i, c in enumerate(chunks) if c.start <= made.owner[k])
            held = joined(now[chunk].now, made, chunks[chunk].start, True)
            place = int(made.owner[k]) - chunks[chunk].start
            assert np.flatnonzero(held.z[k]).tolist() == [place]
            assert held.w[k, place] == made.mark[k]
            born += 1
    assert born > 5


# --- the objective ---


def log_joint(params, states, chunks, weights):
    """Every term from scratch, over the rows as they are (priors.md 11)."""
    now, keeps = params.now, WEIGHTS[weights].has_weights
    held = [joined(s.now, params, c.start, keeps) for s, c in zip(states, chunks, strict=True)]
    z = np.concatenate([s.z for s in held], axis=1).astype(float)
    w = np.concatenate([s.w for s in held], axis=1).astype(float) if keeps else np.ones_like(z)
    x = np.concatenate([c.x for c in chunks])
    seen = np.concatenate([np.ones(c.x.shape, bool) if c.observed is None else c.observed for c in chunks])
    observed, mass, rows = now.observation, float(now.prior.mass), z.shape[1]
    left = x - intercept_mean(observed) - (z * w).T @ observed.mean
    uneven = not isinstance(observed.row_noise, Nothing)
    tau = np.concatenate([s.precision.mean for s in held]) if uneven else np.ones(len(x))
    error = tau[:, None] * left**2 / observed.noise + np.log(2 * np.pi * observed.noise)
    size = observed.mean**2 / observed.scale[:, None] + np.log(2 * np.pi * observed.scale)[:, None]
    on = z.sum(axis=1)
    terms = {
        "likelihood": -0.5 * error[seen].sum(),
        "dictionary": -0.5 * size.sum(),
        "z prior": betaln(on, rows - on + 1).sum()
        + len(on) * np.log(mass)
        - mass * (1 / np.arange(1, rows + 1)).sum(),
    }
    if keeps:
        mu = np.zeros(len(z)) if isinstance(now.weights, Nothing) else now.weights.mean
        terms["weights"] = -0.5 * (z * ((w - mu[:, None]) ** 2 + np.log(2 * np.pi))).sum()
    if weights == "factors":
        terms["weight means"] = -len(z) * np.log(8.0)
    if uneven:
        half = observed.row_noise.freedom / 2
        law = gamma_law.logpdf(tau, half, scale=1 / half) + 0.5 * seen.sum(axis=1) * np.log(tau)
        terms["row noise"] = law.sum()
    return terms


@every
@pytest.mark.parametrize("missing", ["complete", "masked"])
@pytest.mark.parametrize("noise", ["one", "column"])
def test_the_objective_is_the_log_joint_at_every_step(weights, missing, noise):
    alg, chunks, params, states, draws = prepared(weights, 4, missing, noise=noise, births=64)
    for _, _, now, _, made, trace in steps_of(alg, chunks, params, states, draws, 25):
        for name, value in log_joint(made, now, chunks, weights).items():
            assert trace[name] == pytest.approx(value, rel=1e-9, abs=1e-7), name
        terms = {
            name: value for name, value in trace.items() if name not in {*BESIDE, "singletons", "entries"}
        }
        assert trace["objective"] == pytest.approx(sum(terms.values()), rel=1e-12)
        beyond = sum(trace.get(name, 0.0) for name in ("mass", "noise", "scale"))
        assert trace["objective"] - trace["bound"] == pytest.approx(beyond, abs=1e-9)


def test_the_objective_does_not_depend_on_the_order_of_features():
    alg, chunks, params, states, draws = prepared("unit", 5)
    *_, (_, _, _, _, made, trace) = steps_of(alg, chunks, params, states, draws, 8)
    turn = np.arange(len(made.now.ids))[::-1]
    seen = made.now.observation
    now = replace(
        made.now,
        on=made.now.on[turn],
        ids=made.now.ids[turn],
        prior=alg.model.prior.select(made.now.prior, turn),
        observation=replace(seen, mean=seen.mean[turn]),
    )
    assert alg.score(replace(made, now=now)).objective == pytest.approx(trace["objective"], rel=1e-12)


# --- a parallel algorithm ---


@every
def test_pure(weights):
    """Arguments are left alone, and the same arguments give the same bits."""
    alg, chunks, params, states, draws = prepared(weights, 4, births=64)
    for record in (params, *states):
        for value in arrays_of(record).values():
            value.flags.writeable = False
    for at, (rows, old), now, sums, made, trace in steps_of(alg, chunks, params, states, draws, 15):
        for record in (made, sums, *now):
            for value in arrays_of(record).values():
                value.flags.writeable = False
        again, other = sweep(alg, chunks, rows, old, draws.at(at))
        assert_same_record(sums, other)
        for a, b in zip(now, again, strict=True):
            assert_same_record(a, b)
        twice, other_info = alg.update(old, sums, draws.at(at))
        assert_same_record(made, twice)
        assert trace == other_info.trace()
        assert all(isinstance(value, float) and np.isfinite(value) for value in trace.values())
        assert {value.dtype for value in arrays_of(sums).values()} == {np.dtype(np.float64)}


@every
def test_stored_between_steps(weights):
    def through(record):
        outline, arrays = pack(record)
        return unpack(json.loads(json.dumps(outline)), {name: a.copy() for name, a in arrays.items()})

    alg, chunks, params, states, draws = prepared(weights, 3, births=64)
    other, rows = through(params), [through(s) for s in states]
    for at, _, now, _, made, trace in steps_of(alg, chunks, params, states, draws, 15):
        rows, sums = sweep(alg, chunks, rows, other, draws.at(at))
        other, other_info = alg.update(other, deepcopy(sums), draws.at(at))
        assert trace == other_info.trace()
        other, rows = through(other), [through(s) for s in rows]
        assert_same_record(made, other)
        for a, b in zip(now, rows, strict=True):
            assert_same_record(a, b)


@every
def test_row_state_lost_at_any_step_is_made_again(weights):
    """Each step in turn forgets the rows of a chunk: from the start through all parameters, the same bits."""
    alg, chunks, params, states, draws = prepared(weights, 2, births=64)
    known, first = [params], states[2]
    for at, _, now, _, made, _ in steps_of(alg, chunks, params, states, draws, 16):
        state = alg.start(chunks[2], known[0], draws)
        assert_same_record(state, first)
        for missed in range(1, at + 1):
            state, _ = alg.local(chunks[2], state, known[missed - 1], draws.at(missed))
        assert_same_record(state, now[2])
        known.append(made)


@every
def test_sums_reduce_in_any_bracketing(weights):
    alg, chunks, params, states, draws = prepared(weights, 4, births=64)
    for at, (rows, old), _, _, _, _ in steps_of(alg, chunks, params, states, draws, 9):
        a, b, c = (alg.local(chunk, s, old, draws.at(at))[1] for chunk, s in zip(chunks, rows, strict=True))
        close(combine(combine(a, b), c), combine(a, combine(b, c)), 1e-12)


@every
@pytest.mark.parametrize("sizes", [[30], [1, 28, 1], [10, 10, 10]])
def test_another_chunking_is_the_same_step(weights, sizes):
    """From the same state the same numbers reach the same rows: one float64 step agrees to 1e-10."""
    alg, chunks, params, states, draws = prepared(weights, 4, births=64)
    x, observed = problem(6, sum(SIZES), 4, "masked")
    others = chunked(x, observed, sizes)
    for at, (rows, old), now, sums, made, _ in steps_of(alg, chunks, params, states, draws, 12):
        z = np.concatenate([s.now.z for s in rows], axis=1)
        w = np.concatenate([s.now.w for s in rows], axis=1)
        cut = [slice(c.start, c.start + c.rows) for c in others]
        whole = RowState(rows[0].now.ids, z, w, precision=precision_of([s.now for s in rows]))
        held = [AnchoredState(rows_of(whole, r), np.asarray(r.start)) for r in cut]
        again, other = sweep(alg, others, held, old, draws.at(at))
        close(sums, other)
        np.testing.assert_array_equal(z_of(again), z_of(now))
        close(alg.update(old, other, draws.at(at))[0], made, 1e-8)


def test_seeds_and_chains_differ():
    alg, chunks, *_ = prepared("unit", 3)
    base = fit(alg, chunks, 6, seed=1)[3]
    assert base == fit(alg, chunks, 6, seed=1)[3]
    assert base != fit(alg, chunks, 6, seed=2)[3]


# --- beginnings ---


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_from_nothing_features_appear(weights):
    x, observed = problem(1, 60, 6)
    params, _, _, traces = fit(sampler(weights), chunked(3 * x, observed, [25, 35]), 120)
    assert traces[0]["active"] == 0
    assert len(params.now.ids) >= 1
    assert traces[-1]["objective"] > traces[0]["objective"] + 20


def test_features_that_nobody_has_are_dropped_first():
    alg, chunks, params, states, draws = prepared("unit", 6)
    states = [
        replace(s, now=replace(s.now, z=s.now.z * np.array([1, 0, 1, 0, 0, 1.0])[:, None])) for s in states
    ]
    _, sums = sweep(alg, chunks, states, params, draws.at(1))
    made, _ = alg.update(params, sums, draws.at(1))
    assert made.now.ids.tolist() == [0, 2, 5]
    np.testing.assert_array_equal(made.now.observation.mean, params.now.observation.mean[[0, 2, 5]])


def test_adopts_another_fit():
    """Its dictionary as the mean says, its mass, its prevalences for other data."""
    x, observed = problem(6, 30, 4, "complete")
    ascent = plain("lg-vi-infinite", 3)
    found = ascent.handover_params(fit(ascent, chunked(x), 20)[0])
    alg, more = sampler(), chunked(np.concatenate([x, x]), observed)
    params = alg.adopt(found, survey(alg, more))
    np.testing.assert_array_equal(params.now.observation.mean, found.observation.mean)
    assert (params.now.observation.basis == 0).all()
    assert float(params.now.prior.mass) == float(found.prior.mass)
    np.testing.assert_allclose(params.now.on, 2 * found.on)
    state = alg.start(more[0], params, Draws(0)).now
    chance = params.now.on / 60
    error = np.sqrt(np.maximum(chance * (1 - chance), 1e-3) / 60)
    assert (np.abs(state.z.mean(axis=1) - chance) < 4 * error).all()
    fixed = Anchored(Model(Buffet(2.5), Unit(), Gaussian(), DRAW))
    assert float(fixed.adopt(found, survey(alg, more)).now.prior.mass) == 2.5


def test_row_state_of_another_sampler_is_taken():
    alg, chunks, params, states, draws = prepared("unit", 3)
    made, sums = sweep(alg, chunks, states, params, draws.at(1))
    again, other = sweep(alg, chunks, [s.now for s in states], params, draws.at(1))
    assert_same_record(sums, other)
    for a, b in zip(made, again, strict=True):
        assert_same_record(a, b)


def test_a_fixed_noise_and_scale_stay():
    model = Model(Buffet(1.5), Unit(), Gaussian(0.4, 0.9), DRAW)
    x, _ = problem(2, 40, 4)
    params, *_ = fit(Anchored(model), chunked(x), 30)
    assert (params.now.observation.noise == 0.4).all()
    assert (params.now.observation.scale == 0.9).all()
    assert params.scale == 0.9
    assert float(params.now.prior.mass) == 1.5


# --- results ---


@every
def test_results_have_their_dims_at_every_step(weights):
    alg, chunks, params, states, draws = prepared(weights, 0, births=64)
    for _, _, now, _, made, _ in steps_of(alg, chunks, params, states, draws, 20):
        found, features = alg.describe(made), len(made.now.ids)
        assert found["mean"][1].shape == (features, 4)
        assert (np.diff(found["prevalence"][1]) <= 0).all()
        shown = [alg.describe_rows(s, made) for s in now]
        z = np.concatenate([named["z"][1] for named in shown], axis=1)
        np.testing.assert_allclose(z.mean(axis=1), found["prevalence"][1])
        assert ("w" in shown[0]) == (weights != "unit")
        for name in ("intercept", "row_freedom", "weight_mean"):
            assert (name in found) == (weights == "factors")
        assert ("precision" in shown[0]) == (weights == "factors")


def test_final_parameters_find_the_features_of_rows():
    """Rows are swept against a known dictionary and the prevalences."""
    rng = np.random.default_rng(1)
    z = rng.random((300, 2)) < 0.4
    x = z @ np.array([[4.0, 0, 4, 0], [0, 4, 0, -4]]) + 0.3 * rng.normal(size=(300, 4))
    alg, chunks = sampler(features=2), chunked(x, None, [150, 150])
    params, states, *_ = fit(alg, chunks, 200)
    rows, final = alg.row_inference(), alg.handover_params(params)
    state = rows.start(chunks[0], final, Draws(3))
    for at in range(1, 6):
        state, _ = rows.local(chunks[0], state, final, Draws(3, at))
    held = joined(states[0].now, params, 0, False)
    assert (held.z.sum(axis=1) > 20).sum() == 2
    apart = np.abs((state.z - held.z).T @ final.observation.mean).max(axis=1)
    assert (apart < 1).mean() > 0.97


# --- refusals ---


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Model(BetaBernoulli(), Unit(), Gaussian(), DRAW), "beta_bernoulli with gaussian; it samples buffet"),
        (Model(Buffet(), Unit(), Gaussian(scale="feature"), DRAW), "scale=feature; newborns need one scale"),
    ],
)
def test_models_that_are_refused(model, said):
    with pytest.raises(UsageError, match=said):
        Anchored(model)


@pytest.mark.parametrize("name", ["features", "most", "inner", "births", "turns"])
def test_settings_that_are_refused(name):
    with pytest.raises(UsageError, match=f"{name} is -1; expected a whole number of at least"):
        sampler(**{name: -1})


def test_more_features_than_allowed_are_refused_with_the_memory():
    x, _ = problem(1, 60, 6)
    said = r"come to \d+ features, more than most=1: .* would take \d+ bytes and .* \d+ bytes; .* most=\.\.\."
    with pytest.raises(UsageError, match=said):
        fit(sampler(most=1, births=500), chunked(5 * x), 200)


def test_says_what_it_is():
    alg, _, params, *_ = prepared()
    assert not alg.monotone()
    assert alg.rescale_old_sums(params, "sums") == "sums"
    assert not alg.additive(params)
    whole = sampler()
    assert whole.additive(begin(whole, [Chunk(0, 0, np.ones((3, 2)))])[0])


def test_newborns_come_at_any_place_and_in_any_order():
    """Two among two: twelve ways, equally often; the old ones stay one after the other."""
    made = [tuple(among(2, 2, Draws(0, step)).tolist()) for step in range(6000)]
    ways, often = np.unique(made, axis=0, return_counts=True)
    assert len(ways) == 12
    assert all(list(way).index(0) < list(way).index(1) for way in ways)
    assert np.abs(often - 500).max() < 4.5 * np.sqrt(500)
    np.testing.assert_array_equal(among(3, 0, Draws(0)), np.arange(3))
