"""Search: row state follows every move, nothing is lost when it is, and the fit so far never falls."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import reduce
from itertools import product

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing, arrays_of, combine
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.engine.serial import Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.inference.ascent.search import Search
from ibpdist.inference.ascent.search_progress import Order, Phase
from ibpdist.inference.starts.subsample_fit import sums_of
from ibpdist.inference.stopping import Rising, tolerance
from ibpdist.inference.streaming.streamed import Streamed, stream
from ibpdist.model.observations._base import RowState
from tests.support.covering import everyday
from tests.support.planted_rows import masked, planted
from tests.support.search_cases import (
    Forgetful,
    Record,
    Rows,
    bench,
    decisions,
    example,
    packed,
    search,
    steps,
    unpacked,
)

KINDS = pytest.mark.parametrize("kind", ["useless", "constant"])
CHUNKS = 4


@pytest.fixture(scope="module")
def whole():
    """Undisturbed fits by kind: search, rows, seed, snapshots, and bytes of the row state at the end."""
    found = {}
    for kind in ("useless", "constant"):
        alg, source, seed = example(kind)
        snapshots, place = steps(alg, source, seed)
        found[kind] = alg, source, seed, snapshots, rows_of(place, snapshots[-1].step)
    return found


def rows_of(place, step):
    return [packed(place.state(index, step)) for index in range(CHUNKS)]


def same_steps(found, truth):
    """Every step's trace and parameters, bit by bit."""
    assert [now.trace for now in found] == [now.trace for now in truth]
    assert [packed(now.params) for now in found] == [packed(now.params) for now in truth]


def test_moves_of_every_kind_happen(whole):
    """What the tests below show, they show of these."""
    made = [one for alg, _, _, now, _ in whole.values() for one in decisions(alg, now)]
    assert {name for _, name, _, ok in made if ok} >= {
        "delete",
        "reorient",
        "renew rows",
        "birth",
        "re-basis",
    }
    assert {name for _, name, _, ok in made if not ok} >= {"trial delete"}
    for _, _, _, now, _ in whole.values():
        orders = {Order(int(one.params.stand.order)) for one in now}
        assert orders == set(Order)
        assert now[-1].trace["settled"] == 1


# --- row state that is lost ---


@KINDS
def test_a_chunk_lost_at_every_step_in_turn(whole, kind):
    alg, source, seed, truth, rows = whole[kind]
    memo = Forgetful(lambda chunk, step: chunk == step % CHUNKS)
    found, place = steps(alg, source, seed, memo=memo)
    assert memo.losses >= len(truth) - 1
    assert max(now.replayed for now in found) >= len(truth) - 5, "row state was made from the start"
    same_steps(found, truth)
    assert rows_of(place, truth[-1].step) == rows


@KINDS
@pytest.mark.parametrize("every", [5, 9])
def test_all_chunks_lost_again_and_again_with_checkpoints_between(whole, kind, every):
    """What is saved is saved at steps of all kinds, in the middle of trials too."""
    alg, source, seed, truth, rows = whole[kind]
    record, found = Record(), []
    memo = Forgetful(lambda chunk, step: step % every in (1, 2, 5))
    place = bench(alg, source, seed, record, memo)
    for now in sweeps(alg, Serial(place), seed):
        found.append(now)
        if now.step % every == 0:
            states = [place.state(index, now.step) for index in range(CHUNKS)]
            record.save(now.step, 0, states)
        if now.trace["settled"]:
            break
    saved = {step for step, _ in record.saved}
    trying = {now.step for now in truth if not isinstance(now.params.kept, Nothing)}
    assert len(saved & trying) >= 2
    assert 1 <= max(now.replayed for now in found) <= CHUNKS * every
    same_steps(found, truth)
    assert rows_of(place, truth[-1].step) == rows


@KINDS
def test_resumed_at_every_step(whole, kind):
    """Each step is made by a new process: parameters and row state come from what was saved."""
    alg, source, seed, truth, rows = whole[kind]
    begin, record, found, place = None, Record(), [], None
    for _ in truth:
        place = bench(alg, source, seed, record)
        now = next(sweeps(alg, Serial(place), seed, begin))
        found.append(now)
        states = [place.state(index, now.step) for index in range(CHUNKS)]
        record = Record()
        record.save(now.step, 0, states)
        begin = now.step, unpacked(packed(now.params))
        assert now.replayed == 0
    same_steps(found, truth)
    assert rows_of(place, truth[-1].step) == rows


def test_chunks_hold_the_same_features_however_they_came_to_them(whole):
    """Row state names its features as the parameters do, or as they were one step before."""
    alg, source, seed, truth, _ = whole["useless"]
    place = bench(alg, source, seed)
    for now in sweeps(alg, Serial(place), seed):
        for index in range(CHUNKS):
            state = place.state(index, now.step)
            trying = not isinstance(now.params.kept, Nothing)
            begun = int(now.params.stand.order) == Order.TRY
            assert isinstance(state.kept, RowState) == (trying and not begun) or not trying
        if now.step == len(truth):
            break


# --- the fit so far ---


def rescored(alg, source, place, now):
    """The objective of the result: its parameters, and the sums of the z that it shows."""
    states = [place.state(index, now.step) for index in range(source.chunks)]
    shown = [alg.describe_rows(state, now.params)["z"][1] for state in states]
    params = alg.handover_params(now.params)
    z = np.concatenate(shown, axis=1).astype(np.float64)
    by_prevalence = np.argsort(-params.on, kind="stable")
    z = z[np.argsort(by_prevalence, kind="stable")]
    return alg.fit.score(params, sums_of(z, source.x))


@KINDS
def test_parameters_rows_and_trace_agree_after_every_step(whole, kind):
    """Wherever a limit stops the fit, in the middle of a trial too, the result is one fit."""
    alg, source, seed, truth, _ = whole[kind]
    place = bench(alg, source, seed)
    for now in sweeps(alg, Serial(place), seed):
        found = rescored(alg, source, place, now)
        for name in ("objective", "bound", "active"):
            assert found.terms[name] == pytest.approx(now.trace[name], rel=1e-9), (now.step, name)
        shown = alg.describe(now.params)
        assert shown["active"][1].sum() == now.trace["active"]
        assert len(np.unique(shown["id"][1])) == len(shown["id"][1])
        if now.step == len(truth):
            break


def test_a_limit_in_the_middle_of_a_trial(whole):
    """Through the front door: the result has what the trial began with."""
    x, _, _ = planted(8, 80, 10, (0.3, 0.4, 0.25, 0.35), 0.4)
    made = search(features=6)
    snapshots, _ = steps(made, Rows(x, None, len(x)), 2)
    trying = [now.step for now in snapshots if now.params.stand.phase == Phase.TRYING]
    step = next(step for step in trying if {step - 2, step - 1} <= set(trying))
    limited = ibp.fit(x, system="lg-vi-infinite", K=6, seed=2, steps=step, rtol=0.0, start="random")
    level, now = limited.attrs["objective"], snapshots[step - 1]
    assert level == now.trace["objective"] != now.trace["trial"]
    shown, rows = limited["params"], limited["rows"]["z"].values
    final = made.handover_params(now.params)
    order = np.argsort(-final.on, kind="stable")
    np.testing.assert_array_equal(shown["mean"].values, final.observation.mean[order])
    params_order = np.argsort(order, kind="stable")
    scored = made.fit.score(final, sums_of(rows.T[params_order].astype(float), x))
    assert scored.objective == pytest.approx(level, rel=1e-9)


PROBLEMS = {
    "sticks": ("lg-vi-infinite", "complete", {}),
    "finite": ("lg-vi-finite", "complete", {}),
    "hard": ("lg-vi-infinite-hard", "complete", {}),
    "hard, finite": ("lg-vi-finite-hard", "complete", {}),
    "column noise": ("lg-vi-infinite", "complete", {"noise": "column"}),
    "block": ("lg-vi-infinite", "block", {"missing": "exact"}),
    "masked": ("lg-vi-infinite", "masked", {"missing": "exact"}),
    "masked, columns, finite": ("lg-vi-finite", "masked", {"missing": "exact", "noise": "column"}),
    "rows": ("lg-vi-infinite", "masked", {"missing": "rows"}),
    "weights": ("fa-vi-infinite", "complete", {}),
    "rows, columns, hard": ("lg-vi-finite-hard", "masked", {"missing": "rows", "noise": "column"}),
    "weights, masked": ("fa-vi-finite", "masked", {"missing": "rows"}),
    "fixed": ("lg-vi-finite", "complete", {"noise": 0.16, "scale": 1.0, "mass": 2.0}),
    "factorised": ("lg-vi-infinite", "complete", {"family": "factorised"}),
    "annealed": ("lg-vi-infinite", "complete", {"anneal": 8.0}),
}


@pytest.mark.parametrize(
    ("name", "start", "dtype"),
    everyday(product(PROBLEMS, ["random", "spectral"], [np.float64, np.float32]), 1),
)
def test_the_objective_never_falls(name, start, dtype):
    system, missing, settings = PROBLEMS[name]
    x, _, _ = planted(11, 70, 9, (0.3, 0.4, 0.25), 0.4)
    x, observed = masked(x, missing)
    alg = build(system, 5, settings=settings | {"start": start})
    guard, before, tried = Rising(x.size, tolerance(np.dtype(dtype).itemsize), True), None, 0
    for now in steps(alg, Rows(x.astype(dtype), observed, 30), 3, most=150)[0]:
        guard(before, now)
        before, tried = now, tried + (now.trace["move"] > 0)
    assert alg.monotone()
    assert tried or "fa" in system


def test_a_trial_counts_only_when_it_is_accepted(whole):
    for alg, _, _, truth, _ in whole.values():
        before = None
        for now in truth:
            trace, name = now.trace, alg.agenda.names[int(now.trace["move"]) - 1]
            refused = trace["move"] and not trace["accepted"] and name != "renew rows"
            if before is not None and (refused or not isinstance(before.params.kept, Nothing)):
                same = trace["objective"] == before.trace["objective"]
                assert same != trace["accepted"], now.step
            if refused:
                assert trace["gain"] == trace["trial"] - trace["objective"]
            elif isinstance(now.params.kept, Nothing):
                assert trace["trial"] == trace["objective"]
            before = now


def test_every_step_of_an_annealed_fit_has_its_heat():
    """Also one that ends with a move which needs no pass."""
    x, *_ = planted(0, 200, 12, [0.4] * 3, 0.3)
    trace = ibp.fit(x, system="lg-vi-infinite", K=8, anneal=4, steps=80, rtol=0, seed=1)["trace"]
    exact, heat = (trace["move"] == 1) & (trace["accepted"] == 1), trace["heat"].values
    assert exact.any()
    assert (heat[exact.values] == 1).all()
    assert np.isfinite(heat).all()
    assert (np.diff(heat) <= 0).all()
    assert heat[0] > 1 == heat[-1]


def test_ids_are_never_used_again(whole):
    """Not those of features that were dropped, nor those of a trial that was refused."""
    for _, _, _, truth, _ in whole.values():
        gone, present, fresh = set(), set(), 0
        for now in truth:
            kept = [] if isinstance(now.params.kept, Nothing) else now.params.kept.ids.tolist()
            ids = set(now.params.now.ids.tolist()) | set(kept)
            assert not ids & gone, now.step
            assert all(name >= fresh for name in ids - present), now.step
            gone |= present - ids
            present, fresh = ids, max(fresh, max(ids) + 1)
            assert int(now.params.stand.fresh) >= fresh


@pytest.mark.parametrize("start", ["random", "spectral"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_there_are_never_more_features_than_were_asked_for(start, limit):
    x, _, _ = planted(9, 80, 8, (0.3, 0.4, 0.25, 0.7), 0.4)
    for now in steps(search(features=limit, start=start), Rows(x, None, 40), 1, most=60)[0]:
        assert 1 <= len(now.params.now.ids) <= limit


# --- residuals ---


def test_residuals_are_of_some_rows_and_come_in_their_order():
    alg, source, seed = example("useless")
    params = alg.init(alg.summarise(Chunk(0, 0, source.x)), Draws(seed))
    stand = params.stand
    for share, least, most in ((0.4, 10, 40), (1.0, 60, 60)):
        asked = type(params)(
            params.now, params.kept, type(stand)(**{**vars(stand), "share": np.asarray(share)}), params.total
        )
        found = []
        for width in (60, 15):
            parts = []
            for index in range(60 // width):
                chunk = Rows(source.x, None, width).read(index)
                state = alg.start(chunk, asked, Draws(seed))
                parts.append(alg.local(chunk, state, asked, Draws(seed, 1))[1])
            found.append(reduce(combine, parts).rows.residuals)
        assert least <= len(found[0]) <= most
        np.testing.assert_allclose(found[0], found[1], atol=1e-10)


def test_residuals_are_zero_where_nothing_was_seen():
    x, _, _ = planted(1, 40, 6)
    x, observed = masked(x, "masked")
    alg = search(features=3)
    chunk = Chunk(0, 0, x, observed)
    params = alg.init(alg.summarise(chunk), Draws(0))
    stand = type(params.stand)(**{**vars(params.stand), "share": np.asarray(1.0)})
    asked = type(params)(params.now, params.kept, stand, params.total)
    state, sums = alg.local(chunk, alg.start(chunk, asked, Draws(0)), asked, Draws(0, 1))
    assert (sums.rows.residuals[~observed] == 0).all()
    left = x - state.now.z.T @ params.now.observation.mean
    np.testing.assert_allclose(sums.rows.residuals[observed], left[observed], atol=1e-12)


# --- streams, new rows, warm starts ---


def test_a_stream_goes_without_moves():
    x, _, _ = planted(2, 90, 8)
    chunks = [Rows(x, None, 30).read(index) for index in range(3)]
    alg = build("lg-vi-infinite", 4)
    assert isinstance(alg, Search)
    assert not isinstance(Streamed(alg).algorithm, Search)
    found = list(stream(Streamed(alg, first=8), chunks, seed=1))
    plain = list(stream(Streamed(alg.row_inference(), first=8), chunks, seed=1))
    for (a, carry, trace), (b, other, expected) in zip(found, plain, strict=True):
        assert packed(a) == packed(b)
        one, two = arrays_of(carry), arrays_of(other)
        assert one.keys() == two.keys()
        assert all(np.array_equal(one[name], two[name]) for name in one)
        assert trace == expected
        assert trace.move is None


@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-vi-finite-hard"])
def test_new_rows_get_the_features_of_the_fit(system):
    x, z, _ = planted(5, 400, 12, (0.3, 0.4, 0.25), 0.3)
    found = ibp.fit(x[:300], system=system, K=6, seed=1)
    assert "move" in found["trace"]
    assert int(found["params"]["active"].sum()) == 3
    again = ibp.transform(found, x[:300])["z"].values
    other = np.abs(again - found["rows"]["z"].values).max(axis=1) > 0.05
    assert other.mean() < 0.005, "but for a row whose hard assignment ends elsewhere"
    new = ibp.transform(found, x[300:])["z"].values
    close = np.abs(new[:, None, :] - z[300:, :, None]).mean(axis=0).min(axis=1)
    assert (close < 0.05).all()


@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-vi-finite"])
@pytest.mark.parametrize("limited", [False, True])
def test_a_fit_begun_at_a_fit_with_moves(system, limited):
    """Also at one that was stopped while it tried something."""
    x, _, _ = planted(6, 200, 10, (0.3, 0.4, 0.25, 0.35), 0.4)
    found = ibp.fit(x, system=system, K=6, seed=1, start="random", **({"steps": 45} if limited else {}))
    again = ibp.fit(x, system=system, K=6, seed=2, start=found)
    before = found.attrs["objective"]
    assert float(again["trace"]["objective"][0]) > before - 1e-2 * abs(before)
    assert again.attrs["objective"] > before - 1e-6 * abs(before)


def test_adopted_parameters_begin_a_new_stand(whole):
    alg, source, _, truth, _ = whole["useless"]
    chunk = Chunk(0, 0, source.x)
    params = alg.adopt(alg.handover_params(truth[-1].params), alg.summarise(chunk))
    assert is_dataclass(params)
    assert int(params.stand.phase) == Phase.SETTLING
    assert int(params.stand.fresh) > truth[-1].params.now.ids.max()
    np.testing.assert_allclose(params.total, source.x.sum(axis=0))
    assert {value.dtype.kind for value in arrays_of(params).values()} <= set("fiub")
