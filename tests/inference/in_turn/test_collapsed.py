"""The collapsed turn: missing cells, running tables, what it is exact for."""

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs.global_draws import blank_params, resized
from ibpdist.inference.in_turn.collapsed import Collapsed, CollapsedTable
from ibpdist.inference.in_turn.growable_tables import SPARE
from ibpdist.inference.in_turn.in_turn import Given
from ibpdist.inference.missing_cells import impute
from ibpdist.kernels.buffet import Law
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from tests.support.turns import planted

LAW = Law(0.5, 1.5, 0.0, 0.1, 30.0)


def parts(masked=True, rows=30):
    x, z = planted(rows=rows)
    observed = np.random.default_rng(1).random(x.shape) < 0.6 if masked else None
    chunk = Chunk(0, 5, np.where(observed, x, 0.0) if masked else x, observed)
    state = RowState(ids=np.arange(3), z=z, w=np.zeros((0, rows)))
    params = Gaussian().init(Gaussian().summarise(chunk), 3, np.random.default_rng(0))
    return chunk, state, replace(params, noise=np.full(6, 0.3))


def guessed(chunk, z, params, draws):
    return impute(chunk, z, params.mean, params.noise, draws)


def test_complete_rows_are_what_they_are():
    chunk, state, params = parts(masked=False)
    np.testing.assert_array_equal(guessed(chunk, state.z, params, Draws(0)), chunk.x)


def test_missing_cells_are_drawn_around_what_the_features_say():
    chunk, state, params = parts()
    guess = state.z.T @ params.mean
    made = np.array([guessed(chunk, state.z, params, Draws(0, step)) for step in range(600)])
    seen = chunk.observed
    np.testing.assert_array_equal(made[:, seen], np.broadcast_to(chunk.x[seen], (600, seen.sum())))
    off = (made - guess)[:, ~seen]
    assert abs(off.mean()) < 4 * np.sqrt(0.3 / off.size)
    assert off.var() == pytest.approx(0.3, rel=0.02)
    assert np.abs(off.mean(axis=0)).max() < 5 * np.sqrt(0.3 / 600)


def test_numbers_for_missing_cells_follow_the_global_row():
    chunk, state, params = parts()
    whole = guessed(chunk, state.z, params, Draws(0))
    tail = Chunk(0, chunk.start + 10, chunk.x[10:], chunk.observed[10:])
    late = guessed(tail, state.z[:, 10:], params, Draws(0))
    np.testing.assert_allclose(late, whole[10:], atol=1e-12)


def test_the_table_of_a_chain_is_in_double_precision():
    chunk, state, params = parts()
    chunk = Chunk(0, 0, chunk.x.astype(np.float32), chunk.observed)
    state = replace(state, z=state.z.astype(np.float32))
    made = Collapsed().table(
        chunk, state, Given(blank_params(Buffet().init(3, 30), params), LAW, 9, Draws(0))
    )
    assert {t.dtype for t in (made.x, made.tables.inverse, made.tables.cross)} == {np.dtype(float)}
    assert made.tables.sizes.tolist() == [3, 9]
    np.testing.assert_array_equal(made.z[:, :3], state.z.T)


def test_tables_made_anew_are_those_of_the_definitions():
    x, z = planted()
    made = CollapsedTable(x, z, np.arange(3), LAW, 9)
    made.renew()
    ridge = z @ z.T + LAW.noise / LAW.scale * np.eye(3)
    np.testing.assert_allclose(made.tables.inverse[:3, :3], np.linalg.inv(ridge), atol=1e-12)
    np.testing.assert_allclose(made.tables.mean[:3], np.linalg.solve(ridge, z @ x), atol=1e-12)
    inner = made.tables.mean[:3] @ made.tables.mean[:3].T
    np.testing.assert_allclose(made.tables.inner[:3, :3], inner, atol=1e-12)


def test_more_room_moves_nothing():
    x, z = planted()
    made = CollapsedTable(x, z, np.arange(3), LAW, 9)
    made.renew()
    before, room = made.tables, made.ids.size
    assert room >= 3 + SPARE
    made.grow()
    assert made.ids.size > room
    for name, axes in made.axes.items():
        old, new = getattr(before, name), getattr(made.tables, name)
        inside = tuple(slice(0, size) for size in old.shape)
        np.testing.assert_array_equal(new[inside], old)
        assert new.sum() == pytest.approx(old.sum())
        assert all(
            (a == b) != (axis in axes) for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True))
        )
        assert new.flags.c_contiguous
    assert made.scratch.inverse.shape == (made.ids.size, made.ids.size)


def test_a_table_of_no_feature_can_be_made_anew():
    x, _ = planted()
    made = CollapsedTable(x, np.zeros((0, 30)), np.arange(0), LAW, 0)
    made.renew()
    assert made.features == 0
    assert resized(parts()[2], 0).mean.shape == (0, 6)
