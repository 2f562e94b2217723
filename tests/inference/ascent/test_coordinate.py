"""Coordinate: nothing depends on chunks, order or names; row state follows its features; odd data."""

from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import arrays_of, replace
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import ACTIVE, Coordinate, align, by_prevalence
from ibpdist.inference.ascent.params import OFF, without_parents
from ibpdist.model.observations import gaussian_params
from ibpdist.model.observations._base import RowState
from tests.support.compare import assert_close_record
from tests.support.covering import everyday
from tests.support.model_cases import (
    AT_ONCE,
    WEIGHTS,
    Case,
    algorithm,
    begin,
    chunked,
    fit,
    grid,
    joined,
    objectives,
    plain,
    problem,
    random_case,
    random_params,
    random_state,
    sweep,
)
from tests.support.odd import ODD
from tests.support.planted_rows import planted

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
EVERY = pytest.mark.parametrize("missing", ["complete", "masked", "block", "rows"])
BOTH = pytest.mark.parametrize("weights", WEIGHTS)


def close(a, b, **tolerance):
    """Two records, array by array."""
    assert_close_record(a, b, **(tolerance or CLOSE))


def prepare(case, seed=2, rows=12, sizes=None, features=3, inner=2):
    x, observed = problem(seed, rows, 4, case.missing)
    alg = algorithm(case, features, inner)
    return alg, *random_case(case, seed, alg, x, observed, sizes)


def part_of(state, start, size):
    return RowState(ids=state.ids, z=state.z[:, start : start + size], w=state.w[:, start : start + size])


# --- chunks ---


@EVERY
@BOTH
@settings(max_examples=15)
@given(cuts=st.sets(st.integers(1, 11), max_size=5))
def test_sums_and_rows_do_not_depend_on_the_partition(missing, weights, cuts):
    """Given the same globals: sums add up over any partition, and every row has its own answer."""
    alg, (chunk,), params, (state,) = prepare(Case(weights=weights, missing=missing))
    edges = [0, *sorted(cuts), 12]
    sizes = [b - a for a, b in pairwise(edges)]
    chunks = chunked(chunk.x, chunk.observed, sizes)
    states = [part_of(state, c.start, c.rows) for c in chunks]
    (whole,), total = sweep(alg, [chunk], [state], params, Draws(1))
    parts, summed = sweep(alg, chunks, states, params, Draws(1))
    z, w = joined([whole], [chunk])
    z_parts, w_parts = joined(parts, chunks)
    np.testing.assert_allclose(z_parts, z, **CLOSE)
    np.testing.assert_allclose(w_parts, w, **CLOSE)
    close(summed, total, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("case", grid(("finite",), families=("structured",), noises=("column",)), ids=str)
def test_whole_fits_do_not_depend_on_chunks(case):
    x, observed = problem(5, 15, 4, case.missing)
    found = [
        objectives(fit(algorithm(case), chunked(x, observed, sizes), 10)[3]) for sizes in ([15], [1, 6, 8])
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_no_rows_add_nothing():
    alg, (chunk,), params, (state,) = prepare(Case())
    empty = Chunk(1, chunk.rows, chunk.x[:0])
    (_, _), both = sweep(alg, [chunk, empty], [state, part_of(state, 0, 0)], params, Draws(1))
    _, alone = sweep(alg, [chunk], [state], params, Draws(1))
    close(both, alone)


# --- symmetries ---


@BOTH
@pytest.mark.parametrize("family", ["structured", "factorised"])
def test_a_mask_of_ones_is_no_mask(weights, family):
    x, _ = problem(3, 10, 4)
    case = Case(weights=weights, family=family, noise="column")
    found = [fit(algorithm(case), chunked(x, o, [6, 4]), 5) for o in (None, np.ones(x.shape, bool))]
    close(found[0][0], found[1][0])
    close(found[0][1][1], found[1][1][1])


@BOTH
@pytest.mark.parametrize("family", ["structured", "factorised"])
def test_a_column_never_seen_stays_at_its_prior(weights, family):
    x, observed = problem(3, 10, 4, "masked")
    observed[:, 2], x[:, 2] = False, 0.0
    case = Case(weights=weights, family=family, noise="column", missing="masked")
    params, _, _, traces = fit(algorithm(case), chunked(x, observed), 5)
    seen = params.observation
    np.testing.assert_allclose(seen.mean[:, 2], 0, atol=1e-14)
    np.testing.assert_allclose(gaussian_params.variance(seen)[:, 2], seen.scale, rtol=1e-12)
    assert np.isfinite(objectives(traces)).all()


@BOTH
def test_a_column_never_seen_tells_nothing(weights):
    """Rows and the other columns are as if it were not there (all hyperparameters fixed)."""
    x, observed = problem(3, 10, 4, "masked")
    observed[:, 2], x[:, 2] = False, 0.0
    case = Case(weights=weights, noise=0.5, scale=1.2, mass=2.0, missing="masked")
    alg, keep = algorithm(case), [0, 1, 3]
    chunk, less = Chunk(0, 0, x, observed), Chunk(0, 0, x[:, keep], observed[:, keep])
    params = random_params(case, alg, [chunk], 1)
    fewer = random_params(case, alg, [less], 1)
    seen, known = params.observation, fewer.observation
    params = replace(params, observation=replace(seen, basis=np.zeros_like(seen.basis)))
    small = replace(known, mean=seen.mean[:, keep], basis=np.zeros_like(known.basis))
    fewer = replace(fewer, prior=params.prior, observation=small)
    state = random_state(case, params, chunk, 1)
    one, sums = sweep(alg, [chunk], [state], params, Draws(1))
    two, fewer_sums = sweep(alg, [less], [state], fewer, Draws(1))
    np.testing.assert_allclose(one[0].z, two[0].z, **CLOSE)
    a, b = alg.update(params, sums, Draws(1)), alg.update(fewer, fewer_sums, Draws(1))
    np.testing.assert_allclose(a[0].observation.mean[:, keep], b[0].observation.mean, rtol=1e-10, atol=1e-12)
    assert a[1].objective == pytest.approx(b[1].objective, rel=1e-11)


@EVERY
@BOTH
def test_columns_in_another_order(missing, weights):
    case = Case(weights=weights, missing=missing, noise="column")
    alg, (chunk,), params, (state,) = prepare(case)
    turn = np.array([2, 0, 3, 1])
    turned = Chunk(0, 0, chunk.x[:, turn], None if chunk.observed is None else chunk.observed[:, turn])
    seen, fields = params.observation, ("noise", "group", "cells", "squares", "spread")
    moved = {name: getattr(seen, name)[turn] for name in fields} | {"mean": seen.mean[:, turn]}
    if missing == "rows":
        moved["spectrum"] = seen.spectrum[turn]
    after = replace(params, observation=replace(seen, **moved))
    (one,), sums = sweep(alg, [chunk], [state], params, Draws(1))
    (two,), turned_sums = sweep(alg, [turned], [state], after, Draws(1))
    np.testing.assert_allclose(two.z, one.z, **CLOSE)
    a, b = alg.update(params, sums, Draws(1)), alg.update(after, turned_sums, Draws(1))
    np.testing.assert_allclose(b[0].observation.mean, a[0].observation.mean[:, turn], rtol=1e-9, atol=1e-11)
    assert b[1].objective == pytest.approx(a[1].objective, rel=1e-10)


@EVERY
@BOTH
def test_rows_in_another_order_and_twice(missing, weights):
    """Equal rows with equal states get equal answers, wherever they stand."""
    alg, (chunk,), params, (state,) = prepare(Case(weights=weights, missing=missing))
    turn = np.array([3, 3, 0, 11, 7, 7, 7, 1])
    turned = Chunk(0, 0, chunk.x[turn], None if chunk.observed is None else chunk.observed[turn])
    other = RowState(ids=state.ids, z=state.z[:, turn], w=state.w[:, turn])
    (one,), _ = sweep(alg, [chunk], [state], params, Draws(1))
    (two,), _ = sweep(alg, [turned], [other], params, Draws(1))
    np.testing.assert_allclose(two.z, one.z[:, turn], **CLOSE)
    np.testing.assert_allclose(two.w, one.w[:, turn], **CLOSE)


@BOTH
def test_every_row_twice_doubles_the_sums(weights):
    alg, (chunk,), params, (state,) = prepare(Case(weights=weights))
    again = Chunk(1, chunk.rows, chunk.x)
    _, once = sweep(alg, [chunk], [state], params, Draws(1))
    _, twice = sweep(alg, [chunk, again], [state, state], params, Draws(1))
    for name, value in arrays_of(once).items():
        np.testing.assert_allclose(arrays_of(twice)[name], 2 * value, err_msg=name, **CLOSE)


@EVERY
def test_memory_order_does_not_matter(missing):
    alg, (chunk,), params, (state,) = prepare(Case(missing=missing))
    fortran = Chunk(0, 0, np.asfortranarray(chunk.x), chunk.observed)
    (one,), sums = sweep(alg, [chunk], [state], params, Draws(1))
    (two,), other = sweep(alg, [fortran], [state], params, Draws(1))
    np.testing.assert_allclose(two.z, one.z, **CLOSE)
    close(sums, other, rtol=1e-11, atol=1e-11)


# --- nothing yet ---


@pytest.mark.parametrize("prior", ["finite", "sticks"])
@pytest.mark.parametrize("family", ["structured", "factorised"])
def test_update_on_empty_sums_is_the_prior(prior, family):
    case = Case(prior, "normal", family, noise=0.5, scale=1.4, mass=1.5)
    alg, (chunk,), params, (state,) = prepare(case)
    empty = Chunk(0, 0, chunk.x[:0])
    params = replace(params, observation=replace(params.observation, squares=np.zeros(4), cells=np.zeros(4)))
    _, sums = sweep(alg, [empty], [part_of(state, 0, 0)], params, Draws(1))
    made, info = alg.update(params, sums, Draws(1))
    trace = info.trace()
    np.testing.assert_allclose(made.observation.mean, 0, atol=1e-15)
    np.testing.assert_allclose(gaussian_params.variance(made.observation), 1.4, rtol=1e-12)
    close(made.prior, alg.model.prior.init(3, 0))
    assert trace["objective"] == pytest.approx(0, abs=1e-10), "no data: the evidence is one"


# --- row state ---


def named(ids, **origin):
    """What `align` reads of parameters."""
    return SimpleNamespace(ids=np.array(ids, int), **(without_parents(len(ids)) | origin))


@BOTH
def test_align(weights):
    rng = np.random.default_rng(1)
    w = rng.normal(size=(3, 5)) if weights != "unit" else np.zeros((0, 5))
    state = RowState(ids=np.array([4, 7, 9]), z=rng.random((3, 5)), w=w)
    assert align(state, named(state.ids)) is state
    made = align(state, named([9, 12, 4]))
    assert made.ids.tolist() == [9, 12, 4]
    np.testing.assert_array_equal(made.z, [state.z[2], np.zeros(5), state.z[0]])
    if weights != "unit":
        np.testing.assert_array_equal(made.w, [w[2], np.zeros(5), w[0]])
    else:
        assert made.w.shape == (0, 5)
    assert (state.z != 0).all(), "the old state is left alone"


def test_align_from_nothing_and_to_nothing():
    state = RowState(ids=np.array([3]), z=np.ones((1, 2), np.float32), w=np.zeros((0, 2), np.float32))
    none = align(state, named([]))
    assert none.z.shape == (0, 2)
    back = align(none, named([3, 4]))
    assert back.z.tolist() == [[0, 0], [0, 0]]
    assert back.z.dtype == np.float32


def test_features_that_are_new_begin_as_their_parents_say():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 5))
    hard = RowState(ids=np.array([4, 7]), z=np.round([a, b]), w=np.zeros((0, 5)))
    parents = np.array([[4, 4, 7, OFF, 4], [OFF, 7, OFF, OFF, 7]])
    made = align(hard, named([4, 20, 21, 22, 23], parents=parents, flip=np.array([1, 0, 1, 1, 1], bool)))
    one, two = hard.z.astype(bool)
    expected = [one, one ^ two, ~two, np.ones(5, bool), ~(one ^ two)]
    np.testing.assert_array_equal(made.z, expected, "a known feature is not flipped again")
    soft = align(
        replace(hard, z=np.array([a, b])), named([20], parents=np.array([[4], [7]]), flip=np.array([True]))
    )
    np.testing.assert_allclose(soft.z[0], 1 - (a * (1 - b) + b * (1 - a)), atol=1e-15)


@BOTH
def test_local_aligns_first(weights):
    """A state written under other ids gives what the aligned state gives."""
    alg, (chunk,), params, (state,) = prepare(Case(weights=weights))
    params = replace(params, ids=np.array([5, 2, 8]))
    old = replace(state, ids=np.array([8, 5, 1]))
    (one,), sums = sweep(alg, [chunk], [old], params, Draws(1))
    (two,), other = sweep(alg, [chunk], [align(old, params)], params, Draws(1))
    np.testing.assert_array_equal(one.z, two.z)
    assert one.ids.tolist() == [5, 2, 8]
    close(sums, other)


# --- start, score, results ---


@pytest.mark.parametrize("rule", ["mean", "mode", "draw"])
def test_start(rule):
    alg = algorithm(Case(weights="normal", rule=rule), 4)
    chunk = Chunk(0, 10, np.zeros((2000, 2), np.float32))
    _, (state,), _ = begin(alg, [chunk])
    assert state.z.shape == state.w.shape == (4, 2000)
    assert state.z.dtype == np.float32
    assert (state.w == 0).all()
    assert abs(state.z.mean() - 0.5) < 0.03
    assert rule == "mean" or set(np.unique(state.z)) == {0.0, 1.0}


def test_draws_of_new_rows_begin_with_the_prevalence():
    """Rows that had both of two features that undo each other would keep them."""
    alg = algorithm(Case(rule="draw"), 3)
    chunk = Chunk(0, 0, np.zeros((4000, 2)))
    params, _, draws = begin(alg, [chunk])
    state = alg.start(chunk, replace(params, on=np.array([4000.0, 1000.0, 0.0])), draws)
    assert (state.z[0] == 1).all()
    assert abs(state.z[1].mean() - 0.25) < 0.03
    assert (state.z[2] == 0).all()


@BOTH
def test_score_is_the_trace_of_the_update(weights):
    alg, chunks, params, states = prepare(Case(weights=weights))
    _, sums = sweep(alg, chunks, states, params, Draws(1))
    made, info = alg.update(params, sums, Draws(1))
    trace = info.trace()
    assert alg.score(made, sums).trace() == trace
    assert trace["active"] == (sums.entries.on > ACTIVE).sum()


def test_update_raises_the_objective_of_any_globals():
    """Scored with the same sums, the new globals are above the old ones."""
    for case in grid(noises=("one", "column"), missing=("complete", "masked"), rules=("mean",)):
        alg, chunks, params, states = prepare(case)
        _, sums = sweep(alg, chunks, states, params, Draws(1))
        first, before = alg.update(params, sums, Draws(1))
        _, after = alg.update(first, sums, Draws(1))
        assert after.objective >= before.objective - 1e-9 * abs(before.objective), case


def test_results_are_by_falling_prevalence():
    alg, _, params, states = prepare(Case(weights="normal"))
    params = replace(params, on=np.array([1.0, 5.0, 5.0]), ids=np.array([4, 6, 5]))
    states = [replace(state, ids=params.ids) for state in states]
    assert by_prevalence(params).tolist() == [1, 2, 0], "ties keep their order"
    found = alg.describe(params)
    assert found["id"][1].tolist() == [6, 5, 4]
    np.testing.assert_allclose(found["prevalence"][1], np.array([5, 5, 1]) / 12)
    np.testing.assert_array_equal(found["mean"][1], params.observation.mean[[1, 2, 0]])
    rows = alg.describe_rows(states[0], params)
    np.testing.assert_array_equal(rows["z"][1], states[0].z[[1, 2, 0]])
    np.testing.assert_array_equal(rows["w"][1], states[0].w[[1, 2, 0]])


def test_unit_weights_are_not_reported():
    alg, _, params, states = prepare(Case())
    assert alg.describe_rows(states[0], params).keys() == {"z"}


def test_settings_below_one_are_refused():
    model = algorithm(Case()).model
    for given_settings, name in (((0, 1), "features"), ((3, 0), "inner")):
        with pytest.raises(UsageError, match=f"{name} is 0; expected"):
            Coordinate(model, *given_settings)


# --- odd data, every system ---


@pytest.mark.parametrize(("system", "name", "noise"), everyday(product(AT_ONCE, ODD, ["one", "column"])))
def test_odd_data_are_finite(system, name, noise):
    for dtype in (np.float64, np.float32):
        x = ODD[name].astype(dtype)
        alg = plain(system, 4, settings={"noise": noise})
        params, states, _, traces = fit(alg, chunked(x), 6)
        for record in (params, states[0]):
            for field, value in arrays_of(record).items():
                assert np.isfinite(value).all(), (field, dtype)
        assert all(np.isfinite(list(trace.values())).all() for trace in traces)
        assert (params.observation.noise > 0).all()
        assert (params.observation.scale > 0).all()


@pytest.mark.parametrize("system", AT_ONCE)
def test_rows_and_columns_never_seen(system):
    x, observed = problem(4, 7, 3, "masked")
    observed[:, 1], observed[3] = False, False
    x = np.where(observed, x, 0.0)
    for how in ("groups", "rows"):
        params, states, _, traces = fit(plain(system, 3, settings={"missing": how}), chunked(x, observed), 6)
        assert np.isfinite(objectives(traces)).all()
        assert np.isfinite(states[0].z).all()
        assert np.isfinite(params.observation.mean).all()


@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-vi-finite", "fa-vi-infinite"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_fit_begun_at_an_optimum_stays_there(system, seed):
    import ibpdist as ibp

    x, *_ = planted(seed, 300, 12, [0.4] * 4, 0.3)
    found = ibp.fit(x, system=system, K=6, seed=seed, restarts=3)
    again = ibp.fit(x, system=system, K=6, seed=seed + 50, start=found)
    before = found.attrs["objective"]
    assert again.attrs["objective"] > before - 2e-3 * abs(before)
    assert float(again["trace"]["objective"][0]) > before - 2e-2 * abs(before)


# --- annealing ---


def test_variances_cool_to_their_own():
    alg = plain("lg-vi-infinite", 3, settings={"anneal": 10})
    heats = [alg.heat(step) for step in range(120)]
    assert heats[0] == 10
    assert heats[1] == pytest.approx(1 + 9 * 0.9)
    assert all(later < earlier for earlier, later in pairwise(heats[:80]))
    assert heats[-1] == 1, "exactly, from some step on"
    assert alg.row_inference().heat(0) == 1, "new rows are never annealed"


def test_an_annealed_fit_settles_only_when_it_is_cold():
    x = problem(1, 40, 5, "complete")[0]
    *_, traces = fit(plain("lg-vi-infinite", 3, settings={"anneal": 10}), chunked(x), 110)
    hot = [trace["heat"] > 1 for trace in traces]
    assert hot == sorted(hot, reverse=True)
    assert 50 < sum(hot) < 100
    assert [bool(trace["settled"]) for trace in traces] == [not one for one in hot]
    cold = objectives(traces[sum(hot) :])
    assert np.diff(cold).min() >= -1e-9 * np.abs(cold).max()


@pytest.mark.parametrize("value", [0.5, 0, -1, "yes", True, float("inf"), float("nan")])
def test_anneal_is_a_number_of_at_least_one(value):
    with pytest.raises(UsageError, match=r"anneal.*expected a number of at least 1"):
        plain("lg-vi-infinite", 3, settings={"anneal": value})
    with pytest.raises(UsageError, match="unknown setting 'anneal'"):
        plain("lg-gibbs-finite", 3, settings={"anneal": 10})
