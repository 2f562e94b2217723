"""The draw rule is an exact sampler: Geweke joint tests, and samplers that are wrong on purpose.

A wrong one must be caught at the length at which the right one passes.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from ibpdist.kernels import laplace, respond
from ibpdist.model.observations import dictionary, drawn, imputed, noise_and_scale, row_noise, variances
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.observations.gaussian_sums import GaussianSums
from ibpdist.model.observations.row_noise import LEAST, MOST, Posterior
from ibpdist.model.priors import _mass, beta_bernoulli
from ibpdist.model.weights import normal
from ibpdist.model.weights._base import FixedWeights
from ibpdist.model.weights.laplace import Laplace
from ibpdist.model.weights.normal import Normal
from tests.support.geweke import Joint, scattered_mask, scores
from tests.support.joint_infinite import same_priors

PASS, CAUGHT = 4.0, 6.0
CHAINS, STEPS = 1000, 6
"""Half as many show nearly all that is wrong; before a release twice as many must pass."""


PLAIN = Joint(noise=0.5, scale=1.5, mass=2.0)
SYSTEMS = {
    "lg fixed": PLAIN,
    "fa fixed": Joint("normal", 0.5, 1.0, 2.0),
    "lg crowded": Joint(noise=0.05, scale=1.0, mass=8.0),
    "lg as it is": Joint(),
    "fa as it is": Joint("normal"),
    "lg even variances": Joint(floor=1.0),
    "fa column noise": Joint("normal", "column", floor=1.0),
    "lg masked": Joint(mask=scattered_mask(6), floor=1.0),
    "fa masked column noise": Joint("normal", "column", mask=scattered_mask(6), floor=1.0),
    "lg rows": Joint(mask=scattered_mask(6), floor=1.0, missing="rows"),
    "fa rows column noise": Joint("normal", "column", mask=scattered_mask(6), floor=1.0, missing="rows"),
    "fa scale of features": Joint("normal", scale="feature", floor=1.0),
    "lg intercept": Joint(floor=1.0, intercept=True),
    "fa intercept": Joint("normal", "column", floor=1.0, intercept=True),
    "fa masked intercept": Joint("normal", mask=scattered_mask(6), floor=1.0, intercept=True),
    "fa rows intercept": Joint("normal", mask=scattered_mask(6), floor=1.0, missing="rows", intercept=True),
    "fa level of noise": Joint("normal", "auto", floor=1.0, intercept=True, spread=(0.3, 1.0, 6.0)),
    "fa means": Joint("normal", floor=1.0, mu="learn"),
    "fa masked means": Joint("normal", "column", mask=scattered_mask(6), floor=1.0, mu="learn"),
    "fa rows means": Joint("normal", mask=scattered_mask(6), floor=1.0, missing="rows", mu="learn"),
    "fa one mean": Joint("normal", floor=1.0, mu=1.5),
    "fa uneven rows": Joint("normal", floor=1.0, row_noise="learn"),
    "fa all": Joint("normal", "column", floor=1.0, intercept=True, mu="learn", row_noise="learn"),
    "fa all masked": Joint(
        "normal", "column", mask=scattered_mask(6), floor=1.0, intercept=True, mu="learn", row_noise="learn"
    ),
    "fa all rows": Joint(
        "normal",
        "column",
        "feature",
        mask=scattered_mask(6),
        floor=1.0,
        missing="rows",
        intercept=True,
        mu="learn",
        row_noise="learn",
    ),
    "fa three turns": Joint("normal", mass=2.0, floor=1.0, inner=3),
    "ica fixed": Joint("laplace", 0.5, 1.0, 2.0),
    "ica": Joint("laplace", floor=1.0),
    "ica rows": Joint("laplace", mask=scattered_mask(6), floor=1.0, missing="rows"),
}


def run(joint, chains, monkeypatch, steps=STEPS):
    """Scores; the package's pseudo cell of the noise is set to that of the joint law."""
    same_priors(joint, monkeypatch)
    return scores(joint, chains, steps, seed=11)


def worst(found):
    name = max(found, key=lambda key: abs(np.nan_to_num(found[key])))
    return f"{name}: z = {found[name]:.1f}", abs(found[name])


@pytest.mark.parametrize(
    "name",
    [
        "lg fixed",
        "fa fixed",
        "fa masked column noise",
        "lg rows",
        "fa rows column noise",
        "fa level of noise",
        "fa all masked",
        "ica",
    ],
)
def test_sampler_in_short(name, monkeypatch):
    """A few hundred chains: catches gross faults every day."""
    found = run(SYSTEMS[name], 300, monkeypatch, steps=4)
    assert np.isfinite(list(found.values())).all(), found
    said, size = worst(found)
    assert size < PASS, said


@pytest.mark.slow
@pytest.mark.parametrize("chains", [CHAINS, pytest.param(2 * CHAINS, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_sampler(name, chains, monkeypatch):
    found = run(SYSTEMS[name], chains, monkeypatch)
    assert np.isfinite(list(found.values())).all(), found
    said, size = worst(found)
    assert size < PASS, said


# --- wrong on purpose ---


def count_off(monkeypatch):
    """Prevalences given one more row with each feature."""
    right = beta_bernoulli.posterior
    monkeypatch.setattr(
        beta_bernoulli,
        "posterior",
        lambda sums, share: right(replace(sums, on=sums.on + 1, rows=sums.rows + 1), share),
    )


class Stretched:
    """A generator whose normals have twice the variance."""

    def __init__(self, rng):
        self.rng = rng

    def standard_normal(self, shape):
        return np.sqrt(2) * self.rng.standard_normal(shape)


def wide_dictionary(monkeypatch):
    right = dictionary.draw
    monkeypatch.setattr(dictionary, "draw", lambda params, rng: right(params, Stretched(rng)))


def factorised_dictionary(monkeypatch):
    """Each entry of a column drawn alone, from the mean-field variance."""
    right = dictionary.rotations
    monkeypatch.setattr(
        dictionary,
        "rotations",
        lambda params, sums, family: right(params, sums, dictionary.Family.FACTORISED),
    )


def shape_off(monkeypatch):
    """Variances with half a shape too many."""
    right = variances.drawn
    monkeypatch.setattr(
        variances, "drawn", lambda cells, squares, at, rng: right(cells + 1, squares, at, rng)
    )


def heavy_weights(monkeypatch):
    """z and w updated as if the weights had precision 2."""
    monkeypatch.setattr(Normal, "respond", lambda self: respond.Normal(2.0))


def heavy_laplace_weights(monkeypatch):
    """z and w updated as if the weights had the rate 1.5."""
    monkeypatch.setattr(Laplace, "respond", lambda self: laplace.Laplace(1.5))


def weights_without_a_side(monkeypatch):
    """Weights on the side that the data do not favour are drawn on the other one."""
    right = Gaussian.sweep

    def wrong(self, chunk, params, prior, weights, rules, state, draws, inner):
        state, entries, sums = right(self, chunk, params, prior, weights, rules, state, draws, inner)
        return replace(state, w=np.abs(state.w)), entries, sums

    monkeypatch.setattr(Gaussian, "sweep", wrong)


def mass_off(monkeypatch):
    monkeypatch.setattr(_mass, "RATE", 0.2)


def every_cell_counts(monkeypatch):
    """The noise believes that missing cells were seen to be zero."""
    right = Gaussian.drawn_variances

    def wrong(self, params, sums, rng):
        return right(self, replace(params, cells=np.full_like(params.cells, float(sums.rows))), sums, rng)

    monkeypatch.setattr(Gaussian, "drawn_variances", wrong)


def odds_off(monkeypatch):
    """log pi in place of log pi - log(1 - pi)."""
    monkeypatch.setattr(beta_bernoulli.BetaBernoulli, "log_odds", lambda self, params: params.log_on)


def old_dictionary(monkeypatch):
    """The dictionary is not drawn again: the mean of its conditional is taken."""
    right = dictionary.draw
    monkeypatch.setattr(dictionary, "draw", lambda params, rng: replace(right(params, rng), mean=params.mean))


def every_cell_counts_for_the_noise(monkeypatch):
    """The noise is drawn as if the intercept took no cell."""
    monkeypatch.setattr(GaussianSums, "cells", GaussianSums.raw_cells)


def wide_intercept(monkeypatch):
    """The intercept is drawn with twice its variance."""
    right = drawn.drawn_intercept
    monkeypatch.setattr(
        drawn, "drawn_intercept", lambda params, sums, rng: right(params, sums, Stretched(rng))
    )


def means_without_limits(monkeypatch):
    """Means of weights are drawn as if their prior had no limits."""
    monkeypatch.setattr(normal, "_inside", lambda mean, sd, uniforms: mean + sd * ndtri(uniforms))


def old_means(monkeypatch):
    """The weights of rows are drawn as if their means were zero."""
    monkeypatch.setattr(Normal, "entry_prior", FixedWeights.entry_prior)


def mean_precisions(monkeypatch):
    """Rows keep the means of their precisions, and not draws."""
    right = Posterior.of
    monkeypatch.setattr(
        Posterior,
        "of",
        lambda nu, cells, squares, chances=None: Posterior.known(right(nu, cells, squares).mean),
    )


def freedom_of_the_prior(monkeypatch):
    """The law of the precisions is drawn without a look at them."""

    def wrong(rows, freedom, sums, rng):
        return float(np.exp(rng.uniform(np.log(LEAST), np.log(MOST))))

    monkeypatch.setattr(row_noise, "drawn_freedom", wrong)


def even_sums(monkeypatch):
    """Rows with hidden cells count once in the sums, however precise they are."""
    monkeypatch.setattr(imputed, "precision_of", lambda state: None)


def even_levels(monkeypatch):
    """The level is drawn as if all columns had the same noise."""
    right = Gaussian.drawn_variances

    def wrong(self, params, sums, rng):
        made = right(self, replace(params, spread=np.ones_like(params.spread)), sums, rng)
        return replace(made, noise=made.noise[0] * noise_and_scale.shared_ratios(params.spread))

    monkeypatch.setattr(Gaussian, "drawn_variances", wrong)


WRONG = [
    (even_levels, "fa level of noise", CHAINS // 2),
    (mean_precisions, "fa uneven rows", CHAINS // 2),
    (freedom_of_the_prior, "fa uneven rows", CHAINS),
    (even_sums, "fa all rows", CHAINS // 2),
    (means_without_limits, "fa means", CHAINS),
    (old_means, "fa means", CHAINS // 2),
    (every_cell_counts_for_the_noise, "fa intercept", CHAINS // 2),
    (wide_intercept, "lg intercept", CHAINS // 2),
    (odds_off, "lg fixed", CHAINS // 2),
    (old_dictionary, "fa fixed", CHAINS // 2),
    (count_off, "lg fixed", CHAINS // 2),
    (wide_dictionary, "lg fixed", CHAINS // 2),
    (factorised_dictionary, "lg crowded", 2 * CHAINS),  # with half as many it is about 6
    (shape_off, "lg even variances", CHAINS // 2),
    (heavy_weights, "fa fixed", CHAINS // 2),
    (mass_off, "lg as it is", CHAINS // 2),
    (heavy_laplace_weights, "ica fixed", CHAINS // 2),
    (weights_without_a_side, "ica fixed", CHAINS // 2),
    (every_cell_counts, "lg masked", CHAINS // 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "name", "chains"), WRONG)
def test_a_wrong_sampler_is_caught(wrong, name, chains, monkeypatch):
    wrong(monkeypatch)
    _, size = worst(run(SYSTEMS[name], chains, monkeypatch))
    assert size > CAUGHT
