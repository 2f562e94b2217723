"""A pass over a chunk: tiles of any size give the same answer, products are what they say."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import arrays_of
from ibpdist.model.observations import imputed, tiles
from ibpdist.model.observations.tiles import run_grams, tile_rows
from tests.support.model_cases import WEIGHTS, Case, algorithm, chunked, problem, random_params, random_state


@pytest.mark.parametrize(("columns", "itemsize"), [(1, 8), (100, 4), (1000, 4), (100_000, 8)])
def test_tile_rows(columns, itemsize):
    rows = tile_rows(columns, itemsize)
    assert rows % 64 == 0
    assert 64 <= rows <= 4096
    assert rows >= tile_rows(columns * 2, itemsize)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("missing", ["complete", "masked", "block", "rows"])
@pytest.mark.parametrize("rule", ["mean", "mode", "draw"])
def test_tile_size_does_not_matter(weights, missing, rule, monkeypatch):
    """Runs cross tiles; draws stay with their rows."""
    case = Case(weights=weights, missing=missing, rule=rule)
    x, observed = problem(3, 150, 4, missing)
    (chunk,), alg = chunked(x, observed), algorithm(case, 3, 2)
    params = random_params(case, alg, [chunk], 3)
    state = random_state(case, params, chunk, 3)
    found = []
    for size in (4096, 64, 7):
        for module in (tiles, imputed):
            monkeypatch.setattr(module, "tile_rows", lambda columns, itemsize, size=size: size)
        after, sums = alg.local(chunk, state, params, Draws(1))
        found.append({**arrays_of(after), **arrays_of(sums)})
    for other in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_allclose(other[name], value, rtol=1e-11, atol=1e-11, err_msg=name)


def test_sums_are_kept_by_nobody_else():
    """Products of tiles go through one table of each thread: no sum may be a view of it, and threads
    do not get in each other's way."""
    case = Case()
    alg, chunks = algorithm(case), chunked(problem(8, 600, 7)[0], None, [300, 300])
    params = random_params(case, alg, chunks, 8)
    states = [random_state(case, params, chunk, 8) for chunk in chunks]

    def cross(i):
        return alg.local(chunks[i], states[i], params, Draws(0).at(1))[1].observation.cross

    alone = [cross(0).copy(), cross(1).copy()]
    one, other = cross(0), cross(1)
    assert not np.shares_memory(one, other)
    np.testing.assert_array_equal(one, alone[0])
    with ThreadPoolExecutor(4) as pool:
        for i, found in enumerate(pool.map(cross, [0, 1] * 40)):
            np.testing.assert_array_equal(found, alone[i % 2])


def test_run_grams():
    """Products of means off the diagonal, second moments on it (linear-gaussian.md 5: never the products)."""
    rng = np.random.default_rng(1)
    y, starts, second = rng.normal(size=(3, 10)), np.array([0, 4, 4, 10]), rng.random((3, 3))
    found = run_grams(y, starts, second)
    for i, (a, b) in enumerate([(0, 4), (4, 4), (4, 10)]):
        exact = sum((np.outer(y[:, n], y[:, n]) for n in range(a, b)), np.zeros((3, 3)))
        off = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose(found[i][off], exact[off], rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(np.diagonal(found[i]), second[i])


@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_sums_by_hand(missing):
    """Counts, Gram matrices by group and cross products of the rows as they are afterwards."""
    case = Case(weights="normal", missing=missing)
    x, observed = problem(4, 20, 4, missing)
    (chunk,), alg = chunked(x, observed), algorithm(case)
    params = random_params(case, alg, [chunk], 4)
    before = random_state(case, params, chunk, 4)
    after, sums = alg.local(chunk, before, params, Draws(1))
    mask = np.ones(x.shape, bool) if observed is None else observed
    y, full = after.z * after.w, x
    np.testing.assert_allclose(sums.entries.on, after.z.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums.observation.cross, y @ np.where(mask, full, 0), rtol=1e-10, atol=1e-11)
    for d, g in enumerate(params.observation.group):
        gram = sums.observation.gram[g]
        expected = (y * mask[:, d]) @ y.T
        off = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose(gram[off], expected[off], rtol=1e-10, atol=1e-11)
        assert (np.diagonal(gram) >= np.diagonal(expected)).all(), "second moments hold the variances"


@pytest.mark.parametrize("rule", ["mean", "mode", "draw"])
def test_inputs_are_left_alone(rule):
    case = Case(weights="normal", missing="masked", rule=rule)
    x, observed = problem(5, 30, 4, "masked")
    (chunk,), alg = chunked(x, observed), algorithm(case)
    params = random_params(case, alg, [chunk], 5)
    state = random_state(case, params, chunk, 5)
    held = [chunk.x, chunk.observed, *arrays_of(state).values(), *arrays_of(params).values()]
    copies = [value.copy() for value in held]
    for value in held:
        value.flags.writeable = False
    alg.local(chunk, state, params, Draws(1))
    for value, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(value, copy)
