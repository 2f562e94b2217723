"""The density of rows with normal activities along their precision, against the normal density itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ibpdist.predict.dense_law import dense_curves
from ibpdist.predict.precision_grid import GRID
from tests.support.predictive import make_predictor, rows_of


@pytest.mark.parametrize("weights", ["unit", "normal"])
def test_equals_the_normal_density_at_every_precision(weights):
    of = make_predictor(3, 7, seed=3, weights=weights)
    if weights == "normal":
        of = replace(of, slab=np.array([1.5, -0.7, 0.0]))
    of = of.plug_in()
    x, _ = rows_of(of, 4, seed=1)
    cells = np.random.default_rng(2).random(x.shape) < 0.6
    cells[3] = False
    found = dense_curves(of, x, cells)
    chance = 1 / (1 + np.exp(-of.log_odds))
    mean = chance * of.tilt if weights == "normal" else chance
    second = chance * (1 + of.tilt**2) if weights == "normal" else chance
    for place in (118, 160, 178):
        psi = of.noise / np.exp(GRID[place])
        whole = np.diag(psi) + (of.mean.T * (second - mean**2)) @ of.mean
        for row, seen in enumerate(cells):
            if seen.any():
                law = multivariate_normal((mean @ of.mean)[seen], whole[np.ix_(seen, seen)])
                assert found[row, place] == pytest.approx(law.logpdf(x[row, seen]), rel=1e-9)
    np.testing.assert_array_equal(found[3], 0.0)


def test_noise_stays_that_of_the_dictionary_where_the_precision_is_large():
    """Half of psi is the variance of the dictionary: at tau = infinity the noise is half of psi."""
    of = replace(make_predictor(1, 5, seed=1, weights="normal"), log_odds=np.array([-600.0]))
    whole = replace(of, noise=of.noise / 2, extra=1.0, unit=of.noise / 2)
    x, _ = rows_of(of, 3, seed=1)
    cells = np.ones(x.shape, bool)
    found = dense_curves(whole, x, cells)[:, -1]
    expected = -0.5 * (np.log(np.pi * of.noise) + 2 * x**2 / of.noise).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
