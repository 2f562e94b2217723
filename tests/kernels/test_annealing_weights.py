"""Chains over features and weights: the mean of their importance weights, and the law of their draws."""

import itertools

import numpy as np
import pytest
from scipy.special import log_expit, logsumexp

from ibpdist.base.randomness import Draws
from ibpdist.kernels.annealing_weights import annealed
from ibpdist.kernels.exponential import Exponential
from ibpdist.kernels.laplace import Laplace
from ibpdist.kernels.respond import Draw, Normal, Unit
from tests.kernels.test_annealing import problem

KEY = Draws(3).key("test")
ODDS = np.array([-0.5, 0.8])
GRID = np.linspace(-14, 14, 701)
"""Weights at even distances, with a place at zero, where the Laplace density has a kink and that of
exponential weights begins."""


def log_prior(kind):
    """log p(w) times the distance of the places."""
    step = np.log(GRID[1] - GRID[0])
    if isinstance(kind, Normal):
        return -0.5 * (GRID**2 + np.log(2 * np.pi)) + step
    if isinstance(kind, Exponential):
        share = np.where(np.abs(GRID) < 1e-9, 0.5, GRID > 0)
        return np.where(share > 0, np.log(np.maximum(share, 0.5)) - GRID, -np.inf) + step
    return -np.abs(GRID) - np.log(2) + step


def log_evidence(kind, gram, pull, z):
    """log of the mean of exp f(z w) over the weights of two features, by a sum over places."""
    if isinstance(kind, Unit):
        return z @ pull - 0.5 * z @ gram @ z
    one, two = (GRID if on else np.zeros(1) for on in z)
    f = (one * pull[0])[:, None] + two * pull[1] - np.outer(one, two) * gram[0, 1]
    f = f - 0.5 * gram[0, 0] * one[:, None] ** 2 - 0.5 * gram[1, 1] * two**2
    prior = [log_prior(kind) if on else np.zeros(1) for on in z]
    return float(logsumexp(f + prior[0][:, None] + prior[1]))


def exact(kind, gram, pull):
    """log of the evidence, and the probabilities of the features given the cells."""
    patterns = np.array(list(itertools.product([0, 1], repeat=2)), float)
    prior = patterns @ log_expit(ODDS) + (1 - patterns) @ log_expit(-ODDS)
    terms = [log_evidence(kind, gram, pull, z) + p for z, p in zip(patterns, prior, strict=True)]
    return logsumexp(terms), np.exp(terms - logsumexp(terms)) @ patterns


@pytest.mark.parametrize("kind", [Unit(), Normal(), Laplace(), Exponential()])
def test_weights_average_to_the_evidence(kind):
    """Unbiased for any number of levels, and the draws at the end have the law of the leg."""
    grams, pulls = problem(features=2, seed=4)
    many = np.repeat(pulls[:, None], 4000, axis=1)
    logs, kept = annealed(kind, Draw(), grams, many, ODDS, np.arange(4000), 1, 12, 1, KEY)
    for leg in range(2):
        evidence, chance = exact(kind, grams[leg], pulls[leg])
        weight = np.exp(logs[:, 0, leg] - evidence)
        error = weight.std() / np.sqrt(len(weight))
        assert abs(weight.mean() - 1) < 4 * error < 0.4
        found = (weight[:, None] * (kept[:, 0, leg, 0] != 0)).mean(axis=0)
        assert (np.abs(found - chance) < 4 * error + 0.02).all()


def test_rows_and_chains_have_their_own_numbers():
    grams, pulls = problem(features=2)
    many = np.repeat(pulls[:, None], 6, axis=1)
    whole, _ = annealed(Laplace(), Draw(), grams, many, ODDS, np.arange(10, 16), 3, 5, 1, KEY)
    part, _ = annealed(Laplace(), Draw(), grams, many[:, :2], ODDS, np.arange(12, 14), 3, 5, 1, KEY)
    np.testing.assert_array_equal(part, whole[2:4])
    assert np.unique(whole[:, :, 0]).size == 18


def test_features_whose_cells_are_hidden_keep_their_prior():
    """Nothing is known of y: quad and linear are zero, and chains have no weight."""
    grams, pulls = np.zeros((2, 2, 2)), np.zeros((2, 3000, 2))
    logs, kept = annealed(Laplace(), Draw(), grams, pulls, ODDS, np.arange(3000), 1, 3, 1, KEY)
    assert (logs == 0).all()
    chance = 1 / (1 + np.exp(-ODDS))
    np.testing.assert_allclose((kept[:, 0, 1, 0] != 0).mean(axis=0), chance, atol=0.04)


def test_no_features():
    made = annealed(
        Laplace(), Draw(), np.zeros((2, 0, 0)), np.zeros((2, 1, 0)), np.zeros(0), np.arange(1), 2, 3, 1, KEY
    )
    assert (made[0] == 0).all()
