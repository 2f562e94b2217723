"""Numbers of atoms of rounds: laws by convolution, and atoms taken off and put back."""

from itertools import product
from math import prod

import numpy as np
import pytest

from ibpdist.kernels.rounds import EXACT, _with, _without, counts, sweep_rounds


def test_laws_of_counts_are_sums_of_coins():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    found = counts(p)
    for r in range(3):
        law = np.zeros(5)
        for on in product((0, 1), repeat=4):
            law[sum(on)] += prod(p[k, r] if one else 1 - p[k, r] for k, one in enumerate(on))
        np.testing.assert_allclose(found[r], law, rtol=1e-12)


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.3, 0.5, 0.50001, 0.97, 1.0])
def test_an_atom_taken_off_and_put_back(p):
    """On either side of a half, for coins that are certain too, many times over."""
    rng = np.random.default_rng(1)
    held = counts(np.append(rng.random((30, 1)), [[p]], axis=0))[0]
    law = held.copy()
    for _ in range(200):
        _without(law, 31, p)
        assert law[31] == 0
        assert law.min() > -1e-15
        _with(law, 30, p)
    np.testing.assert_allclose(law, held, atol=1e-12)


def test_a_sweep_over_many_atoms_does_not_drift():
    """Rounds of 120 atoms, again and again: what is carried along is what would be made anew."""
    rng = np.random.default_rng(2)
    p, own = rng.dirichlet(np.ones(6), 120), rng.normal(size=(120, 6))
    for _ in range(3):
        p = sweep_rounds(own, p, np.arange(120), 2.0, EXACT)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    again = sweep_rounds(own, p, np.array([7]), 2.0, EXACT)
    others = counts(np.delete(p, 7, axis=0))
    pay = others @ np.log1p(np.arange(others.shape[1]))
    below = np.prod(np.delete(np.cumsum(p, axis=1), 7, axis=0), axis=0)[:-1]
    logits = own[7] - pay - 2.0 * np.concatenate([[0], np.cumsum(below)])
    wanted = np.exp(logits - logits.max())
    np.testing.assert_allclose(again[7], wanted / wanted.sum(), rtol=1e-9)
