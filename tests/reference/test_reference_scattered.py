"""The step of the dictionary with hidden cells filled: its bound lies below that of the visible cells and
touches it at the old dictionary, and the solution is its maximum."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import reference as ref
from tests.support import scattered_reference as rows
from tests.support.reference_cases import random_state

EVERY = pytest.mark.parametrize(
    ("prior", "weights"), [("finite", "unit"), ("finite", "normal"), ("sticks", "normal")]
)


def prepared(seed, prior, weights):
    """A state with covariances in a random basis, its filled sums, the basis and the spectra."""
    state = random_state(seed, prior=prior, weights=weights, missing="masked")
    basis = np.random.default_rng(seed).normal(size=(len(state.s), len(state.s)))
    basis, e = rows.unit_length(basis, rows.spectrum(state, basis), state.s)
    return with_covariance(state, basis, e), rows.filled(state, state.phi), basis, e


def with_covariance(state, basis, e):
    each = [basis @ np.diag(1 / (1 + e[:, d] / psi)) @ basis.T for d, psi in enumerate(state.psi)]
    return replace(state, sigma=np.array(each))


@EVERY
def test_it_touches_the_bound_at_the_old_dictionary(prior, weights):
    state, sums, _, e = prepared(3, prior, weights)
    assert rows.likelihood(state, sums, e) == pytest.approx(ref.likelihood(state), rel=1e-12)


@EVERY
def test_it_lies_below_elsewhere(prior, weights):
    state, sums, _, e = prepared(4, prior, weights)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0, 10.0):
        other = replace(state, phi=state.phi + size * rng.normal(size=state.phi.shape))
        assert rows.likelihood(other, sums, e) < ref.likelihood(other)


@EVERY
def test_the_covariance_of_rows_without_gaps_lies_below(prior, weights):
    """Its spectra are those of all rows, which are no smaller."""
    state, sums, _, _ = prepared(5, prior, weights)
    basis, e = rows.fresh(sums.gram, state.s, True, len(state.psi))
    assert (e >= rows.spectrum(state, basis) - 1e-12).all()
    state = with_covariance(state, basis, e)
    assert rows.likelihood(state, sums, e) <= ref.likelihood(state)


@EVERY
def test_the_solution_is_its_maximum(prior, weights):
    state, sums, basis, e = prepared(6, prior, weights)
    best, rng = rows.solved(state, sums, basis, e), np.random.default_rng(1)

    def value(at):
        return rows.likelihood(at, sums, e) + ref.dictionary(at)

    assert value(best) > value(state)
    for _ in range(5):
        near = replace(best, phi=best.phi + 1e-3 * rng.normal(size=best.phi.shape))
        assert value(near) < value(best)
