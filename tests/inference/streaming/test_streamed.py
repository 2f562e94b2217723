"""One pass over growing data, by the sums of the parallel algorithm."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import arrays_of
from ibpdist.data._base import Chunk
from ibpdist.inference.streaming.streamed import Streamed, stream
from tests.support.model_cases import Case, algorithm, plain


def rows_of(count, columns=12, features=3, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    dictionary = 2 * rng.normal(size=(features, columns))
    z = rng.random((count, features)) < 0.4
    return z @ dictionary + noise * rng.normal(size=(count, columns)), dictionary


def chunked(x, size, observed=None):
    return [
        Chunk(i, at, x[at : at + size], None if observed is None else observed[at : at + size])
        for i, at in enumerate(range(0, len(x), size))
    ]


def equal(a, b):
    return all(
        np.array_equal(x, y) for x, y in zip(arrays_of(a).values(), arrays_of(b).values(), strict=True)
    )


def test_a_single_chunk_is_the_parallel_algorithm():
    x, _ = rows_of(80)
    algorithm, (chunk,) = plain("lg-vi-infinite", 4), chunked(x, 80)
    ((local, carry, info),) = stream(Streamed(algorithm, first=7), [chunk], seed=3)
    draws = Draws(3)
    params = algorithm.init(algorithm.summarise(chunk), draws)
    state = algorithm.start(chunk, params, draws)
    for step in range(1, 8):
        state, sums = algorithm.local(chunk, state, params, draws.at(step))
        params, expected = algorithm.update(params, sums, draws.at(step))
    assert info == expected
    assert equal(local, state)
    assert equal(carry.params, params)


@pytest.mark.parametrize("system", ["lg-vi-finite", "lg-vi-infinite", "fa-vi-infinite"])
def test_sums_and_counts_cover_the_rows_seen(system):
    x, _ = rows_of(230)
    seen = 0
    for _, carry, info in stream(Streamed(plain(system, 4), first=5), chunked(x, 60), seed=1):
        seen = min(seen + 60, 230)
        assert float(carry.sums.observation.rows) == seen
        assert float(carry.params.rows) == seen
        np.testing.assert_allclose(carry.params.observation.squares, (x[:seen] ** 2).sum(axis=0))
        assert np.isfinite(info.objective)


def test_the_objective_rises_within_a_chunk():
    x, _ = rows_of(120)
    first, second = chunked(x, 60)
    algorithm = plain("lg-vi-infinite", 4)
    ((_, carry, _),) = stream(Streamed(algorithm, first=1), [first], seed=1)
    levels = [
        next(stream(Streamed(algorithm, turns=turns), [second], seed=1, carry=carry))[2].objective
        for turns in range(1, 9)
    ]
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(levels))
    assert levels[-1] > levels[0]


def test_going_on_later_gives_the_same_bits():
    x, _ = rows_of(200)
    chunks, streamed = chunked(x, 50), Streamed(plain("fa-vi-finite", 4), first=5)
    whole = [carry for _, carry, _ in stream(streamed, chunks, seed=5)]
    later = [carry for _, carry, _ in stream(streamed, chunks[2:], seed=5, carry=whole[1])]
    assert equal(whole[-1], later[-1])


def test_features_are_found_in_one_pass():
    x, dictionary = rows_of(2000, seed=4)
    found = None
    for seed in range(4):
        *_, (_, carry, info) = stream(Streamed(plain("lg-vi-infinite", 3)), chunked(x, 100), seed=seed)
        if found is None or info.objective > found[0]:
            found = info.objective, carry.params.observation.mean
    assert found is not None
    for planted in dictionary:
        distance = np.sqrt(((found[1] - planted) ** 2).mean(axis=1)).min()
        assert distance < 0.3 * dictionary.std()


def test_cells_must_not_be_missing():
    x, _ = rows_of(100)
    observed = np.random.default_rng(0).random(x.shape) < 0.8
    chunks = chunked(np.where(observed, x, 0.0), 50, observed)
    for how in ("groups", "rows"):
        algorithm = plain("lg-vi-finite", 4, settings={"missing": how})
        with pytest.raises(UsageError, match="needs complete columns"):
            list(stream(Streamed(algorithm, first=2), chunks, seed=0))


def test_sums_of_rows_passed_follow_the_lengths_of_features():
    """The objective after a chunk is that of all rows seen, in the units of the parameters."""
    x, _ = rows_of(200)
    plain_fit = algorithm(Case("sticks", "normal", noise="column", scale="feature"), 4)
    carry = None
    for _, carry, info in stream(Streamed(plain_fit, first=6, turns=2), chunked(x, 50), seed=1):
        again = plain_fit.score(carry.params, carry.sums)
        assert again.objective == pytest.approx(info.objective, rel=1e-12)
    stretch = carry.params.observation.stretch
    assert (stretch != 1).any(), "something to follow"
