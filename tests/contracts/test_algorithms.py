"""What every parallel algorithm promises: each system of the catalog through the same assertions."""

import json
from copy import deepcopy
from dataclasses import is_dataclass
from itertools import product

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import arrays_of, combine, pack, unpack
from ibpdist.catalog.systems import build
from tests.support.compare import assert_same_record
from tests.support.covering import everyday
from tests.support.model_cases import (
    AT_ONCE,
    COUNTS,
    begin,
    chunked,
    fit,
    objectives,
    plain,
    problem_of,
    steps_of,
    survey,
    sweep,
    terms_of,
)

ALL = [*AT_ONCE, *COUNTS]
every = pytest.mark.parametrize("system", everyday(ALL))
"""Every day each prior with each of the other axes, and so on."""
some = pytest.mark.parametrize("system", everyday(ALL, 1))
"""For long fits: every day each member of each axis once."""
BEYOND = ("tail", "mass", "concentration", "noise", "scale")
"""Terms of the objective that the report's bound does not have."""
FEATURES, SIZES = 3, [5, 2, 6]


def prepared(system, missing="masked", dtype=np.float64, inner=2):
    x, observed = problem_of(system, 6, sum(SIZES), 4, missing, dtype)
    alg, chunks = plain(system, FEATURES, inner=inner), chunked(x, observed, SIZES)
    return alg, chunks, *begin(alg, chunks)


def frozen(*records):
    """The arrays of the records, made read-only."""
    for record in records:
        for value in arrays_of(record).values():
            value.flags.writeable = False


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_and_types(system, dtype):
    alg, chunks, params, states, draws = prepared(system, dtype=dtype)
    states, sums = sweep(alg, chunks, states, params, draws.at(1))
    made, info = alg.update(params, sums, draws.at(1))
    trace = info.trace()
    for record in (params, made, sums, *states):
        assert is_dataclass(record)
    for state, size in zip(states, SIZES, strict=True):
        z = alg.describe_rows(state, made)["z"][1]
        assert z.shape == (FEATURES, size)
        assert z.dtype == dtype
    assert {value.dtype for value in arrays_of(sums).values()} == {np.dtype(np.float64)}
    assert {"objective", "bound", "active"} <= trace.keys()
    assert all(isinstance(value, float) and np.isfinite(value) for value in trace.values())
    assert 0 <= trace["active"] <= FEATURES


@every
def test_pure(system):
    """Arguments are left alone, and the same arguments give the same bits."""
    alg, chunks, params, states, draws = prepared(system)
    frozen(params, *states)
    for chunk in chunks:
        chunk.x.flags.writeable = False
    one, sums = sweep(alg, chunks, states, params, draws.at(1))
    two, again = sweep(alg, chunks, states, params, draws.at(1))
    assert_same_record(sums, again)
    for a, b in zip(one, two, strict=True):
        assert_same_record(a, b)
    frozen(sums)
    made, info = alg.update(params, sums, draws.at(1))
    trace = info.trace()
    other, other_info = alg.update(params, sums, draws.at(1))
    assert_same_record(made, other)
    assert trace == other_info.trace()


@every
def test_round_trip_changes_no_bit(system):
    """Parameters, row state and sums through their outline and arrays between steps."""

    def through(record):
        outline, arrays = pack(record)
        return unpack(json.loads(json.dumps(outline)), {name: a.copy() for name, a in arrays.items()})

    alg, chunks, params, states, draws = prepared(system)
    other, other_states = through(params), [through(state) for state in states]
    for step in (1, 2, 3):
        states, sums = sweep(alg, chunks, states, params, draws.at(step))
        params, info = alg.update(params, sums, draws.at(step))
        trace = info.trace()
        other_states, other_sums = sweep(alg, chunks, other_states, other, draws.at(step))
        other, other_info = alg.update(other, deepcopy(other_sums), draws.at(step))
        other, other_states = through(other), [through(state) for state in other_states]
        assert trace == other_info.trace()
    assert_same_record(params, other)


@every
def test_sums_reduce_in_any_bracketing(system):
    alg, chunks, params, states, draws = prepared(system)
    a, b, c = (
        alg.local(chunk, state, params, draws.at(1))[1] for chunk, state in zip(chunks, states, strict=True)
    )
    left, right = combine(combine(a, b), c), combine(a, combine(b, c))
    for name, value in arrays_of(left).items():
        np.testing.assert_allclose(arrays_of(right)[name], value, rtol=1e-13, atol=1e-13)


@every
def test_sums_are_given_away(system):
    """They are added up in place, so what adds up shares memory with nothing that is kept."""
    x, observed = problem_of(system, 6, sum(SIZES), 4, "masked")
    alg = build(system, FEATURES, settings={"start": "random"})
    chunk = chunked(x, observed, SIZES)[0]
    params, draws = alg.init(alg.summarise(chunk), Draws(0)), Draws(0)
    local = alg.start(chunk, params, draws)
    after, sums = alg.local(chunk, local, params, draws.at(1))
    again = alg.local(chunk, local, params, draws.at(1))[1]
    records = (params, local, after, again)
    kept = [chunk.x, *(values for record in records for values in arrays_of(record).values())]
    given = list(arrays_of(sums).values())
    for at, values in enumerate(given):
        assert not any(np.shares_memory(values, other) for other in kept + given[:at] if values.ndim)


CHUNKED = {"looked", "common"}
"""Frequent values are counted in some rows of each chunk."""


@every
def test_survey_does_not_depend_on_chunks(system):
    alg, chunks, *_ = prepared(system)
    x, observed = problem_of(system, 6, sum(SIZES), 4, "masked")
    whole = alg.summarise(chunked(x, observed)[0])
    found, expected = arrays_of(survey(alg, chunks)), arrays_of(whole)
    for name in found.keys() - CHUNKED:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


@every
def test_seeds_and_chains(system):
    alg, chunks, params, states, _ = prepared(system)
    assert_same_record(params, begin(alg, chunks, 1)[0])
    facts = survey(alg, chunks)
    for draws in (Draws(2), Draws(1, 0, 1)):
        other = alg.describe(alg.init(facts, draws))["mean"][1]
        assert not np.array_equal(other, alg.describe(params)["mean"][1])
        if system not in COUNTS:  # whose rows begin without tokens
            assert not np.array_equal(alg.start(chunks[0], params, draws).z, states[0].z)


@every
def test_monotone_if_it_says_so(system):
    alg, chunks, *_ = prepared(system, "complete")
    value = objectives([trace for trace in fit(alg, chunks, 25)[3] if not trace.get("warming")])
    if alg.monotone():
        assert np.diff(value).min() >= -1e-9 * (np.abs(value).max() + 52)
    else:
        assert np.diff(value).min() < 0


@every
def test_bound_is_below_the_objective_by_what_the_report_does_not_have(system):
    alg, chunks, *_ = prepared(system)
    trace = fit(alg, chunks, 3)[3][-1]
    beyond = sum(trace.get(name, 0.0) for name in BEYOND)
    assert trace["objective"] - trace["bound"] == pytest.approx(beyond, abs=1e-9)
    assert sum(terms_of(trace).values()) == pytest.approx(trace["objective"], rel=1e-12)


@every
def test_results_have_their_dims(system):
    alg, _, params, states, _ = prepared(system)
    sizes = {"feature": FEATURES, "column": 4, "row": SIZES[0], "component": FEATURES}
    for found in (alg.describe(params), alg.describe_rows(states[0], params)):
        for name, (dims, values) in found.items():
            assert len(dims) == values.ndim, name
            assert all(sizes.get(dim, n) == n for dim, n in zip(dims, values.shape, strict=True)), name


# --- as systems are by default: with a start that asks the data, and moves ---


def default(system, missing="masked", dtype=np.float64):
    x, observed = problem_of(system, 6, sum(SIZES), 4, missing, dtype)
    alg, chunks = build(system, FEATURES), chunked(x, observed, SIZES)
    return alg, chunks, *begin(alg, chunks)


@pytest.mark.parametrize(
    ("system", "missing", "dtype"),
    everyday(product(ALL, ["complete", "masked"], [np.float32, np.float64]), 1),
)
def test_default_fits_are_pure_and_finite_at_every_step(system, missing, dtype):
    """Arguments are left alone, and the same arguments give the same bits, whatever is being tried."""
    alg, chunks, params, states, draws = default(system, missing, dtype)
    frozen(params, *states)
    for at, (rows, old), new, sums, made, trace in steps_of(alg, chunks, params, states, draws, 30):
        frozen(sums, made, *new)
        again, other = sweep(alg, chunks, rows, old, draws.at(at))
        assert_same_record(sums, other)
        for a, b in zip(new, again, strict=True):
            assert_same_record(a, b)
        twice, other_info = alg.update(old, sums, draws.at(at))
        assert_same_record(made, twice)
        assert trace == other_info.trace()
        assert {"objective", "bound", "active"} <= trace.keys()
        assert all(isinstance(value, float) and np.isfinite(value) for value in trace.values())


@some
def test_default_fits_survive_being_stored_between_steps(system):
    """Everything through its outline and bytes, also while something is being tried."""

    def through(record):
        outline, arrays = pack(record)
        return unpack(json.loads(json.dumps(outline)), {name: a.copy() for name, a in arrays.items()})

    alg, chunks, params, states, draws = default(system)
    other, rows = through(params), [through(state) for state in states]
    for at, _, new, _, made, trace in steps_of(alg, chunks, params, states, draws, 30):
        rows, sums = sweep(alg, chunks, rows, other, draws.at(at))
        other, other_info = alg.update(other, deepcopy(sums), draws.at(at))
        assert trace == other_info.trace()
        other, rows = through(other), [through(state) for state in rows]
        assert_same_record(made, other)
        for a, b in zip(new, rows, strict=True):
            assert_same_record(a, b)


@some
def test_default_results_have_their_dims_at_every_step(system):
    alg, chunks, params, states, draws = default(system)
    for _, _, new, _, made, _ in steps_of(alg, chunks, params, states, draws, 30):
        found = alg.describe(made)
        features = len(found["id"][1])
        for state, size in zip(new, SIZES, strict=True):
            shown = alg.describe_rows(state, made)["z"]
            assert shown[0] == ("feature", "row")
            assert shown[1].shape == (features, size)
        assert found["mean"][1].shape == (features, 4)


@some
def test_default_sums_reduce_in_any_bracketing(system):
    alg, chunks, params, states, draws = default(system)
    for _, (rows, old), _, _, _, _ in steps_of(alg, chunks, params, states, draws, 12):
        a, b, c = (
            alg.local(chunk, state, old, draws.at(1))[1] for chunk, state in zip(chunks, rows, strict=True)
        )
        left, right = combine(combine(a, b), c), combine(a, combine(b, c))
        for name, value in arrays_of(left).items():
            np.testing.assert_allclose(arrays_of(right)[name], value, rtol=1e-13, atol=1e-13)
