"""Anchors of features and frozen log odds against plain loops."""

import numpy as np
import pytest

from ibpdist.kernels.anchors import frozen, holders


def case(features=4, rows=50, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (rng.random((features, rows)) < 0.2).astype(dtype), rng.random(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_holders(dtype):
    z, order = case(dtype=dtype)
    z[2] = 0
    on, first = holders(z, order)
    np.testing.assert_array_equal(on, z.sum(axis=1))
    expected = [min((order[r] for r in range(50) if z[k, r] == 1), default=np.inf) for k in range(4)]
    np.testing.assert_array_equal(first, expected)
    assert first[2] == np.inf


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_no_features_and_no_rows(shape):
    on, first = holders(np.zeros(shape), np.zeros(shape[1]))
    assert on.shape == first.shape == (shape[0],)
    assert (on == 0).all()
    assert (first == np.inf).all()
    frozen(np.zeros(shape[0]), first, np.zeros(shape[1]), np.empty(shape))


def test_chunks_reduce_to_the_whole():
    z, order = case()
    parts = [holders(np.ascontiguousarray(z[:, a:b]), order[a:b]) for a, b in ((0, 7), (7, 8), (8, 50))]
    whole = holders(z, order)
    np.testing.assert_array_equal(sum(p[0] for p in parts), whole[0])
    np.testing.assert_array_equal(np.min([p[1] for p in parts], axis=0), whole[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frozen(dtype):
    z, order = case(dtype=dtype)
    odds = np.array([-1.5, 0.25, 2.0, -30.0])
    made = np.empty(z.shape, dtype)
    first = holders(z, order)[1]
    frozen(odds, first, order, made)
    for k in range(4):
        for r in range(50):
            if order[r] < first[k]:
                assert made[k, r] == -np.inf
                assert z[k, r] == 0
            elif order[r] == first[k]:
                assert made[k, r] == np.inf
                assert z[k, r] == 1
            else:
                assert made[k, r] == dtype(odds[k])


def test_every_feature_has_one_anchor():
    z, order = case(rows=200)
    made = np.empty(z.shape)
    frozen(np.zeros(4), holders(z, order)[1], order, made)
    np.testing.assert_array_equal(np.isposinf(made).sum(axis=1), np.ones(4))
