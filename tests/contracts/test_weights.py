"""What every kind of weights promises."""

import numpy as np
import pytest

from ibpdist.base.rules import Rule
from ibpdist.catalog import systems as catalog
from ibpdist.kernels.sweep import sweep
from ibpdist.model.observations.tiles import RULES
from ibpdist.model.weights._base import WeightSums
from tests.support.covering import everyday

WEIGHTS = {name: catalog.weights_of(name) for name in catalog.weights_names()}
every = pytest.mark.parametrize("name", WEIGHTS)
EVERY_RULE = [(name, rule) for name, weights in WEIGHTS.items() for rule in sorted(weights.rules)]
FEATURES, ROWS = 3, 70


def swept(weights, rule, strength=1.0, seed=1, dtype=np.float64):
    """One sweep from a random state: new z, w and the sums."""
    rng = np.random.default_rng(seed)
    shape, width = (FEATURES, ROWS), FEATURES if weights.has_weights else 0
    root = rng.normal(size=(1, FEATURES, 4))
    z, w = rng.random(shape).astype(dtype), rng.normal(size=(width, ROWS)).astype(dtype)
    fresh = (np.empty_like(z), np.empty_like(w))
    noise = np.zeros((0, ROWS)), np.zeros((0, ROWS), dtype)
    if rule is Rule.DRAW:
        noise = rng.random(shape), rng.normal(size=shape).astype(dtype)
    else:
        noise = np.zeros((0, ROWS), dtype), noise[1]
    sums = sweep(
        (strength * rng.normal(size=shape)).astype(dtype),
        (root @ root.transpose(0, 2, 1)).astype(dtype),
        np.array([0, ROWS]),
        rng.normal(size=FEATURES).astype(dtype),
        np.zeros(FEATURES, dtype),
        None,
        (z, w),
        weights.respond(),
        RULES[rule],
        noise,
        1,
        (*fresh, z[:0]),
    )
    return *fresh, sums[:, 0]


@every
def test_settings_are_values(name):
    weights = WEIGHTS[name]
    assert weights.name == name
    assert weights == type(weights)()
    assert hash(weights) == hash(type(weights)())
    assert Rule.MEAN in weights.rules


@every
def test_y_is_linear_in_z_and_zero_where_off(name):
    weights, rng = WEIGHTS[name], np.random.default_rng(2)
    z = rng.random((FEATURES, ROWS))
    w = rng.normal(size=(FEATURES if weights.has_weights else 0, ROWS))
    np.testing.assert_allclose(weights.combine(0.5 * z, w), 0.5 * weights.combine(z, w), rtol=1e-12)
    assert (weights.combine(np.zeros_like(z), w) == 0).all()
    assert weights.combine(z, w).shape == z.shape


@pytest.mark.parametrize(
    ("name", "rule", "dtype"),
    everyday((*one, dtype) for one in EVERY_RULE for dtype in (np.float64, np.float32)),
)
def test_every_rule_is_compiled(name, rule, dtype):
    z, w, (on, entropy, cost, second, _) = swept(WEIGHTS[name], rule, dtype=dtype)
    assert z.dtype == w.dtype == dtype
    assert ((z >= 0) & (z <= 1)).all()
    np.testing.assert_allclose(on, z.sum(axis=1, dtype=float), rtol=1e-6)
    assert (entropy >= 0).all()
    assert (rule is Rule.MEAN) == bool((entropy > 0).any())
    assert np.isfinite(cost).all()
    y = WEIGHTS[name].combine(z, w)
    assert (second >= (y * y).sum(axis=1) * (1 - 1e-6)).all(), "E y^2 is at least (E y)^2"


@pytest.mark.parametrize(("name", "rule"), EVERY_RULE)
def test_certain_entries(name, rule):
    """Overwhelming evidence: z is one or zero under every rule, and costs no entropy. The evidence against
    positive weights grows with the log of its strength alone."""
    z, _, (_, entropy, *_) = swept(WEIGHTS[name], rule, strength=1e16)
    assert (np.minimum(z, 1 - z) < 1e-12).mean() > 0.99
    assert entropy.max() < 1e-6 * ROWS


@every
def test_score(name):
    none = np.zeros(3)
    found = WEIGHTS[name].score(WeightSums(none, none, none, np.arange(3.0)), WEIGHTS[name].slab(3))
    assert sum(found.values()) == (-3.0 if WEIGHTS[name].has_weights else 0)


@every
def test_sample(name):
    normals = np.random.default_rng(3).normal(size=(FEATURES, ROWS))
    found = WEIGHTS[name].sample(FEATURES, ROWS, normals)
    assert found.shape == (FEATURES, ROWS)
    np.testing.assert_array_equal(found, WEIGHTS[name].sample(FEATURES, ROWS, normals))
