"""Samplers of independent components, from the data to the result and its scores."""

import numpy as np
import pytest

import ibpdist as ibp
from tests.support.planted_sources import SourceProblem, correlation, recovered, truth_started

SYSTEMS = ["ica-gibbs-finite", "ica-gibbs-infinite"]
every = pytest.mark.parametrize("system", SYSTEMS)
OF = SourceProblem(2, 0.3)


@pytest.fixture(scope="module")
def truth():
    """The variational fit that begins at the planted sources."""
    return truth_started(OF.planted, "ica-vi-infinite", {})


@every
def test_a_chain_from_the_truth_stays_there(system, truth):
    found = ibp.fit(OF.planted.x, system=system, K=5, start=truth, steps=80, burn=20, chains=1, serial=True)
    assert correlation(recovered(found), OF.planted.y) > 0.97
    drawn = found["posterior"]
    assert np.median(drawn["features"]) == 5
    assert drawn["features"].max() <= 8
    assert drawn["noise"].mean() == pytest.approx(OF.noise**2, rel=0.15)


@every
def test_a_chain_begins_at_a_fit_and_is_scored(system):
    """A few rows, since every draw is scored by chains of its own."""
    x = OF.planted.x
    found = ibp.fit(x[:237], system=system, K=5, steps=12, burn=8, chains=1, seed=1, serial=True)
    score = float(ibp.evaluate(found, x[237:], serial=True)["score"][-1])
    spread = x[:237].var(axis=0)
    plain = -0.5 * (np.log(2 * np.pi * spread) + x[237:] ** 2 / spread).sum(axis=1).mean()
    assert score > plain + 1


@every
def test_draws_explain_new_rows_as_the_fit_does(system, truth):
    """New rows are explained by the draws as by the fit that chains begin at."""
    x = OF.planted.x
    found = ibp.fit(x, system=system, K=5, start=truth, steps=40, burn=10, chains=1, serial=True)
    one, two = (ibp.transform(run, x[:20], serial=True) for run in (truth, found))
    np.testing.assert_allclose(one["mean"], two["mean"], atol=1.0)
